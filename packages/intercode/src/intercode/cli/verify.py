"""``intercode verify``: checks a bundle and executes its episodes again."""

from __future__ import annotations

import argparse
import sys

from intercode.cli.parser import ENVIRONMENT_OPTION
from intercode.core.config import parse_key_values
from intercode_sandbox.command.output import escape_control

DIFFERS = 1
"""Exit status if an episode differs from its record."""

EXAMPLE = """\
examples:
  intercode verify spider-react.tar.gz
  intercode verify spider-react.tar.gz --all

The command checks the digests and the figures, then executes a random sample of the episodes again.
It writes the result to FILE.verified.json for `intercode leaderboard`. A bundle cannot choose
files, code or the network of this machine: if it names some, an option has to allow it. Exit
status: 1 if an episode differs from its record, 2 for a bundle that was changed. If every reward is
equal and only observations differ, the output says so."""

ARGUMENTS = f"""\
bundle FILE           what `intercode bundle` wrote
--sample N            episodes to execute again (default 20)
| --all               execute every episode again
--seed N              seed of the sample, to repeat a verification
--image IMAGE         host, dir:PATH, tar:PATH or recipe:NAME (default: its own)
--network NETWORK     none, or host if the record was made with it
--dataset DATASET     your copy, if the bundle names a file
--reward PKG:FN       your copy, if the bundle names code
--timeout TIMEOUT     seconds per action (default: its own)
--parallel PARALLEL   episodes at the same time (default 2)
{ENVIRONMENT_OPTION}"""
DEFAULTS = {"sample": 20, "parallel": 2}
SETTINGS = {"seed": {"type": int}}


def handle(args: argparse.Namespace) -> int:
    """Verify the bundle, write the receipt, and print the result."""
    from intercode.evaluation.replay.recorded_environments import ReplayOptions
    from intercode.evaluation.replay.verify import verify, write_receipt

    own = parse_key_values(args.env_option)
    if args.reward is not None:
        own["reward"] = args.reward
    options = ReplayOptions(
        image=args.image,
        network=args.network,
        dataset=args.dataset,
        timeout=args.timeout,
        parallel=args.parallel,
        env_options=own,
    )
    sample = None if args.all else args.sample
    verdict = verify(args.bundle, options, sample=sample, seed=args.seed)
    receipt = write_receipt(verdict)
    report, first = verdict.report, verdict.first_mismatch
    print(escape_control(verdict.bundle.statement))
    print(f"sha256 {verdict.bundle.sha256}: every digest is correct")
    for note in verdict.notes:
        print(escape_control(f"NOTE     {note}"))
    total, steps = len(verdict.bundle.episodes), len(report.steps)
    if first is None:
        counts = f"{report.episodes} of {total} episodes, {steps} steps"
        print(f"EQUAL    {counts}: every recorded observation, reward and hash is equal")
    else:
        from intercode.cli.replay import branch

        print(
            f"DIFFERS  {len(report.native_mismatches)} of {report.episodes} executed episodes "
            f"({total} in the bundle); {steps} of {steps + report.later_steps} steps were compared"
        )
        if report.native_rewards_equal:
            print(f"         {branch.REWARDS_EQUAL}")
        print(escape_control(f"         first {branch.describe_mismatch(first)}"))
        print(escape_control(branch.indent(branch.format_difference(first))))
        if not report.deterministic:
            print(branch.NOT_DETERMINISTIC)
    print(f"seed {verdict.seed}; wrote {receipt}", file=sys.stderr)
    return 0 if verdict.equal else DIFFERS
