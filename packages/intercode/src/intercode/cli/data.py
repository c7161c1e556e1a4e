"""``intercode data``: fetches and converts the files of datasets."""

from __future__ import annotations

import argparse
import sys

from intercode.core.errors import UsageError
from intercode_sandbox.command.parser import add_options

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


FETCH_ARGUMENTS = """\
name NAME     dataset, such as nl2bash
--mirror URL  a server that has the same paths
--dest DIR    directory to write to"""
CONVERT_ARGUMENTS = """\
name NAME    spider, bird or wikisql
release DIR  directory of the unpacked release
out OUT      directory to write the tasks to"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands."""
    parts = parser.add_subparsers(dest="what", metavar="fetch|path|convert", required=True)
    fetch = parts.add_parser("fetch", help="get a dataset's files", epilog=EXAMPLE)
    add_options(fetch, FETCH_ARGUMENTS)
    parts.add_parser("path", help="print the directory of fetched files")
    text = "convert the release of another benchmark"
    add_options(parts.add_parser("convert", help=text, epilog=EXAMPLE), CONVERT_ARGUMENTS)


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
