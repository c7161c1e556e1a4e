"""LIKE and regular expressions, whose cost is bounded before they run."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.collations import weights
from intercode_sql.embedded.catalog.types import BOOL, INT, Collation
from intercode_sql.embedded.functions.registry import (
    ARGUMENT_TEXT,
    OPTIONAL_INTEGER,
    OPTIONAL_TEXT,
    TEXT,
    internal,
    scalar,
)

_EXACT = ("bin", "bytes")
MAX_REGEX_STEPS = 20_000_000
"""Limit of the estimated steps of a regular expression on one string."""
_CHARACTER_CLASSES = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "space": r"\s",
    "upper": "A-Z",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f",
    "print": " -~",
    "graph": "!-~",
}


@internal("like", gives_bytes=False)
def like(text: str, pattern: str, escape: str, collation: str) -> int:
    """LIKE: ``%`` is any string, ``_`` any character. The time is linear for a fixed number of
    ``%``."""
    pieces = _split_pattern(pattern, escape, collation)
    subject = weights(text, collation)
    at = 0
    for number, (piece, free) in enumerate(pieces):
        last = number == len(pieces) - 1
        if not free:
            if not _matches_at(subject, piece, 0):
                return 0
            at = len(piece)
            if last:
                return int(at == len(subject))
            continue
        if last:
            start = len(subject) - len(piece)
            return int(start >= at and _matches_at(subject, piece, start))
        while at + len(piece) <= len(subject) and not _matches_at(subject, piece, at):
            at += 1
        if at + len(piece) > len(subject):
            return 0
        at += len(piece)
    return 1


def _matches_at(subject: str, piece: tuple[str | None, ...], at: int) -> bool:
    if at + len(piece) > len(subject):
        return False
    return all(p is None or p == subject[at + i] for i, p in enumerate(piece))


@lru_cache(maxsize=256)
def _split_pattern(
    pattern: str, escape: str, collation: str
) -> list[tuple[tuple[str | None, ...], bool]]:
    """Split a pattern at its ``%``. Return each part's characters (None: any) and whether a ``%``
    precedes it."""
    out: list[tuple[tuple[str | None, ...], bool]] = []
    piece: list[str | None] = []
    free = escaped = False
    for char in pattern:
        if not escaped and char == escape:
            escaped = True
        elif not escaped and char == "%":
            out.append((tuple(piece), free))
            piece, free = [], True
        else:
            any_one = char == "_" and not escaped
            folded = weights(char, collation)
            piece += [None] if any_one else list(folded)
            escaped = False
    out.append((tuple(piece), free))
    return out


# ---------------------------------------------------------------- regular expressions
@lru_cache(maxsize=256)
def compile_pattern(pattern: str, flags: int) -> tuple[re.Pattern[str], int]:
    """Convert ICU's pattern to Python's. Return it and its number of unbounded repeats.

    Raises StatementError 3697 for a range whose ends are in the wrong order, 3685 for another
    invalid pattern, and an error of this engine for one whose time is not bounded.
    """
    if len(pattern) > 2000:
        raise unsupported("a regular expression of more than 2000 characters")
    text = re.sub(r"\[:(\w+):\]", lambda m: _CHARACTER_CLASSES.get(m[1], m[0]), pattern)
    text = text.replace("[[:<:]]", r"\b").replace("[[:>:]]", r"\b")
    try:
        found = re.compile(text, flags)
    except (re.error, OverflowError) as e:
        if _RANGE_OF_A_CLASS.search(str(e)):
            raise unsupported("a range of characters with a class at an end") from e
        raise mysql_error(3697 if "character range" in str(e) else 3685) from e
    return found, _count_unbounded_repeats(text)


_RANGE_OF_A_CLASS = re.compile(r"^bad character range (\\[dDsSwW]-|.+-\\[dDsSwW] at )")
"""Matches Python's error for a range that ends with a class, such as ``[a-\\d]``."""
_TOKEN = re.compile(
    r"\\(?P<reference>[1-9])|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<open>\()(?P<form>\?[:i=!]?)?"
    r"|(?P<close>\))|(?P<alternative>\|)|(?P<many>[*+]|\{\d*,\d*\})|.",
    re.S,
)


def _count_unbounded_repeats(pattern: str) -> int:
    """Return how many unbounded repeats a pattern has.

    Raises StatementError for repeats or alternatives within a repeat, and for references: their
    time may grow with any power of the string's length.
    """
    total = 0
    risky = [False]
    closed = False
    for token in _TOKEN.finditer(pattern):
        just_closed, closed = closed, False
        if token["reference"] or token["form"] == "?":
            raise unsupported("a regular expression with references or special groups")
        if token["open"]:
            risky.append(False)
        elif token["close"] and len(risky) > 1:
            inner = risky.pop()
            closed = inner
            risky[-1] = risky[-1] or inner
        elif token["alternative"]:
            risky[-1] = True
        elif token["many"]:
            if just_closed:
                raise unsupported(
                    "a regular expression with repeats or alternatives within repeats"
                )
            total += 1
            risky[-1] = True
    return total


