"""The engine ``sqlite``: SQLite files with SQLite's own dialect and messages.

The file is opened as immutable and shared. A session's first write moves it to a private copy. An
authorizer denies access to files, other databases and settings. A progress handler checks the
deadline every few thousand instructions.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from intercode.core.errors import DataError, EnvironmentStateError, UsageError
from intercode.core.types import DatabaseSpec, ExecResult
from intercode.sql.base import SqlLimits, error_result, fetch_rows, success_result, timeout_result
from intercode.sql.deadline import Deadline
from intercode.sql.dialect.keywords import word_set

_PROGRESS_STEPS = 5000
_READ_ACTIONS = {
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
}  # fmt: skip
_DENIED_ACTIONS = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
_ALLOWED_PRAGMAS = word_set("""
    table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list
    database_list page_count collation_list function_list compile_options""")
_DENIED_FUNCTIONS = word_set("load_extension readfile writefile edit fts3_tokenizer sqlite_dbpage")
_TABLES_QUERY = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"


class _WriteToPristineError(Exception):
    """A statement tried to write to the pristine file."""


class SqliteSession:
    """An ``SqlSession`` on SQLite. Errors are SQLite's own messages."""

    def __init__(
        self, path: Path, name: str, limits: SqlLimits, content: Path | None = None
    ) -> None:
        self._path, self._name, self._limits = path, name, limits
        self._deadline = Deadline()
        self._copy: Path | None = None
        self._write_denied = False
        self._connection: sqlite3.Connection | None = self._connect(path, True)
        if content is not None:
            self._switch_to_copy(content)

    @property
    def database(self) -> str:
        return self._name

    def _connect(self, path: Path, pristine: bool) -> sqlite3.Connection:
        mode = "mode=ro&immutable=1" if pristine else "mode=rw"
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(path))}?{mode}", uri=True, isolation_level=None,
                check_same_thread=False,
            )  # fmt: skip
            connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as e:
            raise DataError(f"{path}: not a database of SQLite's ({e})") from e
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
        if action not in _READ_ACTIONS and self._copy is None:
            self._write_denied = True
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    def _is_expired(self) -> int:
        return int(self._deadline.expired)

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement."""
        if self._connection is None:
            raise EnvironmentStateError("the SQL session is closed: open another one")
        self._deadline.expires_at = time.monotonic() + timeout
        try:
            try:
                return self._execute(code)
            except _WriteToPristineError:
                self._switch_to_copy(self._path)
                return self._execute(code)
        except (sqlite3.Error, sqlite3.Warning) as e:
            if str(e) == "interrupted":
                return timeout_result()
            return error_result(self._error_message(e))
        except (MemoryError, OverflowError, ValueError) as e:
            return error_result(f"the statement needs too many resources ({e})")
        finally:
            self._deadline.expires_at = float("inf")
            self._deadline.raise_if_aborted()

    def abort(self) -> None:
        """Stop the running statement. SQLite checks the deadline every few thousand
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
        try:
            cursor = self._connection.execute(code)
        except sqlite3.DatabaseError:
            if self._write_denied and self._copy is None:
                raise _WriteToPristineError from None
            raise
        try:
            if cursor.description is None:
                return success_result(None, self._limits)
            rows, more = fetch_rows(cursor, self._limits)
        finally:
            cursor.close()
        return success_result(rows, self._limits, more)

    def _switch_to_copy(self, source: Path) -> None:
        """Move to a private copy of the file."""
        if self._connection is not None:
            self._connection.close()
        with tempfile.NamedTemporaryFile(prefix="intercode-sql-", delete=False) as file:
            self._copy = Path(file.name)
        shutil.copyfile(source, self._copy)
        self._connection = self._connect(self._copy, False)

    # ------------------------------------------------------------ state
    def snapshot(self) -> SqliteSnapshot:
        """Copy the current content."""
        content = None
        if self._copy is not None and self._connection is not None:
            with tempfile.NamedTemporaryFile(prefix="intercode-sql-", delete=False) as file:
                content = Path(file.name)
            self._write_content(content)
        return SqliteSnapshot(self._path, self._name, self._limits, content)

    def _write_content(self, target: Path) -> None:
        """Write the content, including an open transaction's changes."""
        assert self._connection is not None
        assert self._copy is not None
        if self._connection.in_transaction:
            target.write_bytes(self._connection.serialize())
        else:
            shutil.copyfile(self._copy, target)

    def changes(self) -> list[str]:
        """Return the tables that are new, gone or changed."""
        if self._copy is None:
            return []
        before, after = (
            self._table_digests(self._connect(self._path, True)),
            self._table_digests(None),
        )
        out = [f"table {n}: gone" for n in before.keys() - after.keys()]
        out += [f"table {n}: new" for n in after.keys() - before.keys()]
        out += [
            f"table {n}: changed" for n in after.keys() & before.keys() if after[n] != before[n]
        ]
        return sorted(out)

    def state_text(self) -> str:
        """Return the state as text for a fingerprint."""
        changed = {} if self._copy is None else self._table_digests(None)
        return json.dumps({"database": self._name, "tables": changed}, sort_keys=True)

    def _table_digests(self, connection: sqlite3.Connection | None) -> dict[str, str]:
        used_connection = connection or self._connection
        assert used_connection is not None
        out = {}
        for (name,) in used_connection.execute(_TABLES_QUERY).fetchall():
            digest = hashlib.sha256()
            quoted = '"' + name.replace('"', '""') + '"'
            with suppress(sqlite3.Error):
                (sql,) = used_connection.execute(
                    "SELECT sql FROM sqlite_master WHERE name = ?", [name]
                ).fetchone()
                digest.update(re.sub(r"\s+", " ", sql or "").encode())
                for row in used_connection.execute(f"SELECT * FROM {quoted}"):
                    digest.update(repr(row).encode())
            out[name] = digest.hexdigest()
        if connection is not None:
            connection.close()
        self._deadline.raise_if_aborted()
        return out

    def close(self) -> None:
        """Close the connection and delete the private copy."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._copy is not None:
            self._copy.unlink(missing_ok=True)
            self._copy = None


class SqliteSnapshot:
    """A ``DatabaseSnapshot`` of an SQLite session."""

    omitted_tables: tuple[str, ...] = ()

    def __init__(self, path: Path, name: str, limits: SqlLimits, content: Path | None) -> None:
        self._path, self._name, self._limits, self._content = path, name, limits, content

    def open(self) -> SqliteSession:
        """Open a new session with this content."""
        return SqliteSession(self._path, self._name, self._limits, self._content)

    def open_last(self) -> SqliteSession:
        """Open a new session with this content and close the snapshot."""
        session = self.open()
        self.close()
        return session

    def close(self) -> None:
        """Delete the snapshot's file."""
        if self._content is not None:
            self._content.unlink(missing_ok=True)
            self._content = None


class SqliteEngine:
    """An ``SqlEngine`` for SQLite files."""

    kind = "sqlite"
    version = f"SQLite {sqlite3.sqlite_version}"

    def metadata(self) -> Mapping[str, Any]:
        """Return nothing: a file has no settings."""
        return {}

    def open(self, database: DatabaseSpec, limits: SqlLimits = SqlLimits()) -> SqliteSession:  # noqa: B008
        """Open a session on the pristine file. Raises DataError and UsageError as
        ``SqlEngine.open`` does."""
        if database.kind != "sqlite":
            raise UsageError(
                f"the engine 'sqlite' reads SQLite files, not {database.kind!r}: "
                "use engine='embedded' for MySQL dumps"
            )
        if not database.path.is_file():
            raise DataError(f"{database.path}: there is no such database file")
        return SqliteSession(database.path, database.name, limits)

    def close(self) -> None:
        """Do nothing: the engine holds no resources."""


def open_engine() -> SqliteEngine:
    """Open the engine ``sqlite``."""
    return SqliteEngine()
