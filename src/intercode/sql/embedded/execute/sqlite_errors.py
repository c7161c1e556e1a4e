"""SQLite's errors in the words of this engine."""

from __future__ import annotations

import sqlite3

from intercode.sql.dialect.errors import StatementError, fault, unable
from intercode.sql.embedded.functions.runtime import RUNNING


def from_sqlite(error: sqlite3.Error) -> StatementError:
    """What a statement's end inside SQLite means: an error that one of our functions raised, the
    end of its time (3024), MySQL's number where there is one, else our own."""
    kept, text = RUNNING.error, str(error)
    if kept is not None:
        return kept
    if text == "interrupted":
        return StatementError(3024, text)
    if text == "integer overflow":
        return unable("a sum of more than 63 bits")
    if "full" in text:
        return fault(1114, "of this episode")
    if "too big" in text:
        return unable("a value or a statement so large")
    if "Expression tree" in text or "stack overflow" in text:
        return unable("expressions that lie so deep in each other")
    return unable(f"this statement (SQLite says: {text})")
