"""The command line. Each command is a module of this package, imported only when it is called.

The module of a command has ``EXAMPLE``, the text below its help, ``ARGUMENTS``, as ``add_options``
reads them, with their ``DEFAULTS``, other ``SETTINGS``, the ``RENAMED`` ones, and ``SEVERAL``, what
to do in place of giving a further value, if any, and ``handle(args) -> int``, which runs the
command and returns the exit status. A command with sub-commands has ``add_arguments(parser)`` in
place of ``ARGUMENTS``. ``main`` prints the errors of ``core.errors`` as one line.

A command does one thing, or two that take other inputs and have other results. ``MODES`` are those
of a command that refuses options: each has forms, with the options that have a meaning there.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from intercode import __version__
from intercode.core.errors import UsageError
from intercode.core.packages import GYM_DISTRIBUTION
from intercode_sandbox.command.exit_status import USAGE, call_handler, run_program
from intercode_sandbox.command.parser import Parser, add_options
from intercode_sandbox.registry import Registry, unknown_name_error

__all__ = ["COMMANDS", "main"]

GROUPS = {
    "play tasks": {
        "eval": "play a dataset with an agent and print the results",
        "play": "play tasks yourself in the terminal",
        "replay": "execute recorded episodes again: compare, verify, score anew or branch",
    },
    "read results": {
        "report": "print tables and draw figures from runs and logs; merge parts of a run",
        "compare": "compare runs with each other, task by task",
        "show": "show one episode turn by turn",
        "view": "show episodes in a browser, or write them to one HTML file",
        "export": "write episodes or tasks for other tools, a bundle, or a leaderboard",
    },
    "make tasks": {
        "list": "list datasets, agents, environments and rewards; fetch a dataset's files",
        "new": "create a task package, or convert the release of a benchmark",
        "check": "test that the tasks of a dataset are sound, and that labels agree with rewards",
    },
    "machines": {
        "doctor": "print what this machine can do and what it lacks",
        "sandbox": "run a command or a shell in a sandbox or in copies of it, list live ones",
        "image": "build, fetch, list and remove root file systems",
        "serve": "serve environments (OpenEnv, MCP) or sandboxes over the network",
    },
}
"""The commands and their descriptions in ``intercode --help``, by purpose."""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
"""The commands. Each is a module of this package.

>>> from intercode.cli import COMMANDS
>>> COMMANDS["doctor"]
'print what this machine can do and what it lacks'
"""

_MODULE_NAMES = {"eval": "evaluate", "list": "listing"}
"""Modules whose name is not that of the command, which is a builtin of Python."""

RENAMED = {
    "audit": "check DATASET --audit",
    "bundle": "export RUN --to bundle --out FILE.tar.gz",
    "data": "list --fetch DATASET | new DIR --convert NAME --from RELEASE",
    "harbor": "export DATASET --to harbor --out DIR",
    "leaderboard": "export BUNDLE ... --to leaderboard --out DIR",
    "mcp": "serve ENVIRONMENT --protocol mcp",
    "merge": "report DIR DIR ... --merge OUT",
    "regrade": "replay RUN --score PROFILE --out DIR",
    "validity": "check --labels FILE",
    "verify": "replay BUNDLE",
}
"""Commands of an earlier version, and what they are now."""

_PLUGINS = Registry("command", {}, group="intercode.commands", owner=GYM_DISTRIBUTION)
"""The modules of commands that other packages add by entry points."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments after the name of the program; None: those of this process.

    Returns:
        The exit status: 0, one of ``run_program``, or one of the command's own.

    >>> from intercode.cli import main
    >>> main(["--version"])
    intercode ...
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    return run_program("intercode", lambda: _run(words))


def _run(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    chosen = next((word for word in words if not word.startswith("-")), None)
    if chosen in RENAMED and chosen not in _PLUGINS:
        now = " or ".join(f"`intercode {words}`" for words in RENAMED[chosen].split(" | "))
        raise UsageError(f"`intercode {chosen}` is now {now}")
    if chosen is not None and chosen not in COMMANDS and chosen not in _PLUGINS:
        raise unknown_name_error("command", chosen, list({**COMMANDS, **_added_commands()}))
    parser, own, module = _make_parser(chosen)
    args, rest = parser.parse_known_args(words)
    if rest:
        raise own.unknown_argument(rest[0], getattr(module, "SEVERAL", ""))
    if module is None:
        parser.print_help()
        return USAGE
    return call_handler(module.handle, args)


def _make_parser(chosen: str | None) -> tuple[Parser, Parser, ModuleType | None]:
    """Return the parser, the parser of the chosen command and its module.

    Only the chosen command has its arguments, as they are in its module.
    """
    added = {} if chosen in COMMANDS else _added_commands()
    parser = Parser(
        prog="intercode",
        usage="intercode [-h] [--version] COMMAND ...",
        description="Interactive coding with execution feedback: tasks in safe, fresh sandboxes.",
        epilog=_describe_commands(added)
        + "\nStart here:  intercode doctor  |  intercode eval starter --agent gold\n"
        "Help for a command:  intercode eval --help",
    )
    parser.add_argument("--version", action="version", version=f"intercode {__version__}")
    commands = parser.add_subparsers(prog="intercode", help=argparse.SUPPRESS)
    own, module = parser, None
    for name, text in {**COMMANDS, **added}.items():
        command = commands.add_parser(name, description=text[0].upper() + text[1:] + ".")
        if name == chosen:
            module = _load_command(name)
            own, command.epilog = command, module.EXAMPLE
            if hasattr(module, "add_arguments"):
                module.add_arguments(command)
            else:
                from intercode.cli.shared_options import RENAMED_OPTIONS

                settings = getattr(module, "SETTINGS", {})
                renamed = {**RENAMED_OPTIONS, **getattr(module, "RENAMED", {})}
                add_options(command, module.ARGUMENTS, settings, renamed)
            command.set_defaults(**getattr(module, "DEFAULTS", {}))
    return parser, own, module


def _describe_commands(added: Mapping[str, str]) -> str:
    """Return the commands with their descriptions, by purpose."""
    groups = {**GROUPS, "added by plug-ins": added} if added else GROUPS
    parts = [
        f"{title}:\n" + "".join(f"  {name:<9} {text}\n" for name, text in group.items())
        for title, group in groups.items()
    ]
    return "\n".join(parts)


def _added_commands() -> dict[str, str]:
    """Return the commands of other packages that this one does not know, with a description."""
    names = (name for name in _PLUGINS if name not in COMMANDS)
    return {name: f"a command of {_PLUGINS.origin(name) or GYM_DISTRIBUTION}" for name in names}


def _load_command(name: str) -> ModuleType:
    if name in COMMANDS:
        return importlib.import_module(f"intercode.cli.{_MODULE_NAMES.get(name, name)}")
    module: ModuleType = _PLUGINS.load(name)
    return module
