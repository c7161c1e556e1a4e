"""LIKE and regular expressions, whose cost is bounded before they run."""

from __future__ import annotations

import re
from functools import lru_cache

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.collations import weights
from intercode_sql.embedded.catalog.types import BOOL, INT, Collation
from intercode_sql.embedded.functions.registry import ARGUMENT_TEXT, TEXT, internal, scalar

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
def compile_pattern(pattern: str, exact: bool) -> tuple[re.Pattern[str], int]:
    """Convert ICU's pattern to Python's. Return it and its number of unbounded repeats.

    Raises StatementError 3685 for an invalid pattern, and an error of this engine for one whose
    time is not bounded.
    """
    if len(pattern) > 2000:
        raise unsupported("a regular expression of more than 2000 characters")
    text = re.sub(r"\[:(\w+):\]", lambda m: _CHARACTER_CLASSES.get(m[1], m[0]), pattern)
    text = text.replace("[[:<:]]", r"\b").replace("[[:>:]]", r"\b")
    try:
        found = re.compile(text, 0 if exact else re.I)
    except (re.error, OverflowError) as e:
        raise mysql_error(3685) from e
    return found, _count_unbounded_repeats(text)


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


def _search(text: str, pattern: str, exact: int) -> re.Match[str] | None:
    found, repeats = compile_pattern(pattern, bool(exact))
    if (len(text) + 1) ** min(repeats + 1, 8) > MAX_REGEX_STEPS and repeats > 1:
        raise unsupported(f"a regular expression with {repeats} repeats on so long a string")
    return found.search(text)


@internal("regexp", gives_bytes=False)
def regexp(text: str, pattern: str, exact: int = 0) -> int:
    return int(_search(text, pattern, exact) is not None)


@scalar("REGEXP_LIKE", args=[TEXT, TEXT], returns=BOOL, collated=True)
def regexp_like(collation: Collation, text: str, pattern: str) -> int:
    return int(_search(text, pattern, collation in _EXACT) is not None)


@scalar("REGEXP_REPLACE", args=[TEXT, TEXT, TEXT], returns=ARGUMENT_TEXT, collated=True)
def regexp_replace(collation: Collation, text: str, pattern: str, new: str) -> str:
    exact = collation in _EXACT
    if not pattern or _search(text, pattern, exact) is None:
        return text
    return compile_pattern(pattern, exact)[0].sub(re.sub(r"\$(\d)", r"\\\1", new), text)


@scalar("REGEXP_SUBSTR", args=[TEXT, TEXT], returns=ARGUMENT_TEXT, collated=True)
def regexp_substr(collation: Collation, text: str, pattern: str) -> str | None:
    found = _search(text, pattern, collation in _EXACT)
    return found.group() if found else None


@scalar("REGEXP_INSTR", args=[TEXT, TEXT], returns=INT, collated=True)
def regexp_instr(collation: Collation, text: str, pattern: str) -> int:
    found = _search(text, pattern, collation in _EXACT)
    return found.start() + 1 if found else 0
