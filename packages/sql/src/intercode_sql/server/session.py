"""A session on a server. It reads the pristine data, and gets a private copy when it first writes.

A session may keep a number of bytes in the files of its database and in its own temporary tables.
The same number bounds its part of the files that all sessions share: InnoDB's temporary tables, and
what open transactions could undo. The server itself must never come to the limit of a file, because
InnoDB then aborts.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from intercode_sql.base import SqlLimits, abort_error, error_result, success_result, timeout_result
from intercode_sql.errors import ServerLostError
from intercode_sql.server.connection import (
    RowList,
    ServerConnection,
    ServerStatementError,
    StatementTimeoutError,
)
from intercode_sql.server.database_names import DatabaseNames, agent_message
from intercode_sql.server.database_server import DatabaseAccount, DatabaseServer
from intercode_sql.server.pristine import (
    ChangeTracker,
    PristineDatabase,
    Settings,
    apply_settings,
    changed_settings,
)
from intercode_sql.server.statement_analysis import (
    StatementAnalysis,
    add_order_by_null,
    analyze_statement,
    use_memory_tables,
)
from intercode_sql.types import ExecResult, StatementInfo

_DATA_MESSAGE = "The episode's data are larger than {} bytes: delete or drop something first"
_TOO_LARGE_MESSAGE = (
    "The episode's data are larger than {} bytes: drop or truncate a table, or roll back, first"
)
_PART_MESSAGE = (
    "The episode's temporary tables and open transactions have made the server's files grow by "
    "more than {} bytes"
)
_SHRINKING_STATEMENTS = {"DELETE", "DROP", "TRUNCATE", "ROLLBACK", "COMMIT", "SET", "OPTIMIZE"}
_GROWTHLESS_STATEMENTS = {"DROP", "TRUNCATE", "ROLLBACK", "COMMIT"}
"""Those among these that cannot call a function, which could write."""
_PART_STEPS = 16  # a session at its bound may add this part of it per connection


class SessionGrowth:
    """Bounds what one session adds. ``storage`` is its limit in bytes."""

    def __init__(self, server: DatabaseServer, storage: int) -> None:
        self._server, self._storage, self._part_limit = server, storage, storage
        self._database, self._session, self._thread = "", 0, 0
        self._full = self._adds = False
        self._copied = self._used = 0
        self.stopped = ""
        """Why the running statement was stopped, in words for the agent."""

    def connect(self, database: str, connection: ServerConnection) -> None:
        """Begin to observe a new connection to the session's database."""
        self._database, self._session = database, self._session or connection.id
        self._thread = self._server.thread_of(connection)
        self._used, part = self._usage(connection)
        self._copied = self._copied or self._used
        self._part_limit = max(self._storage, part + self._storage // _PART_STEPS)

    def refusal(self, analysis: StatementAnalysis) -> str:
        """Return why a statement is not run, or an empty string."""
        self._adds = analysis.first not in _GROWTHLESS_STATEMENTS
        too_large = self._used > max(self._storage, self._copied) + self._storage
        if too_large and self._adds:
            return _TOO_LARGE_MESSAGE.format(self._storage)
        if self._full and analysis.kind == "own" and analysis.first not in _SHRINKING_STATEMENTS:
            return _DATA_MESSAGE.format(self._storage)
        return ""

    def stop_if_larger(self, connection: ServerConnection) -> None:
        """Stop the running statement if it has added too much. Too large a part of the shared files
        ends the connection, and with it the temporary tables and the transaction. The data may
        still grow by the statement of a connection that was ended, while this one adds nothing."""
        if not self._adds:
            return
        used, part = self._usage(connection)
        if part > self._part_limit:
            self.stopped = _PART_MESSAGE.format(self._storage)
            connection.killed = True
            self._server.kill(connection.id)
        elif used - self._used > self._storage:
            self.stopped = _DATA_MESSAGE.format(self._storage)
            self._server.interrupt(connection.id)

    def note_end(self, connection: ServerConnection, writes: bool) -> str:
        """Note what a statement has added. Return why the connection must end, or an empty
        string."""
        self._used, part = self._usage(connection)
        if writes:
            size = max(self._used, self._server.size(self._database))
            self._full = size > self._storage
        elif self._used > max(self._storage, self._copied):
            self._full = True
        return _PART_MESSAGE.format(self._storage) if part > self._part_limit else ""

    def _usage(self, connection: ServerConnection) -> tuple[int, int]:
        return self._server.usage(self._database, connection.id, self._session, self._thread)


_CONNECTION_LOST_NOTE = (
    "[the connection was ended: settings, variables and temporary tables are lost]\n"
)
_SYNTAX_ERROR = "You have an error in your SQL syntax"
_LOST_MESSAGE = "Lost connection to MySQL server during query"
"""MySQL's message (2013) for a connection that has ended."""
_MAX_CHARACTERS = 1 << 20
_TOO_LONG_MESSAGE = "Got a packet bigger than 'max_allowed_packet' bytes"
_NOT_TEXT_MESSAGE = "Invalid utf8mb4 character string"
_READER_ERRORS = {1356, 1370, 1792}
"""The server's errors for a view and for a routine that the reader's account may not use, and for
what writes in a transaction that only reads. A routine of the dump could write to the pristine
data, also one that a view calls with its definer's rights."""
_RECURSION_WARNING = 1931
"""MariaDB's warning for an aborted recursion, which is an error in MySQL."""
_RECURSION_MESSAGE = (
    "Recursive query aborted after 1001 iterations. Try increasing @@cte_max_recursion_depth to a "
    "larger value."
)


@dataclass
class _PrivateDatabase:
    """A session's private database, and the connection to it if one is open."""

    account: DatabaseAccount
    names: DatabaseNames
    tracker: ChangeTracker
    connection: ServerConnection | None = None


class MysqlSession:
    """An ``SqlSession`` on a server."""

    def __init__(self, pristine: PristineDatabase, limits: SqlLimits) -> None:
        self._pristine, self._server, self._limits = pristine, pristine.server, limits
        self._private: _PrivateDatabase | None = None
        self._default_database: str | None = pristine.public_name
        self._changed_settings: set[str] = set()
        self._temporary_tables: set[str] = set()
        self._own_connections: set[int] = set()
        self._growth = SessionGrowth(self._server, limits.storage)
        self._last_read = ""
        self._closed = self._aborted = False
        self._lock = threading.Lock()
        self._running_connection: ServerConnection | None = None
        self._server.acquire()

    @property
    def database(self) -> str:
        return self._default_database or ""

    @property
    def in_transaction(self) -> bool:
        """False: the dialect switches autocommit."""
        return False

    # -------------------------------------------------------------------- run
    def run(self, code: str, timeout: float) -> ExecResult:
        if fault := _unsendable(code):
            return error_result(fault)
        analysis = analyze_statement(
            code, any(not name.startswith("@") for name in self._changed_settings)
        )
        if analysis.kind == "refused":
            return error_result(analysis.argument)
        if analysis.kind == "no-op":
            return success_result(None, self._limits)
        with self._server.agents_work(self._own_connections):
            try:
                result = self._execute(code, analysis, timeout)
            except ServerLostError as e:
                if self._aborted or self._server.has_ended(e):
                    raise
                return self._lost_result()
        if self._aborted:
            raise abort_error()
        return result

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            if self._running_connection is not None:
                self._server.watchdog.expire_now(self._running_connection)

    def _lost_result(self) -> ExecResult:
        """Return the result of a statement that has ended the connection, such as one that set a
        time-out of the server or the encoding of results."""
        if self._private is not None:
            self._drop_connection(self._private)
        return replace(error_result(_LOST_MESSAGE), note=_CONNECTION_LOST_NOTE)

    def _execute(self, code: str, analysis: StatementAnalysis, timeout: float) -> ExecResult:
        """Run a statement on the server."""
        if analysis.kind == "use":
            return self._change_database(analysis.argument, timeout)
        if self._private is None and analysis.kind in ("read", "syntax-error"):
            before, result = self._last_read, self._run_read(code, analysis, timeout)
            if result.info.error in _READER_ERRORS:
                self._last_read = before
                result = self._run_write(code, analysis, timeout)
        else:
            result = self._run_write(code, analysis, timeout)
        if analysis.may_group and result.ok and "sql_mode" not in self._changed_settings:
            rule = (
                self._private.tracker.group_by_check()
                if self._private
                else self._pristine.group_by_check
            )
            fault = rule.error_message(code)
            return error_result(fault) if fault else result
        return result

    def _run_read(self, code: str, analysis: StatementAnalysis, timeout: float) -> ExecResult:
        """Run a statement that only reads, on a shared connection."""
        database = self._pristine.server_name
        connection = self._server.take_reader(database, timeout)
        names = self._pristine.names
        try:
            sent, result = self._run_rewritten(connection, code, analysis, names, timeout)
        except BaseException:
            connection.close()
            raise
        self._last_read = sent
        if connection.killed or (analysis.kind == "syntax-error" and result.ok):
            connection.close()
        else:
            self._server.return_reader(connection, database, timeout)
        return result

    def _run_write(self, code: str, analysis: StatementAnalysis, timeout: float) -> ExecResult:
        if fault := self._growth.refusal(analysis):
            return error_result(fault)
        private = self._private or self._make_private()
        connection = private.connection or self._connect(private, timeout)
        self._changed_settings |= analysis.assigned_names
        self._temporary_tables |= analysis.temporary_tables
        private.tracker.invalidate(analysis)
        try:
            _, result = self._run_rewritten(connection, code, analysis, private.names, timeout)
        except KeyboardInterrupt:  # its answer is not read
            self._server.interrupt(connection.id)
            self._drop_connection(private)
            raise
        if connection.killed:
            self._drop_connection(private)
            return replace(result, note=result.note + _CONNECTION_LOST_NOTE)
        if fault := self._growth.note_end(connection, analysis.writes):
            self._drop_connection(private)
            return replace(error_result(fault), note=_CONNECTION_LOST_NOTE)
        return result

    def _run_rewritten(
        self,
        connection: ServerConnection,
        code: str,
        analysis: StatementAnalysis,
        names: DatabaseNames,
        timeout: float,
    ) -> tuple[str, ExecResult]:
        """Run a statement as the server needs it. Return what was sent, and the result. A syntax
        error quotes the statement itself."""
        sent = _rewrite(code, analysis, names, connection)
        result = self._run_timed(connection, sent, names, timeout, analysis.recursive)
        if not result.ok and analysis.may_group and _SYNTAX_ERROR in result.output:
            sent = names.to_server(code, analysis.tokens)
            result = self._run_timed(connection, sent, names, timeout)
        return sent, result

    def _run_timed(
        self,
        connection: ServerConnection,
        code: str,
        names: DatabaseNames,
        timeout: float,
        recursive: bool = False,
    ) -> ExecResult:
        watchdog, began = self._server.watchdog, time.monotonic()
        self._server.note_use(connection)
        with self._lock:
            if self._aborted:
                raise abort_error()
            self._running_connection = connection
            self._growth.stopped = ""
            check = partial(self._growth.stop_if_larger, connection) if self._private else None
            watchdog.watch(connection, timeout, check)
        try:
            connection.set_time_limit(timeout)
            rows, more = connection.query(code, self._limits, self._interrupter(connection))
            info = _info_to_agent(connection.info, names)
            stopped = recursive and connection.has_warning(_RECURSION_WARNING)
        except StatementTimeoutError:
            stopped_why = self._growth.stopped
            return error_result(stopped_why) if stopped_why else timeout_result()
        except ServerStatementError as e:
            if self._growth.stopped:
                return error_result(self._growth.stopped)
            return error_result(names.to_agent(agent_message(e, names)), e.number, e.sqlstate)
        finally:
            with self._lock:
                self._running_connection = None
                watchdog.unwatch(connection)
        if not more and time.monotonic() - began >= timeout:
            return timeout_result()  # an interrupted function returns a result
        if stopped:
            return error_result(_RECURSION_MESSAGE)
        result = success_result(rows, self._limits, more, info)
        if rows and names.has_private_name(result.output):
            result = success_result(_rows_to_agent(rows, names), self._limits, more, info)
        return result

    def _interrupter(self, connection: ServerConnection) -> Callable[[], None]:
        return lambda: self._server.interrupt(connection.id)

    def _change_database(self, name: str, timeout: float) -> ExecResult:
        """Change the default database to another one that the session may use."""
        public = self._pristine.public_name.lower()
        if name.lower() not in (public, "information_schema"):
            return error_result(f"Unknown database '{name}'")
        if self._private is None and name.lower() == public:
            return success_result(None, self._limits)
        private = self._private or self._make_private()
        connection = private.connection or self._connect(private, timeout)
        server_name = private.account.name if name.lower() == public else name.lower()
        result = self._run_timed(connection, f"USE `{server_name}`", private.names, timeout)
        if result.ok:
            self._default_database = (
                self._pristine.public_name if server_name == private.account.name else server_name
            )
        return result

    # --------------------------------------------------------------- private copy
    def _make_private(self) -> _PrivateDatabase:
        """Give the session a private copy of the data."""
        self._private = self._copy_to_account(self._pristine.copy_to)
        return self._private

    def _copy_to_account(self, copy: Callable[[DatabaseAccount], None]) -> _PrivateDatabase:
        slot = self._server.take_account()
        try:
            copy(slot)
        except BaseException:
            with suppress(Exception):  # report the first error, not this one
                self._server.return_account(slot)
            raise
        names = DatabaseNames(self._pristine.public_name, slot.name, self._server.token)
        return _PrivateDatabase(slot, names, ChangeTracker(self._pristine, slot.name))

    def _connect(self, private: _PrivateDatabase, seconds: float) -> ServerConnection:
        current_database = (
            private.account.name
            if self._default_database == self._pristine.public_name
            else self._default_database or ""
        )
        private.connection = ServerConnection(
            self._server.address,
            private.account.user,
            private.account.password,
            current_database,
            seconds,
        )
        self._own_connections.add(private.connection.id)
        self._growth.connect(private.account.name, private.connection)
        if self._last_read:  # so that FOUND_ROWS() and SHOW WARNINGS refer to it
            with suppress(ServerStatementError, StatementTimeoutError):
                private.connection.query(
                    self._last_read, self._limits, self._interrupter(private.connection)
                )
        return private.connection

    def _drop_connection(self, private: _PrivateDatabase) -> None:
        """Close a killed connection and wait for its end. The next one starts with default
        settings."""
        if private.connection is not None:
            private.connection.close()
            with suppress(ServerLostError):  # the next statement says so
                self._server.disconnect(private.account)
        private.connection = None
        self._changed_settings, self._temporary_tables, self._last_read = set(), set(), ""
        self._default_database = self._pristine.public_name

    # ------------------------------------------------------------------ state
    def snapshot(self) -> ServerSnapshot:
        name = ""
        known: Settings = ()
        if self._private is not None:
            name, known = self._server.new_snapshot_name(), self._current_settings()
            self._server.copy(self._private.account.name, name)
        return ServerSnapshot(
            self._pristine,
            self._limits,
            name,
            self._default_database,
            known,
            self._changed_settings,
            [f"temporary table {table}" for table in self._temporary_tables],
        )

    def _current_settings(self) -> Settings:
        """Return the settings and variables of the session's connection."""
        if self._private is None or self._private.connection is None or not self._changed_settings:
            return ()
        try:
            return changed_settings(
                self._private.connection, self._pristine.settings, self._changed_settings
            )
        except ServerLostError as e:
            if self._server.has_ended(e):
                raise
            self._drop_connection(self._private)
            return ()

    def restore_from(self, snapshot: ServerSnapshot) -> None:
        """Take over the state of a snapshot. Called once, in a new session."""
        self._default_database, self._changed_settings = (
            snapshot.default_database,
            set(snapshot.changed_names),
        )
        if not snapshot.name:
            return
        private = self._private = self._copy_to_account(
            lambda slot: self._server.copy(snapshot.name, slot.name, slot)
        )
        connection = self._connect(private, 0.0)
        apply_settings(connection, snapshot.settings)

    def changes(self) -> list[str]:
        if self._private is None:
            return []
        with self._server.agents_work(self._own_connections):
            changed = self._private.tracker.changed_objects()
        changes = [f"{thing}: {how}" for thing, how in changed.items()]
        return sorted([*changes, *(f"setting {name}" for name in self._changed_settings)])

    def state_text(self) -> str:
        private = self._private
        with self._server.agents_work(self._own_connections):
            tracker = private.tracker if private else None
            data = tracker.object_digests(tracker.changed_objects()) if tracker else []
            return json.dumps([self._default_database, data, self._current_settings()])

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        private, self._private = self._private, None
        try:
            if private is not None:
                if private.connection is not None:
                    private.connection.close()
                with suppress(ServerLostError):  # it is gone with its server
                    self._server.return_account(private.account)
        finally:
            self._server.release()


def _unsendable(code: str) -> str:
    """Return the server's message for a statement that cannot be sent, else an empty string."""
    if len(code) > _MAX_CHARACTERS:
        return _TOO_LONG_MESSAGE
    try:
        code.encode()
    except UnicodeEncodeError:
        return _NOT_TEXT_MESSAGE
    return ""


def _rewrite(
    code: str, analysis: StatementAnalysis, names: DatabaseNames, connection: ServerConnection
) -> str:
    """Return a statement as the server needs it to answer as MySQL 8 does."""
    code = names.to_server(code, analysis.tokens)
    if analysis.may_group:
        code = add_order_by_null(code)
    uses_memory = analysis.kind == "read" and connection.is_mariadb
    return use_memory_tables(code, analysis.tokens) if uses_memory else code


def _info_to_agent(info: StatementInfo, names: DatabaseNames) -> StatementInfo:
    if not any(names.has_private_name(column.name) for column in info.columns):
        return info
    columns = (c._replace(name=names.to_agent(c.name)) for c in info.columns)
    return replace(info, columns=tuple(columns))


def _rows_to_agent(rows: RowList, names: DatabaseNames) -> RowList:
    return [tuple(names.to_agent(v) if isinstance(v, str) else v for v in row) for row in rows]


# ---------------------------------------------------------------- snapshots
class ServerSnapshot:
    """A ``DatabaseSnapshot`` on a server.

    ``name`` is the database that holds the data; it is empty for pristine data.
    """

    def __init__(
        self,
        pristine: PristineDatabase,
        limits: SqlLimits,
        name: str,
        default: str | None,
        settings: Settings,
        named: Iterable[str],
        left_behind: Iterable[str] = (),
    ) -> None:
        self.omitted_tables = tuple(sorted(left_behind))
        self._pristine, self._limits = pristine, limits
        self.name, self.default_database, self.settings, self.changed_names = (
            name,
            default,
            settings,
            set(named),
        )
        self._closed = False
        pristine.server.acquire()

    def open(self) -> MysqlSession:
        if self._closed:
            raise ValueError("this snapshot was closed already")
        session = MysqlSession(self._pristine, self._limits)
        try:
            session.restore_from(self)
        except BaseException:
            session.close()
            raise
        return session

    def open_last(self) -> MysqlSession:
        session = self.open()
        self.close()
        return session

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        server = self._pristine.server
        try:
            if self.name:
                with suppress(ServerLostError):  # it is gone with its server
                    server.drop(self.name)
        finally:
            server.release()
