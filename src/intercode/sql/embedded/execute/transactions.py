"""BEGIN, COMMIT, ROLLBACK and savepoints, on saved copies of the session's state."""

from __future__ import annotations

import re

from intercode.sql.dialect.errors import StatementError, syntax_error
from intercode.sql.embedded.execute.context import SessionContext

_TRANSACTION_START = ""


def execute(word: str, code: str, session: SessionContext) -> None:
    """Execute one of these statements. Raises StatementError 1064, and 1305 for an unknown
    savepoint."""
    text = " ".join(code.strip().rstrip(";").split())
    upper = text.upper()
    if word == "START" and not upper.startswith("START TRANSACTION"):
        raise syntax_error(code, 6)
    if word in ("START", "BEGIN"):
        commit(session)
        session.savepoints.append((_TRANSACTION_START, session.save()))
    elif word == "COMMIT":
        commit(session)
    elif word == "SAVEPOINT":
        name = text.partition(" ")[2].strip("`").lower()
        session.savepoints.append((name, session.save()))
    elif word == "ROLLBACK" and (found := re.search(r"TO (?:SAVEPOINT )?`?(\w+)`?$", text, re.I)):
        _rollback_to(found[1].lower(), session)
    elif word == "ROLLBACK":
        if session.savepoints:
            session.restore(session.savepoints[0][1])
        commit(session)
    elif word == "RELEASE":
        _savepoint_index(text.rpartition(" ")[2].strip("`").lower(), session)


def commit(session: SessionContext) -> None:
    """End the transaction and keep its changes. DDL does this implicitly."""
    session.savepoints.clear()


def _savepoint_index(name: str, session: SessionContext) -> int:
    for i in reversed(range(len(session.savepoints))):
        if session.savepoints[i][0] == name:
            return i
    raise StatementError(1305, f"SAVEPOINT {name} does not exist")


def _rollback_to(name: str, session: SessionContext) -> None:
    i = _savepoint_index(name, session)
    session.restore(session.savepoints[i][1])
    del session.savepoints[i + 1 :]
