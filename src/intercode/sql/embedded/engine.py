"""The embedded engine: opens sessions on the databases of MySQL dumps."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from importlib.metadata import version as version_of
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.core.types import DatabaseSpec
from intercode.sql.base import SqlLimits
from intercode.sql.embedded.execute.connection import ConnectionPool
from intercode.sql.embedded.execute.session import EmbeddedSession
from intercode.sql.embedded.execute.shared_caches import shared_caches
from intercode.sql.embedded.execute.state import EmbeddedState
from intercode.sql.embedded.load.build import BUILDER_VERSION

DIALECT_NAME = "MySQL 8.0"


class EmbeddedEngine:
    """An ``SqlEngine`` on SQLite."""

    kind = "embedded"

    def __init__(self) -> None:
        self._pool = ConnectionPool()
        self._caches = shared_caches()

    @property
    def version(self) -> str:
        return (
            f"SQLite {sqlite3.sqlite_version} as {DIALECT_NAME} (sqlglot {version_of('sqlglot')})"
        )

    def metadata(self) -> Mapping[str, Any]:
        """Return the version of the builder of databases."""
        return {"builder": BUILDER_VERSION}

    def open(self, database: DatabaseSpec, limits: SqlLimits = SqlLimits()) -> EmbeddedSession:  # noqa: B008
        """Open a session on pristine data. Raises DataError and UsageError as ``SqlEngine.open``
        does."""
        if database.kind != "mysql-dump":
            raise UsageError(
                f"the engine 'embedded' reads MySQL dumps, not {database.kind!r}: "
                "use engine='sqlite' for SQLite files"
            )
        databases, name = self._caches.databases_of(database.path), database.name.lower()
        if name not in databases.catalog.databases:
            known = ", ".join(sorted(databases.catalog.databases)[:20])
            raise DataError(f"{database.path}: no database {database.name!r} in it, but {known}")
        state = EmbeddedState(self._caches.single_database_catalog(databases, name), name)
        return EmbeddedSession(self._pool, self._caches, databases, state, limits)

    def close(self) -> None:
        """Write the cached translations and close the idle connections. Open sessions stay
        usable."""
        self._caches.translations.flush()
        self._pool.close()


def open_engine() -> EmbeddedEngine:
    """Open the engine ``embedded``."""
    return EmbeddedEngine()
