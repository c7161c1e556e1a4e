"""SQLite's errors in the words of this engine."""

from __future__ import annotations

import sqlite3

from intercode.sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode.sql.embedded.functions.runtime import THREAD_STATE


def translate_sqlite_error(error: sqlite3.Error) -> StatementError:
    """What a statement's end inside SQLite means: an error that one of our functions raised, the
    end of its time (3024), MySQL's number where there is one, else our own."""
    kept, text = THREAD_STATE.error, str(error)
    if kept is not None:
        return kept
    if text == "interrupted":
        return StatementError(3024, text)
    if text == "integer overflow":
        return unsupported("a sum of more than 63 bits")
    if "full" in text:
        return mysql_error(1114, "of this episode")
    if "too big" in text:
        return unsupported("a value or a statement so large")
    if "Expression tree" in text or "stack overflow" in text:
        return unsupported("expressions that lie so deep in each other")
    return unsupported(f"this statement (SQLite says: {text})")
