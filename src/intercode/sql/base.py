"""What an SQL engine and an SQL session are, and how results become text.

The text of a result is what the authors' environment shows (MySQL Connector/Python): ``str()`` of
the list of row tuples, ``[]`` for no rows, ``None`` for a statement that has no result, and
``Error executing query: <message>`` for one that fails. It is made here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from intercode.core.types import DatabaseSpec, ExecResult

ERROR_PREFIX = "Error executing query: "
"""What stands before an error's message."""
TIMEOUT_MESSAGE = "Query execution was interrupted, maximum statement execution time exceeded"
"""MySQL's message (3024) for a statement that took too long."""


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """``rows`` of one result and ``size`` of its text in characters; what is beyond is cut, and the
    note says so. ``storage``: bytes that an episode's own copy of the data may grow to, where the
    engine can tell."""

    rows: int = 100_000
    size: int = 1 << 20
    storage: int = 256 << 20


class SqlSession(Protocol):
    """One connection to one episode's database. Nothing that it does is seen by another session.

    It has what ``sessions.base.Session`` has, but for the directory and the shell's state: the
    name of the default database and ``snapshot`` stand in their place.
    """

    @property
    def database(self) -> str:
        """The name of the default database as the agent knows it."""
        ...

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement to its end, or for ``timeout`` seconds.

        ``output`` and ``rows`` as ``answered`` gives them (``rows`` None: there is no result);
        ``exit_code`` 0, 1 for an error of the statement, None where it timed out. A statement that
        is not allowed, or that the engine cannot do, is an error with a clear message of its own.
        Whatever the code does, the session is usable afterwards. Raises DatabaseLostError where
        the connection or the server has gone, which costs the episode.
        """
        ...

    def snapshot(self) -> DatabaseSnapshot:
        """Keep data, default database, user variables and session settings as they are now. The
        session goes on undisturbed; an open transaction's changes are kept as if committed."""
        ...

    def changes(self) -> list[str]:
        """What the episode has changed, sorted: ``table players: new``, ``table pets: gone``,
        ``table pets: changed``, ``setting sql_mode``. Cheap where nothing has changed: it is asked
        after every statement."""
        ...

    def state_text(self) -> str:
        """The whole state as text to make a fingerprint of: default database, settings, variables,
        and what changed of the data with a digest of its content. Equal for equal states."""
        ...

    def abort(self) -> None:
        """End what ``run`` does at this moment in another thread. That raises DatabaseLostError
        then, and so does all that would run afterwards. Waits for nothing; may be called by any
        thread, again, and after ``close``."""
        ...

    def close(self) -> None:
        """End the connection and remove the episode's copy of the data. May be called again."""
        ...


class DatabaseSnapshot(Protocol):
    """A session's state that does not change any more.

    ``left_behind`` names what of it could not be kept: ``temporary table x``.
    """

    omitted_tables: tuple[str, ...]

    def open(self) -> SqlSession:
        """A new session that begins with it."""
        ...

    def open_last(self) -> SqlSession:
        """As ``open``, where nobody will ask again: what is held need not be copied."""
        ...

    def close(self) -> None:
        """Free it. May be called again; sessions that began with it live on."""
        ...


class SqlEngine(Protocol):
    """Where sessions come from. May be used by several threads and environments at once."""

    @property
    def kind(self) -> str:
        """``embedded``, ``mysql`` or ``sqlite``."""
        ...

    @property
    def version(self) -> str:
        """Product and version, for the facts of a result: ``MariaDB 10.11.19``, ``SQLite 3.40.1``
        with that of the dialect's translator where there is one."""
        ...

    def metadata(self) -> Mapping[str, Any]:
        """What else a result has to name (modes of the server, say), as JSON types."""
        ...

    def open(self, database: DatabaseSpec, limits: SqlLimits = ...) -> SqlSession:
        """A session on pristine data, all session settings as at the start, its default database
        ``database.name``.

        Loads and caches the data by content when they are first needed. Raises DataError for
        content that cannot be loaded or has no such database, UsageError for a kind of content
        that the engine does not read, DatabaseLostError where its server is gone.
        """
        ...

    def close(self) -> None:
        """Give up what is held for this user of the engine. May be called again; sessions and kept
        states that are still open stay usable."""
        ...


# ------------------------------------------------------------ results as text
def success_result(
    rows: Sequence[tuple[Any, ...]] | None, limits: SqlLimits, more: bool = False
) -> ExecResult:
    """A statement that worked. ``rows`` are those fetched, None where there is no result;
    ``more``: there were further ones than ``limits.rows``, which nobody fetched."""
    if rows is None:
        return ExecResult("None", 0)
    kept = tuple(rows[: limits.rows])
    text = str(list(kept))
    if len(kept) < len(rows) or more:
        note = f"[the result is cut: {len(kept)} rows are shown, there are more]\n"
        return ExecResult(text[: limits.size], 0, omitted_bytes=1, note=note, rows=kept)
    if len(text) <= limits.size:
        return ExecResult(text, 0, rows=kept)
    cut = len(text) - limits.size
    note = f"[the result is cut: {cut} characters of {len(kept)} rows are left out]\n"
    return ExecResult(text[: limits.size], 0, omitted_bytes=cut, note=note, rows=kept)


def error_result(message: str) -> ExecResult:
    """A statement that failed with the server's message (without its number)."""
    return ExecResult(ERROR_PREFIX + message, 1)


def timeout_result(message: str = TIMEOUT_MESSAGE) -> ExecResult:
    """A statement that was ended because its time was over."""
    return ExecResult(ERROR_PREFIX + message, None, timed_out=True)


_SIZED_TYPES = (str, bytes, bytearray)


def fetch_rows(
    cursor: Iterable[tuple[Any, ...]], limits: SqlLimits
) -> tuple[list[tuple[Any, ...]], bool]:
    """Rows of a cursor until one of the limits is met, and whether there are more.

    Values are weighed by their length, numbers and dates by 8 characters, so that what a statement
    makes up cannot fill the memory of whoever fetches it.
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
