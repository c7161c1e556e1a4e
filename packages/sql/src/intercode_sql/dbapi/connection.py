"""Connections and cursors of PEP 249 over a session of an engine."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from intercode_sql.base import SqlDeterminism, SqlDialect, SqlEngine, SqlLimits, SqlSession
from intercode_sql.dbapi import errors
from intercode_sql.dbapi.errors import (
    InterfaceError,
    NotSupportedError,
    OperationalError,
    statement_error,
    translated_errors,
)
from intercode_sql.dump.literals import NAME, unquote_name
from intercode_sql.dump.reader import read_statements
from intercode_sql.engines import open_engine
from intercode_sql.errors import SqlDataError, SqlError
from intercode_sql.types import DatabaseSpec, ExecResult, TypeCode

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


class TypeObject(frozenset[TypeCode]):
    """A set of type codes, which equals each of them."""

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, int) else super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()


STRING = TypeObject({TypeCode.TEXT, TypeCode.JSON})
BINARY = TypeObject({TypeCode.BLOB})
NUMBER = TypeObject(
    {
        TypeCode.BIGINT,
        TypeCode.DECIMAL,
        TypeCode.FLOAT,
        TypeCode.DOUBLE,
        TypeCode.YEAR,
        TypeCode.BIT,
    }
)
DATETIME = TypeObject({TypeCode.DATE, TypeCode.TIME, TypeCode.DATETIME})
ROWID = TypeObject({TypeCode.BIGINT})


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802
    """Return the local date of a time in seconds since the epoch."""
    return dt.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802
    """Return the local time of a time in seconds since the epoch."""
    return dt.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802
    """Return the local date and time of a time in seconds since the epoch."""
    return dt.datetime.fromtimestamp(ticks)


Parameters = Sequence[Any] | Mapping[str, Any]
Description = tuple[str, int, None, None, int | None, int | None, bool | None]


class Connection:
    """A connection to a private copy of a database, which ends with it.

    Args:
        session: The session in which statements run.
        dialect: How its statements are written.
        timeout: Limit of a statement in seconds.
        autocommit: Whether each statement is a transaction of its own.
        close: What ends with the connection.
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self,
        session: SqlSession,
        dialect: SqlDialect,
        timeout: float,
        autocommit: bool,
        close: Callable[[], None],
    ) -> None:
        self.timeout = timeout
        self.dialect = dialect
        self._session: SqlSession | None = session
        self._close = close
        self._autocommit = True
        self.autocommit = autocommit

    @property
    def session(self) -> SqlSession:
        """The session: it can be copied, and says what it has changed."""
        if self._session is None:
            raise InterfaceError(0, "the connection is closed: open another one")
        return self._session

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own. Setting it ends a transaction and
        keeps its changes."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        if bool(value) == self._autocommit:
            return
        self.commit()
        if self.dialect.autocommit:
            self._run(self.dialect.autocommit.format(int(value)))
        self._autocommit = bool(value)

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        return Cursor(self, self.session)

    def commit(self) -> None:
        """Keep the changes of the transaction."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Discard the changes of the transaction."""
        self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        session = self.session
        if session.in_transaction or self.dialect.autocommit:
            with translated_errors():
                _require_success(session.run(statement, self.timeout))

    def close(self) -> None:
        """Discard the changes, which were never those of the file. Raises InterfaceError if it is
        closed already."""
        session = self.session
        self._session = None
        with translated_errors():
            try:
                session.close()
            finally:
                self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Close the connection."""
        if self._session is not None:
            self.close()

    def run(self, operation: str, parameters: Parameters | None = None) -> ExecResult:
        """Run one statement with parameters. Raises the errors of this interface.

        A statement that exceeds its time limit, or is interrupted, ends its transaction.
        """
        with translated_errors():
            if parameters is not None:
                operation = self._bound(operation, parameters)
            begin = self.dialect.begin
            if begin and not self._autocommit and not self.session.in_transaction:
                _require_success(self._run(begin))
            return _require_success(self._run(operation))

    def _run(self, code: str) -> ExecResult:
        session = self.session
        try:
            result = session.run(code, self.timeout)
        except KeyboardInterrupt:
            self._roll_back_quietly(session)
            raise
        if result.timed_out:
            self._roll_back_quietly(session)
        return result

    def _roll_back_quietly(self, session: SqlSession) -> None:
        """End the transaction of a statement that was stopped, if its end has not done so."""
        if session.in_transaction or self.dialect.autocommit:
            with suppress(SqlError):
                session.run("ROLLBACK", self.timeout)

    def _bound(self, operation: str, parameters: Parameters) -> str:
        given = parameters.values() if isinstance(parameters, Mapping) else parameters
        literals = self.dialect.literals
        if self.dialect.mode_query and any(isinstance(v, str) and "\\" in v for v in given):
            (mode,), *_ = self.session.run(self.dialect.mode_query, self.timeout).rows or ((),)
            if "NO_BACKSLASH_ESCAPES" in str(mode):
                literals = self.dialect.plain_literals
        return literals.bind(operation, parameters)


def _require_success(result: ExecResult) -> ExecResult:
    if not result.ok:
        raise statement_error(result)
    if result.omitted_bytes:
        raise OperationalError(
            0,
            "the result is longer than the limits of the connection: read it in parts with "
            "LIMIT, or give connect() other limits",
        )
    return result


class Cursor:
    """Runs statements and returns their rows. ``Connection.cursor`` opens one."""

    def __init__(self, connection: Connection, session: SqlSession) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: tuple[Description, ...] | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.rownumber: int | None = None
        self._session: SqlSession | None = session
        self._rows: Sequence[tuple[Any, ...]] | None = None

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Run one statement. ``%s`` or ``%(name)s`` in it stand for parameters.

        ``description`` then describes the rows, ``rowcount`` counts those that were read or
        written, and ``lastrowid`` is the first value of AUTO_INCREMENT that was generated. Without
        parameters the text is sent as it is, and ``%`` has no meaning.
        """
        self._require_open()
        self._forget()
        self._take(self.connection.run(operation, parameters))
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Self:
        """Run one statement with each of the parameters. ``rowcount`` is the sum."""
        self._require_open()
        self._forget()
        count = 0
        for parameters in seq_of_parameters:
            result = self.connection.run(operation, parameters)
            if result.rows is not None:
                raise errors.ProgrammingError(
                    0, "executemany() is for statements without rows: use execute()"
                )
            count += max(result.info.affected_rows, 0)
            self.lastrowid = result.info.insert_id
        self.rowcount = count
        return self

    def callproc(self, procname: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        """Raise NotSupportedError: engines have no stored procedures."""
        raise NotSupportedError(0, f"there is no procedure {procname}{tuple(parameters)}")

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next rows, at most ``size`` or ``arraysize``."""
        rows, start = self._position()
        self.rownumber = min(start + (self.arraysize if size is None else size), len(rows))
        return list(rows[start : self.rownumber])

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        return self.fetchmany(len(self._position()[0]))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def nextset(self) -> None:
        """Return None: a statement has one result."""
        self._position()
        self._forget()

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing: parameters have the sizes of their values."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values are not cut."""

    def close(self) -> None:
        """Close the cursor. Raises InterfaceError if it is closed already."""
        self._require_open()
        self._forget()
        self._session = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._forget()
            self._session = None

    def _require_open(self) -> None:
        if self._session is None or self._session is not self.connection.session:
            raise InterfaceError(0, "the cursor is closed: open another one")

    def _position(self) -> tuple[Sequence[tuple[Any, ...]], int]:
        self._require_open()
        if self._rows is None or self.rownumber is None:
            raise InterfaceError(0, "there is no result to fetch: execute a query before")
        return self._rows, self.rownumber

    def _forget(self) -> None:
        self.description = self._rows = self.rownumber = self.lastrowid = None
        self.rowcount = -1

    def _take(self, result: ExecResult) -> None:
        self._rows, self.lastrowid = result.rows, result.info.insert_id
        self.rowcount = result.info.affected_rows
        if result.rows is not None:
            self.rowcount, self.rownumber = len(result.rows), 0
            self.description = tuple(
                (c.name, c.type, None, None, c.precision, c.scale, c.nullable)
                for c in result.info.columns
            )


EMPTY_DATABASE = "test"
"""The name of the database of a connection without a file."""
LIMITS = SqlLimits(rows=1_000_000, size=1 << 28)
"""The limits of a connection. A longer result is an error."""
_SQLITE_START = b"SQLite format 3\0"
_USE = re.compile(rf"USE\s+({NAME})\s*;?\s*", re.I)
_PREPARES = re.compile(r"SET\b|USE\b|(?:CREATE|DROP|ALTER)\s+(?:DATABASE|SCHEMA)\b", re.I)


def connect(
    dump_or_file: str | Path | None = None,
    engine: str | SqlEngine = "embedded",
    *,
    database: str | None = None,
    dsn: str | None = None,
    determinism: SqlDeterminism | None = None,
    limits: SqlLimits = LIMITS,
    timeout: float = 60.0,
    autocommit: bool = False,
) -> Connection:
    """Open a connection to a private copy of a database. The file is never changed.

    Args:
        dump_or_file: A dump of MySQL or a database file, or None for an empty database.
        engine: The name of an engine, or an open one, which stays open.
        database: The default database. Without it, that of the dump's first USE; a dump without
            USE is loaded into a database with the name of the file.
        dsn: The address of a server, for an engine that uses one.
        determinism: The time and random numbers of statements, for an engine that can fix them.
        limits: Limits of results and of the size of the copy.
        timeout: Limit of a statement in seconds. A longer one raises OperationalError, as Ctrl-C
            raises KeyboardInterrupt; its transaction is rolled back, and the connection stays
            usable.
        autocommit: Whether each statement is a transaction of its own.

    Raises:
        InterfaceError: There is no such engine.
        OperationalError: The file cannot be read, or the machine lacks what the engine needs.
        ProgrammingError: The engine does not read such files.
    """
    with translated_errors(), ExitStack() as opened:
        if isinstance(engine, str):
            engine = open_engine(engine, dsn, determinism)
            opened.callback(engine.close)
        spec = (
            _empty(engine, _folder(opened), database)
            if dump_or_file is None
            else _spec(Path(dump_or_file), database, opened)
        )
        session = engine.open(spec, limits)
        with ExitStack() as started:
            started.callback(session.close)
            close = opened.pop_all().close
            started.callback(close)
            connection = Connection(session, engine.dialect, timeout, autocommit, close)
            started.pop_all()
        return connection


def _folder(opened: ExitStack) -> Path:
    """Create a directory that ends with the connection."""
    return Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="intercode-sql-")))


