"""A session of DuckDB on a private copy of a file."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any

import duckdb
from duckdb import ExpectedResultType, StatementType

from intercode_sql.base import (
    SqlLimits,
    abort_error,
    error_result,
    fetch_rows,
    success_result,
    timeout_result,
)
from intercode_sql.errors import SessionStateError, SqlDataError
from intercode_sql.host import lock_file
from intercode_sql.literals import quoted_name
from intercode_sql.types import ExecResult, ResultColumn, StatementInfo, TypeCode
from intercode_sql.worker.guarded_session import LocalSession

_PREFIX = "intercode-duckdb-"
_MEMORY = "768MB"
_CONFIG = {
    "enable_external_access": "false",
    "home_directory": "/",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "allow_persistent_secrets": "false",
    "temp_directory": "",
    "max_temp_directory_size": "0KB",
    "memory_limit": _MEMORY,
    "threads": "1",
    "default_block_size": "16384",
}
"""No files but the database itself, no network, no extensions, no spilling to a disk."""
_LOCK = "SET lock_configuration = true"
_REFUSED = {
    StatementType.ATTACH: "other databases",
    StatementType.DETACH: "other databases",
    StatementType.COPY: "files",
    StatementType.COPY_DATABASE: "other databases",
    StatementType.EXPORT: "files",
    StatementType.LOAD: "extensions",
    StatementType.EXTENSION: "extensions",
}
_SQL_STATES: tuple[tuple[type[Exception], str], ...] = (
    (duckdb.IntegrityError, "23000"),
    (duckdb.DataError, "22000"),
    (duckdb.ProgrammingError, "42000"),
    (duckdb.NotSupportedError, "0A000"),
    (duckdb.InternalError, "XX000"),
)
_TYPE_CODES = {
    "FLOAT": TypeCode.FLOAT,
    "DOUBLE": TypeCode.DOUBLE,
    "DATE": TypeCode.DATE,
    "TIME": TypeCode.TIME,
    "INTERVAL": TypeCode.TIME,
    "BLOB": TypeCode.BLOB,
    "JSON": TypeCode.JSON,
    "BIT": TypeCode.BIT,
    "BOOLEAN": TypeCode.BIGINT,
    '"NULL"': TypeCode.NULL,
}
_BREAKS = (duckdb.FatalException, duckdb.InternalException)
_STOPS = (duckdb.InterruptException, *_BREAKS)
_OBJECTS = """
SELECT 'table', database_name, schema_name, table_name, sql FROM system.main.duckdb_tables()
WHERE NOT internal AND database_name = system.main.current_database()
UNION ALL
SELECT 'view', database_name, schema_name, view_name, sql FROM system.main.duckdb_views()
WHERE NOT internal AND database_name = system.main.current_database() ORDER BY ALL
"""
"""All names are whole, so that macros and schemas of an agent cannot take their place."""


class _PrivateFile:
    """A directory with a copy of the database, which no later process finds."""

    def __init__(self, name: str, content: Path | bytes) -> None:
        _remove_abandoned()
        self.folder, self._lock = _locked_folder()
        self.path = self.folder / name
        if isinstance(content, bytes):
            self.path.write_bytes(content)
        else:
            shutil.copyfile(content, self.path)

    def size(self) -> int:
        """Return the size of the file and its log."""
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def remove(self) -> None:
        """Delete the directory."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def _locked_folder() -> tuple[Path, IO[bytes]]:
    """Return a new directory and its locked file. Another process may have found the directory
    before it was locked, and removed it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = (folder / ".lock").open("wb")
        lock_file(lock)
        if (folder / ".lock").exists():
            return folder, lock
        lock.close()


def _remove_abandoned() -> None:
    """Delete the directories of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.stat().st_uid != os.geteuid():
                continue
            with (folder / ".lock").open("rb") as lock:
                lock_file(lock, wait=False)
                shutil.rmtree(folder, ignore_errors=True)


