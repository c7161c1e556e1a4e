"""The embedded engine: opens sessions on the databases of MySQL dumps."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from importlib.metadata import version as version_of
from typing import Any

from intercode_sql.base import MYSQL_DIALECT, SqlDeterminism, SqlLimits
from intercode_sql.embedded.execute.caches import shared_caches
from intercode_sql.embedded.execute.connection import ConnectionPool
from intercode_sql.embedded.execute.context import EmbeddedState, SavedState
from intercode_sql.embedded.execute.session import EmbeddedSession
from intercode_sql.embedded.functions.registry import OWN_MODULES
from intercode_sql.embedded.load.loader import BUILDER_VERSION, build_databases
from intercode_sql.errors import SqlDataError, SqlUsageError
from intercode_sql.types import DatabaseSpec
from intercode_sql.worker.guarded_session import LocalEngine

DIALECT_NAME = "MySQL 8.0"


class EmbeddedEngine(LocalEngine):
    """A ``LocalEngine`` on SQLite."""

    kind = "embedded"
    SETTINGS = frozenset({"determinism"})
    dialect = MYSQL_DIALECT
    modules = OWN_MODULES.keys()

    def __init__(self, *, bounded: bool, determinism: SqlDeterminism | None = None) -> None:
        super().__init__(bounded=bounded, determinism=determinism)
        self._pool = ConnectionPool(bounded)
        self._caches = shared_caches()

    @property
    def version(self) -> str:
        return (
            f"SQLite {sqlite3.sqlite_version} as {DIALECT_NAME} (sqlglot {version_of('sqlglot')})"
        )

    def metadata(self) -> Mapping[str, Any]:
        """Return the version of the builder of databases."""
        return {"builder": BUILDER_VERSION}

    def open(
        self,
        database: DatabaseSpec,
        limits: SqlLimits = SqlLimits(),  # noqa: B008
        saved: SavedState | None = None,
    ) -> EmbeddedSession:
        """Open a session on pristine data, or with a saved state. Raises SqlDataError and
        SqlUsageError as ``SqlEngine.open`` does."""
        if database.kind != "mysql-dump":
            raise SqlUsageError(
                f"the engine 'embedded' reads MySQL dumps, not {database.kind!r}: "
                "use engine=sqlite for SQLite files"
            )
        databases, name = (
            self._caches.databases_of(database.path, build_databases),
            database.name.lower(),
        )
        if name not in databases.catalog.databases:
            known = ", ".join(sorted(databases.catalog.databases)[:20])
            raise SqlDataError(f"{database.path}: no database {database.name!r} in it, but {known}")
        start = EmbeddedState(self._caches.single_database_catalog(databases, name), name)
        return EmbeddedSession(
            self._pool, self._caches, databases, start, limits, saved, self.determinism
        )

    def close(self) -> None:
        """Write the cached translations and close the idle connections. Open sessions stay
        usable."""
        self._caches.translations.flush()
        self._pool.close()
