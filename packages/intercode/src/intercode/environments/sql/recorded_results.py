"""Compares recorded SQL observations, and ignores differences between database servers.

An observation is the ``str()`` of a list of row tuples, ``None``, or an error. These differences
are ignored:

- the wording of errors of the same kind: for a table of a missing database, MySQL reports an
  unknown database and MariaDB a missing table
- the display width of integers: ``int(11)`` equals ``int``
- values that one release of the connector returns as bytes and another as text
- how ``DESCRIBE`` prints a column whose default is the current time
"""

from __future__ import annotations

import re

ERROR_PREFIX = "Error executing query: "

_ERROR_KINDS = (
    ("syntax", r"You have an error in your SQL syntax"),
    ("missing table", r"Table '.*' doesn't exist|Unknown table|Unknown database"),
    ("missing column", r"Unknown column"),
    ("ambiguous column", r"Column .* is ambiguous"),
    (
        "grouping",
        r"GROUP BY|incompatible with DISTINCT|Invalid use of group function|Mixing of GROUP columns"
        r"|Non-grouping field",
    ),
    ("shape of a subquery", r"Operand should contain|Subquery returns more than|different number"),
    ("not supported", r"This version of \w+ doesn't yet support|not supported"),
    ("missing function", r"(FUNCTION|PROCEDURE) .* does not exist"),
    ("not allowed", r"denied"),
    ("time-out", r"interrupted|max_statement_time|execution time exceeded"),
    ("exists already", r"already exists|Duplicate"),
)
_PATTERNS = tuple((name, re.compile(pattern, re.DOTALL)) for name, pattern in _ERROR_KINDS)

_WIDTH = re.compile(r"\b(tinyint|smallint|mediumint|int|bigint)\(\d+\)")
_BYTES = re.compile(r"(?:bytearray\()?\bb('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\)?")
_NOW = re.compile(r"'current_timestamp(?:\(\))?', '(?:DEFAULT_GENERATED)?'", re.IGNORECASE)
_CATALOGUE = re.compile(r"\s*(show|desc|describe|explain)\b|.*information_schema", re.I | re.DOTALL)
_LIMIT = re.compile(r"\blimit\b", re.IGNORECASE)
_LEXEME = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[()\[\]]|[^'\"()\[\]]+")


def is_error(text: str) -> bool:
    """Return whether an observation is an error."""
    return text.startswith(ERROR_PREFIX)


def error_kind(text: str) -> str:
    """Return the kind of an error: one of a fixed set, or the first words of its message."""
    message = text.removeprefix(ERROR_PREFIX)
    kind = next((name for name, pattern in _PATTERNS if pattern.search(message)), None)
    return kind or " ".join(message.split()[:4])


def same_observation(a: str, b: str) -> bool:
    """Return whether two observations are equal, apart from differences between servers."""
    if a == b:
        return True
    if is_error(a) or is_error(b):
        return is_error(a) and is_error(b) and error_kind(a) == error_kind(b)
    return normalize_observation(a) == normalize_observation(b)


def normalize_observation(text: str) -> str:
    """Remove from an observation what differs between servers."""
    text = _WIDTH.sub(r"\1", text)
    text = _NOW.sub("'CURRENT_TIMESTAMP', ''", text)
    return _BYTES.sub(r"\1", text) if "b'" in text or 'b"' in text else text


def parse_rows(text: str) -> list[str] | None:
    """Return the text of each row in an observation, or None if it has no rows or is truncated.

    The authors recorded the observations of human players without brackets around the rows.
    """
    if not text.startswith(("[", "(")):
        return None
    rows: list[str] = []
    parts: list[str] = []
    depth = outside = int(text.startswith("("))
    for match in _LEXEME.finditer(text):
        piece = match.group()
        if piece in "([":
            depth += 1
        if depth > 1:
            parts.append(piece)
        if piece in ")]":
            depth -= 1
            if depth == 1:
                rows.append("".join(parts))
                parts.clear()
    return rows if depth == outside else None


def same_rows(a: str, b: str) -> bool:
    """Return whether two observations have the same rows in any order."""
    left, right = parse_rows(normalize_observation(a)), parse_rows(normalize_observation(b))
    return left is not None and right is not None and sorted(left) == sorted(right)


def difference_cause(action: str, recorded: str, replayed: str) -> str:
    """Return the probable cause for which two observations of one statement differ.

    If the observations are equal, return the cause of different rewards.
    """
    if same_observation(recorded, replayed):
        return "the gold's rows or their order differ"
    if is_error(recorded) and is_error(replayed):
        return f"another error: {error_kind(recorded)} in the record, {error_kind(replayed)} here"
    if is_error(recorded):
        return f"an error in the record alone: {error_kind(recorded)}"
    if is_error(replayed):
        return f"an error here alone: {error_kind(replayed)}"
    if _CATALOGUE.match(action):
        return "the catalogue: times, sizes, versions, other databases"
    if same_rows(recorded, replayed):
        return "order of rows that the statement leaves open"
    if _normalize_numbers(recorded) == _normalize_numbers(replayed):
        return "type or digits of a number"
    if _LIMIT.search(action):
        return "which of several rows LIMIT leaves"
    return "other rows"


def _normalize_numbers(text: str) -> str:
    """Return an observation with all its numbers rounded to ten digits and written alike."""
    bare = re.sub(r"Decimal\('([^']*)'\)", r"\1", normalize_observation(text))
    return re.sub(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", lambda m: f"{float(m[0]):.10g}", bare)
