"""``intercode export``: writes recorded episodes in the formats of other tools."""

from __future__ import annotations

import argparse
import sys

from intercode_sandbox.command.parser import given_options

EXAMPLE = """\
examples:
  intercode export runs/spider-react --to inspect --out spider.eval   then: inspect view
  intercode export runs/spider-react --to atif --out atif             one document an episode
  intercode export runs/spider-react --to authors --out logs          the InterCode authors' schema
  intercode export runs/spider-react --to chat --out train.jsonl      successful episodes only
  intercode export runs/spider-react --to tokens --out tokens.jsonl   ids, masks, log-probabilities

RUN is a run's directory, a .jsonl of trajectories, or a log in the authors' format."""

ARGUMENTS = """\
run RUN          a run or log
--to FORMAT      atif, authors, chat, inspect or tokens
--out PATH       the file or directory to write
for chat:
--which WHAT     success: solved episodes up to the turn that did (the default); turns: each of
                 their turns that ran, with what came before; all: every episode, with its rewards
--messages-only  messages and tools only, for services that refuse anything else"""
SETTINGS = {"to": {"required": True}, "out": {"required": True}}


def handle(args: argparse.Namespace) -> int:
    """Write the export and print what it contains and what it leaves out."""
    from intercode.core.errors import UsageError
    from intercode.results.export import export

    own = ("which", "messages_only")
    options = {k: v for k, v in given_options(args).items() if k in own}
    if options and args.to != "chat":
        given = " and ".join("--" + name.replace("_", "-") for name in options)
        raise UsageError(f"{given} apply to the format chat, not {args.to!r}")
    written = export(args.run, args.to, args.out, **options)
    target = str(args.out) if len(written.files) != 1 else str(written.files[0])
    print(f"wrote {written.records} records to {target}", file=sys.stderr)
    for note in written.omitted:
        print(f"  {note}", file=sys.stderr)
    return 0
