"""What a session has changed in its database, as rows.

Tasks whose gold changes the database are scored by these rows instead of the last result. So an
answer may reach the state of the gold with other statements.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from intercode.environments.sql.engine import EngineSession
from intercode_sql.dialect.tokens import tokenize

_SECONDS = 60.0
"""The time limit for reading all that a session has changed, and for one table of the initial
data."""
_UNREAD = (f"not read within {_SECONDS:g} s",)
"""The only row of a table or view that cannot be read in time."""
_WRITES = re.compile(
    r"ALTER|CREATE|DELETE|DROP|INSERT|LOAD|RENAME|REPLACE|TRUNCATE|UPDATE", re.IGNORECASE
)
_AFTER_WITH = ("SELECT", "DELETE", "UPDATE")
COLUMN, ROW = "column", "row"


class Change(NamedTuple):
    """A row, or a column of a table, that a session has added or removed.

    ``times``: how often, negative if it was removed. ``key``: the values of the primary key, empty
    without one. ``values``: the row, or the column as SHOW COLUMNS has it.
    """

    table: str
    kind: str
    key: tuple[Any, ...]
    values: tuple[Any, ...]
    times: int


Changes = tuple[Change, ...]


def is_write(statement: str) -> bool:
    """Return whether a statement is one that changes tables: its first word, or the first one after
    the queries of a WITH."""
    depth = 0
    words: list[str] = []
    for token in tokenize(statement):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and (not words or token.upper in _AFTER_WITH):
            words.append(token.upper)
    return bool(words) and (
        _WRITES.fullmatch(words[0]) is not None
        or (words[0] == "WITH" and words[1:2] in (["DELETE"], ["UPDATE"]))
    )


def has_changed_tables(session: EngineSession) -> bool:
    """Return whether a session has added, changed or removed a table."""
    return bool(_changed_tables(session))


def database_changes(session: EngineSession, pristine: EngineSession) -> Changes:
    """Return the rows that a session has added to its database and removed from it.

    The columns of a table count as rows too, so that a change of the schema is a change.
    ``pristine`` has the initial data. Neither session is changed: a copy is read, in a limited
    time, because a session can define any number of views that are slow to read.
    """
    changed = _changed_tables(session)
    if not changed:
        return ()
    snapshot = session.snapshot()
    with_changes = snapshot.open_last()
    try:
        found: list[Change] = []
        until = time.monotonic() + _SECONDS
        for table in changed:
            now = _content(with_changes, table, until)
            then = _content(pristine, table, time.monotonic() + _SECONDS)
            for text in sorted(now.keys() | then.keys()):
                one = now.get(text) or then[text]
                times = _count(now, text) - _count(then, text)
                found += [one._replace(times=times)] if times else []
        return tuple(found)
    finally:
        with_changes.close()


def _count(content: Mapping[str, Change], text: str) -> int:
    return content[text].times if text in content else 0


def _changed_tables(session: EngineSession) -> list[str]:
    return [
        what.removeprefix("table ").rpartition(": ")[0]
        for what in session.changes()
        if what.startswith("table ")
    ]


def _content(session: EngineSession, table: str, until: float) -> Mapping[str, Change]:
    """Return the columns and the rows of a table; nothing if there is no such table. ``until`` is
    a time of the monotonic clock."""
    content: dict[str, Change] = {}
    for kind, key, values in _read(session, table, until):
        text = f"{kind} {values!r}"
        known = content.get(text)
        content[text] = Change(table, kind, key, values, known.times + 1 if known else 1)
    return content


def _read(
    session: EngineSession, table: str, until: float
) -> Iterator[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    dialect = session.dialect
    name = ".".join(map(dialect.quoted, table.split(".")))
    columns = _rows(session, dialect.columns_query.format(name), until)
    for column in columns:
        yield COLUMN, tuple(column[:1]), tuple(column)
    at = [n for n, column in enumerate(columns) if column[3:4] == ("PRI",)]
    for row in _rows(session, f"SELECT * FROM {name}", until):
        yield ROW, tuple(row[n] for n in at if n < len(row)), tuple(row)


def _rows(session: EngineSession, query: str, until: float) -> Sequence[Sequence[Any]]:
    left = until - time.monotonic()
    result = session.run(query, left) if left > 0 else None
    return (_UNREAD,) if result is None or result.timed_out else result.rows or ()
