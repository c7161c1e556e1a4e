"""The session context: connection, state and limits, which all statements use."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from intercode_sql.base import Deadline, SqlDeterminism, SqlLimits
from intercode_sql.dialect.errors import StatementError, unsupported
from intercode_sql.embedded.catalog.catalog import BuiltDatabases, Catalog
from intercode_sql.embedded.compile.model import CompileContext
from intercode_sql.embedded.compile.translation import Translation
from intercode_sql.embedded.execute.connection import ConnectionPool, EmbeddedConnection
from intercode_sql.errors import SessionStateError
from intercode_sql.types import ResultColumn

MYSQL_VERSION = "8.0.33"
MYSQL_VERSION_NUMBER = 80033  # as executable comments write it
DEFAULT_MODES = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)
"""MySQL 8's default modes."""
DEFAULT_SETTINGS: dict[str, Any] = {
    "sql_mode": f"{DEFAULT_MODES},IGNORE_SPACE",
    "autocommit": 1,
    "foreign_key_checks": 1,
    "unique_checks": 1,
    "group_concat_max_len": 1024,
    "max_execution_time": 0,
    "sql_safe_updates": 0,
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "character_set_results": "utf8mb4",
    "character_set_server": "utf8mb4",
    "character_set_database": "utf8mb4",
    "collation_connection": "utf8mb4_0900_ai_ci",
    "collation_server": "utf8mb4_0900_ai_ci",
    "collation_database": "utf8mb4_0900_ai_ci",
    "time_zone": "SYSTEM",
    "system_time_zone": "UTC",
    "tx_isolation": "REPEATABLE-READ",
    "transaction_isolation": "REPEATABLE-READ",
    "transaction_read_only": 0,
    "tx_read_only": 0,
    "lower_case_table_names": 1,
    "max_allowed_packet": 67108864,
    "wait_timeout": 28800,
    "interactive_timeout": 28800,
    "sql_notes": 1,
    "sql_select_limit": 18446744073709551615,
    "cte_max_recursion_depth": 1000,
    "hostname": "mysql",
    "port": 3306,
    "version_comment": "MySQL Community Server - GPL",
    "warning_count": 0,
    "error_count": 0,
    "last_insert_id": 0,
    "identity": 0,
    "auto_increment_increment": 1,
    "auto_increment_offset": 1,
    "div_precision_increment": 4,
    "default_storage_engine": "InnoDB",
    "license": "GPL",
    "protocol_version": 10,
    "sql_big_selects": 1,
    "sql_quote_show_create": 1,
}
"""System variables and their values at the start of a session."""


@dataclass(frozen=True, slots=True)
class EmbeddedState:
    """Everything a session has changed, except the content of its databases.

    ``settings`` and ``variables`` hold the values that differ from the start. ``table_changes``
    maps (database, table) to ``new``, ``gone`` or ``changed``. ``session_values`` holds the results
    of functions such as LAST_INSERT_ID.
    """

    catalog: Catalog
    database: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    table_changes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    session_values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavedState:
    """A copy of a session's state. ``contents`` holds the databases that the session has written
    to."""

    state: EmbeddedState
    contents: Mapping[str, bytes]


_INITIAL_SESSION_VALUES: dict[str, Any] = {
    "VERSION": MYSQL_VERSION,
    "USER": "admin@localhost",
    "SESSION_USER": "admin@localhost",
    "SYSTEM_USER": "admin@localhost",
    "CONNECTION_ID": 8,
    "LAST_INSERT_ID": 0,
    "ROW_COUNT": -1,
    "FOUND_ROWS": 0,
}
_INITIAL_SETTINGS = {**DEFAULT_SETTINGS, "version": MYSQL_VERSION}


@lru_cache(maxsize=64)
def _mode_set(text: str) -> frozenset[str]:
    return frozenset(text.upper().split(","))


