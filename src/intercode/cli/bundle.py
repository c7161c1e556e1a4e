"""``intercode bundle``: seal a run so that others can verify it."""

from __future__ import annotations

import argparse

from intercode.cli.parser import path

EXAMPLE = """\
examples:
  intercode bundle runs/spider-react --out spider-react.tar.gz
  intercode verify spider-react.tar.gz            anyone: is it what it says?
  intercode leaderboard *.tar.gz --out page       one HTML page of several

The bundle holds run.json, the trajectories, a digest of each, and the statement that re-execution
confirms or refutes. A run with --deterministic is confirmed to the letter."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("run", type=path, metavar="RUN", help="a run's directory")
    parser.add_argument(
        "--out", type=path, required=True, metavar="FILE.tar.gz", help="the bundle to write"
    )


def handle(args: argparse.Namespace) -> int:
    """Write the bundle, and print what it states."""
    from intercode.results.export.bundle.bundle import write_bundle

    bundle = write_bundle(args.run, args.out)
    print(f"wrote {args.out}\nsha256 {bundle.sha256}\n{bundle.statement}")
    return 0
