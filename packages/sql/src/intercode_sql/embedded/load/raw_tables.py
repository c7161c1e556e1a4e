"""The rows and tables of a dump while it is loaded.

A new table is *raw*: SQLite has it as ``raw <name>``, without types and indexes, so that writing is
fast. A statement that reads tables stores the raw ones in their final layout before.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from intercode_sql.base import Deadline, SqlDeterminism, SqlLimits
from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.text_for_parser import REWRITTEN_MODES
from intercode_sql.dump.reader import LOAD_TIME
from intercode_sql.embedded.catalog.catalog import (
    BuiltDatabases,
    Catalog,
    Column,
    Table,
    quote_schema,
    quote_table,
)
from intercode_sql.embedded.catalog.table_layout import store_in_key_order
from intercode_sql.embedded.catalog.values import default_or_implicit, integer_range, to_stored
from intercode_sql.embedded.execute.connection import ConnectionPool, EmbeddedConnection
from intercode_sql.embedded.execute.context import DEFAULT_SETTINGS, EmbeddedState, SessionContext
from intercode_sql.errors import SqlDataError
from intercode_sql.literals import quoted_name

DEFAULT = object()
"""The value of the word DEFAULT."""
_CODECS = {
    "utf8": "",
    "utf8mb3": "",
    "utf8mb4": "",
    "binary": "",
    "latin1": "cp1252",
    "ascii": "ascii",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "euckr": "euc_kr",
    "ujis": "euc_jp",
}
"""Python's codecs of the character sets in which no byte of a character is a backslash."""
_ZERO_DATE = re.compile(r"0000-00-00|\d{4}-00-\d\d|\d{4}-\d\d-00")
_PLAIN_DATE = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])")
_PLAIN_MOMENT = re.compile(_PLAIN_DATE.pattern + r" (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")
_PLAIN_DECIMAL = re.compile(r"-?\d{1,13}(?:\.\d{1,2})?")
_ENUM_CACHE = 10_000


