"""``intercode report``: tables out of recorded episodes."""

from __future__ import annotations

import argparse
import sys

from intercode.cli.parser import path

EXAMPLE = """\
examples:
  intercode report runs/starter-gold-2026-01-31
  intercode report runs --format markdown --out results.md

PATH is a run's directory, a .jsonl of trajectories, a log in the authors' format, or a directory
with any of these below it. Results obtained under different conditions get rows of their own."""


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("paths", nargs="+", type=path, metavar="PATH", help="runs and logs")
    parser.add_argument(
        "--format", default="text", metavar="STYLE",
        help="text (the default), markdown, csv or json",
    )  # fmt: skip
    parser.add_argument("--out", type=path, metavar="FILE", help="write there, not to the terminal")


def handle(args: argparse.Namespace) -> int:
    """Print the tables, or write them."""
    from intercode import report

    text = report.render(report.build(args.paths), args.format)
    if args.out is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text, encoding="utf-8")
        print(f"wrote {args.out}", file=sys.stderr)
    return 0
