"""``intercode replay BUNDLE``: checks a bundle and executes its episodes again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from intercode.cli.replay import branch
from intercode_sandbox.command.output import escape_control
from intercode_sandbox.command.parser import positive_int

if TYPE_CHECKING:
    from intercode.evaluation.replay.recorded_environments import ReplayOptions

DIFFERS = 1
"""Exit status if an episode differs from its record."""


def sample_size(text: str) -> int:
    """Parse a number of episodes, or ``all``, which is 0."""
    return 0 if text == "all" else positive_int(text)


def handle(args: argparse.Namespace, bundle: Path, options: ReplayOptions) -> int:
    """Verify the bundle, write the receipt, and print the result."""
    from intercode.evaluation.replay.verify import DEFAULT_SAMPLE, verify, write_receipt

    sample = DEFAULT_SAMPLE if args.sample is None else args.sample or None
    verdict = verify(bundle, options, sample=sample, seed=args.seed)
    receipt = write_receipt(verdict)
    report, first = verdict.report, verdict.first_mismatch
    total, steps = len(verdict.bundle.episodes), len(report.steps)
    print(escape_control(f"it claims: {verdict.bundle.statement}"))
    more = " (`--sample all` for all)" if report.episodes < total else ""
    print(f"executed again: {report.episodes} of {total} episodes{more}")
    print(f"sha256 {verdict.bundle.sha256}: every digest is correct")
    for note in verdict.notes:
        print(escape_control(f"NOTE     {note}"))
    if first is not None:
        if not report.deterministic:
            print(f"NOTE     {branch.NOT_DETERMINISTIC}")
        print(escape_control(f"first    {branch.describe_mismatch(first)}"))
        print(escape_control(branch.indent(branch.format_difference(first))))
    print(f"seed {verdict.seed}; wrote {receipt}", file=sys.stderr)
    if first is None:
        counts = f"{report.episodes} of {total} episodes, {steps} steps"
        print(f"EQUAL    {counts}: every recorded observation, reward and hash is equal")
    else:
        equal = f"; {branch.REWARDS_EQUAL}" if report.native_rewards_equal else ""
        print(
            f"DIFFERS  {len(report.native_mismatches)} of {report.episodes} executed episodes "
            f"({total} in the bundle); {steps} of {steps + report.later_steps} steps were "
            f"compared{equal}"
        )
    return 0 if verdict.equal else DIFFERS
