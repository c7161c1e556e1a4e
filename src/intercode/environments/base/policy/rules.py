"""One rule of a policy, and what it finds."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from intercode.core.errors import ConfigError
from intercode.core.registry import unknown_name_error
from intercode.environments.base.policy.parts import ActionPart

KINDS: dict[str, tuple[str, ...]] = {
    "command": ("bash", "ctf", "harbor"),
    "redirect": ("bash", "ctf", "harbor"),
    "statement": ("sql",),
    "table": ("sql",),
    "function": ("sql",),
    "import": ("python",),
    "call": ("python",),
    "attribute": ("python",),
    "pattern": (),
}
"""The kinds of rules, each with the environments whose actions have such parts. ``pattern`` looks
at the text of an action, in any."""

_SHORT_OPTION = re.compile(r"-[A-Za-z0-9]")
_OPTION_BUNDLE = re.compile(r"-[A-Za-z0-9]{2,}")


@dataclass(frozen=True, slots=True)
class Rule:
    """``kind:pattern``. ``message``: what is said where it refuses (empty: the policy's words)."""

    kind: str
    pattern: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.pattern}"

    def applies_to(self, environment: str) -> bool:
        """Whether actions of an environment can have what this rule looks for."""
        return self.kind == "pattern" or environment in KINDS[self.kind]

    def find_match(self, text: str, parts: Sequence[ActionPart]) -> str | None:
        """The first thing in an action that this rule speaks of, as text; None: there is none."""
        if self.kind == "pattern":
            match = re.search(self.pattern, text, re.MULTILINE)
            return match.group() if match else None
        return next((part.text for part in parts if self.matches(part)), None)

    def matches(self, part: ActionPart) -> bool:
        """Whether a part is what this rule speaks of."""
        return part.kind == self.kind and _MATCHERS[self.kind](self.pattern, part.words)


def make_rule(text: str, message: str = "") -> Rule:
    """The rule that ``kind:pattern`` writes. Raises ConfigError that names a rule which is none."""
    kind, mark, pattern = text.partition(":")
    kind, pattern = kind.strip(), pattern.strip()
    if not mark or not pattern:
        raise ConfigError(f"the rule {text!r} is not of the form kind:pattern, as in command:rm")
    if kind not in KINDS:
        raise unknown_name_error(f"kind in the rule {text!r}", kind, list(KINDS))
    try:
        if kind == "pattern":
            re.compile(pattern, re.MULTILINE)
        elif kind == "command":
            shlex.split(pattern)
    except (re.error, ValueError) as e:
        raise ConfigError(f"the rule {text!r} cannot be read: {e}") from e
    return Rule(kind, pattern, message)


# ------------------------------------------------------------- what patterns mean
def _match_command(pattern: str, words: Sequence[str]) -> bool:
    """The program's name, without its directory unless the pattern has one, and each further word
    of the pattern among the words after it."""
    name, *wanted = shlex.split(pattern)
    said = words[0] if "/" in name else words[0].rpartition("/")[2]
    return fnmatchcase(said, name) and all(_has_word(word, words[1:]) for word in wanted)


def _has_word(wanted: str, words: Sequence[str]) -> bool:
    """A word, or an option: of one letter also within ``-xyz``, any with ``=value`` after it."""
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
    said, wanted = " ".join(words).upper(), " ".join(pattern.upper().split())
    return fnmatchcase(said, wanted) or fnmatchcase(said, f"{wanted} *")


def _match_table(pattern: str, words: Sequence[str]) -> bool:
    said, wanted = words[0].lower(), pattern.lower()
    return fnmatchcase(said if "." in wanted else said.rpartition(".")[2], wanted)


def _match_function(pattern: str, words: Sequence[str]) -> bool:
    return fnmatchcase(words[0].upper(), pattern.upper())


def _match_module(pattern: str, words: Sequence[str]) -> bool:
    return fnmatchcase(words[0], pattern) or fnmatchcase(words[0], f"{pattern}.*")


def _match_attribute(pattern: str, words: Sequence[str]) -> bool:
    if "." in pattern:
        return _match_module(pattern, words)
    return any(fnmatchcase(name, pattern) for name in words[0].split(".")[1:])


_MATCHERS: dict[str, Callable[[str, Sequence[str]], bool]] = {
    "command": _match_command, "redirect": _match_name, "statement": _match_statement, "table": _match_table,
    "function": _match_function, "import": _match_module, "call": _match_name, "attribute": _match_attribute,
}  # fmt: skip