def _empty(engine: SqlEngine, folder: Path, database: str | None) -> DatabaseSpec:
    kind = engine.dialect.reads[0]
    name = database or EMPTY_DATABASE
    file = folder / "empty"
    file.write_text(_header(name) if kind == "mysql-dump" else "", encoding="utf-8")
    return DatabaseSpec(kind, file, name)


def _header(name: str) -> str:
    quoted = f"`{name.replace('`', '``')}`"
    return f"CREATE DATABASE {quoted};\nUSE {quoted};\n"


def _spec(path: Path, database: str | None, opened: ExitStack) -> DatabaseSpec:
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_START))
    except OSError as e:
        raise SqlDataError(f"{path} cannot be read: {e.strerror}") from e
    if start == _SQLITE_START:
        return DatabaseSpec("sqlite", path, database or path.stem)
    used = _used_database(path)
    if used is not None:
        return DatabaseSpec("mysql-dump", path, database or used)
    name, folder = database or path.stem, _folder(opened)
    shutil.copyfile(path, folder / "content.sql")
    whole = folder / "dump.sql"
    whole.write_text(f"{_header(name)}SOURCE content.sql\n", encoding="utf-8")
    return DatabaseSpec("mysql-dump", whole, name)


def _used_database(path: Path) -> str | None:
    """Return the database in which a dump begins, or None if it names none."""
    for statement in read_statements(path):
        code = statement.code.strip()
        if found := _USE.fullmatch(code):
            return unquote_name(found[1])
        if code and not _PREPARES.match(code):
            break
    return None
