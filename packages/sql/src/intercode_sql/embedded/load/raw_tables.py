"""The databases of a dump while it is loaded: rows in tables without keys, until they are needed.

A new table is *raw*: SQLite has it as ``raw <name>``, without types and indexes, so that writing is
fast. A statement that reads tables stores the raw ones in their final layout before.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from intercode_sql.base import SqlDeterminism, SqlLimits
from intercode_sql.deadline import Deadline
from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.dialect.parsed_text import REWRITTEN_MODES
from intercode_sql.embedded.catalog.catalog import (
    BuiltDatabases,
    Catalog,
    Table,
    quote_schema,
    quote_table,
)
from intercode_sql.embedded.catalog.table_layout import store_in_key_order
from intercode_sql.embedded.execute.connection import ConnectionPool, EmbeddedConnection
from intercode_sql.embedded.execute.context import DEFAULT_SETTINGS, EmbeddedState, SessionContext
from intercode_sql.errors import SqlDataError
from intercode_sql.literals import quoted_name

_SECONDS = 946_684_800
_STORAGE = 1 << 40


class LoadingConnection(EmbeddedConnection):
    """A connection with one database that it can write to, and others if a statement needs
    them."""

    def __init__(self, built: BuiltDatabases, name: str) -> None:
        super().__init__(built, bounded=False)
        self.set_deadline(Deadline())
        self.attach([name] if name else [])

    def attach(self, databases: Iterable[str]) -> None:
        """Attach databases for writing."""
        wanted = frozenset(databases)
        for name in wanted.difference(self.attached):
            self._detach_unused(wanted)
            path = quote(str(self.databases.file(name)))
            self._command(f"ATTACH 'file:{path}' AS {quote_schema(name)}")
            self._command(f"PRAGMA {quote_schema(name)}.journal_mode = OFF")
            self._command(f"PRAGMA {quote_schema(name)}.synchronous = OFF")
            self.attached.append(name)

    def make_private(
        self,
        name: str,
        storage: int,  # noqa: ARG002
        content: bytes | None = None,  # noqa: ARG002
    ) -> None:
        """Attach a database. Nobody else uses it."""
        self.attach([name])

    def compact(self, name: str) -> None:
        """Remove what is unused in a database, and measure its indexes."""
        self._command(f"VACUUM {quote_schema(name)}")
        self._command(f"ANALYZE {quote_schema(name)}")


class LoadingSession(SessionContext):
    """The session that executes the statements of a dump."""

    def __init__(self, folder: Path) -> None:
        built = BuiltDatabases("loading", folder, Catalog({}))
        start = EmbeddedState(
            built.catalog, "", {"foreign_key_checks": 0, "sql_mode": "NO_AUTO_VALUE_ON_ZERO"}
        )
        clock = SqlDeterminism(stands=True, seconds=_SECONDS, seed=0)
        limits = SqlLimits(storage=_STORAGE)
        super().__init__(ConnectionPool(bounded=False), built, start, limits, None, clock)
        self.connections: dict[str, LoadingConnection] = {}

    @property
    def connection(self) -> EmbeddedConnection:
        """The connection of the current database."""
        return self.connection_of(self.database)

    def connection_of(self, database: str) -> LoadingConnection:
        """Return the connection of a database, which is created if it is new."""
        found = self.connections.get(database)
        if found is None:
            if not re.fullmatch(r"[\w$ -]*", database):
                raise SqlDataError(f"a database cannot be named {database!r} here")
            found = self.connections[database] = LoadingConnection(self.databases, database)
        return found

    def setting(self, name: str) -> Any:
        """Return a system variable. Statements that are no plain INSERT run in strict mode."""
        return DEFAULT_SETTINGS[name] if name == "sql_mode" else super().setting(name)

    def require_default_modes(self) -> None:
        """Raise StatementError if the dump has set a mode in which its text reads differently."""
        modes = str(super().setting("sql_mode")).split(",")
        if other := sorted(REWRITTEN_MODES.intersection(modes)):
            raise unsupported(f"sql_mode {other[0]} in a dump")

    def assign(self, name: str, value: object) -> None:
        """Set a system variable."""
        self.state = replace(self.state, settings={**self.state.settings, name: value})

    @property
    def keeps_zero(self) -> bool:
        """Whether the dump has said that 0 is a value of AUTO_INCREMENT columns."""
        return "NO_AUTO_VALUE_ON_ZERO" in str(super().setting("sql_mode"))

    def close(self) -> None:
        """Close all connections."""
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()


class RawTables:
    """The tables of a dump that is being loaded."""

    def __init__(self, session: LoadingSession) -> None:
        self._session = session
        self._raw: set[tuple[str, str]] = set()
        self._final: set[tuple[str, str]] = set()

    def _connection(self, database: str) -> sqlite3.Connection:
        """Return a connection with an open transaction."""
        connection = self._session.connection_of(database).sqlite
        if not connection.in_transaction:
            connection.execute("BEGIN")
        return connection

    def commit(self) -> None:
        """Commit all transactions."""
        for connection in self._session.connections.values():
            if connection.sqlite.in_transaction:
                connection.sqlite.execute("COMMIT")

    def create(self, database: str, table: Table) -> None:
        """Create a table without rows."""
        columns = ", ".join(quoted_name(c.name) for c in table.columns)
        self._connection(database).execute(
            f"CREATE TABLE {_raw_name(database, table.name)} ({columns})"
        )
        self._raw.add((database, table.name))

    def drop(self, database: str, name: str) -> None:
        """Delete a table's rows and the table."""
        self._connection(database).execute(f"DROP TABLE {self._stored_name(database, name)}")
        self._raw.discard((database, name))
        self._final.discard((database, name))

    def drop_database(self, database: str) -> None:
        """Delete a database."""
        connection = self._session.connections.pop(database, None)
        if connection is not None:
            connection.close()
        self._session.databases.file(database).unlink(missing_ok=True)
        self._raw = {key for key in self._raw if key[0] != database}
        self._final = {key for key in self._final if key[0] != database}

    def is_raw(self, database: str, name: str) -> bool:
        """Return whether a table is raw."""
        return (database, name) in self._raw

    def _stored_name(self, database: str, name: str) -> str:
        if self.is_raw(database, name):
            return _raw_name(database, name)
        return quote_table(database, name)

    def insert(
        self, database: str, table: Table, rows: Iterable[Sequence[Any]], word: str = "INSERT"
    ) -> None:
        """Write rows. With INSERT OR REPLACE and INSERT OR IGNORE the table gets its keys
        before."""
        if word != "INSERT" and any(i.unique for i in table.indexes):
            self.finish_table(database, table.name)
        columns = ", ".join(quoted_name(c.name) for c in table.columns)
        marks = ", ".join("?" * len(table.columns))
        target = self._stored_name(database, table.name)
        self._connection(database).executemany(
            f"{word} INTO {target} ({columns}) VALUES ({marks})", rows
        )

    def replace(
        self, database: str, old: str, table: Table, rows: Iterable[Sequence[Any]] | None
    ) -> None:
        """Give a table another definition. ``rows`` are the rows with new columns; None keeps
        those that are stored."""
        if rows is not None:
            self.drop(database, old)
            self.create(database, table)
            self.insert(database, table, rows)
            return
        self._make_raw(database, old)
        if old != table.name:
            self._connection(database).execute(
                f"ALTER TABLE {_raw_name(database, old)} RENAME TO "
                f"{quoted_name('raw ' + table.name)}"
            )
            self._raw.remove((database, old))
            self._raw.add((database, table.name))

    def stored_name(self, database: str, name: str) -> str:
        """Return SQLite's name of a table."""
        return f"raw {name}" if self.is_raw(database, name) else name

    def truncate(self, database: str, name: str) -> None:
        """Delete all rows of a table."""
        self._connection(database).execute(f"DELETE FROM {self._stored_name(database, name)}")

    def _make_raw(self, database: str, name: str) -> None:
        if self.is_raw(database, name):
            return
        connection = self._connection(database)
        schema = quote_schema(database)
        indexes = connection.execute(
            f"SELECT name FROM {schema}.sqlite_master WHERE type = 'index' AND tbl_name = ? "
            "AND sql IS NOT NULL",
            [name],
        ).fetchall()
        for (index,) in indexes:
            connection.execute(f"DROP INDEX {schema}.{quoted_name(index)}")
        connection.execute(
            f"ALTER TABLE {self._stored_name(database, name)} RENAME TO "
            f"{quoted_name('raw ' + name)}"
        )
        self._final.discard((database, name))
        self._raw.add((database, name))

    def finish_table(self, database: str, name: str) -> None:
        """Store a raw table in its final layout. Raises SqlDataError for rows with equal keys."""
        if not self.is_raw(database, name):
            return
        table = self._session.state.catalog.databases[database][name]
        connection = self._connection(database)
        schema = quote_schema(database) + "."
        try:
            table = store_in_key_order(connection, table, schema)
        except sqlite3.IntegrityError as e:
            raise SqlDataError(_duplicate_message(table, str(e))) from e
        self._raw.remove((database, name))
        self._final.add((database, name))
        self.record(database, table)

    def record(self, database: str, table: Table) -> None:
        """Put a table into the session's catalog."""
        state = self._session.state
        catalog = state.catalog.with_table(database, table, self._session.new_stamp())
        self._session.state = EmbeddedState(
            catalog, state.database, state.settings, state.variables, {}, state.session_values
        )

    def finish_all(self) -> None:
        """Store all raw tables in their final layout and commit."""
        for database, name in sorted(self._raw):
            self.finish_table(database, name)
        self.commit()

    def reorder_all(self) -> None:
        """Store every table again, in the order of its key, and forget which are raw."""
        for database, name in sorted(self._final):
            self._make_raw(database, name)
        self.finish_all()

    def note_final(self, keys: Iterable[tuple[str, str]]) -> None:
        """Record the tables that a statement has created itself."""
        self._final |= set(keys)


def _raw_name(database: str, name: str) -> str:
    return quote_table(database, "raw " + name)


def _duplicate_message(table: Table, text: str) -> str:
    for index in table.indexes:
        full = ", ".join(f"{table.name}.{c}" for c in index.columns)
        if index.unique and (text.endswith(f": {full}") or f"{table.name}.{index.name}" in text):
            error = mysql_error(1062, "...", f"{table.name}.{index.name}").message
            return f"two rows have the same key ({error}): remove one of them from the dump"
    return f"table {table.name}: SQLite cannot hold its rows ({text})"
