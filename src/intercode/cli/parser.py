"""argparse with this project's manners: one line for a mistake, and types that explain."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from intercode.core.config import parse_key_values
from intercode.core.errors import UsageError

__all__ = [
    "Parser",
    "ParserExit",
    "add_agent_options",
    "add_environment_options",
    "add_key_value_option",
    "add_record_diffs",
    "dollars",
    "path",
    "pop_key_value_options",
    "positive_int",
    "positive_seconds",
]  # fmt: skip

_OPTION_TARGETS = {
    "agent": "the agent",
    "model": "the model, such as temperature=0.7",
    "env": "the environment, such as session=fresh or engine=mysql",
}


class ParserExit(Exception):  # noqa: N818
    """The command line has been answered already (``--help``). ``status``: the exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps lines as written, and leaves room for the names of commands, which are set in further
    than argparse counts."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if action.nargs == argparse.PARSER:
            names = [len(name) + 2 * self._indent_increment for name in action.choices or ()]
            self._action_max_length = max(self._action_max_length, *names, 0)


class Parser(argparse.ArgumentParser):
    """Raises UsageError for a mistake and Stop after ``--help``; keeps the epilog's lines."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _HelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """A mistake in the arguments as UsageError, with the command that explains them."""
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def unknown_argument(self, word: str) -> UsageError:
        """The error for an argument that nothing takes, with the near option."""
        option = word.partition("=")[0]
        near = difflib.get_close_matches(option, self._option_string_actions, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}? " if near else ""
        return UsageError(f"unknown argument {word!r}; {hint}see `{self.prog} --help`")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End parsing by way of Stop."""
        if message:
            print(message, end="", file=sys.stderr)
        raise ParserExit(status)


def positive_int(text: str) -> int:
    """A whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return value


def positive_seconds(text: str) -> float:
    """A time in seconds, greater than 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds greater than 0")
    return value


def dollars(text: str) -> float:
    """An amount of US dollars, greater than 0; a sign before it is passed over."""
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of dollars greater than 0")
    return value


def path(text: str) -> Path:
    """A path, with ``~`` filled in."""
    return Path(text).expanduser()


def add_agent_options(parser: argparse.ArgumentParser, title: str) -> None:
    """The options that say which agent plays, and on which model. Absent ones are not in the
    namespace; the pairs are taken with ``take_pairs``."""
    absent: Any = argparse.SUPPRESS
    who = parser.add_argument_group(title)
    who.add_argument(
        "--agent", default=absent, metavar="NAME|PKG:CLASS",
        help="strategy: try-again, single-turn, gold, noop, ... (see `intercode list`)",
    )  # fmt: skip
    who.add_argument(
        "--model", default=absent, metavar="PROVIDER/NAME",
        help="the language model that the agent asks; its key comes from the environment",
    )  # fmt: skip
    who.add_argument(
        "--base-url", default=absent, metavar="URL",
        help="address of an OpenAI-compatible endpoint (or set OPENAI_BASE_URL)",
    )  # fmt: skip
    for name in _OPTION_TARGETS:
        add_key_value_option(who, name)


def add_key_value_option(parser: argparse._ActionsContainer, name: str) -> None:
    """``--NAME-option KEY=VALUE``, as often as one likes; ``name`` is agent, model or env."""
    parser.add_argument(
        f"--{name}-option", action="append", default=[], metavar="K=V",
        help=f"a setting of {_OPTION_TARGETS[name]}; may be given several times",
    )  # fmt: skip


def pop_key_value_options(given: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Turn what the pairs of ``add_who`` gave into ``agent_options`` and so on, over those that
    hold already. Raises UsageError for what is no pair."""
    for name in _OPTION_TARGETS:
        if pairs := parse_key_values(given.pop(f"{name}_option")):
            given[f"{name}_options"] = {**before.get(f"{name}_options", {}), **pairs}


def add_record_diffs(parser: argparse._ActionsContainer) -> None:
    """The option to record diffs; not in the namespace where it is not given."""
    absent: Any = argparse.SUPPRESS
    parser.add_argument(
        "--diffs", action="store_true", default=absent,
        help="record how each turn changed files, for show and view; results do not depend on it",
    )  # fmt: skip


def add_environment_options(parser: argparse.ArgumentParser) -> None:
    """The options that say where code runs and how it is scored. Absent ones are not in the
    namespace, so that a file's settings or the defaults hold."""
    absent: Any = argparse.SUPPRESS
    group = parser.add_argument_group("where code runs, and how it is scored")
    group.add_argument(
        "--profile",
        default=absent,
        help="standard: what the paper meant (the default); original: the authors' code, "
        "faults included",
    )
    group.add_argument(
        "--image",
        default=absent,
        help="root file system: host, recipe:NAME, dockerfile:PATH, docker-archive:PATH, "
        "registry:HOST/NAME ... (docs/images.md; default: the dataset's)",
    )
    group.add_argument(
        "--network", default=absent, help="none (the default), or host: the machine's own network"
    )
    group.add_argument(
        "--sandbox", default=absent,
        help="namespace, docker, podman (default auto: the strongest)",
    )  # fmt: skip
    group.add_argument(
        "--timeout",
        type=positive_seconds,
        default=absent,
        help="seconds an action may take (default 10)",
    )
    group.add_argument(
        "--reward",
        default=absent,
        metavar="NAME|PKG:FN",
        help="reward function (default: the environment's and profile's own)",
    )
