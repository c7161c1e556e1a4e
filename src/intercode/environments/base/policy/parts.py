"""What an action is made of, as far as rules can speak of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionPart:
    """One thing that an action does: ``kind`` is a rule's kind, ``words`` what it is called, its
    name first. ``own``: the action defines that name itself, which no allow rule need cover."""

    kind: str
    words: tuple[str, ...]
    defined_by_action: bool = False

    @property
    def text(self) -> str:
        """The part as it is shown."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """The parts of an action. ``unclear`` says why there may be more of them than its text tells;
    empty where it tells all."""

    parts: tuple[ActionPart, ...]
    uncertainty: str = ""


def merge_parsed(several: Iterable[ParsedAction]) -> ParsedAction:
    """All parts, and the first reason why there may be more."""
    found = list(several)
    parts = tuple(part for one in found for part in one.parts)
    return ParsedAction(parts, next((one.uncertainty for one in found if one.uncertainty), ""))
