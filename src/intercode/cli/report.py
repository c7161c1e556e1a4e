"""``intercode report``: prints tables and draws figures of recorded episodes."""

from __future__ import annotations

import argparse
import sys

EXAMPLE = """\
examples:
  intercode report runs/starter-gold-2026-01-31
  intercode report runs --format markdown --out results.md
  intercode report runs --format latex --out results.tex --plot figures
      tables for a paper; success by turn, by group and against cost as SVG

PATH is a run's directory, a .jsonl of trajectories, a log in the authors' format, or a directory
with any of these below it. Results under different conditions are in different rows. Published logs
give the tables of the paper; the report names the cells that the logs cannot give."""

ARGUMENTS = """\
paths PATH ...      runs and logs
--format STYLE      text (the default), markdown, latex (needs booktabs), csv or json
--out FILE          write to this file
--matrix            a table of tasks and runs: which run solves which task
--stats             more tables: 95 %% intervals, pass@k, success by turn, behaviour, errors
--plot DIR          also draw figures to this directory (needs the extra plots)
--plot-format KIND  svg (the default) or png"""
DEFAULTS = {"format": "text", "plot_format": "svg"}


def handle(args: argparse.Namespace) -> int:
    """Print the tables or write them to a file."""
    from intercode.results import report

    text = report.render(
        report.build(args.paths, stats=args.stats, matrix=args.matrix), args.format
    )
    if args.out is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text, encoding="utf-8")
        print(f"wrote {args.out}", file=sys.stderr)
    if args.plot is not None:
        from intercode.results.report.plots import save_plots

        for file in save_plots(args.paths, args.plot, args.plot_format):
            print(f"wrote {file}", file=sys.stderr)
    return 0
