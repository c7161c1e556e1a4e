"""One episode on a server: it reads the pristine data until it first writes, then its own copy."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from intercode.core.errors import DatabaseLostError
from intercode.core.types import ExecResult
from intercode.sql.base import SqlLimits, error_result, success_result, timeout_result
from intercode.sql.deadline import abort_error
from intercode.sql.server import session_settings
from intercode.sql.server.connection import (
    Rows,
    ServerConnection,
    ServerStatementError,
    StatementTimeoutError,
)
from intercode.sql.server.database_names import DatabaseNames, agent_message
from intercode.sql.server.database_server import DatabaseAccount
from intercode.sql.server.pristine import ChangeTracker, PristineDatabase
from intercode.sql.server.session_settings import Settings
from intercode.sql.server.statement_analysis import StatementAnalysis, analyze_statement
from intercode.sql.server.statement_rewrites import add_order_by_null, use_memory_tables

_CONNECTION_LOST_NOTE = (
    "[the connection was ended: settings, variables and temporary tables are lost]\n"
)
_RECURSION_WARNING = 1931
"""MariaDB's warning where it stops a recursion; MySQL's is an error."""
_RECURSION_MESSAGE = (
    "Recursive query aborted after 1001 iterations. Try increasing @@cte_max_recursion_depth to a "
    "larger value."
)
_STORAGE_FULL_MESSAGE = (
    "The episode's data are larger than {} bytes: delete or drop something first"
)
_SHRINKING_STATEMENTS = {"DELETE", "DROP", "TRUNCATE", "ROLLBACK", "COMMIT", "SET", "OPTIMIZE"}


@dataclass
class _PrivateDatabase:
    """A private database, and the connection to it while there is one."""

    account: DatabaseAccount
    names: DatabaseNames
    tracker: ChangeTracker
    connection: ServerConnection | None = None


class MysqlSession:
    """See ``SqlSession``."""

    def __init__(self, pristine: PristineDatabase, limits: SqlLimits) -> None:
        self._pristine, self._server, self._limits = pristine, pristine.server, limits
        self._private: _PrivateDatabase | None = None
        self._default_database: str | None = pristine.public_name
        self._changed_settings: set[str] = set()
        self._temporary_tables: set[str] = set()
        self._storage_full = False
        self._last_read = ""
        self._closed = self._aborted = False
        self._lock = threading.Lock()
        self._running_connection: ServerConnection | None = None
        self._server.acquire()

    @property
    def database(self) -> str:
        return self._default_database or ""

    # -------------------------------------------------------------------- run
    def run(self, code: str, timeout: float) -> ExecResult:
        reading = analyze_statement(
            code, any(not name.startswith("@") for name in self._changed_settings)
        )
        if reading.kind == "refused":
            return error_result(reading.argument)
        if reading.kind == "nothing":
            return success_result(None, self._limits)
        try:
            result = self._execute(code, reading, timeout)
        except DatabaseLostError:
            if not self._aborted:
                self._server.check_lost()
            raise
        if self._aborted:
            raise abort_error()
        return result

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            if self._running_connection is not None:
                self._server.watchdog.expire_now(self._running_connection)

    def _execute(self, code: str, reading: StatementAnalysis, timeout: float) -> ExecResult:
        """Run a statement on the server."""
        if reading.kind == "use":
            return self._change_database(reading.argument, timeout)
        if self._private is None and reading.kind in ("plain", "nonsense"):
            result = self._run_read(code, reading, timeout)
        else:
            result = self._run_write(code, reading, timeout)
        if reading.may_group and result.ok and "sql_mode" not in self._changed_settings:
            rule = (
                self._private.tracker.group_by_check()
                if self._private
                else self._pristine.group_by_check
            )
            fault = rule.error_message(code)
            return error_result(fault) if fault else result
        return result

    def _run_read(self, code: str, reading: StatementAnalysis, timeout: float) -> ExecResult:
        """Run what only reads on a connection that others have used and will use."""
        database = self._pristine.server_name
        link = self._server.take_reader(database, timeout)
        names = self._pristine.names
        code = _rewritten(code, reading, names, link)
        try:
            result = self._run_timed(link, code, names, timeout, reading.recursive)
        except BaseException:
            link.close()
            raise
        self._last_read = code
        if link.killed or (reading.kind == "nonsense" and result.ok):
            link.close()
        else:
            self._server.return_reader(link, database, timeout)
        return result

    def _run_write(self, code: str, reading: StatementAnalysis, timeout: float) -> ExecResult:
        if (
            self._storage_full
            and reading.kind == "own"
            and reading.first not in _SHRINKING_STATEMENTS
        ):
            return error_result(_STORAGE_FULL_MESSAGE.format(self._limits.storage))
        own = self._private or self._make_private()
        link = own.connection or self._connect(own, timeout)
        self._changed_settings |= reading.assigned_names
        self._temporary_tables |= reading.temporary_tables
        own.tracker.invalidate(reading)
        code = _rewritten(code, reading, own.names, link)
        result = self._run_timed(link, code, own.names, timeout, reading.recursive)
        if link.killed:
            self._drop_connection(own)
            return replace(result, note=result.note + _CONNECTION_LOST_NOTE)
        if reading.writes:
            self._storage_full = self._server.size(own.account.name) > self._limits.storage
        return result

    def _run_timed(
        self,
        link: ServerConnection,
        code: str,
        names: DatabaseNames,
        timeout: float,
        recursive: bool = False,
    ) -> ExecResult:
        watchdog, began = self._server.watchdog, time.monotonic()
        with self._lock:
            if self._aborted:
                raise abort_error()
            self._running_connection = link
            watchdog.watch(link, timeout)
        try:
            link.set_time_limit(timeout)
            rows, more = link.query(code, self._limits, self._interrupter(link))
            stopped = recursive and link.has_warning(_RECURSION_WARNING)
        except StatementTimeoutError:
            return timeout_result()
        except ServerStatementError as e:
            return error_result(names.to_agent(agent_message(e, names)))
        finally:
            with self._lock:
                self._running_connection = None
                watchdog.unwatch(link)
        if not more and time.monotonic() - began >= timeout:
            return timeout_result()  # what was interrupted inside a function gives a result
        if stopped:
            return error_result(_RECURSION_MESSAGE)
        result = success_result(rows, self._limits, more)
        if rows and names.has_private_name(result.output):
            result = success_result(_rows_to_agent(rows, names), self._limits, more)
        return result

    def _interrupter(self, link: ServerConnection) -> Callable[[], None]:
        return lambda: self._server.interrupt(link.id)

    def _change_database(self, name: str, timeout: float) -> ExecResult:
        """Change the default database, where there is another one that may be used."""
        shown = self._pristine.public_name.lower()
        if name.lower() not in (shown, "information_schema"):
            return error_result(f"Unknown database '{name}'")
        if self._private is None and name.lower() == shown:
            return success_result(None, self._limits)
        own = self._private or self._make_private()
        link = own.connection or self._connect(own, timeout)
        real = own.account.name if name.lower() == shown else name.lower()
        result = self._run_timed(link, f"USE `{real}`", own.names, timeout)
        if result.ok:
            self._default_database = (
                self._pristine.public_name if real == own.account.name else real
            )
        return result

    # --------------------------------------------------------------- own copy
    def _make_private(self) -> _PrivateDatabase:
        """From now on the episode has data of its own."""
        self._private = self._copy_to_account(self._pristine.copy_to)
        return self._private

    def _copy_to_account(self, copy: Callable[[DatabaseAccount], None]) -> _PrivateDatabase:
        slot = self._server.take_account()
        try:
            copy(slot)
        except BaseException:
            with suppress(Exception):  # what failed is told, not this
                self._server.return_account(slot)
            raise
        names = DatabaseNames(self._pristine.public_name, slot.name, self._server.token)
        return _PrivateDatabase(slot, names, ChangeTracker(self._pristine, slot.name))

    def _connect(self, own: _PrivateDatabase, seconds: float) -> ServerConnection:
        there = (
            own.account.name
            if self._default_database == self._pristine.public_name
            else self._default_database or ""
        )
        own.connection = ServerConnection(
            self._server.address, own.account.user, own.account.password, there, seconds
        )
        if self._last_read:  # so that FOUND_ROWS() and SHOW WARNINGS tell of it
            with suppress(ServerStatementError, StatementTimeoutError):
                own.connection.query(
                    self._last_read, self._limits, self._interrupter(own.connection)
                )
        return own.connection

    def _drop_connection(self, own: _PrivateDatabase) -> None:
        """After the connection was killed: another one will be opened, which knows nothing."""
        if own.connection is not None:
            own.connection.close()
        own.connection = None
        self._changed_settings, self._temporary_tables, self._last_read = set(), set(), ""
        self._default_database = self._pristine.public_name

    # ------------------------------------------------------------------ state
    def snapshot(self) -> ServerSnapshot:
        name = ""
        known: session_settings.Settings = ()
        if self._private is not None:
            name, known = self._server.new_snapshot_name(), self._current_settings()
            self._server.copy(self._private.account.name, name)
        return ServerSnapshot(
            self._pristine, self._limits, name, self._default_database, known, self._changed_settings,
            [f"temporary table {table}" for table in self._temporary_tables],
        )  # fmt: skip

    def _current_settings(self) -> session_settings.Settings:
        """Settings and variables of our connection."""
        if self._private is None or self._private.connection is None or not self._changed_settings:
            return ()
        return session_settings.changed_settings(
            self._private.connection, self._pristine.settings(), self._changed_settings
        )

    def restore_from(self, kept: ServerSnapshot) -> None:
        """Become what was kept, right after this session was made."""
        self._default_database, self._changed_settings = (
            kept.default_database,
            set(kept.changed_names),
        )
        if not kept.name:
            return
        own = self._private = self._copy_to_account(
            lambda slot: self._server.copy(kept.name, slot.name, slot)
        )
        link = self._connect(own, 0.0)
        session_settings.apply_settings(link, kept.settings)

    def changes(self) -> list[str]:
        if self._private is None:
            return []
        changed = self._private.tracker.changed_objects()
        said = [f"{thing}: {how}" for thing, how in changed.items()]
        return sorted([*said, *(f"setting {name}" for name in self._changed_settings)])

    def state_text(self) -> str:
        own = self._private
        data = own.tracker.object_digests(own.tracker.changed_objects()) if own else []
        return json.dumps([self._default_database, data, self._current_settings()])

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        own, self._private = self._private, None
        try:
            if own is not None:
                if own.connection is not None:
                    own.connection.close()
                with suppress(DatabaseLostError):  # then it is gone with its server
                    self._server.return_account(own.account)
        finally:
            self._server.release()


def _rewritten(
    code: str, reading: StatementAnalysis, names: DatabaseNames, link: ServerConnection
) -> str:
    """A statement as this server has to be asked, to answer as MySQL 8 does."""
    code = names.to_server(code, reading.tokens)
    if reading.may_group:
        code = add_order_by_null(code)
    boxed = reading.kind == "plain" and link.is_mariadb
    return use_memory_tables(code, reading.tokens) if boxed else code


def _rows_to_agent(rows: Rows, names: DatabaseNames) -> Rows:
    return [tuple(names.to_agent(v) if isinstance(v, str) else v for v in row) for row in rows]


# -------------------- A moment of an episode on a server, as a database that no episode can

class ServerSnapshot:
    """See ``KeptDatabase``. ``name``: the database that holds the data; empty for pristine ones."""

    def __init__(
        self, pristine: PristineDatabase, limits: SqlLimits, name: str, default: str | None,
        settings: Settings, named: Iterable[str], left_behind: Iterable[str] = (),
    ) -> None:  # fmt: skip
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
            raise ValueError("this database was freed already")
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
                with suppress(DatabaseLostError):  # then it is gone with its server
                    server.drop(self.name)
        finally:
            server.release()
