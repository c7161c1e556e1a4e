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
from intercode.sql.embedded.execute.connection import Link
from intercode.sql.embedded.execute.session import EmbeddedSession
from intercode.sql.embedded.execute.shared_caches import shared
from intercode.sql.embedded.execute.state import State
from intercode.sql.embedded.load.build import BUILDER, Built

DIALECT = "MySQL 8.0"
_IDLE = 32
"""Connections that wait for another episode on the same data."""
_WARM = 8
"""Those that are opened before one gives up a database for another."""


class EmbeddedEngine:
    """See ``sessions.sql.base.SqlEngine``."""

    kind = "embedded"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, list[Link]] = {}
        self._shared = shared()
        self.translations, self.results = self._shared.translations, self._shared.results

    @property
    def version(self) -> str:
        return f"SQLite {sqlite3.sqlite_version} as {DIALECT} (sqlglot {version_of('sqlglot')})"

    def facts(self) -> Mapping[str, Any]:
        """What else a result has to name."""
        return {"builder": BUILDER}

    def open(self, database: DatabaseSpec, limits: SqlLimits = SqlLimits()) -> EmbeddedSession:  # noqa: B008
        """A session on pristine data. Raises DataError and UsageError as the protocol says."""
        if database.kind != "mysql-dump":
            raise UsageError(
                f"the engine 'embedded' reads MySQL dumps, not {database.kind!r}: "
                "use engine='sqlite' for SQLite files"
            )
        found, name = self._shared.data(database.path), database.name.lower()
        if name not in found.catalog.databases:
            known = ", ".join(sorted(found.catalog.databases)[:20])
            raise DataError(f"{database.path}: no database {database.name!r} in it, but {known}")
        return self.session(found, State(self._shared.alone(found, name), name), limits)

    def session(
        self,
        data: Built,
        state: State,
        limits: SqlLimits,
        contents: Mapping[str, bytes | Path] | None = None,
    ) -> EmbeddedSession:
        """A session that begins with a state; ``contents``: of the databases that differ."""
        return EmbeddedSession(self, data, state, limits, contents)

    def link(self, data: Built, database: str) -> Link:
        """A connection to the pristine databases, first of all one that waits and has this one."""
        with self._lock:
            waiting = self._idle.get(data.digest, [])
            for place in reversed(range(len(waiting))):
                if database in waiting[place].attached:
                    return waiting.pop(place)
            roomy = [n for n, link in enumerate(waiting) if link.roomy]
            if roomy or len(waiting) >= _WARM:
                return waiting.pop(roomy[0] if roomy else 0)
        return Link(data)

    def give_back(self, link: Link) -> None:
        """Take a connection that wrote nothing, for another episode."""
        with self._lock:
            waiting = self._idle.setdefault(link.built.digest, [])
            if len(waiting) < _IDLE and not link.own:
                waiting.append(link)
                return
        link.close()

    def close(self) -> None:
        """Close the connections that wait. Sessions that are open stay usable."""
        self.translations.flush()
        with self._lock:
            idle, self._idle = self._idle, {}
        for links in idle.values():
            for link in links:
                link.close()


def open_engine() -> EmbeddedEngine:
    """The engine ``embedded``."""
    return EmbeddedEngine()
