"""The engine: built databases, translations, and connections that wait for the next episode."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from intercode.errors import DataError, UsageError
from intercode.sessions.sql.base import SqlLimits
from intercode.sessions.sql.embedded.building import BUILDER, Built, built
from intercode.sessions.sql.embedded.catalog import Catalog
from intercode.sessions.sql.embedded.links import Link
from intercode.sessions.sql.embedded.results import Results
from intercode.sessions.sql.embedded.session import EmbeddedSession, State
from intercode.sessions.sql.embedded.translating import Translations
from intercode.types import DatabaseSpec

DIALECT = "MySQL 8.0"
_IDLE = 32
"""Connections that wait for another episode on the same data."""


class EmbeddedEngine:
    """See ``sessions.sql.base.SqlEngine``."""

    kind = "embedded"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._built: OrderedDict[tuple[Path, int, int], Built] = OrderedDict()
        self._catalogs: dict[tuple[str, str], Catalog] = {}
        self._idle: dict[str, list[Link]] = {}
        self.translations = Translations()
        self.results = Results()

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
        found = self._data(database.path)
        if database.name.lower() not in found.catalog.databases:
            known = ", ".join(sorted(found.catalog.databases)[:20])
            raise DataError(f"{database.path}: no database {database.name!r} in it, but {known}")
        state = State(self._alone(found, database.name.lower()), database.name.lower())
        return EmbeddedSession(self, self.link(found), state, limits)

    def _alone(self, data: Built, name: str) -> Catalog:
        """The catalog with that database alone: an episode sees no other."""
        key = (data.digest, name)
        found = self._catalogs.get(key)
        if found is None:
            whole = data.catalog
            found = replace(
                whole, databases={name: whole.databases[name]}, stamp=f"{data.digest}/{name}"
            )
            self._catalogs[key] = found
        return found

    def _data(self, path: Path) -> Built:
        try:
            status = path.stat()
        except OSError as e:
            raise DataError(f"{path}: the dump cannot be read ({e.strerror})") from e
        key = (path, status.st_mtime_ns, status.st_size)
        with self._lock:
            found = self._built.get(key)
        if found is None:
            found = built(path)
            with self._lock:
                self._built[key] = found
        return found

    def link(self, data: Built) -> Link:
        """A connection to the pristine databases, a used one where one waits."""
        with self._lock:
            waiting = self._idle.get(data.digest)
            if waiting:
                return waiting.pop()
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
        with self._lock:
            idle, self._idle = self._idle, {}
        for links in idle.values():
            for link in links:
                link.close()


def open_engine() -> EmbeddedEngine:
    """The engine ``embedded``."""
    return EmbeddedEngine()
