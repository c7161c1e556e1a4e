"""``intercode merge``: merges parts of a run that several machines have played."""

from __future__ import annotations

import argparse
import sys

EXAMPLE = """\
examples:
  intercode merge machine-1/run machine-2/run --out runs/whole
  intercode eval nl2bash:verified --agent react --model m --out runs/whole
      plays what is missing in the merged run, as in any other

The parts must have the same settings. An episode that is in several parts counts once, and a
result replaces an error."""

ARGUMENTS = """\
directories DIR ...  runs' directories
--out DIR            the merged run
--duplicates HOW     what to do with different results for one task and epoch: refuse (the default),
                     first (take that of the directory named first), or epochs (add the others as
                     further epochs)"""
DEFAULTS = {"duplicates": "refuse"}
SETTINGS = {"out": {"required": True}}


def handle(args: argparse.Namespace) -> int:
    """Merge the runs and print the result."""
    from intercode.evaluation.evaluate.merge import merge
    from intercode.results import report

    result = merge(args.directories, args.out, args.duplicates)
    print(report.render(report.build([result.out])))
    print(f"Merged {len(args.directories)} runs: {result.episodes} episodes in {result.out}")
    counts = (
        (result.identical, "were in several of them"),
        (result.errors_replaced, "ended in an error in one and have a result in another"),
        (result.conflicts_resolved, f"had different results: --duplicates {args.duplicates}"),
    )
    for number, what in counts:
        if number:
            print(f"{number} {what}", file=sys.stderr)
    return 0
