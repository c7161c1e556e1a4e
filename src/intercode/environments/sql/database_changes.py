"""What a session has changed in its database, as rows, for tasks that ask for a change.

A task with ``data["compare"] == "database"`` is scored by these rows instead of the last result. So
an answer may reach the state of the gold with other statements, and doing nothing scores 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from intercode.core.types import Rows, Task
from intercode.sql import SqlSession

_SECONDS = 60.0
ADDED, REMOVED = "added", "removed"


def compares_database(task: Task) -> bool:
    """Return whether a task is scored by the changes of its database."""
    return task.data.get("compare") == "database"


def database_changes(session: SqlSession, pristine: SqlSession) -> Rows:
    """Return the rows that a session has added to its database and removed from it.

    Each is (``added`` or ``removed``, table, content). The columns of a table count as rows too, so
    that a change of the schema is a change. ``pristine`` has the initial data. Neither session is
    changed: a copy is read.
    """
    changed = [
        what.removeprefix("table ").rpartition(": ")[0]
        for what in session.changes()
        if what.startswith("table ")
    ]
    if not changed:
        return ()
    snapshot = session.snapshot()
    with_changes = snapshot.open_last()
    try:
        rows: list[tuple[str, str, str]] = []
        for table in changed:
            now, then = _content(with_changes, table), _content(pristine, table)
            rows += [(ADDED, table, text) for text in (now - then).elements()]
            rows += [(REMOVED, table, text) for text in (then - now).elements()]
        return tuple(sorted(rows))
    finally:
        with_changes.close()


def _content(session: SqlSession, table: str) -> Counter[str]:
    """Return the columns and the rows of a table as texts; nothing if there is no such table."""
    return Counter(_texts(session, table))


def _texts(session: SqlSession, table: str) -> Iterator[str]:
    name = ".".join(f"`{part}`" for part in table.split("."))
    for column in session.run(f"SHOW COLUMNS FROM {name}", _SECONDS).rows or ():
        yield f"column {column!r}"
    for row in session.run(f"SELECT * FROM {name}", _SECONDS).rows or ():
        yield repr(row)
