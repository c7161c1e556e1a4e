"""The engine ``sqlite``: SQLite files with SQLite's own dialect and messages.

The file is opened as immutable and shared. A session's first write moves it to a private copy. An
authorizer denies access to files, other databases and settings. A progress handler checks the
deadline every few thousand instructions.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from intercode_sql.base import (
    Deadline,
    SqlDialect,
    SqlLimits,
    columns_by_values,
    error_result,
    fetch_rows,
    success_result,
    timeout_result,
)
from intercode_sql.dialect.keywords import word_set
from intercode_sql.errors import SessionStateError, SqlDataError, SqlUsageError
from intercode_sql.literals import SQLITE_LITERALS, quoted_name
from intercode_sql.types import DatabaseSpec, ExecResult, StatementInfo
from intercode_sql.worker.ends_soon import (
    BEFORE_BRACKETS,
    UnboundedStatementError,
    is_bounded,
    limit_values,
    refused_for_size,
)
from intercode_sql.worker.guarded_session import LocalEngine, LocalSession

_PROGRESS_STEPS = 1000
_READ_ACTIONS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_DENIED_ACTIONS = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
_ALLOWED_PRAGMAS = word_set("""
    table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list
    page_count collation_list function_list compile_options""")
_DENIED_FUNCTIONS = word_set("load_extension readfile writefile edit fts3_tokenizer sqlite_dbpage")
_DATABASE_LIST = re.compile(r"\s*PRAGMA\s+(main\s*\.\s*)?database_list\s*;?\s*", re.I)
_TABLES_QUERY = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"


_BOUNDED_FUNCTIONS = BEFORE_BRACKETS | word_set("""
    COUNT SUM TOTAL AVG MIN MAX ROUND ABS SIGN LOWER UPPER LENGTH COALESCE IFNULL NULLIF IIF SUBSTR
    SUBSTRING CAST DATE TIME DATETIME JULIANDAY STRFTIME TYPEOF ROW_NUMBER RANK DENSE_RANK
    PARTITION""")
"""Functions whose time is linear in their arguments (see ``bounded``)."""


_SQL_STATES = {
    0: "42000",
    sqlite3.SQLITE_ERROR: "42000",
    sqlite3.SQLITE_RANGE: "42000",
    sqlite3.SQLITE_AUTH: "42501",
    sqlite3.SQLITE_CONSTRAINT: "23000",
    sqlite3.SQLITE_MISMATCH: "22018",
    sqlite3.SQLITE_TOOBIG: "22001",
}
"""The classes of SQLite's errors in standard SQL; 0 is one of its module, such as a second
statement."""


class _WriteToPristineError(Exception):
    """A statement tried to write to the pristine file."""


class SqliteSession(LocalSession):
    """A ``LocalSession`` on SQLite. Errors are SQLite's own messages."""

    def __init__(
        self, path: Path, name: str, limits: SqlLimits, bounded: bool, saved: bytes | None
    ) -> None:
        super().__init__(name)
        self._path, self._limits, self._bounded = path, limits, bounded
        self._deadline = Deadline()
        self._write_denied = self._has_written = self._has_copy = False
        self._connection: sqlite3.Connection | None = self._connect(path, True)
        if saved is not None:
            self._switch_to_copy(saved)

    def _connect(self, path: Path, pristine: bool) -> sqlite3.Connection:
        mode = "mode=ro&immutable=1" if pristine else "mode=rw"
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(path))}?{mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=128 if pristine else 0,
            )
            connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as e:
            raise SqlDataError(f"{path}: not a database of SQLite's ({e})") from e
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        if not pristine:
            pages = (path.stat().st_size + self._limits.storage) // 4096 + 16
            connection.execute(f"PRAGMA max_page_count = {pages}")
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 16 << 20)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000)
        if self._bounded:
            limit_values(connection)
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._is_expired, _PROGRESS_STEPS)
        return connection

    def _authorize(self, action: int, first: Any, second: Any, *_: Any) -> int:
        if action in _DENIED_ACTIONS:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA:
            allowed = str(first).lower() in _ALLOWED_PRAGMAS
            return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and str(second).lower() in _DENIED_FUNCTIONS:
            return sqlite3.SQLITE_DENY
        if action not in _READ_ACTIONS:
            self._has_written = True
            if not self._has_copy:
                self._write_denied = True
                return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    def _is_expired(self) -> int:
        return int(self._deadline.expired)

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement."""
        if self._connection is None:
            raise SessionStateError("the SQL session is closed: open another one")
        if self._bounded and not is_bounded(code, _BOUNDED_FUNCTIONS):
            raise UnboundedStatementError
        self._deadline.expires_at = time.monotonic() + timeout
        try:
            try:
                return self._execute(code)
            except _WriteToPristineError:
                self._switch_to_copy(self._path.read_bytes())
                return self._execute(code)
        except (sqlite3.Error, sqlite3.Warning) as e:
            if str(e) == "interrupted":
                return timeout_result()
            if self._bounded and isinstance(e, sqlite3.Error) and refused_for_size(e):
                raise UnboundedStatementError from e
            number = getattr(e, "sqlite_errorcode", 0)
            state = _SQL_STATES.get(number & 0xFF, "HY000")
            return error_result(self._error_message(e), number, state)
        except (MemoryError, OverflowError, ValueError) as e:
            return error_result(f"the statement needs too many resources ({e})")
        finally:
            self._deadline.expires_at = float("inf")
            self._deadline.raise_if_aborted()

    def abort(self) -> None:
        """Stop the running statement. SQLite checks the deadline every few hundred
        instructions."""
        self._deadline.aborted = True

    @staticmethod
    def _error_message(error: Exception) -> str:
        if "not authorized" in str(error):
            return "not authorized: statements cannot access files, other databases or settings"
        return str(error)

    def _execute(self, code: str) -> ExecResult:
        assert self._connection is not None
        self._write_denied = False
        if _DATABASE_LIST.fullmatch(code):  # SQLite's own answer contains the path of the file
            rows = [(0, "main", "")]
            info = StatementInfo(columns_by_values(("seq", "name", "file"), rows))
            return success_result(rows, self._limits, info=info)
        try:
            cursor = self._connection.execute(code)
        except sqlite3.DatabaseError:
            if self._write_denied and not self._has_copy:
                raise _WriteToPristineError from None
            raise
        try:
            if cursor.description is None:
                info = StatementInfo((), cursor.rowcount, cursor.lastrowid)
                return success_result(None, self._limits, info=info)
            names = [column[0] for column in cursor.description]
            rows, more = fetch_rows(cursor, self._limits)
        finally:
            cursor.close()
        info = StatementInfo(columns_by_values(names, rows), cursor.rowcount)
        return success_result(rows, self._limits, more, info)

    def _switch_to_copy(self, content: bytes) -> None:
        """Move to a private copy: a file whose name is removed at once, so that no copy survives
        the process."""
        if self._connection is not None:
            self._connection.close()
        self._has_copy = True
        with tempfile.NamedTemporaryFile(prefix="intercode-sql-") as file:
            file.write(content)
            file.flush()
            self._connection = self._connect(Path(file.name), False)

    # ------------------------------------------------------------ state
    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection is not None and self._connection.in_transaction

    @property
    def dirty(self) -> bool:
        """Whether the session has a private copy."""
        return self._has_copy

    def take_change(self) -> bool:
        """Return whether statements have written since the last call, and no transaction is
        open."""
        if self.in_transaction or not self._has_copy:
            return False
        written, self._has_written = self._has_written, False
        return written

    def saved(self) -> bytes:
        """Return the content, including an open transaction's changes."""
        assert self._connection is not None
        return self._connection.serialize()

    def table_digests(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return digests of the pristine tables and of the current ones."""
        if not self._has_copy or self._connection is None:
            return {}, {}
        with closing(self._connect(self._path, True)) as pristine:
            found = _digests(pristine), _digests(self._connection)
        self._deadline.raise_if_aborted()
        return found

    def state_text(self) -> str:
        """Return the state as text for a fingerprint, with the digests of all tables of a copy."""
        tables = _digests(self._connection) if self._has_copy and self._connection else {}
        self._deadline.raise_if_aborted()
        return json.dumps({"database": self._name, "tables": tables}, sort_keys=True)

    def close(self) -> None:
        """Close the connection, which deletes the private copy."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _digests(connection: sqlite3.Connection) -> dict[str, str]:
    names = connection.execute(_TABLES_QUERY).fetchall()
    return {name: _table_digest(connection, name) for (name,) in names}


def _table_digest(connection: sqlite3.Connection, name: str) -> str:
    """Return a digest of a table's definition and stored columns, or of a view's definition.

    Nothing that the agent has written is evaluated, neither views nor generated columns.
    """
    digest = hashlib.sha256()
    quoted = quoted_name(name)
    with suppress(sqlite3.Error):
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", [name]
        ).fetchone()
        digest.update(re.sub(r"\s+", " ", sql or "").encode())
        if re.match(r"CREATE\s+VIEW\b", sql or "", re.I):
            return digest.hexdigest()
        info = connection.execute(f"PRAGMA table_xinfo({quoted})").fetchall()
        columns = ", ".join(quoted_name(c[1]) for c in info if c[6] == 0)
        for row in connection.execute(f"SELECT {columns or 'NULL'} FROM {quoted}"):
            digest.update(repr(row).encode())
    return digest.hexdigest()


class SqliteEngine(LocalEngine):
    """A ``LocalEngine`` for SQLite files."""

    kind = "sqlite"
    dialect = SqlDialect("sqlite", ("sqlite",), SQLITE_LITERALS)
    version = f"SQLite {sqlite3.sqlite_version}"

    def open(
        self,
        database: DatabaseSpec,
        limits: SqlLimits = SqlLimits(),  # noqa: B008
        saved: bytes | None = None,
    ) -> SqliteSession:
        """Open a session on the pristine file, or with a saved content. Raises SqlDataError and
        SqlUsageError as ``SqlEngine.open`` does."""
        if database.kind != "sqlite":
            raise SqlUsageError(
                f"the engine 'sqlite' reads SQLite files, not {database.kind!r}: "
                "use engine=embedded for MySQL dumps"
            )
        if not database.path.is_file():
            raise SqlDataError(f"{database.path}: there is no such database file")
        return SqliteSession(database.path, database.name, limits, self.bounded, saved)
