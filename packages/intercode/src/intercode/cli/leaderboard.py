"""``intercode leaderboard``: writes one page of results from bundles."""

from __future__ import annotations

import argparse
import sys

EXAMPLE = """\
examples:
  intercode leaderboard results/*.tar.gz --out page    then open page/index.html

The page is one file that loads nothing else. Results with different tasks, profiles, images or
machines are in different tables. A bundle counts as verified if the receipt of `intercode verify`
is beside it."""

ARGUMENTS = """\
bundles BUNDLE ...  .tar.gz files
--out DIR           directory for index.html"""
SETTINGS = {"out": {"required": True}}


def handle(args: argparse.Namespace) -> int:
    """Write the page."""
    from intercode.results.export.bundle.leaderboard import write_leaderboard

    page = write_leaderboard(args.bundles, args.out)
    print(f"wrote {page}", file=sys.stderr)
    return 0
