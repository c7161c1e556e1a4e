"""``intercode report``: prints tables and draws figures of recorded episodes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from intercode.core.errors import InterCodeError, UsageError
from intercode.core.types import Trajectory
from intercode_sandbox.command.output import escape_control, log

EXAMPLE = """\
examples:
  intercode report runs/starter-gold-2026-01-31
  intercode report runs --format markdown --out results.md
  intercode report runs --format latex --out results.tex --plot figures
      tables for a paper; success by turn, by group and against cost as SVG
  intercode report runs/mine --matrix --with-gold --failed
      which tasks are solved; for the others, the gold and what differs from it
  intercode report machine-1/run machine-2/run --merge runs/whole
      the parts must have the same settings; `intercode eval ... --out runs/whole` plays what is
      missing in the merged run, as in any other

PATH is a run's directory, a .jsonl of trajectories, a log in the authors' format, or a directory
with any of these below it. Results under different conditions are in different rows. Published logs
give the tables of the paper; the report names the cells that the logs cannot give.

"error %" is the mean share of an episode's actions that failed, as in the paper; "errors" counts
the episodes that ended in an error of the sandbox or the model. They count as not solved."""

ARGUMENTS = """\
paths PATH ...      runs and logs
--format STYLE      text (the default), markdown, latex (needs booktabs), csv or json
--out FILE          write to this file
--matrix            a table of tasks and runs: which run solves which task
--stats             more tables: 95 %% intervals, pass@k, success by turn, behaviour, errors
--with-gold         below the tables, for each episode, the gold and beside it what the agent left;
                    the actions run again (text and markdown only)
--failed            with --with-gold: only the episodes that were not solved (in a line each: show)
--plot DIR          also draw figures as SVG and PNG to this directory (needs the extra data)
parts of a run:
--merge DIR         merge the runs, which are parts that several machines have played, to a new run,
                    and report that
--duplicates HOW    what to do with different results for one task and epoch: refuse (the default),
                    first (take that of the run named first), or epochs (add the others as further
                    epochs)"""
DEFAULTS = {"format": "text"}
RENAMED = {
    "--plot-format": "--plot DIR, which draws SVG and PNG",
}
"""Options of an earlier version that only this command had, and what they are now."""


GOLD_FORMATS = ("text", "markdown")
_WIDTH = 100  # columns of a report with golds
_LINES = 40  # of each comparison


def handle(args: argparse.Namespace) -> int:
    """Print the tables or write them to a file."""
    from intercode.results import report

    if args.with_gold and args.format not in GOLD_FORMATS:
        raise UsageError(
            f"--with-gold prints texts, not {args.format}: use --format {' or '.join(GOLD_FORMATS)}"
        )
    if args.failed and not args.with_gold:
        raise UsageError("--failed needs --with-gold: it chooses the episodes of which to show it")
    if args.out is not None and args.out.suffix in (".html", ".htm"):
        raise UsageError(
            f"a report is no HTML: `intercode view ... --html {args.out}` writes a page, and "
            "--format markdown, latex, csv or json gives other forms"
        )
    if args.merge is not None:
        report.render((), args.format)  # raises for an unknown one before anything is written
        args.paths = [_merge(args.paths, args.merge, args.duplicates or "refuse")]
    elif args.duplicates is not None:
        raise UsageError("--duplicates needs --merge: it says how the parts of a run are merged")
    tables = report.build(args.paths, stats=args.stats, matrix=args.matrix)
    text = report.render(tables, args.format)
    text += "" if text.endswith("\n") else "\n"
    sections = _gold_sections(args.paths, args.format, args.failed) if args.with_gold else ()
    if args.out is None:
        print(text, end="", flush=True)
        for section in sections:
            print(f"\n{section}", flush=True)
    else:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text + "".join(f"\n{s}\n" for s in sections), encoding="utf-8")
        print(f"wrote {args.out}", file=sys.stderr)
    if args.plot is not None:
        from intercode.results.report.plots import save_plots

        for file in save_plots(args.paths, args.plot):
            print(f"wrote {file}", file=sys.stderr)
    return 0


def _merge(parts: Sequence[Path], out: Path, duplicates: Any) -> Path:
    """Merge the parts of a run and print what was in several of them. Returns the merged run."""
    from intercode.evaluation.evaluate.merge import merge

    result = merge(parts, out, duplicates)
    log(f"merged {len(parts)} runs: {result.episodes} episodes in {result.out}")
    counts = (
        (result.identical, "were in several of them"),
        (result.errors_replaced, "ended in an error in one and have a result in another"),
        (result.conflicts_resolved, f"had different results: --duplicates {duplicates}"),
    )
    for number, what in counts:
        if number:
            log(f"{number} {what}")
    return result.out


def _gold_sections(paths: Sequence[Path], style: str, only_failed: bool) -> Iterator[str]:
    """Yield, for each episode, what was expected of it beside what its actions leave."""
    from intercode.cli.show import PARALLEL
    from intercode.results.report.result_sets import load_result_sets
    from intercode.results.statistics.metrics import is_solved
    from intercode.results.statistics.samples import all_samples
    from intercode_sandbox.valid_text import replace_surrogates

    episodes = [
        (f"{result_set.agent} with {result_set.model}, {result_set.log}", t)
        for result_set in load_result_sets(paths)
        for t in sorted(all_samples(result_set.episodes), key=lambda t: (t.index, t.task, t.epoch))
        if not (only_failed and is_solved(t))
    ]
    executor = ThreadPoolExecutor(PARALLEL)
    try:
        found = executor.map(_gold_of, [t for _, t in episodes])
        for (run, episode), lines in zip(episodes, found, strict=True):
            yield replace_surrogates(_section(run, episode, lines, style))
    finally:
        executor.shutdown(cancel_futures=True)


def _gold_of(episode: Trajectory) -> list[str]:
    """Return what was expected of an episode, or why that is not known, as lines."""
    from intercode.cli.show import Style, gold_lines
    from intercode.evaluation.replay.explain import explain

    try:
        return list(gold_lines(explain(episode), Style(), _LINES, _WIDTH))
    except InterCodeError as e:
        return [f"note: {escape_control(str(e))}"]


def _section(run: str, episode: Trajectory, lines: Sequence[str], style: str) -> str:
    epoch = f", epoch {episode.epoch}" if episode.epoch else ""
    outcome = "error" if episode.error else "solved" if episode.success else "not solved"
    title = escape_control(f"{episode.task}{epoch}: {outcome} by {run}")
    query = escape_control(episode.query.strip())
    if style == "text":
        return "\n".join([title, *(f"  {line}" for line in (*query.split("\n"), *lines))])
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`{3,}", f"{text}\n{query}")), default=2)
    fence = "`" * (longest + 1)
    heading = re.sub(r"([\\\\`*_{}\[\]<>#|])", r"\\\1", title)
    return f"### {heading}\n\n{fence}text\n{query}\n\n{text}\n{fence}"
