"""The engine: sessions on built databases, and connections that wait for the next episode."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.core.types import DatabaseSpec
from intercode.sql.base import SqlLimits
from intercode.sql.embedded.execute.connection import EmbeddedConnection
from intercode.sql.embedded.execute.session import EmbeddedSession
from intercode.sql.embedded.execute.shared_caches import shared_caches
from intercode.sql.embedded.execute.state import EmbeddedState
from intercode.sql.embedded.load.build import BUILDER_VERSION, BuiltDatabases

DIALECT_NAME = "MySQL 8.0"
_MAX_IDLE_CONNECTIONS = 32
"""Connections that wait for another episode on the same data."""
_MIN_OPEN_CONNECTIONS = 8
"""Those that are opened before one gives up a database for another."""


class EmbeddedEngine:
    """See ``sessions.sql.base.SqlEngine``."""

    kind = "embedded"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle_connections: dict[str, list[EmbeddedConnection]] = {}
        self._shared = shared_caches()
        self.translations, self.results = self._shared.translations, self._shared.results

    @property
    def version(self) -> str:
        return (
            f"SQLite {sqlite3.sqlite_version} as {DIALECT_NAME} (sqlglot {version_of('sqlglot')})"
        )

    def metadata(self) -> Mapping[str, Any]:
        """What else a result has to name."""
        return {"builder": BUILDER_VERSION}

    def open(self, database: DatabaseSpec, limits: SqlLimits = SqlLimits()) -> EmbeddedSession:  # noqa: B008
        """A session on pristine data. Raises DataError and UsageError as the protocol says."""
        if database.kind != "mysql-dump":
            raise UsageError(
                f"the engine 'embedded' reads MySQL dumps, not {database.kind!r}: "
                "use engine='sqlite' for SQLite files"
            )
        found, name = self._shared.databases_of(database.path), database.name.lower()
        if name not in found.catalog.databases:
            known = ", ".join(sorted(found.catalog.databases)[:20])
            raise DataError(f"{database.path}: no database {database.name!r} in it, but {known}")
        return self.new_session(
            found, EmbeddedState(self._shared.single_database_catalog(found, name), name), limits
        )

    def new_session(
        self,
        data: BuiltDatabases,
        state: EmbeddedState,
        limits: SqlLimits,
        contents: Mapping[str, bytes | Path] | None = None,
    ) -> EmbeddedSession:
        """A session that begins with a state; ``contents``: of the databases that differ."""
        return EmbeddedSession(self, data, state, limits, contents)

    def take_connection(self, data: BuiltDatabases, database: str) -> EmbeddedConnection:
        """A connection to the pristine databases, first of all one that waits and has this one."""
        with self._lock:
            waiting = self._idle_connections.get(data.digest, [])
            for place in reversed(range(len(waiting))):
                if database in waiting[place].attached:
                    return waiting.pop(place)
            roomy = [n for n, link in enumerate(waiting) if link.can_attach]
            if roomy or len(waiting) >= _MIN_OPEN_CONNECTIONS:
                return waiting.pop(roomy[0] if roomy else 0)
        return EmbeddedConnection(data)

    def return_connection(self, link: EmbeddedConnection) -> None:
        """Take a connection that wrote nothing, for another episode."""
        with self._lock:
            waiting = self._idle_connections.setdefault(link.databases.digest, [])
            if len(waiting) < _MAX_IDLE_CONNECTIONS and not link.private_copies:
                waiting.append(link)
                return
        link.close()

    def close(self) -> None:
        """Close the connections that wait. Sessions that are open stay usable."""
        self.translations.flush()
        with self._lock:
            idle, self._idle_connections = self._idle_connections, {}
        for links in idle.values():
            for link in links:
                link.close()


def open_engine() -> EmbeddedEngine:
    """The engine ``embedded``."""
    return EmbeddedEngine()