class SessionContext:
    """The part of a session that statements read and change.

    ``insert_id`` is the first value of AUTO_INCREMENT that the statement has generated, and
    ``columns`` those of its rows if it is not a query.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        databases: BuiltDatabases,
        start: EmbeddedState,
        limits: SqlLimits,
        saved: SavedState | None,
        determinism: SqlDeterminism | None,
    ) -> None:
        self._pool, self._determinism = pool, determinism
        self.databases, self.state, self.limits = databases, start, limits
        self._connection: EmbeddedConnection | None = None
        self._deadline = Deadline()
        self._is_open = True
        self.savepoints: list[tuple[str, SavedState]] = []
        self.read_only: bool | None = None
        self.next_read_only: bool | None = None
        self.stamp_count = 0
        self.insert_id: int | None = None
        self.columns: tuple[ResultColumn, ...] = ()
        self.before: tuple[str, StatementError | None] = ("", None)
        """The statement before this one and its error, which SHOW WARNINGS shows."""
        self.latest: tuple[str, StatementError | None] = self.before
        if saved is not None:
            self.restore(saved)

    @property
    def connection(self) -> EmbeddedConnection:
        """The connection to SQLite. It is taken from the pool when it is first needed."""
        self._require_open()
        if self._connection is None:
            self._connection = self._pool.take(self.databases, self.state.database)
            self._connection.set_deadline(self._deadline)
        return self._connection

    def _require_open(self) -> None:
        if not self._is_open:
            raise SessionStateError("the SQL session is closed: open another one")

    @property
    def database(self) -> str:
        return self.state.database

    def warnings(self, errors: bool) -> list[tuple[Any, ...]]:
        """Return what SHOW WARNINGS or SHOW ERRORS shows of the statement before."""
        raise NotImplementedError

    def rows(self, translation: Translation) -> list[tuple[Any, ...]]:
        """Return all rows of a query as SQLite stores them."""
        if translation.assignments:
            raise unsupported("an assignment to a variable here")
        self.connection.attach(translation.databases)
        return self.connection.sqlite.execute(translation.sql).fetchall()

    def compile_context(self) -> CompileContext:
        """Return what the parts of a statement share when it is compiled."""
        state = self.state
        modes = self.modes
        moment = dt.datetime.now() if self._determinism is None else self._determinism.now()
        now = moment.isoformat(" ", "seconds")
        session = {**_INITIAL_SESSION_VALUES, **state.session_values}
        settings = {**_INITIAL_SETTINGS, **state.settings} if state.settings else _INITIAL_SETTINGS
        return CompileContext(
            state.catalog,
            state.database,
            modes,
            state.variables,
            now,
            settings=settings,
            session_values=session,
        )

    def setting(self, name: str) -> Any:
        """Return the value of a system variable in this session."""
        found = self.state.settings.get(name)
        return DEFAULT_SETTINGS.get(name) if found is None else found

    @property
    def modes(self) -> frozenset[str]:
        """The modes of sql_mode."""
        return _mode_set(str(self.setting("sql_mode")))

    @property
    def strict(self) -> bool:
        """Whether a statement that writes rejects values that do not fit."""
        return not self.modes.isdisjoint(("STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"))

    def set_session_values(self, **values: Any) -> None:
        """Set the results of functions such as LAST_INSERT_ID."""
        now = self.state
        self.state = EmbeddedState(
            now.catalog,
            now.database,
            now.settings,
            now.variables,
            now.table_changes,
            {**now.session_values, **values},
        )

    def new_stamp(self) -> str:
        """Return a new stamp for a catalog that only this session has."""
        self.stamp_count += 1
        return f"{id(self)}-{time.monotonic_ns()}-{self.stamp_count}"

    # ------------------------------------------------------------ saved states
    def save(self) -> SavedState:
        """Copy the current state."""
        self._require_open()
        contents = {name: self.connection.copy_content(name) for name in self._private_databases}
        return SavedState(self.state, contents)

    @property
    def _private_databases(self) -> list[str]:
        """The databases of which the session has a copy."""
        return [] if self._connection is None else list(self._connection.private_copies)

    def restore(self, saved: SavedState) -> None:
        """Return to a saved state."""
        for name in self._private_databases:
            if name not in saved.contents:
                self.connection.drop_private(name)
        for name, content in saved.contents.items():
            self.connection.make_private(name, self.limits.storage, content)
        self.state = saved.state

    def close(self) -> None:
        """End the session and discard its changes. Can be called more than once."""
        connection, self._connection, self._is_open = self._connection, None, False
        self.savepoints.clear()
        if connection is None:
            return
        if connection.private_copies or self._deadline.aborted:
            connection.close()
        else:
            self._pool.give_back(connection)
