"""Rules in documents: a handbook, decisions that replace rules, and minutes that say which hold.

The value of a rule is that of the decision that was adopted last, or the handbook's if none holds.
Decisions have numbers in the order in which they were written, which need not be that of their
adoption. Some are deferred, and some revoked later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from intercode_lab.families.choices import Choices
from intercode_lab.families.file_tree import DAY, FileTree, date_of
from intercode_lab.worlds.requests import human
from intercode_lab.worlds.world import HiddenChoice

PATTERNS = (
    ("A",),
    ("AD", "DA", "RA", "AR"),
    ("AD", "DA", "RA", "AR", "LA", "AL", "DR", "RD"),
    ("ADR", "RAD", "LAD", "DRA", "ALR", "DLA", "RDR", "LAR", "DAR"),
    (
        "ADR",
        "RAD",
        "LAD",
        "DRA",
        "ALR",
        "DLA",
        "RDR",
        "LAR",
        "DAR",
        "CDR",
        "RCD",
        "LCR",
        "DCR",
        "LADR",
        "RDCD",
        "DLCR",
    ),
)
"""What may happen to the decisions on one rule, in the order of their numbers, by difficulty:
A adopted, C adopted with another value than it was written with, L adopted after all others,
D deferred, R adopted and revoked later."""
_MEETINGS, _LATE = 9, 6
_CHATTER = (
    "The coffee machine was discussed again.",
    "{} presented the figures of the quarter.",
    "The next meeting is in two weeks.",
    "{} asks everybody to lock the side door.",
    "Holiday plans: {} is away from the 14th.",
    "The audit was postponed.",
    "{} thanks all who helped with the move.",
    "Parking spaces were drawn by lot.",
)
_ADOPTED = (
    "Decision {} was adopted.",
    "Adopted: decision {}.",
    "All in favour of decision {}; it is adopted.",
)
_DEFERRED = (
    "Decision {} was deferred.",
    "No majority for decision {} yet; deferred.",
    "Deferred: decision {}.",
)
_REVOKED = (
    "Decision {} is revoked.",
    "Revoked: decision {}.",
    "Decision {} did not work out and is revoked.",
)
_CHANGED = (
    "Decision {} was adopted, but with {} in place of {}.",
    "Adopted with a change: decision {}, with {} where it has {}.",
)
_REVOKED_ON = "What was adopted on {} about `{}` is revoked."
_README = """How our rules are kept

handbook/ holds the rules as they were first written. decisions/ holds proposals to replace one rule
each. A proposal counts once the minutes say that it was adopted. If several about the same rule were
adopted, the one that was adopted last counts. A decision that was revoked counts as if it had never
been made. The rule that counts then holds for everything, old and new.
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class HandbookRule:
    """A rule of a handbook. ``texts``: wordings around a value. ``values``: that of the handbook,
    and at least five others for decisions. ``short``: how a value alone is written."""

    name: str
    texts: Sequence[str]
    values: Sequence[Any]
    short: str = "{}"


def write_rules(
    choices: Choices,
    tree: FileTree,
    rules: Sequence[HandbookRule],
    difficulty: int,
    start: int,
) -> tuple[dict[str, Any], list[HiddenChoice], list[tuple[int, str]]]:
    """Add handbook and decisions below ``docs``. Return the value of each rule that counts, the
    choices among them, and the lines of minutes, each after the number of its meeting.
    ``start``: the time of the first meeting."""
    patterns = dict(
        zip(
            (r.name for r in rules),
            choices.some(PATTERNS[difficulty - 1], len(rules)),
            strict=False,
        )
    )
    for rule in rules:
        patterns.setdefault(rule.name, choices.one(PATTERNS[difficulty - 1]))
    queue = choices.shuffled([rule for rule in rules for _ in patterns[rule.name]])
    number, seen = choices.between(11, 30), {rule.name: 0 for rule in rules}
    counting = {rule.name: (-1, 0) for rule in rules}  # the meeting, and the index of the value
    events: list[tuple[int, str]] = []
    for rule in queue:
        index = seen[rule.name] = seen[rule.name] + 1
        fate = patterns[rule.name][index - 1]
        meeting = _LATE if fate == "L" else index
        events.append((meeting, _outcome(choices, rule, index, fate, number)))
        if fate == "R":
            line = choices.one(_REVOKED).format(number)
            if difficulty == 5 and choices.chance(60):
                line = _REVOKED_ON.format(_date(start, meeting), rule.name)
            events.append((choices.between(_LATE + 1, _MEETINGS - 1), line))
        if fate in "ALC":
            held = len(rule.values) - 1 if fate == "C" else index
            counting[rule.name] = max(counting[rule.name], (meeting, held))
        text = rule.texts[choices.index(len(rule.texts))].format(rule.values[index])
        tree.file(
            f"docs/decisions/{number:04d}.md",
            f"# Decision {number}\n\nProposed by {human(choices)} on "
            f"{date_of(start - (90 - number) * DAY)}, "
            f"in place of the rule `{rule.name}`:\n\n{text}\n",
        )
        number += choices.between(1, 3)
    for rule in rules:
        tree.file(
            f"docs/handbook/{rule.name}.md", f"{choices.one(rule.texts).format(rule.values[0])}\n"
        )
    tree.file("docs/README.md", _README)
    return (
        {rule.name: rule.values[counting[rule.name][1]] for rule in rules},
        [_choice(rule, len(patterns[rule.name]), counting[rule.name][1]) for rule in rules],
        events,
    )


def write_minutes(
    choices: Choices, tree: FileTree, events: Sequence[tuple[int, str]], start: int
) -> None:
    """Add the minutes of 9 meetings below ``docs``. ``events``: lines, each after the number of its
    meeting, from 0."""
    for n in range(_MEETINGS):
        lines = [line for at, line in events if at == n]
        lines += [line.format(human(choices)) for line in choices.some(_CHATTER, 3)]
        when = _date(start, n)
        text = "".join(f"- {line}\n" for line in choices.shuffled(lines))
        head = f"Minutes of {when}. Present: {human(choices)}, {human(choices)}"
        tree.file(f"docs/minutes/{when}.md", f"{head}\n\n{text}")


def _date(start: int, meeting: int) -> str:
    return date_of(start + meeting * 14 * DAY)


def _outcome(choices: Choices, rule: HandbookRule, index: int, fate: str, number: int) -> str:
    if fate == "C":
        new, old = (rule.short.format(rule.values[n]) for n in (-1, index))
        return choices.one(_CHANGED).format(number, new, old)
    return choices.one(_DEFERRED if fate == "D" else _ADOPTED).format(number)


def _choice(rule: HandbookRule, decisions: int, right: int) -> HiddenChoice:
    texts = [str(value) for value in (*rule.values[: decisions + 1], rule.values[-1])]
    right = min(right, decisions + 1)
    return HiddenChoice([{"value": text, "length": len(text)} for text in texts], right)
