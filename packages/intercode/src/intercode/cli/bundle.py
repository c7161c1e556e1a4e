"""``intercode bundle``: writes a run as one file that others can verify."""

from __future__ import annotations

import argparse

EXAMPLE = """\
examples:
  intercode bundle runs/spider-react --out spider-react.tar.gz
  intercode verify spider-react.tar.gz            anyone can check it
  intercode leaderboard *.tar.gz --out page       one HTML page of several

The bundle contains run.json, the trajectories, a digest of each, and a statement of the results,
which re-execution confirms or refutes. The observations of a run with --deterministic have to be
exactly the same."""

ARGUMENTS = """\
run RUN            a run's directory
--out FILE.tar.gz  the bundle to write"""
SETTINGS = {"out": {"required": True}}


def handle(args: argparse.Namespace) -> int:
    """Write the bundle and print its statement."""
    from intercode.results.export.bundle.bundle import write_bundle

    bundle = write_bundle(args.run, args.out)
    print(f"wrote {args.out}\nsha256 {bundle.sha256}\n{bundle.statement}")
    return 0
