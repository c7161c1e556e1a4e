"""The parts of a request: people, teams, and the voices in which they write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from intercode_lab.families.choices import Choices

NAMES = (
    "Mara",
    "Jonas",
    "Ines",
    "Tobias",
    "Leyla",
    "Piotr",
    "Anneke",
    "Samir",
    "Greta",
    "Hugo",
    "Noor",
    "Felix",
    "Ravi",
    "Ulrike",
    "Emil",
    "Dana",
    "Oskar",
    "Yuki",
    "Bram",
    "Selma",
)
SURNAMES = (
    "Albrecht",
    "Costa",
    "Dahl",
    "Ekman",
    "Farkas",
    "Gruber",
    "Haddad",
    "Iversen",
    "Jansen",
    "Keller",
    "Lindqvist",
    "Moreau",
    "Novak",
    "Okafor",
    "Petrov",
    "Quist",
    "Rossi",
    "Sato",
)
TEAMS = ("operations", "billing", "the platform team", "field service", "planning", "support")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a request asks for. ``asks``: at least 5 wordings as imperative clauses."""

    asks: Sequence[str]


_FRAMES = (
    "{Ask}.",
    "Please {ask}.",
    "Could you {ask}?",
    "We need somebody to {ask}.",
    "One thing to do: {ask}.",
    "It would be good if you could {ask}.",
)
_OPENINGS = (
    "This landed on my desk today.",
    "I am out from tomorrow, so this is yours.",
    "Sorry for the rush.",
    "Nobody here has had the time to look.",
    "This has waited for days.",
    "You know this corner better than I do.",
)
_CLOSINGS = (
    "Whatever is not mentioned stays as it is.",
    "Leave everything else alone, please.",
    "Nothing beyond that should change.",
    "Other things must not be touched.",
)


def human(choices: Choices) -> str:
    """Return the name of a human in full."""
    return f"{choices.one(NAMES)} {choices.one(SURNAMES)}"


def phrasings(goal: Goal) -> list[str]:
    """Return every sentence that asks for a goal."""
    return [
        frame.format(ask=ask, Ask=ask[0].upper() + ask[1:])
        for ask in goal.asks
        for frame in _FRAMES
    ]


def write_request(
    choices: Choices, subject: str, context: Sequence[str], goals: Sequence[Goal]
) -> tuple[int, str]:
    """Return the number of a voice and a request in it: what happened, the goals, who asks.

    ``context``: sentences that a reader needs, in their order.
    """
    sentences = [choices.one(phrasings(goal)) for goal in goals]
    opening, closing = choices.one(_OPENINGS), choices.one(_CLOSINGS)
    name, number = human(choices), choices.between(1000, 9999)
    first = name.split()[0]
    told = " ".join(context)
    wanted = " ".join(sentences)
    voice = choices.index(4)
    if voice == 0:
        items = "\n".join(f"  {n}. {sentence}" for n, sentence in enumerate(sentences, 1))
        text = (
            f"[{choices.one(('OPS', 'REQ', 'TASK'))}-{number}] {subject}\n"
            f"Reporter: {name}\nQueue: {choices.one(TEAMS)}\n\n{told}\n\n"
            f"To do:\n{items}\n\n{closing}"
        )
    elif voice == 1:
        lines = [opening, *context, *sentences, closing]
        text = "\n".join(f"<{first.lower()}> {line}" for line in lines)
    elif voice == 2:
        body = " ".join([opening, *context, *sentences, closing])
        text = f"Note for whoever takes over: {subject}. {body} -- {first}"
    else:
        text = (
            f"From: {name}\nSubject: {subject}\n\nHi,\n\n{opening} {told}\n\n"
            f"{wanted}\n\n{closing}\n\n"
            f"{choices.one(('Thanks', 'Best', 'Cheers'))}\n{first}"
        )
    return voice, f"{text}\n\n(Everything is below /work.)"


def day(seconds: int, choices: Choices) -> str:
    """Return the date of a time in one of several forms that cannot be misread."""
    at = time.gmtime(seconds)
    month = MONTHS[at.tm_mon - 1]
    return choices.one(
        (
            f"{at.tm_year}-{at.tm_mon:02d}-{at.tm_mday:02d}",
            f"{at.tm_mday} {month} {at.tm_year}",
            f"{month} {at.tm_mday}, {at.tm_year}",
        )
    )
