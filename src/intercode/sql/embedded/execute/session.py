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
from intercode.sql.base import SqlLimits, answered, failed, fetched, timed_out
from intercode.sql.deadline import Clock
from intercode.sql.dialect.errors import StatementError, unable
from intercode.sql.dialect.parser import single
from intercode.sql.embedded.catalog.catalog import ident
from intercode.sql.embedded.catalog.result_values import rows_read
from intercode.sql.embedded.compile.scope import Unit
from intercode.sql.embedded.compile.translation import Key, Translation, translated
from intercode.sql.embedded.execute import dispatch
from intercode.sql.embedded.execute.connection import Link
from intercode.sql.embedded.execute.settings import DEFAULTS
from intercode.sql.embedded.execute.sqlite_errors import from_sqlite
from intercode.sql.embedded.execute.state import Kept, State
from intercode.sql.embedded.load.build import Built

if TYPE_CHECKING:
    from intercode.sql.embedded.engine import EmbeddedEngine

VERSION = "8.0.33"
_SETTINGS = {**DEFAULTS, "version": VERSION}
Rows = list[tuple[Any, ...]] | None


@lru_cache(maxsize=64)
def _modes(text: str) -> frozenset[str]:
    return frozenset(text.upper().split(","))


class EmbeddedSession:
    """See ``sessions.sql.base.SqlSession``."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        built: Built,
        state: State,
        limits: SqlLimits,
        contents: Mapping[str, bytes | Path] | None = None,
    ) -> None:
        self.engine, self.built, self.state, self.limits = engine, built, state, limits
        self._link: Link | None = None
        self._clock = Clock()
        self._open = True
        self.marks: list[tuple[str, Kept]] = []
        self.count = 0
        for name, content in (contents or {}).items():
            self.link.owned(name, limits.storage, content)

    @property
    def link(self) -> Link:
        """The connection to SQLite; what is known already needs none."""
        self._require_open()
        if self._link is None:
            self._link = self.engine.link(self.built, self.state.database)
            self._link.obey(self._clock)
        return self._link

    def _require_open(self) -> None:
        if not self._open:
            raise EnvironmentStateError("the SQL session is closed: open another one")

    @property
    def database(self) -> str:
        return self.state.database

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement."""
        self._require_open()
        self._clock.deadline = time.monotonic() + timeout
        if self._link is not None:
            self._link.obey(self._clock)
        try:
            return self._outcome(code)
        finally:
            self._clock.deadline = float("inf")
            self._clock.check()

    def abort(self) -> None:
        """End what runs; the connection looks at the clock every few thousand instructions."""
        self._clock.over = True

    def _outcome(self, code: str) -> ExecResult:
        try:
            return self._run(single(code))
        except StatementError as e:
            return timed_out() if e.number == 3024 else failed(e.message)
        except sqlite3.Error as e:
            error = from_sqlite(e)
            return timed_out() if error.number == 3024 else failed(error.message)
        except MemoryError:
            return failed(unable("a result that needs so much memory").message)
        except RecursionError:
            return failed(unable("expressions that lie so deep in each other").message)

    def _run(self, code: str) -> ExecResult:
        """One statement: its result where that is known, else by its translation."""
        state, engine = self.state, self.engine
        pristine = state.catalog.stamp.startswith(self.built.digest)
        key = (state.catalog.stamp, state.database, self.setting("sql_mode"), code)
        known = engine.results.find(key, self.limits) if pristine else None
        if known is not None:
            self.remember(FOUND_ROWS=len(known.rows or ()), ROW_COUNT=-1)
            return known
        found = engine.translations.find(key, pristine)
        if found is None:
            tree = dispatch.tree_of(code, self)
            if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery)):
                return answered(dispatch.execute(tree, code, self), self.limits)
            found = self._translate(tree, key, pristine)
        result = self._answer(found)
        if pristine and not found.volatile:
            engine.results.keep(key, self.limits, result)
        return result

    # ------------------------------------------------------------ queries
    def _translate(self, tree: exp.Expr, key: Key, pristine: bool) -> Translation:
        unit = self.unit()
        keep = self.engine.translations.keep
        try:
            found = translated(tree, unit)
        except StatementError as e:
            if not unit.volatile:
                keep(key, e, pristine)
            raise
        if not unit.volatile:
            keep(key, found, pristine)
        return found

    def _answer(self, found: Translation) -> ExecResult:
        link = self.link
        link.use(found.used)
        cursor = link.connection.execute(found.sql)
        try:
            rows, more = fetched(cursor, self.limits)
        finally:
            cursor.close()
        read = rows_read(rows, found.readers)
        self.remember(FOUND_ROWS=len(read), ROW_COUNT=-1)
        return answered(read, self.limits, more)

    def rows(self, found: Translation) -> list[tuple[Any, ...]]:
        """All rows of a query as SQLite has them."""
        self.link.use(found.used)
        return self.link.connection.execute(found.sql).fetchall()

    def unit(self) -> Unit:
        """What a statement's parts share, as the session stands now."""
        state = self.state
        modes = _modes(str(self.setting("sql_mode")))
        now = dt.datetime.now().isoformat(" ", "seconds")
        session = {"VERSION": VERSION, "USER": "admin@localhost", "SESSION_USER": "admin@localhost",
                   "SYSTEM_USER": "admin@localhost", "CONNECTION_ID": 8, "LAST_INSERT_ID": 0,
                   "ROW_COUNT": -1, "FOUND_ROWS": 0, **state.session}  # fmt: skip
        settings = {**_SETTINGS, **state.settings} if state.settings else _SETTINGS
        return Unit(
            state.catalog, state.database, modes, state.variables, now, settings=settings,
            session=session,
        )  # fmt: skip

    def setting(self, name: str) -> Any:
        """A system variable's value in this session."""
        found = self.state.settings.get(name)
        return DEFAULTS.get(name) if found is None else found

    def remember(self, **values: Any) -> None:
        """Keep what functions such as LAST_INSERT_ID tell."""
        now = self.state
        self.state = State(
            now.catalog, now.database, now.settings, now.variables, now.touched,
            {**now.session, **values},
        )  # fmt: skip

    def stamp(self) -> str:
        """A name for a catalog that only this session has."""
        self.count += 1
        return f"{id(self)}-{time.monotonic_ns()}-{self.count}"

    # ------------------------------------------------------------ state
    def snapshot(self) -> Kept:
        """Keep everything as it is now."""
        self._require_open()
        contents = {name: self.link.content(name) for name in self._own}
        return Kept(self.engine, self.built, self.state, self.limits, contents)

    @property
    def _own(self) -> list[str]:
        """The databases that it has a copy of."""
        return [] if self._link is None else list(self._link.own)

    def restore(self, kept: Kept) -> None:
        """Go back to what was kept."""
        for name in self._own:
            if name not in kept.contents:
                self.link.pristine(name)
        for name, content in kept.contents.items():
            self.link.owned(name, self.limits.storage, content)
        self.state = kept.state

    def changes(self) -> list[str]:
        """What the episode has changed."""
        state = self.state
        if not state.touched and not state.settings:
            return []
        start = self.built.catalog
        out = [f"setting {name}" for name in state.settings]
        for (database, name), what in state.touched.items():
            shown = name if database == state.database else f"{database}.{name}"
            now, then = state.catalog.table(database, name), start.table(database, name)
            if now is None and then is None:
                continue
            what = "new" if then is None else "gone" if now is None else what
            out.append(f"table {shown}: {what}")
        return sorted(out)

    def told(self) -> str:
        """The whole state as text."""
        state = self.state
        try:
            tables = {
                f"{database}.{name}": self._digest(database, name)
                for database, name in sorted(state.touched)
            }
        except sqlite3.OperationalError:
            self._clock.check()
            raise
        told = {
            "database": state.database, "settings": dict(state.settings),
            "variables": {k: repr(v) for k, v in state.variables.items()}, "tables": tables,
        }  # fmt: skip
        return json.dumps(told, sort_keys=True, default=str)

    def _digest(self, database: str, name: str) -> str:
        table = self.state.catalog.table(database, name)
        if table is None:
            return "gone"
        digest = hashlib.sha256(repr(table.columns).encode())
        if table.query is not None:
            digest.update(table.query.encode())
            return digest.hexdigest()
        self.link.use([database])
        columns = ", ".join(ident(c.name) for c in table.columns)
        source = f"{ident(database)}.{ident(name)}"
        for row in self.link.connection.execute(
            f"SELECT {columns} FROM {source} ORDER BY {columns}"
        ):
            digest.update(repr(row).encode())
        return digest.hexdigest()

    def close(self) -> None:
        """End the session; what it wrote is gone."""
        link, self._link, self._open = self._link, None, False
        for _, kept in self.marks:
            kept.close()
        self.marks.clear()
        if link is None:
            return
        if link.own or self._clock.over:
            link.close()
        else:
            self.engine.give_back(link)
