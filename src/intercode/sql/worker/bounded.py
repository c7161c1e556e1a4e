"""Tells which statements are certain to end soon after their limit in the owner's process.

SQLite checks the deadline between instructions, so a statement ends in time if each instruction is
short. That holds for a short SELECT on pristine data with functions of this list, whose time is
linear in their arguments, if no value is longer than ``MAX_VALUE_BYTES`` and no pattern longer than
``MAX_PATTERN_BYTES``; the connection refuses longer ones. All other statements run in a worker.
"""

from __future__ import annotations

import re
import sqlite3

from intercode.sql.dialect.keywords import word_set

MAX_VALUE_BYTES = 16 << 10
"""Length of the values that the owner's process computes."""
MAX_PATTERN_BYTES = 100
"""Length of the patterns of LIKE that the owner's process matches."""
_MAX_STATEMENT_CHARACTERS = 3000
_MAX_BRACKETS = 60
_MAX_DEPTH = 12
_MAX_SHOW_CHARACTERS = 200


class UnboundedStatementError(Exception):
    """The statement may take long: it must run in a worker."""


def limit_values(connection: sqlite3.Connection) -> None:
    """Make a connection refuse long values and patterns."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)


def refused_for_size(error: sqlite3.Error) -> bool:
    """Return whether SQLite refused a value or a pattern for its length."""
    return str(error).endswith(("too big", "pattern too complex"))


BEFORE_BRACKETS = word_set("""
    SELECT DISTINCT FROM JOIN ON USING WHERE AND OR XOR NOT IN EXISTS ALL ANY SOME BETWEEN LIKE IS
    CASE WHEN THEN ELSE AS BY HAVING UNION EXCEPT INTERSECT OVER DIV MOD INTERVAL LIMIT OFFSET
    CHAR VARCHAR DECIMAL NUMERIC""")
"""Words of the syntax that stand before a bracket."""
_FIRST_WORD = re.compile(r"[\s(]*(SELECT|(?:SHOW|DESC|DESCRIBE)\b)", re.I)
_UNBOUNDED = re.compile(
    r"--|/\*|#|\|\||->|\b(?:WITH|WINDOW|REGEXP|RLIKE|GLOB|MATCH|INTO|COLLATE|ESCAPE|PRAGMA_\w+)\b",
    re.I,
)
_BEFORE_BRACKET = re.compile(r"([^\s(])\s*\(")
_CALL = re.compile(r"(\w+)\s*\(")


def is_bounded(code: str, functions: frozenset[str]) -> bool:
    """Return whether a statement calls only these functions (in capitals) and is short and simple.

    It reads the text alone: text in quotes counts as code. An answer of False costs only time.
    """
    first = _FIRST_WORD.match(code)
    if first is None or len(code) > _MAX_STATEMENT_CHARACTERS or _UNBOUNDED.search(code):
        return False
    if "(" not in code:
        return True
    if len(first[1]) < 6 or first[1].upper() == "DESCRIBE" or code.count("(") > _MAX_BRACKETS:
        return False
    calls = _CALL.findall(code.upper())
    if not functions.issuperset(calls):
        return False
    others = [c for c in _BEFORE_BRACKET.findall(code) if not (c.isalnum() or c == "_")]
    return set(others) <= _OPERATORS and _depth(code) <= _MAX_DEPTH


_OPERATORS = frozenset("(,=<>+-*/%!")


def _depth(code: str) -> int:
    depth = deepest = 0
    for char in code:
        if char == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif char == ")":
            depth -= 1
    return deepest
