"""The interfaces of SQL engines, sessions and snapshots, and the text of results.

The text of a result is what MySQL Connector/Python shows in the authors' environment: ``str()`` of
the list of row tuples, ``[]`` for no rows, ``None`` for a statement without a result, and ``Error
executing query: <message>`` for an error. Only this module produces that text.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from intercode_sql.errors import ServerLostError
from intercode_sql.literals import MYSQL_LITERALS, MYSQL_PLAIN_LITERALS, Literals, quoted_name
from intercode_sql.types import (
    ContentKind,
    DatabaseSpec,
    ExecResult,
    ResultColumn,
    StatementInfo,
    TypeCode,
)

ERROR_PREFIX = "Error executing query: "
"""Prefix of the text of an error."""
TIMEOUT_MESSAGE = "Query execution was interrupted, maximum statement execution time exceeded"
"""MySQL's message (3024) for a statement that exceeded its time limit."""


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Limits of a session.

    Attributes:
        rows: The most rows of one result; a longer one is cut, with a note.
        size: The most characters of the text of a result; a longer one is cut, with a note.
        storage: The most bytes of the session's own copy of the data, for engines that can measure
            it.
    """

    rows: int = 100_000
    size: int = 1 << 20
    storage: int = 256 << 20


@dataclass(frozen=True, slots=True)
class SqlDeterminism:
    """What statements get in place of the time and of random numbers.

    Attributes:
        stands: Whether the clock stands.
        seconds: The time in seconds since the epoch in UTC if the clock stands, else what is added
            to the present time.
        seed: What RAND() depends on, besides the text of the statement (None: it is random).
    """

    stands: bool
    seconds: int
    seed: int | None

    def now(self) -> dt.datetime:
        """Return the time at which a statement begins."""
        if self.stands:
            return dt.datetime.fromtimestamp(self.seconds, dt.UTC).replace(tzinfo=None)
        return dt.datetime.now() + dt.timedelta(seconds=self.seconds)


@dataclass(frozen=True)
class SqlDialect:
    """How statements of an engine are written.

    ``name`` is the dialect's, as SQLGlot has it. ``reads`` are the kinds of content that the
    engine reads. ``autocommit`` is the statement that switches autocommit on and off; without it,
    ``begin`` begins a transaction. ``mode_query`` asks for the mode that decides between
    ``literals`` and ``plain_literals``, those without escapes by backslashes. Names are in
    ``quote``; ``columns_query`` describes the columns of a table as MySQL does.
    """

    name: str
    reads: tuple[ContentKind, ...]
    literals: Literals
    autocommit: str = ""
    begin: str = "BEGIN"
    mode_query: str = ""
    plain_literals: Literals = MYSQL_PLAIN_LITERALS
    quote: str = "`"
    columns_query: str = "SHOW COLUMNS FROM {}"

    def quoted(self, name: str) -> str:
        """Return a name in quotes."""
        return quoted_name(name, self.quote)


MYSQL_DIALECT = SqlDialect(
    "mysql", ("mysql-dump",), MYSQL_LITERALS, "SET autocommit = {}", "", "SELECT @@sql_mode"
)


class SqlSession(Protocol):
    """A connection to a private view of one database. No session sees the changes of another.

    It corresponds to ``sessions.base.Session``, with the default database and ``snapshot`` instead
    of the working directory and the state of the shell.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from intercode_sql import open_engine
    >>> from intercode_sql.types import DatabaseSpec
    >>> with TemporaryDirectory() as directory:
    ...     dump = Path(directory, "zoo.sql")
    ...     _ = dump.write_text("CREATE DATABASE zoo; USE zoo; CREATE TABLE pets (name TEXT);")
    ...     session = open_engine("embedded").open(DatabaseSpec("mysql-dump", dump, "zoo"))
    ...     _ = session.run("INSERT INTO pets VALUES ('Ada')", timeout=10)
    ...     print(session.run("SELECT * FROM pets", timeout=10).output, session.changes())
    ...     session.close()
    [('Ada',)] ['table pets: changed']
    """

    @property
    def database(self) -> str:
        """The name of the default database, as statements use it."""
        ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open that a statement has begun. A session whose dialect
        switches autocommit need not know it."""
        ...

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement.

        A statement that is not allowed or not supported is an error with a message of its own. The
        session stays usable after any statement, also one that ends its connection.

        Args:
            code: The statement.
            timeout: Seconds until it is interrupted.

        Returns:
            The text and the rows, as ``success_result`` describes them; the rows are None for a
            statement without a result. The exit status is 0, 1 for an error of the statement, or
            None after a timeout.

        Raises:
            ServerLostError: The server is lost.
            ServerKilledError: The statement has ended the server.
        """
        ...

    def snapshot(self) -> DatabaseSnapshot:
        """Copy the data, the default database, the user variables and the settings. The session is
        not affected. The snapshot contains the changes of an open transaction as if they were
        committed."""
        ...

    def changes(self) -> list[str]:
        """Return what the session has changed, sorted: ``table players: new``, ``table pets:
        gone``, ``table pets: changed``, ``setting sql_mode``. It is called after every statement
        and is cheap if nothing has changed."""
        ...

    def state_text(self) -> str:
        """Return the state as text for a fingerprint: default database, settings, variables, and
        the changed tables with digests of their content. Equal states give equal texts."""
        ...

    def abort(self) -> None:
        """Stop the running statement from another thread, and end the session: this call of ``run``
        and all later ones raise ServerLostError. Returns at once. Can be called from any thread,
        more than once, and after ``close``.
        """
        ...

    def close(self) -> None:
        """Close the connection and delete the session's copy of the data. Can be called more than
        once."""
        ...


class DatabaseSnapshot(Protocol):
    """An immutable copy of a session's state.

    Attributes:
        omitted_tables: What it could not copy, such as ``temporary table x``.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from intercode_sql import DatabaseSnapshot, SqlSession, open_engine
    >>> from intercode_sql.types import DatabaseSpec
    >>> def fork(session: SqlSession) -> SqlSession:
    ...     snapshot: DatabaseSnapshot = session.snapshot()
    ...     return snapshot.open_last()
    >>> with TemporaryDirectory() as directory:
    ...     dump = Path(directory, "zoo.sql")
    ...     _ = dump.write_text("CREATE DATABASE zoo; USE zoo; CREATE TABLE pets (name TEXT);")
    ...     session = open_engine("embedded").open(DatabaseSpec("mysql-dump", dump, "zoo"))
    ...     copy = fork(session)
    ...     _ = copy.run("DROP TABLE pets", timeout=10)
    ...     print(session.changes(), copy.changes())
    ...     session.close(), copy.close()
    [] ['table pets: gone']
    (None, None)
    """

    omitted_tables: tuple[str, ...]

    def open(self) -> SqlSession:
        """Open a new session with this state."""
        ...

    def open_last(self) -> SqlSession:
        """Open a new session with this state and close the snapshot, so that the data need not be
        copied."""
        ...

    def close(self) -> None:
        """Delete the snapshot's data. Can be called more than once. Sessions that were opened from
        it are not affected."""
        ...


class SqlEngine(Protocol):
    """Opens sessions. Several threads and environments can share one.

    >>> from intercode_sql import EngineKind, SqlEngine, open_engine
    >>> def engine_of(kind: EngineKind) -> SqlEngine:
    ...     return open_engine(kind)
    >>> engine_of("sqlite").dialect.quoted("order")
    '...order...'
    """

    @property
    def kind(self) -> str:
        """The name under which the engine is registered, such as ``embedded``."""
        ...

    @property
    def dialect(self) -> SqlDialect:
        """How its statements are written."""
        ...

    @property
    def version(self) -> str:
        """Product and version for a result's metadata, such as ``MariaDB 10.11.19`` or ``SQLite
        3.40.1``, with the version of the translator if the engine has one."""
        ...

    def metadata(self) -> Mapping[str, Any]:
        """Return what else results depend on, such as the server's modes, as JSON types."""
        ...

    def open(self, database: DatabaseSpec, limits: SqlLimits = ...) -> SqlSession:
        """Open a session on pristine data, with default settings.

        Data are loaded when they are first needed, and cached by content.

        Args:
            database: The file with the data, and the name of the default database.
            limits: Limits of the session.

        Raises:
            SqlDataError: The content cannot be loaded, or lacks that database.
            SqlUsageError: The engine does not read this kind of content.
            ServerLostError: The server is lost.
        """
        ...

    def close(self) -> None:
        """Release the engine's resources. Can be called more than once. Open sessions and snapshots
        stay usable."""
        ...


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return how things differ that have these digests: new, changed or gone."""
    return {
        name: "new" if name not in before else "changed" if name in after else "gone"
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


# ------------------------------------------------------------ results as text
_NO_INFO = StatementInfo()
_TIMEOUT_INFO = StatementInfo(error=3024, sqlstate="HY000")
_TYPE_OF_VALUES = {
    bool: TypeCode.BIGINT,
    int: TypeCode.BIGINT,
    float: TypeCode.DOUBLE,
    str: TypeCode.TEXT,
    bytes: TypeCode.BLOB,
    Decimal: TypeCode.DECIMAL,
    dt.date: TypeCode.DATE,
    dt.datetime: TypeCode.DATETIME,
    dt.timedelta: TypeCode.TIME,
    dt.time: TypeCode.TIME,
}


def success_result(
    rows: Sequence[tuple[Any, ...]] | None,
    limits: SqlLimits,
    more: bool = False,
    info: StatementInfo = _NO_INFO,
) -> ExecResult:
    """Return the result of a successful statement.

    ``rows`` are the fetched rows, or None for a statement without a result. ``more`` says that
    there were further rows, which were not fetched; ``omitted_bytes`` counts what was fetched, and
    at least 1.
    """
    if rows is None:
        return ExecResult("None", 0, info=info)
    shown_rows = tuple(rows[: limits.rows])
    text = str(list(shown_rows))
    if len(shown_rows) < len(rows) or more:
        note = f"[the result is cut: {len(shown_rows)} rows are shown, there are more]\n"
        rest = str(list(rows[limits.rows :]))
        cut_bytes = max(1, len(rest.encode("utf-8", "replace")) - 2) + _cut_bytes(text, limits)
        return ExecResult(
            text[: limits.size], 0, omitted_bytes=cut_bytes, note=note, rows=shown_rows, info=info
        )
    if len(text) <= limits.size:
        return ExecResult(text, 0, rows=shown_rows, info=info)
    cut = len(text) - limits.size
    note = f"[the result is cut: {cut} characters of {len(shown_rows)} rows are left out]\n"
    cut_bytes = _cut_bytes(text, limits)
    return ExecResult(
        text[: limits.size], 0, omitted_bytes=cut_bytes, note=note, rows=shown_rows, info=info
    )


def _cut_bytes(text: str, limits: SqlLimits) -> int:
    """Return the bytes of a text beyond the limit."""
    return len(text[limits.size :].encode("utf-8", "replace"))


def error_result(message: str, number: int = 0, sqlstate: str = "HY000") -> ExecResult:
    """Return the result of a statement that failed with the server's message. Its text does not
    contain the number."""
    return ExecResult(
        ERROR_PREFIX + message, 1, info=StatementInfo(error=number, sqlstate=sqlstate)
    )


def timeout_result() -> ExecResult:
    """Return the result of a statement that exceeded its time limit."""
    return ExecResult(ERROR_PREFIX + TIMEOUT_MESSAGE, None, timed_out=True, info=_TIMEOUT_INFO)


def columns_by_values(
    names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> tuple[ResultColumn, ...]:
    """Return columns with the types of their first values that are not NULL. One without values is
    a text."""
    columns = []
    for at, name in enumerate(names):
        value = next((row[at] for row in rows if row[at] is not None), None)
        columns.append(ResultColumn(name, _TYPE_OF_VALUES.get(type(value), TypeCode.TEXT)))
    return tuple(columns)


_SIZED_TYPES = (str, bytes, bytearray)


def fetch_rows(
    cursor: Iterable[tuple[Any, ...]], limits: SqlLimits
) -> tuple[list[tuple[Any, ...]], bool]:
    """Fetch rows until a limit is reached. Return them and whether there are more.

    A value counts as its length, a number or a date as 8 characters. This bounds the memory that a
    statement can make the caller use.
    """
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        if len(rows) >= limits.rows or size > limits.size:
            return rows, True
        rows.append(row)
        for value in row:
            size += len(value) if isinstance(value, _SIZED_TYPES) else 8
    return rows, False


def abort_error() -> ServerLostError:
    """Return the error that a session raises after ``abort``."""
    return ServerLostError("the statement and its episode were aborted")


@dataclass(slots=True)
class Deadline:
    """The deadline of a session's statements.

    ``expires_at`` is the deadline of the running statement, in seconds of the monotonic clock.
    ``aborted`` ends the session and is never reset.
    """

    expires_at: float = float("inf")
    aborted: bool = False

    @property
    def expired(self) -> bool:
        """Whether the running statement must end now."""
        return self.aborted or time.monotonic() > self.expires_at

    def raise_if_aborted(self) -> None:
        """Raise ServerLostError if the session was aborted."""
        if self.aborted:
            raise abort_error()
