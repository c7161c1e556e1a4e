"""``intercode list``: the names that the other commands take, from here and from plugins."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from intercode.core.errors import InterCodeError
from intercode.core.registry import OWN_DISTRIBUTION, Registry, unknown_name_error

_REGISTRIES = {
    "datasets": "intercode.datasets:datasets",
    "agents": "intercode.agents:AGENTS",
    "environments": "intercode.environments:ENVIRONMENTS",
    "languages": "intercode.core.languages:LANGUAGES",
    "rewards": "intercode.environments.base.rewards:REWARDS",
    "sandboxes": "intercode.sandbox:SANDBOXES",
}

EXAMPLE = """\
examples:
  intercode list
  intercode list agents --json

Your own go where these do: --agent package.module:Class, --reward package.module:function or
file.py:function, and a task package's directory or a .json, .jsonl or .csv file for a dataset. An
installed package adds names by entry points (see docs/new-tasks.md)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXAMPLE
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"one of {', '.join(_REGISTRIES)}")
    parser.add_argument("--json", action="store_true", help="for programs")


def handle(args: argparse.Namespace) -> int:
    """Print names, with the first line of what they are and where they come from. What a plugin
    names and cannot be loaded is told on stderr, and left out."""
    if args.kind is not None and args.kind not in _REGISTRIES:
        raise unknown_name_error("kind", args.kind, list(_REGISTRIES))
    kinds = [args.kind] if args.kind else list(_REGISTRIES)
    found = {kind: list(_entries(kind)) for kind in kinds}
    if args.json:
        rows = {
            kind: {name: {"what": text, "from": origin} for name, text, origin in names}
            for kind, names in found.items()
        }
        print(json.dumps(rows, indent=2))
        return 0
    for kind, names in found.items():
        print(kind)
        for name, text, origin in names:
            source = "" if origin == OWN_DISTRIBUTION else f"  [{origin}]"
            print(f"  {name:<16} {text}{source}".rstrip())
    return 0


def _entries(kind: str) -> Iterable[tuple[str, str, str]]:
    """Each name of a table, what it is, and the package that gives it."""
    module, _, attribute = _REGISTRIES[kind].partition(":")
    registry: Registry = getattr(importlib.import_module(module), attribute)
    for plugin in registry.shadowed_plugins():
        known = registry.origin(plugin.name)
        _warn(f"{plugin.origin} also has {kind} {plugin.name!r}; that of {known} is used")
    for name in registry:
        try:
            text = _description(registry.load(name))
        except InterCodeError as e:
            _warn(str(e))
            continue
        yield name, text, registry.origin(name)


def _description(thing: object) -> str:
    """The first line of what there is to say of it; of an installed task package, its own words."""
    if isinstance(thing, ModuleType) and thing.__file__:
        from intercode.datasets import task_package

        return task_package.read_description(Path(thing.__file__).parent)
    described = getattr(thing, "summary", None)  # a language's
    if isinstance(described, str):
        return described
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def _warn(message: str) -> None:
    print(f"intercode: warning: {' '.join(message.split())}", file=sys.stderr)
