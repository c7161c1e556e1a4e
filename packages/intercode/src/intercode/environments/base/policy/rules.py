"""Rules of a policy, and the parts of actions that they match."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from intercode.core.errors import ConfigError
from intercode_sandbox.registry import unknown_name_error

PATTERN = "pattern"
"""The kind of rules that match the text of an action, in every language."""

_EXPRESSION_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\()|(?P<close>\))"
    r"|(?P<repeat>[*+]|\{\d*,\d*\})(?P<possessive>\+)?\??|.",
    re.DOTALL,
)
_SHORT_OPTION = re.compile(r"-[A-Za-z0-9]")
_OPTION_BUNDLE = re.compile(r"-[A-Za-z0-9]{2,}")


class ActionLimitError(Exception):
    """An action exceeds a limit of its parser. The message says which."""


@dataclass(frozen=True, slots=True)
class ActionPart:
    """One thing that an action does.

    ``kind``: the kind of the rules that match it. ``words``: its name and its arguments.
    ``defined_by_action``: the action defines this name itself, so that no ``allow`` rule is needed.
    """

    kind: str
    words: tuple[str, ...]
    defined_by_action: bool = False

    @property
    def text(self) -> str:
        """The part as a refusal shows it."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """The parts of an action.

    ``uncertainty``: why the action may have further parts that its text does not show, or empty.
    """

    parts: tuple[ActionPart, ...]
    uncertainty: str = ""


def merge_parsed(several: Iterable[ParsedAction]) -> ParsedAction:
    """Return all parts, and the first ``uncertainty``."""
    parsed = list(several)
    parts = tuple(part for one in parsed for part in one.parts)
    return ParsedAction(parts, next((one.uncertainty for one in parsed if one.uncertainty), ""))


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule ``kind:pattern``. ``message``: the text of its refusals (empty: the policy's)."""

    kind: str
    pattern: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.pattern}"

    def find_match(self, text: str, parts: Sequence[ActionPart]) -> str | None:
        """Return the text of the first part that this rule matches, or None."""
        if self.kind == PATTERN:
            match = re.search(self.pattern, text, re.MULTILINE)
            return match.group() if match else None
        return next((part.text for part in parts if self.matches(part)), None)

    def matches(self, part: ActionPart) -> bool:
        """Return whether this rule matches a part."""
        return part.kind == self.kind and _MATCHERS[self.kind](self.pattern, part.words)


def make_rule(text: str, message: str = "") -> Rule:
    """Parse a rule ``kind:pattern``. Raises ConfigError for an invalid rule."""
    kind, mark, pattern = text.partition(":")
    kind, pattern = kind.strip(), pattern.strip()
    if not mark or not pattern:
        raise ConfigError(f"the rule {text!r} is not of the form kind:pattern, as in command:rm")
    if kind not in (known := [*_MATCHERS, PATTERN]):
        raise unknown_name_error("kind of rule", kind, known)
    try:
        if kind == PATTERN:
            re.compile(pattern, re.MULTILINE)
            _reject_nested_repetition(text, pattern)
        elif kind == "command":
            shlex.split(pattern)
    except (re.error, ValueError) as e:
        raise ConfigError(f"the rule {text!r} cannot be read: {e}") from e
    return Rule(kind, pattern, message)


def _reject_nested_repetition(rule: str, pattern: str) -> None:
    """Raise ConfigError for a repetition of a repetition, which may take exponential time."""
    groups, inner = [False], False  # whether the open groups, and the last closed one, repeat
    for token in _EXPRESSION_TOKEN.finditer(pattern):
        if token["open"]:
            groups.append(False)
        repeats = bool(token["repeat"]) and not token["possessive"]
        if repeats and inner:
            raise ConfigError(
                f"the rule {rule!r} repeats a repetition, which may take exponential time; write "
                "the inner one so that it gives nothing back, as in (?:x++y)*"
            )
        closes = bool(token["close"]) and len(groups) > 1
        inner = groups.pop() if closes else False
        groups[-1] |= repeats or inner


# ---------------------------------------------------------------- matching
def _match_command(pattern: str, words: Sequence[str]) -> bool:
    """Match the name of the program, and each further word of the pattern in any order.

    The directory of the program counts only if the pattern has one.
    """
    name, *wanted = shlex.split(pattern)
    program = words[0] if "/" in name else words[0].rpartition("/")[2]
    return fnmatchcase(program, name) and all(_has_word(word, words[1:]) for word in wanted)


def _has_word(wanted: str, words: Sequence[str]) -> bool:
    """Return whether a word or an option is among ``words``.

    An option may have ``=value`` after it. A one-letter option may be part of ``-xyz``.
    """
    if any(fnmatchcase(word, wanted) for word in words):
        return True
    if not wanted.startswith("-"):
        return False
    if any(word.startswith(f"{wanted}=") for word in words):
        return True
    letter = _SHORT_OPTION.fullmatch(wanted)
    return bool(letter) and any(_OPTION_BUNDLE.fullmatch(w) and wanted[1] in w for w in words)


def _match_name(pattern: str, words: Sequence[str]) -> bool:
    return fnmatchcase(words[0], pattern)


def _match_statement(pattern: str, words: Sequence[str]) -> bool:
    statement, wanted = " ".join(words).upper(), " ".join(pattern.upper().split())
    return fnmatchcase(statement, wanted) or fnmatchcase(statement, f"{wanted} *")


def _match_table(pattern: str, words: Sequence[str]) -> bool:
    table, wanted = words[0].lower(), pattern.lower()
    return fnmatchcase(table if "." in wanted else table.rpartition(".")[2], wanted)


def _match_function(pattern: str, words: Sequence[str]) -> bool:
    return fnmatchcase(words[0].upper(), pattern.upper())


def _match_module(pattern: str, words: Sequence[str]) -> bool:
    return fnmatchcase(words[0], pattern) or fnmatchcase(words[0], f"{pattern}.*")


def _match_attribute(pattern: str, words: Sequence[str]) -> bool:
    if "." in pattern:
        return _match_module(pattern, words)
    return any(fnmatchcase(name, pattern) for name in words[0].split(".")[1:])


_MATCHERS: dict[str, Callable[[str, Sequence[str]], bool]] = {
    "command": _match_command,
    "redirect": _match_name,
    "statement": _match_statement,
    "table": _match_table,
    "function": _match_function,
    "import": _match_module,
    "call": _match_name,
    "attribute": _match_attribute,
}
