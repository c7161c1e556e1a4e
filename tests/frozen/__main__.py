"""The command line: ``python tests/frozen`` or, with ``PYTHONPATH=tests``, ``python -m frozen``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

from frozen.golden import compare, record
from frozen.items import all_items, choose


def main() -> int:
    """Run a command and return its exit status."""
    parser = argparse.ArgumentParser(prog="frozen", description="golden outputs of InterCode")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "compare"):
        command = commands.add_parser(name)
        command.add_argument("dir", type=Path)
        command.add_argument(
            "--only", nargs="+", default=(), metavar="NAME", help="beginnings of items' names"
        )
        command.add_argument("--jobs", type=int, default=2, help="items at a time")
        if name == "record":
            command.add_argument("--rounds", type=int, default=2)
        else:
            command.add_argument("--wording", action="store_true", help="show texts that differ")
    commands.add_parser("list")
    args = parser.parse_args()
    if args.command == "list":
        print("\n".join(all_items()))
        return 0
    names = choose(args.only)
    if args.command == "record":
        return record(args.dir, names, args.jobs, args.rounds)
    return compare(args.dir, names, args.jobs, args.wording)


if __name__ == "__main__":
    sys.exit(main())
