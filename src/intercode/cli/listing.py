"""``intercode list``: the names that the other commands take."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
from collections.abc import Iterable

from intercode.registry import unknown

_TABLES = {
    "datasets": "intercode.datasets:datasets",
    "agents": "intercode.agents:AGENTS",
    "environments": "intercode.envs:ENVIRONMENTS",
    "rewards": "intercode.rewards:REWARDS",
    "sandboxes": "intercode.sandboxes:SANDBOXES",
}

EXAMPLE = """\
examples:
  intercode list
  intercode list agents --json

Your own go where these do: --agent package.module:Class, --reward package.module:function, and a
.json, .jsonl or .csv file for a dataset."""


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"one of {', '.join(_TABLES)}")
    parser.add_argument("--json", action="store_true", help="for programs")


def handle(args: argparse.Namespace) -> int:
    """Print names, with the first line of what they are."""
    if args.kind is not None and args.kind not in _TABLES:
        raise unknown("kind", args.kind, list(_TABLES))
    kinds = [args.kind] if args.kind else list(_TABLES)
    found = {kind: dict(_named(kind)) for kind in kinds}
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    for kind, names in found.items():
        print(kind)
        for name, text in names.items():
            print(f"  {name:<16} {text}".rstrip())
    return 0


def _named(kind: str) -> Iterable[tuple[str, str]]:
    module, _, attribute = _TABLES[kind].partition(":")
    registry = getattr(importlib.import_module(module), attribute)
    for name in registry:
        text = inspect.getdoc(registry.load(name)) or ""
        yield name, text.partition("\n")[0]
