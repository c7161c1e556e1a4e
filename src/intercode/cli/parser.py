"""The argument parser of the command line, and the options that several commands share.

The shared options default to ``argparse.SUPPRESS``: an option that is not given is absent from the
namespace, so that the settings of a file or the defaults hold. Options that may be given several
times are turned into settings by the ``pop_*`` functions.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from intercode.core.config import parse_key_values, read_toml
from intercode.core.errors import UsageError

_OPTION_TARGETS = {
    "agent": "the agent",
    "model": "the model, such as temperature=0.7",
    "env": "the environment, such as session=fresh or engine=mysql",
}
_ABSENT: Any = argparse.SUPPRESS


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
    """Raises UsageError for a mistake and ParserExit after ``--help``. Keeps the epilog's lines."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _HelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the message and the command that explains the arguments."""
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def unknown_argument(self, word: str) -> UsageError:
        """Return the error for an argument that is not known, with the nearest option."""
        option = word.partition("=")[0]
        near = difflib.get_close_matches(option, self._option_string_actions, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}? " if near else ""
        return UsageError(f"unknown argument {word!r}; {hint}see `{self.prog} --help`")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Raise ParserExit."""
        if message:
            print(message, end="", file=sys.stderr)
        raise ParserExit(status)


# --------------------------------------------------------------------- types of arguments
def positive_int(text: str) -> int:
    """Parse a whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def positive_seconds(text: str) -> float:
    """Parse a time in seconds, greater than 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds greater than 0")
    return value


def dollars(text: str) -> float:
    """Parse an amount of US dollars, greater than 0, with or without a dollar sign."""
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of dollars greater than 0")
    return value


def path(text: str) -> Path:
    """Parse a path. ``~`` is expanded."""
    return Path(text).expanduser()


# --------------------------------------------------------------------- shared options
def add_agent_options(parser: argparse.ArgumentParser, title: str) -> None:
    """Add the options for the agent and its model, and ``--agent-option`` and its like.

    ``pop_key_value_options`` turns the latter into settings.
    """
    group = parser.add_argument_group(title)
    group.add_argument(
        "--agent", default=_ABSENT, metavar="NAME|PKG:CLASS",
        help="strategy: try-again, single-turn, gold, noop, ... (see `intercode list agents`)",
    )  # fmt: skip
    group.add_argument(
        "--model", default=_ABSENT, metavar="PROVIDER/NAME",
        help="the language model of the agent; its API key comes from the environment",
    )  # fmt: skip
    group.add_argument(
        "--base-url", default=_ABSENT, metavar="URL",
        help="address of an OpenAI-compatible endpoint (or set OPENAI_BASE_URL)",
    )  # fmt: skip
    for name in _OPTION_TARGETS:
        add_key_value_option(group, name)


def add_key_value_option(parser: argparse._ActionsContainer, name: str) -> None:
    """Add ``--NAME-option KEY=VALUE``, where ``name`` is agent, model or env."""
    parser.add_argument(
        f"--{name}-option", action="append", default=[], metavar="K=V",
        help=f"a setting of {_OPTION_TARGETS[name]}; may be given several times",
    )  # fmt: skip


def pop_key_value_options(given: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Replace ``agent_option`` and its like in ``given`` by ``agent_options``.

    They are added to the options in ``before``. Raises ConfigError for other texts than
    KEY=VALUE.
    """
    for name in _OPTION_TARGETS:
        if pairs := parse_key_values(given.pop(f"{name}_option")):
            given[f"{name}_options"] = {**before.get(f"{name}_options", {}), **pairs}


def add_record_diffs(parser: argparse._ActionsContainer) -> None:
    """Add ``--record-diffs``."""
    parser.add_argument(
        "--record-diffs", action="store_true", default=_ABSENT,
        help="record how each turn changed files, for show and view; results do not depend on it",
    )  # fmt: skip


def add_environment_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the sandbox and the scoring."""
    group = parser.add_argument_group("sandbox and scoring")
    group.add_argument(
        "--profile",
        default=_ABSENT,
        help="standard: what the paper meant (the default); original: as the authors' code scores, "
        "with its faults",
    )
    group.add_argument(
        "--image",
        default=_ABSENT,
        help="root file system: host, recipe:NAME, dockerfile:PATH, docker-archive:PATH, "
        "registry:HOST/NAME ... (docs/images.md; default: the dataset's)",
    )
    group.add_argument(
        "--network", default=_ABSENT, help="none (the default), or host: the machine's own network"
    )
    group.add_argument(
        "--sandbox", default=_ABSENT,
        help="namespace, docker, podman, or auto (the default): the strongest that works",
    )  # fmt: skip
    group.add_argument(
        "--timeout", type=positive_seconds, default=_ABSENT,
        help="seconds an action may take (default 10)",
    )  # fmt: skip
    group.add_argument(
        "--reward",
        default=_ABSENT,
        metavar="NAME|PKG:FN",
        help="reward function (default: that of the environment and the profile)",
    )


# --------------------------------------------------------------------- policies
def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--policy``, ``--deny`` and ``--allow``."""
    group = parser.add_argument_group(
        "action policy",
        "A refused action costs a turn and is not executed. Rules guide an agent; they are not a "
        "security boundary. KIND: command, redirect (Bash), statement, table, function (SQL), "
        "import, call, attribute (Python), or pattern (a regular expression). See "
        "docs/policies.md.",
    )
    group.add_argument("--policy", default=_ABSENT, metavar="FILE.toml", help="rules from a file")
    for name, what in (
        ("deny", "refuse actions that match, as in 'command:rm -r'"),
        ("allow", "of this kind, allow only what matches such a rule"),
    ):
        group.add_argument(
            f"--{name}", action="append", default=_ABSENT, metavar="KIND:PATTERN",
            help=f"{what}; may be given several times",
        )  # fmt: skip


def pop_policy_options(given: dict[str, Any], before: object = None) -> None:
    """Replace the three options in ``given`` by one setting ``policy``.

    It holds the content of the file, or ``before`` if no file is named, with the further rules
    added. Without any rule the setting is absent.
    """
    source = given.pop("policy", before)
    more = {name: given.pop(name) for name in ("deny", "allow") if name in given}
    if source is None and not more:
        return
    if isinstance(source, str):
        source = read_toml(Path(source).expanduser())
    rules = dict(source) if isinstance(source, Mapping) else {}
    for name, texts in more.items():
        rules[name] = [*rules.get(name, ()), *texts]
    given["policy"] = rules
