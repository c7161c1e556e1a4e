"""``intercode data``: a dataset's files."""

from __future__ import annotations

import argparse
import sys

from intercode.cli.parser import path
from intercode.core.errors import UsageError

EXAMPLE = """\
examples:
  intercode data fetch nl2bash
      the files of NL2Bash from its authors' repository, each checked against a pinned checksum
  intercode data fetch nl2bash --mirror http://localhost:8000
  intercode data path
  intercode data convert spider ~/spider_data ~/tasks
      the release of Spider (or bird, wikisql) as its authors ship it, as files of tasks:
      then `intercode eval ~/tasks/spider-dev.jsonl --env-option engine=sqlite ...`

A download that was cut off goes on where it stopped. INTERCODE_DATA names a directory that you
have already."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parts = parser.add_subparsers(dest="what", metavar="fetch|path|convert", required=True)
    fetch = parts.add_parser("fetch", help="get a dataset's files", epilog=EXAMPLE)
    fetch.add_argument("name", metavar="NAME", help="dataset, such as nl2bash")
    fetch.add_argument("--mirror", metavar="URL", help="a server that has the same paths")
    fetch.add_argument("--dest", type=path, metavar="DIR", help="where to put them")
    parts.add_parser("path", help="print where fetched files are kept")
    convert = parts.add_parser("convert", help="another benchmark's release", epilog=EXAMPLE)
    convert.add_argument("name", metavar="NAME", help="spider, bird or wikisql")
    convert.add_argument("release", type=path, metavar="DIR", help="where it was unpacked")
    convert.add_argument("out", type=path, metavar="OUT", help="directory to write the tasks to")


def handle(args: argparse.Namespace) -> int:
    """Fetch, print the place, or convert."""
    from intercode.datasets import data_files, fetch

    if args.what == "path":
        print(data_files.fetched_data_root())
        return 0
    if args.what == "convert":
        from intercode.datasets.convert import convert

        for file in convert(args.name, args.release, args.out):
            print(file)
        return 0
    if args.dest is not None and args.dest.exists() and not args.dest.is_dir():
        raise UsageError(f"--dest {args.dest} is a file; name a directory")
    print(fetch.fetch(args.name, args.mirror, args.dest, _DownloadProgress()))
    return 0


class _DownloadProgress:
    """Prints a line when a file is whole."""

    def __init__(self) -> None:
        self._complete: set[str] = set()

    def __call__(self, name: str, done: int, total: int) -> None:
        if done >= total and name not in self._complete:
            self._complete.add(name)
            print(f"{name} ({total} bytes)", file=sys.stderr)
