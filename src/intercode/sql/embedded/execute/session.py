"""One session of the embedded engine: statements in, results out."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from intercode.core.errors import EnvironmentStateError
from intercode.core.types import ExecResult
from intercode.sql.base import SqlLimits, error_result, fetch_rows, success_result, timeout_result
from intercode.sql.deadline import Deadline
from intercode.sql.dialect.errors import StatementError, unsupported
from intercode.sql.dialect.parser import require_single_statement
from intercode.sql.embedded.catalog.catalog import quote_identifier
from intercode.sql.embedded.catalog.values import convert_rows
from intercode.sql.embedded.compile.scope import CompileContext
from intercode.sql.embedded.compile.translation import Key, Translation, translate
from intercode.sql.embedded.execute import dispatch
from intercode.sql.embedded.execute.connection import EmbeddedConnection, translate_sqlite_error
from intercode.sql.embedded.execute.settings import DEFAULT_SETTINGS
from intercode.sql.embedded.execute.state import EmbeddedSnapshot, EmbeddedState
from intercode.sql.embedded.load.build import BuiltDatabases

if TYPE_CHECKING:
    from intercode.sql.embedded.engine import EmbeddedEngine

MYSQL_VERSION = "8.0.33"
_INITIAL_SETTINGS = {**DEFAULT_SETTINGS, "version": MYSQL_VERSION}
Rows = list[tuple[Any, ...]] | None


@lru_cache(maxsize=64)
def _mode_set(text: str) -> frozenset[str]:
    return frozenset(text.upper().split(","))


class EmbeddedSession:
    """See ``sessions.sql.base.SqlSession``."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        built: BuiltDatabases,
        state: EmbeddedState,
        limits: SqlLimits,
        contents: Mapping[str, bytes | Path] | None = None,
    ) -> None:
        self.engine, self.databases, self.state, self.limits = engine, built, state, limits
        self._connection: EmbeddedConnection | None = None
        self._deadline = Deadline()
        self._is_open = True
        self.savepoints: list[tuple[str, EmbeddedSnapshot]] = []
        self.stamp_count = 0
        for name, content in (contents or {}).items():
            self.connection.make_private(name, limits.storage, content)

    @property
    def connection(self) -> EmbeddedConnection:
        """The connection to SQLite; what is known already needs none."""
        self._require_open()
        if self._connection is None:
            self._connection = self.engine.take_connection(self.databases, self.state.database)
            self._connection.set_deadline(self._deadline)
        return self._connection

    def _require_open(self) -> None:
        if not self._is_open:
            raise EnvironmentStateError("the SQL session is closed: open another one")

    @property
    def database(self) -> str:
        return self.state.database

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement."""
        self._require_open()
        self._deadline.expires_at = time.monotonic() + timeout
        if self._connection is not None:
            self._connection.set_deadline(self._deadline)
        try:
            return self._run_or_error(code)
        finally:
            self._deadline.expires_at = float("inf")
            self._deadline.raise_if_aborted()

    def abort(self) -> None:
        """End what runs; the connection looks at the clock every few thousand instructions."""
        self._deadline.aborted = True

    def _run_or_error(self, code: str) -> ExecResult:
        try:
            return self._run_statement(require_single_statement(code))
        except StatementError as e:
            return timeout_result() if e.number == 3024 else error_result(e.message)
        except sqlite3.Error as e:
            error = translate_sqlite_error(e)
            return timeout_result() if error.number == 3024 else error_result(error.message)
        except MemoryError:
            return error_result(unsupported("a result that needs so much memory").message)
        except RecursionError:
            return error_result(unsupported("expressions that lie so deep in each other").message)

    def _run_statement(self, code: str) -> ExecResult:
        """One statement: its result where that is known, else by its translation."""
        state, engine = self.state, self.engine
        pristine = state.catalog.stamp.startswith(self.databases.digest)
        key = (state.catalog.stamp, state.database, self.setting("sql_mode"), code)
        known = engine.results.find(key, self.limits) if pristine else None
        if known is not None:
            self.set_session_values(FOUND_ROWS=len(known.rows or ()), ROW_COUNT=-1)
            return known
        found = engine.translations.find(key, pristine)
        if found is None:
            tree = dispatch.parse_statement(code, self)
            if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery)):
                return success_result(dispatch.execute(tree, code, self), self.limits)
            found = self._translate(tree, key, pristine)
        result = self._run_query(found)
        if pristine and not found.volatile:
            engine.results.add(key, self.limits, result)
        return result

    # ------------------------------------------------------------ queries
    def _translate(self, tree: exp.Expr, key: Key, pristine: bool) -> Translation:
        unit = self.compile_context()
        keep = self.engine.translations.add
        try:
            found = translate(tree, unit)
        except StatementError as e:
            if not unit.volatile:
                keep(key, e, pristine)
            raise
        if not unit.volatile:
            keep(key, found, pristine)
        return found

    def _run_query(self, found: Translation) -> ExecResult:
        link = self.connection
        link.attach(found.databases)
        cursor = link.sqlite.execute(found.sql)
        try:
            rows, more = fetch_rows(cursor, self.limits)
        finally:
            cursor.close()
        read = convert_rows(rows, found.converters)
        self.set_session_values(FOUND_ROWS=len(read), ROW_COUNT=-1)
        return success_result(read, self.limits, more)

    def rows(self, found: Translation) -> list[tuple[Any, ...]]:
        """All rows of a query as SQLite has them."""
        self.connection.attach(found.databases)
        return self.connection.sqlite.execute(found.sql).fetchall()

    def compile_context(self) -> CompileContext:
        """What a statement's parts share, as the session stands now."""
        state = self.state
        modes = _mode_set(str(self.setting("sql_mode")))
        now = dt.datetime.now().isoformat(" ", "seconds")
        session = {"VERSION": MYSQL_VERSION, "USER": "admin@localhost", "SESSION_USER": "admin@localhost",
                   "SYSTEM_USER": "admin@localhost", "CONNECTION_ID": 8, "LAST_INSERT_ID": 0,
                   "ROW_COUNT": -1, "FOUND_ROWS": 0, **state.session_values}  # fmt: skip
        settings = {**_INITIAL_SETTINGS, **state.settings} if state.settings else _INITIAL_SETTINGS
        return CompileContext(
            state.catalog, state.database, modes, state.variables, now, settings=settings,
            session_values=session,
        )  # fmt: skip

    def setting(self, name: str) -> Any:
        """A system variable's value in this session."""
        found = self.state.settings.get(name)
        return DEFAULT_SETTINGS.get(name) if found is None else found

    def set_session_values(self, **values: Any) -> None:
        """Keep what functions such as LAST_INSERT_ID tell."""
        now = self.state
        self.state = EmbeddedState(
            now.catalog, now.database, now.settings, now.variables, now.table_changes,
            {**now.session_values, **values},
        )  # fmt: skip

    def new_stamp(self) -> str:
        """A name for a catalog that only this session has."""
        self.stamp_count += 1
        return f"{id(self)}-{time.monotonic_ns()}-{self.stamp_count}"

    # ------------------------------------------------------------ state
    def snapshot(self) -> EmbeddedSnapshot:
        """Keep everything as it is now."""
        self._require_open()
        contents = {name: self.connection.copy_content(name) for name in self._private_databases}
        return EmbeddedSnapshot(self.engine, self.databases, self.state, self.limits, contents)

    @property
    def _private_databases(self) -> list[str]:
        """The databases that it has a copy of."""
        return [] if self._connection is None else list(self._connection.private_copies)

    def restore(self, kept: EmbeddedSnapshot) -> None:
        """Go back to what was kept."""
        for name in self._private_databases:
            if name not in kept.contents:
                self.connection.drop_private(name)
        for name, content in kept.contents.items():
            self.connection.make_private(name, self.limits.storage, content)
        self.state = kept.state

    def changes(self) -> list[str]:
        """What the episode has changed."""
        state = self.state
        if not state.table_changes and not state.settings:
            return []
        start = self.databases.catalog
        out = [f"setting {name}" for name in state.settings]
        for (database, name), what in state.table_changes.items():
            shown = name if database == state.database else f"{database}.{name}"
            now, then = state.catalog.table(database, name), start.table(database, name)
            if now is None and then is None:
                continue
            what = "new" if then is None else "gone" if now is None else what
            out.append(f"table {shown}: {what}")
        return sorted(out)

    def state_text(self) -> str:
        """The whole state as text."""
        state = self.state
        try:
            tables = {
                f"{database}.{name}": self._table_digest(database, name)
                for database, name in sorted(state.table_changes)
            }
        except sqlite3.OperationalError:
            self._deadline.raise_if_aborted()
            raise
        told = {
            "database": state.database, "settings": dict(state.settings),
            "variables": {k: repr(v) for k, v in state.variables.items()}, "tables": tables,
        }  # fmt: skip
        return json.dumps(told, sort_keys=True, default=str)

    def _table_digest(self, database: str, name: str) -> str:
        table = self.state.catalog.table(database, name)
        if table is None:
            return "gone"
        digest = hashlib.sha256(repr(table.columns).encode())
        if table.query is not None:
            digest.update(table.query.encode())
            return digest.hexdigest()
        self.connection.attach([database])
        columns = ", ".join(quote_identifier(c.name) for c in table.columns)
        source = f"{quote_identifier(database)}.{quote_identifier(name)}"
        for row in self.connection.sqlite.execute(
            f"SELECT {columns} FROM {source} ORDER BY {columns}"
        ):
            digest.update(repr(row).encode())
        return digest.hexdigest()

    def close(self) -> None:
        """End the session; what it wrote is gone."""
        link, self._connection, self._is_open = self._connection, None, False
        for _, kept in self.savepoints:
            kept.close()
        self.savepoints.clear()
        if link is None:
            return
        if link.private_copies or self._deadline.aborted:
            link.close()
        else:
            self.engine.return_connection(link)
