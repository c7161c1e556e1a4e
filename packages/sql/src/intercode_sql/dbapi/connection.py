"""Connections and cursors of PEP 249 over a session of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from intercode_sql.base import SqlDialect, SqlSession
from intercode_sql.dbapi import errors
from intercode_sql.dbapi.errors import (
    InterfaceError,
    NotSupportedError,
    OperationalError,
    statement_error,
    translated_errors,
)
from intercode_sql.errors import SqlError
from intercode_sql.types import ExecResult

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