class DuckdbSession(LocalSession):
    """A ``LocalSession`` on DuckDB. Errors are DuckDB's own messages.

    A transaction is a saved copy of the database: ROLLBACK returns to it, and a statement that
    fails does not end it.
    """

    def __init__(
        self, pristine: Path, name: str, limits: SqlLimits, saved: bytes | None = None
    ) -> None:
        super().__init__(name)
        self._pristine, self._limits = pristine, limits
        self._aborted, self._changed, self._dirty = False, False, saved is not None
        self._state: bytes | None = saved
        self._transaction: list[bytes | None] = []
        self._most_bytes = pristine.stat().st_size + limits.storage
        self._file: _PrivateFile | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._open(saved)

    def _open(self, state: bytes | None) -> None:
        """Open a private copy of a state in place of the current one."""
        self.close()
        self._state = state
        self._file = _PrivateFile(self._name, self._pristine if state is None else state)
        try:
            self._connection = duckdb.connect(self._file.path, config=dict(_CONFIG))
            self._connection.execute(_LOCK)
        except duckdb.Error as e:
            raise SqlDataError(f"DuckDB cannot open the copy of {self._name}: {e}") from None

    @property
    def _opened(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            raise SessionStateError("the SQL session is closed: open another one")
        return self._connection

    # ------------------------------------------------------------ statements
    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement."""
        connection = self._opened
        expires = time.monotonic() + timeout
        timer = threading.Timer(timeout, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return self._run(code, connection)
        except UnicodeEncodeError as e:
            return error_result(f"the statement is not Unicode: {e.reason}", 1, "22021")
        except duckdb.InterruptException:
            return timeout_result()
        except duckdb.Error as e:
            if time.monotonic() >= expires:
                return timeout_result()
            state = next((s for kind, s in _SQL_STATES if isinstance(e, kind)), "HY000")
            return error_result(self._without_folder(str(e)), 1, state)
        except (MemoryError, OverflowError, ValueError, RecursionError) as e:
            return error_result(f"the statement needs too many resources ({e})")
        except TypeError as e:  # such as a map whose key is a list
            return error_result(f"Python has no value for the result ({e})", 1, "0A000")
        finally:
            timer.cancel()
            if self._aborted:
                raise abort_error()

    def _run(self, code: str, connection: duckdb.DuckDBPyConnection) -> ExecResult:
        code.encode()
        statements = connection.extract_statements(code)
        if len(statements) != 1:
            return error_result(f"one statement is expected, not {len(statements)}", 1, "42000")
        (statement,) = statements
        if refused := _REFUSED.get(statement.type):
            message = f"not allowed: statements cannot access {refused}"
            return error_result(message, 1, "42501")
        if statement.type == StatementType.TRANSACTION:
            return self._end_or_begin(code)
        if statement.type == StatementType.SELECT:
            with suppress(duckdb.TransactionException):
                return self._read(statement, connection)
        return self._write(statement, connection)

    def _read(
        self, statement: duckdb.Statement, connection: duckdb.DuckDBPyConnection
    ) -> ExecResult:
        """Run a query. Raises TransactionException if it writes, which its type does not tell."""
        try:
            connection.execute("BEGIN TRANSACTION READ ONLY")
            result = self._rows(connection.execute(statement))
            connection.execute("COMMIT")
        except BaseException:
            try:
                connection.execute("ROLLBACK")
            except duckdb.Error:  # interrupted, or nothing else can be done with the connection
                self._open(self._state)
            raise
        return result

    def _write(
        self, statement: duckdb.Statement, connection: duckdb.DuckDBPyConnection
    ) -> ExecResult:
        self._dirty = True
        executed = False
        try:
            cursor = connection.execute(statement)
            executed = True
            return self._keep(self._result(statement, cursor))
        except BaseException as e:
            # DuckDB itself takes back what a statement did before its error
            if executed or not isinstance(e, duckdb.Error) or isinstance(e, _STOPS):
                self._open(self._state)
            raise

    def _result(self, statement: duckdb.Statement, cursor: duckdb.DuckDBPyConnection) -> ExecResult:
        description = cursor.description or ()
        counts = ExpectedResultType.CHANGED_ROWS in statement.expected_result_type
        if counts and [column[0] for column in description] == ["Count"]:
            affected = int((cursor.fetchone() or (0,))[0])
            return success_result(None, self._limits, info=StatementInfo((), affected))
        if ExpectedResultType.QUERY_RESULT in statement.expected_result_type:
            return self._rows(cursor)
        return success_result(None, self._limits, info=StatementInfo((), 0))

    def _rows(self, cursor: duckdb.DuckDBPyConnection) -> ExecResult:
        columns = tuple(_column(name, str(kind)) for name, kind, *_ in cursor.description or ())
        rows, more = fetch_rows(_fetched(cursor), self._limits)
        result = success_result(rows, self._limits, more, StatementInfo(columns))
        if _PREFIX not in result.output:
            return result
        shown = [tuple(self._without_folder(value) for value in row) for row in rows]
        return success_result(shown, self._limits, more, StatementInfo(columns))

    def _without_folder(self, value: Any) -> Any:
        """Return a value without the directory of this machine, which DuckDB shows with the path of
        its file. What a statement computes from the path, such as its reverse, stays."""
        assert self._file is not None
        folder = f"{self._file.folder}/"
        if isinstance(value, str):
            return value.replace(folder, "")
        if isinstance(value, bytes):
            return value.replace(folder.encode(), b"")
        if isinstance(value, dict):
            return dict(self._without_folder(pair) for pair in value.items())
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._without_folder, value))
        return value

    def _keep(self, result: ExecResult) -> ExecResult:
        """Save the state after a statement that may have changed it, unless it is too large."""
        self._opened.execute("CHECKPOINT")
        assert self._file is not None
        if self._file.size() > self._most_bytes:
            self._open(self._state)
            return error_result("the database of this episode is full", 1, "53100")
        self._state = self._file.path.read_bytes()
        self._changed = True
        return result

    def _end_or_begin(self, code: str) -> ExecResult:
        word = _first_word(code)
        if word in ("BEGIN", "START"):
            if self._transaction:
                return error_result("a transaction is active already", 1, "25001")
            self._transaction = [self._state]
        elif not self._transaction:
            return error_result("no transaction is active", 1, "25P01")
        else:
            state = self._transaction.pop()
            if word in ("ROLLBACK", "ABORT") and state is not self._state:
                self._open(state)
                self._changed = True
        return success_result(None, self._limits, info=StatementInfo((), 0))

    # ------------------------------------------------------------ state
    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._transaction)

    @property
    def dirty(self) -> bool:
        """Whether statements may have changed the database, or a transaction is open."""
        return self._dirty or bool(self._transaction)

    def take_change(self) -> bool:
        """Return whether the state changed since the last call, and no transaction is open."""
        if self._transaction:
            return False
        changed, self._changed = self._changed, False
        return changed

    def saved(self) -> bytes:
        """Return the content of the file."""
        return self._pristine.read_bytes() if self._state is None else self._state

    def table_digests(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return digests of the pristine tables and of the current ones."""
        if self._state is None:
            return {}, {}
        try:
            with closing(duckdb.connect(self._pristine, read_only=True)) as pristine:
                pristine.execute("SET enable_external_access = false")
                return _digests(pristine), _digests(self._opened)
        except duckdb.Error as e:
            raise SqlDataError(f"the tables of {self._name} cannot be listed: {e}") from None

    def abort(self) -> None:
        """Stop the running statement and end the session."""
        self._aborted = True
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Close the connection and delete the private copy."""
        connection, self._connection = self._connection, None
        file, self._file = self._file, None
        if connection is not None:
            connection.close()
        if file is not None:
            file.remove()


def _first_word(code: str) -> str:
    """Return the first word of a statement, after comments, in capitals."""
    text = code.encode()
    starts = [at for at, kind in duckdb.tokenize(code) if kind != duckdb.token_type.comment]
    found = re.match(rb"\w+", text[starts[0] :]) if starts else None
    return found[0].decode().upper() if found else ""


def _fetched(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := cursor.fetchmany(256):
        yield from rows


def _column(name: str, kind: str) -> ResultColumn:
    if kind.startswith("DECIMAL("):
        precision, scale = kind[8:-1].split(",")
        return ResultColumn(name, TypeCode.DECIMAL, int(precision), int(scale))
    if kind.startswith("TIMESTAMP"):
        return ResultColumn(name, TypeCode.DATETIME)
    if kind.endswith("INT") or kind == "INTEGER":
        return ResultColumn(name, TypeCode.BIGINT)
    return ResultColumn(name, _TYPE_CODES.get(kind, TypeCode.TEXT))


def _digests(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return digests of the definitions and rows of tables, and of the definitions of views."""
    found = {}
    for kind, database, schema, name, sql in connection.execute(_OBJECTS).fetchall():
        digest = hashlib.sha256(str(sql).encode())
        if kind == "table":
            table = ".".join(map(quoted_name, (database, schema, name)))
            try:
                for row in _fetched(connection.execute(f"SELECT * FROM {table}")):
                    digest.update(repr(row).encode())
            except duckdb.Error:  # a generated column can fail for its values
                digest.update(b"unreadable")
        found[name if schema == "main" else f"{schema}.{name}"] = digest.hexdigest()
    return found
