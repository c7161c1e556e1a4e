"""The forms in which an output may say the same as a gold's."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from intercode_sandbox.lines import split_lines

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?\Z")
_NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_QUOTES = "'\"`‘’"
_SIGNS = re.compile(r"[\s=:,;|()\[\]{}<>]+")
_HASH = re.compile(r"(?=.*\d)[0-9a-f]{8,}\Z")
_LABEL = re.compile(r"[^\W\d_][\w-]*\Z")
_MIN_LABELS = 2
"""So many labels may stand in a line of one word, else as many as it has words."""
_LINE_NUMBER = re.compile(r"(^|:)\d+:\s?")
_BRANCH = re.compile(r"[\s|`\\+─│├└┬\-*•]*")
_MANY_DIGITS = 4
"""Digits after the point from which a gold's number is taken to be exact."""
_MIN_DIGITS = 2
"""Digits after the point that an agent's number must have, if the gold's has them."""

Placed = tuple[str, str]
"""A text, and the directory in which it was printed."""


def same_lines(left: Sequence[str], right: Sequence[str], ordered: bool) -> bool:
    """Return whether two outputs have the same lines."""
    return left == right if ordered else Counter(left) == Counter(right)


def mentions(text: str, expected: str) -> bool:
    """Return whether each expected line occurs in a line of its own, not as a part of a longer
    path or word."""
    left = [" ".join(line.split()) for line in split_lines(text.strip())]
    for wanted in filter(None, (" ".join(line.split()) for line in split_lines(expected))):
        whole = re.compile(rf"(?<![\w/.-]){re.escape(wanted)}(?![\w/-])")
        found = next((line for line in left if whole.search(line)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def same_count(text: str, expected: str, query: str, anywhere: bool = False) -> bool:
    """Return whether an output says the number that is the only one of the expected output.

    ``query`` and ``anywhere``: as for ``as_count``.
    """
    wanted, found = as_count(expected), as_count(text, query, anywhere)
    if wanted is None or found is None:
        return False
    return Decimal(found) == Decimal(wanted) or same_number(found, wanted)


def as_count(text: str, query: str = "", anywhere: bool = False) -> str | None:
    """Return the only number of an output, or None if it has none or several.

    It stands in digits or as a word, in the only line or, ``anywhere``, in one of several. Beside
    other numbers, those of the query do not count, as in "3 files older than 2 days".
    """
    if len([line for line in split_lines(text) if line.strip()]) != 1 and not anywhere:
        return None
    words = _words_of(text)
    numbers = [word for word in words if _NUMBER.match(word)]
    if not numbers:
        small = map(str.lower, words)
        numbers = [str(_NUMBER_WORDS.index(word)) for word in small if word in _NUMBER_WORDS]
    if len(set(numbers)) > 1:
        asked = set(_words_of(query))
        numbers = [number for number in numbers if number not in asked]
    return numbers[0] if len(set(numbers)) == 1 else None


def _words_of(text: str) -> list[str]:
    return [word.strip(".!?" + _QUOTES) for word in _SIGNS.split(text)]


def same_tree(text: str, expected: str) -> bool:
    """Return whether two outputs draw the same tree."""
    tree = as_tree(expected)
    return tree is not None and as_tree(text) == tree


def as_tree(text: str) -> frozenset[str] | None:
    """Return the paths below the first name of a drawn tree, or None if the text draws none."""
    paths: set[str] = set()
    above: list[tuple[int, str]] = []  # indentation and path of the directories above a line
    for line in split_lines(text):
        branch = _BRANCH.match(line)
        indent = branch.end() if branch else 0
        name = line[indent:].replace("\\ ", " ").strip().rstrip("/")
        if not name or re.match(r"\d+ director(?:y|ies)\b", name):
            continue
        while above and above[-1][0] >= indent:
            above.pop()
        if not above and paths:
            return None  # a second tree
        if above and "/" in name:
            return None  # a list of paths
        path = f"{above[-1][1]}/{name}" if above else ""
        paths.add(path)
        above.append((indent, path))
    return frozenset(paths) if len(paths) > 1 else None


def in_form(form: str, agent: Placed, gold: Placed, ordered: bool) -> bool:
    """Return whether two outputs have equal lines in a form of COMPARISONS."""
    rows, expected = _rows(form, *agent), _rows(form, *gold)
    if len(rows) != len(expected) or not expected:
        return False
    if form in ("words", "fields"):
        rows, expected = _without_labels(rows, expected)
    if form == "fields":
        rows, expected = ([sorted(r, key=_kind) for r in side] for side in (rows, expected))
    left = list(rows)
    for row in expected:
        candidates = left[:1] if ordered else left
        found = next((n for n, other in enumerate(candidates) if _same_row(other, row)), None)
        if found is None:
            return False
        del left[found]
    return True


def _kind(word: str) -> int:
    """Return a number for the kind of a word. Two words of one kind cannot change places without
    another meaning: a size and a count, or two names."""
    if _NUMBER.match(word):
        return 0
    if _HASH.match(word):
        return 1
    return 2 if "/" in word else 3


def _rows(form: str, text: str, cwd: str) -> list[list[str]]:
    """Return the words of each line, in a form."""
    rows = []
    for line in split_lines(text.strip()):
        if form == "matches":
            line = _LINE_NUMBER.sub(r"\1", line, count=1)
        words = line.split() if form in ("paths", "matches") else _SIGNS.split(line)
        row = [_whole_path(stripped, cwd) for word in words if (stripped := word.strip(_QUOTES))]
        if row:
            rows.append(row)
    return rows


def _whole_path(word: str, cwd: str) -> str:
    """Return a word, and a path from the root if it is a path."""
    path, colon, rest = word.partition(":")
    if "/" not in path or "//" in word:
        return word
    return posixpath.normpath(posixpath.join(cwd, path)) + colon + rest


def _without_labels(
    rows: list[list[str]], expected: list[list[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return rows without the words that each of them has more often than the expected ones."""
    surplus = Counter(rows[0])
    for row in rows[1:]:
        surplus &= Counter(row)
    for row in expected:
        surplus -= Counter(row)
    labels = Counter({word: n for word, n in surplus.items() if _LABEL.match(word)})
    if labels.total() > max(_MIN_LABELS, *map(len, expected)):
        return rows, expected  # a sentence
    return [_drop(row, labels) for row in rows], expected


def _drop(row: list[str], labels: Counter[str]) -> list[str]:
    left, kept = Counter(labels), []
    for word in row:
        if left[word] > 0:
            left[word] -= 1
        else:
            kept.append(word)
    return kept


def _same_row(row: Sequence[str], expected: Sequence[str]) -> bool:
    return len(row) == len(expected) and all(
        word == wanted or same_number(word, wanted)
        for word, wanted in zip(row, expected, strict=True)
    )


def same_number(text: str, expected: str) -> bool:
    """Return whether two numbers are equal, as far as the less precise one says.

    It must have two digits after the point, unless both are equal in value. It may be rounded or
    cut off.
    """
    if not (_NUMBER.match(text) and _NUMBER.match(expected)):
        return False
    number, wanted = Decimal(text), Decimal(expected)
    if number == wanted:
        return "." in text or "." in expected
    digits, wanted_digits = (len(t.partition(".")[2]) for t in (text, expected))
    if digits > wanted_digits:
        number, wanted = wanted, number
        enough = wanted_digits >= _MANY_DIGITS
    else:
        enough = digits >= _MIN_DIGITS
    unit = Decimal(1).scaleb(-min(digits, wanted_digits))
    cut_off = number * wanted > 0 and 0 <= abs(wanted) - abs(number) < unit
    return enough and (abs(number - wanted) <= unit / 2 or cut_off)
