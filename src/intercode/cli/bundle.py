"""``intercode bundle``: writes a run as one file that others can verify."""

from __future__ import annotations

import argparse

from intercode.cli.parser import path

EXAMPLE = """\
examples:
  intercode bundle runs/spider-react --out spider-react.tar.gz
  intercode verify spider-react.tar.gz            anyone can check it
  intercode leaderboard *.tar.gz --out page       one HTML page of several

The bundle contains run.json, the trajectories, a digest of each, and a statement of the results,
which re-execution confirms or refutes. The observations of a run with --deterministic have to be
exactly the same."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("run", type=path, metavar="RUN", help="a run's directory")
    parser.add_argument(
        "--out", type=path, required=True, metavar="FILE.tar.gz", help="the bundle to write"
    )


def handle(args: argparse.Namespace) -> int:
    """Write the bundle and print its statement."""
    from intercode.results.export.bundle.bundle import write_bundle

    bundle = write_bundle(args.run, args.out)
    print(f"wrote {args.out}\nsha256 {bundle.sha256}\n{bundle.statement}")
    return 0
