"""Reads the values of a column and makes other ones that are like them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from intercode_lab.families.choices import WORDS, Choices

Kind = Literal["number", "date", "text", "other"]
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?")
_NUMERIC_TYPE = re.compile(
    r"(?:tiny|small|medium|big)?int|decimal|numeric|float|double|real|year", re.I
)
_DATE_TYPE = re.compile(r"date|timestamp", re.I)
_STEPS = 8
"""Numbers and dates move by at most one part in so many of the range of their column."""
_FEW = 6
"""Columns with at most so many different values get no others."""


def kind_of(values: Sequence[Any], declared: str) -> Kind:
    """Return the kind of the values of a column; of an empty one, by its declared type."""
    texts = [str(v) for v in values if v is not None]
    if not texts:
        if _NUMERIC_TYPE.match(declared):
            return "number"
        return "date" if _DATE_TYPE.match(declared) else "text"
    if all(_NUMBER.fullmatch(text) for text in texts):
        return "number"
    if all(_DATE.fullmatch(text) and _is_date(text) for text in texts):
        return "date"
    return "text" if all(isinstance(v, str | None) for v in values) else "other"


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def order_key(kind: Kind, value: Any) -> Any:
    """Return what orders the values of a column of numbers or dates."""
    return Decimal(str(value)) if kind == "number" else str(value)


def is_varied(values: Sequence[Any]) -> bool:
    """Return whether a column has so many different values that new ones are like them."""
    return len(set(values)) > max(_FEW, len(values) // 3)


def _is_whole(value: Any) -> bool:
    number = Decimal(str(value))
    return number == number.to_integral_value()


class NumberValues:
    """The numbers of a column, as numbers or as texts of one form."""

    def __init__(self, values: Sequence[Any], declared: str) -> None:
        whole = all(isinstance(v, int) or _is_whole(v) for v in values)
        self._type: type = int if _NUMERIC_TYPE.match(declared) and whole else type(values[0])
        numbers = [Decimal(str(v)) for v in values]
        self.low, self.high = min(numbers), max(numbers)
        used = max(0, *(-int(n.normalize().as_tuple().exponent) for n in numbers))
        self._unit = Decimal(1).scaleb(-used)
        self._form = Decimal(1).scaleb(min(int(n.as_tuple().exponent) for n in numbers))

    def moved(self, value: Any, choices: Choices) -> Any:
        """Return a number near another one, within the range of the column."""
        number = Decimal(str(value))
        span = min((self.high - self.low) / _STEPS, max(abs(number) / 3, self._unit))
        steps = max(int(span / self._unit), 1)
        return self._value(number + self._unit * (choices.index(2 * steps + 1) - steps))

    def next_to(self, text: str, steps: int) -> Any:
        """Return the number of a text, or one that is some steps of the last digit away."""
        return self._as_value(Decimal(text).quantize(self._unit) + self._unit * steps)

    def beyond(self, count: int) -> Any:
        """Return a number above all others."""
        return self._as_value(self.high + self._unit * count)

    def _value(self, number: Decimal) -> Any:
        if number < self.low:
            number = min(2 * self.low - number, self.high)
        elif number > self.high:
            number = max(2 * self.high - number, self.low)
        return self._as_value(number)

    def _as_value(self, number: Decimal) -> Any:
        return self._type(number if self._type is not str else number.quantize(self._form))


def moved_date(values: Sequence[str], value: str, choices: Choices) -> str:
    """Return a date near another one, within the range of its column and in the same form."""
    moment = datetime.fromisoformat(value)
    low, high = (datetime.fromisoformat(f(values)) for f in (min, max))
    days = max((high - low).days // _STEPS, 1)
    moved = moment + timedelta(days=choices.index(2 * days + 1) - days)
    moved = min(max(moved, low + (high - moved if moved > high else timedelta())), high)
    return moved.isoformat(" ") if " " in value else moved.date().isoformat()


def holds_any_text(declared: str) -> bool:
    """Return whether a column of a declared type holds texts of any words."""
    return not declared or re.search(r"char|text|clob", declared, re.I) is not None


def longest_text(declared: str) -> int:
    """Return how many characters a column of a declared type holds."""
    found = re.match(r"\w*char\w*\s*\((\d+)\)", declared, re.I)
    return int(found[1]) if found else 1 << 16


def new_text(
    value: str, used: Callable[[str], bool], choices: Choices, longest: int = 1 << 16
) -> str:
    """Return a text like another one that is not in use: a code with other letters, a number with
    other digits, or a name with another word. It has at most ``longest`` characters."""
    for attempt in range(200):
        text = _similar_text(value, choices, attempt)[:longest].rstrip()
        if not used(text):
            return text
    return f"{choices.index(10**9)}{value}"[:longest]


def _similar_text(value: str, choices: Choices, attempt: int) -> str:
    if re.search(r"\d", value):
        return re.sub(r"\d", lambda _: str(choices.index(10)), value)
    if len(value) <= 3 or (len(value) <= 5 and value.isupper()):
        return re.sub(r"[A-Za-z]", lambda m: _letter(m[0], choices), value)
    word = choices.one(WORDS)
    if "@" in value:
        return f"{word}{value[value.index('@') :]}"
    words = value.split(" ")
    at = choices.index(len(words))
    if attempt > 20:
        word += choices.one(WORDS)
    words[at] = word.upper() if words[at].isupper() else word.capitalize()
    return " ".join(words)


def _letter(like: str, choices: Choices) -> str:
    letter = chr(ord("a") + choices.index(26))
    return letter.upper() if like.isupper() else letter


def near_text(text: str) -> str:
    """Return a text that differs in its last letter."""
    return text[:-1] + ("a" if text[-1:] in "eE" else "e")