def _pattern(text: str, pattern: str, flags: int) -> re.Pattern[str]:
    """Return a pattern. Raises StatementError if a search in the text may take too long."""
    found, repeats = compile_pattern(pattern, flags)
    if (len(text) + 1) ** min(repeats + 1, 8) > MAX_REGEX_STEPS and repeats > 1:
        raise unsupported(f"a regular expression with {repeats} repeats on so long a string")
    return found


def _flags(collation: Collation, letters: str, function: str) -> int:
    """Return Python's flags for a collation and a match type. Raises StatementError 1210."""
    flags = 0 if collation in _EXACT else int(re.I)
    for letter in letters:
        if letter not in "cimnu":
            raise mysql_error(1210, function)
        flags = flags & ~re.I if letter == "c" else flags | _MATCH_TYPES.get(letter, 0)
    return flags


_MATCH_TYPES = {"i": int(re.I), "m": int(re.M), "n": int(re.S)}


def _matches(
    text: str, pattern: str, flags: int, start: int, occurrence: int
) -> list[re.Match[str]]:
    """Return one occurrence of a pattern from a position on, or all if its number is 0. Raises
    StatementError 3686 for a position outside the text."""
    if not 1 <= start <= len(text) + 1:
        raise mysql_error(3686)
    found = _pattern(text, pattern, flags).finditer(text, start - 1)
    return list(islice(found, max(0, occurrence - 1), occurrence or None))


@internal("regexp", gives_bytes=False)
def regexp(text: str, pattern: str, exact: int = 0) -> int:
    return int(_pattern(text, pattern, 0 if exact else int(re.I)).search(text) is not None)


@scalar("REGEXP_LIKE", args=[TEXT, TEXT, OPTIONAL_TEXT], returns=BOOL, collated=True)
def regexp_like(collation: Collation, text: str, pattern: str, letters: str = "") -> int:
    flags = _flags(collation, letters, "regexp_like")
    return int(_pattern(text, pattern, flags).search(text) is not None)


_FROM = [OPTIONAL_INTEGER, OPTIONAL_INTEGER]
"""The position at which a search begins, and which occurrence is meant."""


_SPECIAL_IN_NEW_TEXT = re.compile(
    r"\\(?:u(?P<short>(?![dD][89a-fA-F])[0-9a-fA-F]{4})"
    r"|U(?P<long>00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|(?P<plain>.?))"
    r"|\$(?P<digits>[0-9]*)",
    re.S,
)


def _new_text(found: re.Match[str], new: str) -> str:
    """Return what ICU puts in place of an occurrence: ``$1`` stands for a group, and a backslash
    quotes what follows it. Raises StatementError 3686 for a group that the pattern lacks, and 3887
    for a ``$`` without a number."""

    def text(special: re.Match[str]) -> str:
        digits = special["digits"]
        if digits is None:
            code = special["short"] or special["long"]
            return chr(int(code, 16)) if code else special["plain"]
        if not digits:
            raise mysql_error(3887)
        group = size = 0
        while size < len(digits) and group * 10 + int(digits[size]) <= found.re.groups:
            group, size = group * 10 + int(digits[size]), size + 1
        if not size:
            raise mysql_error(3686)
        return (found[group] or "") + digits[size:]

    return _SPECIAL_IN_NEW_TEXT.sub(text, new)


@scalar(
    "REGEXP_REPLACE",
    args=[TEXT, TEXT, TEXT, *_FROM, OPTIONAL_TEXT],
    returns=ARGUMENT_TEXT,
    nocase_level=0,
    collated=True,
)
def regexp_replace(
    collation: Collation,
    text: str,
    pattern: str,
    new: str,
    start: int = 1,
    occurrence: int = 0,
    letters: str = "",
) -> str:
    flags = _flags(collation, letters, "regexp_replace")
    at, out = 0, []
    for found in _matches(text, pattern, flags, start, occurrence) if pattern else ():
        out += [text[at : found.start()], _new_text(found, new)]
        at = found.end()
    return "".join([*out, text[at:]])


@scalar(
    "REGEXP_SUBSTR",
    args=[TEXT, TEXT, *_FROM, OPTIONAL_TEXT],
    returns=ARGUMENT_TEXT,
    nocase_level=0,
    collated=True,
)
def regexp_substr(
    collation: Collation,
    text: str,
    pattern: str,
    start: int = 1,
    occurrence: int = 1,
    letters: str = "",
) -> str | None:
    flags = _flags(collation, letters, "regexp_substr")
    found = _matches(text, pattern, flags, start, max(1, occurrence))
    return found[0].group() if found else None


@scalar(
    "REGEXP_INSTR",
    args=[TEXT, TEXT, *_FROM, OPTIONAL_INTEGER, OPTIONAL_TEXT],
    returns=INT,
    collated=True,
)
def regexp_instr(
    collation: Collation,
    text: str,
    pattern: str,
    start: int = 1,
    occurrence: int = 1,
    behind: int = 0,
    letters: str = "",
) -> int:
    """Return the position of an occurrence, or if ``behind`` is 1 that of what follows it."""
    if behind not in (0, 1):
        raise mysql_error(1210, "regexp_instr: return_option must be 1 or 0.")
    flags = _flags(collation, letters, "regexp_instr")
    found = _matches(text, pattern, flags, start, max(1, occurrence))
    return (found[0].end() if behind else found[0].start()) + 1 if found else 0
