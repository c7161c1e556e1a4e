"""``intercode data``: fetches and converts the files of datasets."""

from __future__ import annotations

import argparse
import sys

from intercode.cli.parser import path
from intercode.core.errors import UsageError

EXAMPLE = """\
examples:
  intercode data fetch nl2bash
      fetches the files of NL2Bash from its authors' repository and verifies their checksums
  intercode data fetch nl2bash --mirror http://localhost:8000
  intercode data path
  intercode data convert spider ~/spider_data ~/tasks
      converts the authors' release of Spider (or bird, wikisql) to files of tasks; then
      `intercode eval ~/tasks/spider-dev.jsonl --env-option engine=sqlite ...`

A download that was interrupted is resumed. INTERCODE_DATA names a directory of files that you have
already."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parts = parser.add_subparsers(dest="what", metavar="fetch|path|convert", required=True)
    fetch = parts.add_parser("fetch", help="get a dataset's files", epilog=EXAMPLE)
    fetch.add_argument("name", metavar="NAME", help="dataset, such as nl2bash")
    fetch.add_argument("--mirror", metavar="URL", help="a server that has the same paths")
    fetch.add_argument("--dest", type=path, metavar="DIR", help="directory to write to")
    parts.add_parser("path", help="print the directory of fetched files")
    convert = parts.add_parser(
        "convert", help="convert the release of another benchmark", epilog=EXAMPLE
    )
    convert.add_argument("name", metavar="NAME", help="spider, bird or wikisql")
    convert.add_argument(
        "release", type=path, metavar="DIR", help="directory of the unpacked release"
    )
    convert.add_argument("out", type=path, metavar="OUT", help="directory to write the tasks to")


def handle(args: argparse.Namespace) -> int:
    """Fetch, print the directory, or convert."""
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
    """Prints a line for each complete file."""

    def __init__(self) -> None:
        self._complete: set[str] = set()

    def __call__(self, name: str, done: int, total: int) -> None:
        if done >= total and name not in self._complete:
            self._complete.add(name)
            print(f"{name} ({total} bytes)", file=sys.stderr)
