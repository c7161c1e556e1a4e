"""The command line. Each command is a module here, imported only when it is the one asked for.

A command's module has ``add(parser)``, which fills the command's own argparse parser, and
``handle(args) -> int``, which does the work and gives the exit status. Raise the errors of
errors.py freely: ``main`` prints them as one line.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from intercode import __version__
from intercode.cli.parser import Parser, ParserExit
from intercode.core.errors import InterCodeError, UsageError
from intercode.core.registry import unknown_name_error

COMMANDS = {
    "eval": "play a dataset with an agent and print the results",
    "report": "print tables and draw figures from runs and logs",
    "show": "show one episode turn by turn",
    "view": "look at episodes in a browser, or in one HTML file",
    "merge": "make one run out of parts from several machines",
    "compare": "set runs against each other, task by task",
    "replay": "re-execute recorded episodes and compare",
    "regrade": "score recorded episodes again in another way",
    "export": "write episodes in the formats of others",
    "harbor": "write a dataset's tasks as Harbor's task directories",
    "bundle": "seal a run so that others can verify it",
    "serve": "serve environments to trainers elsewhere (OpenEnv)",
    "verify": "check a bundle and re-execute what it holds",
    "leaderboard": "make a page of results out of bundles",
    "check": "prove that a dataset's tasks are sound",
    "new": "write a task package of your own to start from",
    "play": "do tasks yourself in the terminal",
    "doctor": "say what this machine can do and what it lacks",
    "data": "get a dataset's files from its authors",
    "image": "build, fetch, list and remove root file systems",
    "list": "list datasets, agents, environments and rewards",
}
"""Commands, each a module of this package, with what ``intercode --help`` says of it."""

_MODULE_NAMES = {"eval": "evaluate", "list": "listing"}
"""Modules with another name than their command: a submodule would hide the builtin of its name."""

USAGE, FAILED, INTERRUPTED = 2, 1, 130
"""Exit statuses: the caller's fault, ours or the machine's, Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, USAGE, FAILED, INTERRUPTED or a
    command's own."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except ParserExit as e:
        return e.status
    except InterCodeError as e:
        _print_error(str(e) or type(e).__name__)
        return USAGE if isinstance(e, UsageError) else FAILED
    except KeyboardInterrupt:
        _print_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as e:
        _print_error(f"{e.filename}: {e.strerror}" if e.filename else str(e))
        return FAILED


def _run(words: list[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), None)
    if chosen is not None and chosen not in COMMANDS:
        raise unknown_name_error("command", chosen, list(COMMANDS))
    parser, own, module = _make_parser(chosen)
    args, strange = parser.parse_known_args(words)
    if strange:
        raise own.unknown_argument(strange[0])
    if module is None:
        parser.print_help()
        return USAGE
    status: int = module.handle(args)
    sys.stdout.flush()
    return status


def _make_parser(chosen: str | None) -> tuple[Parser, Parser, ModuleType | None]:
    """The whole parser, with the arguments of the chosen command only; that command's; its
    module."""
    parser = Parser(
        prog="intercode",
        description="Interactive coding with execution feedback: tasks in safe, fresh sandboxes.",
        epilog="Start here:  intercode doctor  |  intercode eval starter --agent gold\n"
        "Each command explains itself:  intercode eval --help",
    )
    parser.add_argument("--version", action="version", version=f"intercode {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    own, module = parser, None
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == chosen:
            module = importlib.import_module(f"intercode.cli.{_MODULE_NAMES.get(name, name)}")
            module.add(command)
            own = command
    return parser, own, module


def _print_error(message: str) -> None:
    print(f"intercode: {' '.join(message.split())}", file=sys.stderr)
