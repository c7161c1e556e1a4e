"""BEGIN, COMMIT, ROLLBACK and savepoints: states that are kept and gone back to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from intercode.sql.dialect.errors import StatementError, near

if TYPE_CHECKING:
    from intercode.sql.embedded.execute.session import EmbeddedSession

_START = ""


def execute(word: str, code: str, session: EmbeddedSession) -> None:
    """One of these statements. Raises StatementError 1064 and 1305 (no such savepoint)."""
    text = " ".join(code.strip().rstrip(";").split())
    upper = text.upper()
    if word == "START" and not upper.startswith("START TRANSACTION"):
        raise near(code, 6)
    if word in ("START", "BEGIN"):
        finish(session)
        session.marks.append((_START, session.snapshot()))
    elif word == "COMMIT":
        finish(session)
    elif word == "SAVEPOINT":
        name = text.partition(" ")[2].strip("`").lower()
        session.marks.append((name, session.snapshot()))
    elif word == "ROLLBACK" and (found := re.search(r"TO (?:SAVEPOINT )?`?(\w+)`?$", text, re.I)):
        _back(found[1].lower(), session)
    elif word == "ROLLBACK":
        if session.marks:
            session.restore(session.marks[0][1])
        finish(session)
    elif word == "RELEASE":
        _find(text.rpartition(" ")[2].strip("`").lower(), session)


def finish(session: EmbeddedSession) -> None:
    """The transaction is over, its changes stay. DDL does this too."""
    for _, kept in session.marks:
        kept.close()
    session.marks.clear()


def _find(name: str, session: EmbeddedSession) -> int:
    for place in reversed(range(len(session.marks))):
        if session.marks[place][0] == name:
            return place
    raise StatementError(1305, f"SAVEPOINT {name} does not exist")


def _back(name: str, session: EmbeddedSession) -> None:
    place = _find(name, session)
    session.restore(session.marks[place][1])
    for _, kept in session.marks[place + 1 :]:
        kept.close()
    del session.marks[place + 1 :]
