"""``intercode merge``: one run out of parts that several machines have played."""

from __future__ import annotations

import argparse
import sys

from intercode.cli.parser import path

EXAMPLE = """\
examples:
  intercode merge machine-1/run machine-2/run --out runs/whole
  intercode eval nl2bash:verified --agent react --model m --out runs/whole
      plays what is missing in the merged run, as in any other

Parts must have been played with the same settings; the first that differs is named. The same
episode in several parts counts once, and a result goes before an error."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "directories", nargs="+", type=path, metavar="DIR", help="runs' directories"
    )
    parser.add_argument("--out", type=path, required=True, metavar="DIR", help="the merged run")
    parser.add_argument(
        "--duplicates", default="refuse", metavar="HOW",
        help="different results for one task and epoch: refuse (the default); first takes those of "
        "the directory named first; epochs makes the later ones further epochs",
    )  # fmt: skip


def handle(args: argparse.Namespace) -> int:
    """Merge, and say what came of it."""
    from intercode.evaluation.evaluate.merge import merge
    from intercode.results import report

    done = merge(args.directories, args.out, args.duplicates)
    print(report.render(report.build([done.out])))
    print(f"Merged {len(args.directories)} runs: {done.episodes} episodes in {done.out}")
    told = (
        (done.identical, "lay in several of them"),
        (done.errors_replaced, "ended in an error in one and have a result in another"),
        (done.conflicts_resolved, f"had different results: --duplicates {args.duplicates}"),
    )
    for number, what in told:
        if number:
            print(f"{number} {what}", file=sys.stderr)
    return 0
