"""Tells which statements are certain to end soon after their limit in the owner's process.

SQLite checks the deadline between instructions, so a statement ends in time if each instruction is
short. That holds for a short SELECT on pristine data with functions of this list, whose time is
linear in their arguments, if no value is longer than ``MAX_VALUE_BYTES`` and no pattern longer than
``MAX_PATTERN_BYTES``; the connection refuses longer ones. All other statements run in a worker.
"""

from __future__ import annotations

import sqlite3

from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.tokens import tokenize

MAX_VALUE_BYTES = 16 << 10
"""Length of the values that the owner's process computes."""
MAX_PATTERN_BYTES = 60
"""Length of the patterns of LIKE that the owner's process matches."""
_MAX_STATEMENT_CHARACTERS = 3000
_MAX_BRACKETS = 60
_MAX_DEPTH = 12


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
_FIRST_WORDS = word_set("SELECT SHOW DESC DESCRIBE")
_UNBOUNDED = word_set("WITH WINDOW REGEXP RLIKE GLOB MATCH INTO COLLATE ESCAPE | ||")
_OPERATORS = word_set("( , = < > + - * / % ! <= >= <> != <=> << >>")
_DIALECT_MARKS = ("--", "/*", "->", "#", "\\", "[")
"""What has another meaning in MySQL's dialect than in SQLite's."""


def is_bounded(code: str, functions: frozenset[str]) -> bool:
    """Return whether a statement calls only these functions (in capitals) and is short and simple.

    It reads the text alone. An answer of False costs only time.
    """
    if len(code) > _MAX_STATEMENT_CHARACTERS or any(mark in code for mark in _DIALECT_MARKS):
        return False
    tokens = [token.word or token.kind for token in tokenize(code)]
    first = next((token for token in tokens if token != "("), "")
    if first not in _FIRST_WORDS or not _UNBOUNDED.isdisjoint(tokens) or "PRAGMA_" in code.upper():
        return False
    if "(" not in tokens:
        return True
    return first == "SELECT" and _has_bounded_calls(tokens, functions)


def _has_bounded_calls(tokens: list[str], functions: frozenset[str]) -> bool:
    if tokens.count("(") > _MAX_BRACKETS:
        return False
    before, depth = "(", 0
    for token in tokens:
        if token == "(":
            depth += 1
            if depth > _MAX_DEPTH or not (before in functions or before in _OPERATORS):
                return False
        elif token == ")":
            depth -= 1
        before = token
    return True