class RowConverter:
    """Converts the rows of one INSERT.

    ``columns`` are those that the INSERT names. ``codec`` is Python's name of the character set of
    texts, or empty for UTF-8. ``defaults`` returns the value of a column that is not given.
    """

    def __init__(
        self, table: Table, columns: Sequence[Column], codec: str, defaults: Callable[[Column], Any]
    ) -> None:
        self._columns = columns
        self._defaults = defaults
        self._generated = {name for name, _, _ in table.generated}
        self._converters = [self._converter(c, codec) for c in columns]
        given = {c.name: n for n, c in enumerate(columns)}
        self._places = [given.get(c.name) for c in table.columns]
        self._in_order = self._places == list(range(len(table.columns)))
        self._table = table

    def rows(self, rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Yield the stored rows. Raises SqlDataError and StatementError for values that do not
        fit."""
        converters, size = self._converters, len(self._columns)
        rest = [None if p is not None else self._omitted(c) for p, c in self._placed()]
        for number, row in enumerate(rows, 1):
            if len(row) != size and row:
                raise SqlDataError(f"row {number} has {len(row)} values for {size} columns")
            try:
                done = [convert(v) for convert, v in zip(converters, row, strict=False)]
            except (StatementError, ValueError, TypeError, OverflowError):
                done = [
                    self._convert_slowly(c, v, number)
                    for c, v in zip(self._columns, row, strict=False)
                ]
            if self._in_order and row:
                yield done
            elif row:
                yield [
                    rest[n] if place is None else done[place]
                    for n, place in enumerate(self._places)
                ]
            else:
                yield [self._omitted(c) for c in self._table.columns]

    def _placed(self) -> Iterator[tuple[int | None, Column]]:
        return zip(self._places, self._table.columns, strict=True)

    def _omitted(self, column: Column) -> Any:
        if column.name.lower() in self._generated or column.auto:
            return None
        return to_stored(self._defaults(column), column)

    def _convert_slowly(self, column: Column, value: Any, number: int) -> Any:
        try:
            return self._converters[self._columns.index(column)](value)
        except StatementError:
            return to_stored(value, column, number)  # with the number of the row in its error

    def _converter(self, column: Column, codec: str) -> Callable[[Any], Any]:
        if column.name.lower() in self._generated:
            return lambda value: None
        usual = _usual_converter(column, codec)
        defaults = self._defaults

        def convert(value: Any) -> Any:
            if value is None and column.nullable:
                return None
            if value is DEFAULT:
                value = None if column.auto else defaults(column)
            return usual(value)

        return convert


def _usual_converter(column: Column, codec: str) -> Callable[[Any], Any]:
    kind = column.type
    if kind.kind == "int" and not column.declared.startswith("bit("):
        return _integer_converter(column)
    if kind.kind == "string":
        return _text_converter(column, codec)
    if kind.kind == "json":
        return lambda value: to_stored(_decoded(value, codec, column), column)
    if kind.moment and kind.kind != "time":
        return _moment_converter(column)
    if kind.kind in ("decimal", "double"):
        return _real_converter(column)
    return lambda value: to_stored(value, column)


def _integer_converter(column: Column) -> Callable[[Any], Any]:
    fitting = integer_range(column)
    low, high = fitting.start, min(fitting.stop, 1 << 63)

    def convert(value: Any) -> Any:
        if type(value) is int and low <= value < high:
            return value
        return to_stored(value, column)

    return convert


def _decoded(value: Any, codec: str, column: Column) -> Any:
    """Return a text of the connection's character set. Raises SqlDataError for other bytes."""
    if type(value) is not str or value.isascii():
        return value
    try:
        if not codec:
            value.encode("utf-8")
            return value
        return value.encode("utf-8", "surrogateescape").decode(codec)
    except UnicodeError as e:
        raise SqlDataError(
            f"a text for the column {column.name} is not {codec or 'UTF-8'}: put SET NAMES with "
            "the character set of the file before it, such as SET NAMES latin1"
        ) from e


def _text_converter(column: Column, codec: str) -> Callable[[Any], Any]:
    size = column.type.precision
    plain = column.declared.startswith(("varchar", "text", "longtext", "mediumtext"))
    known: dict[str, Any] = {}

    def convert(value: Any) -> Any:
        if type(value) is str and plain and len(value) <= size and value.isascii():
            return value
        found = known.get(value) if type(value) is str else None
        if found is None:
            found = to_stored(_decoded(value, codec, column), column)
            if type(value) is str and len(known) < _ENUM_CACHE and len(value) < 100:
                known[value] = found
        return found

    return convert


def _moment_converter(column: Column) -> Callable[[Any], Any]:
    pattern = _PLAIN_DATE if column.type.kind == "date" else _PLAIN_MOMENT
    known = pattern.fullmatch
    time = "" if column.type.kind == "date" else " 00:00:00"

    def convert(value: Any) -> Any:
        if type(value) is str:
            if known(value):
                return value
            if zero := _ZERO_DATE.match(value):  # no real day, which to_stored rejects
                rest = value[zero.end() :].strip()
                if column.type.kind == "date":
                    return zero.group()
                return zero.group() + (f" {rest.partition('.')[0]}" if rest else time)
        return "0000-00-00" + time if value == 0 else to_stored(value, column)

    return convert


def _real_converter(column: Column) -> Callable[[Any], Any]:
    kind = column.type
    whole = kind.precision - (kind.scale or 0) if kind.kind == "decimal" else 13
    exact = kind.kind == "decimal" and (kind.scale or 0) >= 2 and whole >= 1
    limit = 10 ** min(whole, 13)

    def convert(value: Any) -> Any:
        if exact and type(value) is str and _PLAIN_DECIMAL.fullmatch(value):
            number = float(value)
            if -limit < number < limit:
                return number
        elif exact and type(value) is int and -limit < value < limit:
            return float(value)
        return to_stored(value, column)

    return convert


def codec_of(charset: str) -> str:
    """Return Python's codec for a connection's character set, or an empty string for UTF-8. Raises
    SqlDataError for a set that cannot be read."""
    codec = _CODECS.get(charset.lower())
    if codec is None:
        raise SqlDataError(
            f"the character set {charset} of the dump cannot be read: convert the file to UTF-8 "
            "and write SET NAMES utf8mb4"
        )
    return codec


def load_default(column: Column) -> Any:
    """Return the value of a column that an INSERT omits, by the rules of a dump: a column without a
    default gets zero or an empty value."""
    return default_or_implicit(column, LOAD_TIME)


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
