"""``intercode export``: writes recorded episodes in the formats of other tools."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from intercode.cli.parser import path

EXAMPLE = """\
examples:
  intercode export runs/spider-react --to inspect --out spider.eval   then: inspect view
  intercode export runs/spider-react --to atif --out atif             one document an episode
  intercode export runs/spider-react --to authors --out logs          the InterCode authors' schema
  intercode export runs/spider-react --to chat --out train.jsonl      successful episodes only
  intercode export runs/spider-react --to tokens --out tokens.jsonl   ids, masks, log-probabilities

RUN is a run's directory, a .jsonl of trajectories, or a log in the authors' format."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("run", type=path, metavar="RUN", help="a run or log")
    parser.add_argument(
        "--to", required=True, metavar="FORMAT", help="atif, authors, chat, inspect or tokens"
    )
    parser.add_argument(
        "--out", type=path, required=True, metavar="PATH", help="the file or directory to write"
    )
    chat = parser.add_argument_group("for chat")
    absent: Any = argparse.SUPPRESS
    chat.add_argument(
        "--which", default=absent, metavar="WHAT",
        help="success: solved episodes up to the turn that did (the default); turns: each of their "
        "turns that ran, with what came before; all: every episode, with its rewards",
    )  # fmt: skip
    chat.add_argument(
        "--messages-only", action="store_true", default=absent,
        help="messages and tools only, for services that refuse anything else",
    )  # fmt: skip


def handle(args: argparse.Namespace) -> int:
    """Write the export and print what it contains and what it leaves out."""
    from intercode.core.errors import UsageError
    from intercode.results.export import export

    options = {k: getattr(args, k) for k in ("which", "messages_only") if hasattr(args, k)}
    if options and args.to != "chat":
        given = " and ".join("--" + name.replace("_", "-") for name in options)
        raise UsageError(f"{given} apply to the format chat, not {args.to!r}")
    written = export(args.run, args.to, args.out, **options)
    target = str(args.out) if len(written.files) != 1 else str(written.files[0])
    print(f"wrote {written.records} records to {target}", file=sys.stderr)
    for note in written.omitted:
        print(f"  {note}", file=sys.stderr)
    return 0
