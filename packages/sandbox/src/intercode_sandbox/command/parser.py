"""The argument parser of command lines.

Arguments are described by a text that looks like the help: see ``add_options``.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from intercode_sandbox.errors import UsageError


class ParserExit(Exception):  # noqa: N818
    """Raised with the exit status after the parser has printed the help."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps lines as written, and aligns the texts of commands, which argparse indents further than
    it counts."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if action.nargs == argparse.PARSER:
            names = [len(name) + 2 * self._indent_increment for name in action.choices or ()]
            self._action_max_length = max(self._action_max_length, *names, 0)


class Parser(argparse.ArgumentParser):
    """Raises UsageError for a mistake and ParserExit after ``--help``. Keeps the epilog's lines.

    ``renamed_parts``: sub-commands of an earlier version, and the words that now say the same.
    """

    renamed_parts: Mapping[str, str] = MappingProxyType({})

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _HelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the message and the command that explains the arguments."""
        message = message.replace("invalid int value:", "a whole number is needed, not")
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.nargs == argparse.PARSER and value in self.renamed_parts:
            self.error(f"`{self.prog} {value}` is now `{self.prog} {self.renamed_parts[value]}`")
        if action.nargs == argparse.PARSER and value not in (names := list(action.choices or ())):
            near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            self.error(f"unknown command {value!r}; {hint}known: {', '.join(names)}")
        super()._check_value(action, value)

    def unknown_argument(self, word: str, several: str = "") -> UsageError:
        """Return the error for an argument that is not known, with the nearest option, or the
        argument of that name which is given without one. ``several``: what to do in place of giving
        a further value."""
        name = word.partition("=")[0].lstrip("-")
        options = {option.lstrip("-"): option for option in self._option_string_actions}
        places = [str(a.metavar or a.dest) for a in self._actions if not a.option_strings]
        near = difflib.get_close_matches(name, options, n=1, cutoff=0.7)
        hint = f"did you mean {options[near[0]]}? " if near else ""
        if name.upper() in places:
            hint = f"{name.upper()} is given without an option; "
        elif several and not word.startswith("-"):
            hint = f"{several}; "
        return UsageError(f"unknown argument {word!r}; {hint}see `{self.prog} --help`")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Raise ParserExit."""
        if message:
            print(message, end="", file=sys.stderr)
        raise ParserExit(status)


# --------------------------------------------------------------------- types of arguments
def _positive(convert: Callable[[str], Any], what: str) -> Callable[[str], Any]:
    """Return a function that parses a number greater than 0."""

    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return parse


positive_int = _positive(int, "a whole number of at least 1")
positive_seconds = _positive(float, "a number of seconds greater than 0")
dollars = _positive(lambda t: float(t.removeprefix("$")), "an amount of dollars greater than 0")


def path(text: str) -> Path:
    """Parse a path. ``~`` is expanded."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; the working directory is '.'")
    return Path(text).expanduser()


_TYPES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("A", "B", "BUNDLE", "DIR", "FILE", "FILE.tar.gz", "OUT", "PATH", "RUN"), path),
    **dict.fromkeys(("K", "N", "PARALLEL"), positive_int),
    **dict.fromkeys(("S", "TIMEOUT"), positive_seconds),
    "USD": dollars,
}
"""The types of values, by what stands for them in the help. Others are texts."""


def add_options(
    parser: argparse.ArgumentParser,
    text: str,
    settings: Mapping[str, Any] = MappingProxyType({}),
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add the arguments that a text describes, a line for each; it may go on in indented lines.

    ``--out DIR  what it does`` is an option with a value, ``--all  ...`` one without,
    ``paths PATH ...  ...`` a positional argument. ``[PATH]`` may be left out, and ``...`` follows a
    value that may be repeated. A line ``title:`` begins a group, and ``| `` an option that cannot
    be combined with the one before. ``settings`` has further settings by name, for argparse.
    ``renamed``: options of an earlier version, and the words that now say the same; those that
    begin with an option are of use only where it is known.
    """
    group: argparse._ActionsContainer = parser
    exclusive: argparse._ActionsContainer = parser
    entries = re.split(r"\n(?=\S)", text.strip())
    for entry, following in zip(entries, [*entries[1:], ""], strict=True):
        first, *more = entry.removeprefix("| ").splitlines()
        usage, _, help_text = " ".join([first, *map(str.strip, more)]).partition("  ")
        if first.endswith(":") and "  " not in first:
            group = parser.add_argument_group(first[:-1], usage[len(first) + 1 :] or None)
            continue
        name, value, repeated, *_ = [*usage.split(), "", ""]
        arguments: dict[str, Any] = {"help": help_text.strip() or None}
        if value:
            plain = value.removeprefix("[").removesuffix("]") if value[0] == "[" else value
            arguments |= {"metavar": plain, "type": _TYPES.get(plain)}
            if name.startswith("--") and repeated:
                arguments |= {"action": "append", "default": []}
            elif repeated or plain != value:
                arguments["nargs"] = "?" if not repeated else "+" if plain == value else "*"
        elif name.startswith("--"):
            arguments["action"] = "store_true"
        arguments |= settings.get(name.removeprefix("--").replace("-", "_"), {})
        if following.startswith("| "):
            exclusive = group.add_mutually_exclusive_group()
        joined = following.startswith("| ") or entry.startswith("| ")
        (exclusive if joined else group).add_argument(name, **arguments)
    known = parser._option_string_actions
    for old, new in {**_RENAMED, **renamed}.items():
        if old not in known and (new[0] != "-" or new.split()[0] in known):
            parser.add_argument(
                old,
                type=_renamed(new),
                nargs="?",
                const="",
                dest=argparse.SUPPRESS,
                help=argparse.SUPPRESS,
            )


def given_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that were given, by name: those that have a value, or are switched on.
    The others may come from a file."""
    return {k: v for k, v in vars(args).items() if v is not None and v is not False and v != []}


_RENAMED = {"--sandbox": "--backend", "--sandboxes": "--protocol sandboxes"}
"""Old names of options, with the new ones."""


def _renamed(new: str) -> Callable[[str], NoReturn]:
    """Return what parses the value of an option under its old name: an error with the new one."""

    def refuse(_text: str) -> NoReturn:
        raise argparse.ArgumentTypeError(f"the option is now {new}")

    return refuse
