"""Caches that all embedded engines of a process share: databases, translations and results."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from intercode_sql.base import SqlLimits
from intercode_sql.embedded.catalog.built import BuiltDatabases
from intercode_sql.embedded.catalog.catalog import Catalog
from intercode_sql.embedded.execute.translation_store import (
    DIRECTORY_VARIABLE,
    TranslationCache,
    open_store,
)
from intercode_sql.errors import SqlDataError
from intercode_sql.host import cache_root, run_after_fork
from intercode_sql.types import ExecResult

MAX_DATABASES = 512
"""Limit of the dumps whose descriptions are kept. Every task of a family may have its own."""


class SharedCaches:
    """The caches of a process. Safe for several threads."""

    def __init__(self) -> None:
        self.translations = TranslationCache(open_store())
        self.results = ResultCache()
        self._lock = threading.Lock()
        self._databases: dict[tuple[Path, int, int], BuiltDatabases] = {}
        self._catalogs: dict[tuple[str, str], Catalog] = {}

    def databases_of(self, path: Path, build: Callable[[Path], BuiltDatabases]) -> BuiltDatabases:
        """Return the databases of a dump, which ``build`` builds unless they are known. Raises
        SqlDataError if it is unreadable or no dump."""
        try:
            status = os.stat(path)
        except OSError as e:
            raise SqlDataError(f"{path}: the dump cannot be read ({e.strerror})") from e
        key = (path, status.st_mtime_ns, status.st_size)
        found = self._databases.get(key)
        if found is None:
            with self._lock:
                found = self._databases[key] = self._databases.get(key) or build(path)
                _drop_oldest(self._databases)
        return found

    def single_database_catalog(self, data: BuiltDatabases, name: str) -> Catalog:
        """Return the catalog with one database only. A session sees no other."""
        key = (data.digest, name)
        found = self._catalogs.get(key)
        if found is None:
            catalog = data.catalog
            found = replace(
                catalog, databases={name: catalog.databases[name]}, stamp=f"{data.digest}/{name}"
            )
            with self._lock:
                self._catalogs[key] = found
                _drop_oldest(self._catalogs)
        return found


def _drop_oldest(entries: dict[Any, Any]) -> None:
    while len(entries) > MAX_DATABASES:
        del entries[next(iter(entries))]


@lru_cache(maxsize=4)
def _caches_for(cache: Path, store: str | None) -> SharedCaches:
    return SharedCaches()


def shared_caches() -> SharedCaches:
    """Return the caches of this process for the current cache directory."""
    return _caches_for(cache_root(), os.environ.get(DIRECTORY_VARIABLE))


run_after_fork(_caches_for.cache_clear)  # another thread may hold a lock during the fork


# ---------------------------------------------------------------- results
MAX_TOTAL_CHARACTERS = 32 << 20
"""Limit of all cached results together, in characters of output."""
MAX_RESULT_CHARACTERS = 256 << 10
"""Limit of one cached result, in characters of output."""


class ResultCache:
    """The most recently used results of queries on pristine data, which do not change.

    A gold is executed in every episode of its task, often right after the same statement of the
    agent. Safe for several threads.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[tuple[Any, ...], ExecResult] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, key: tuple[Any, ...], limits: SqlLimits) -> ExecResult | None:
        """Return the cached result of a query under these limits, or None."""
        with self._lock:
            found = self._results.get((limits, *key))
            if found is not None:
                self._results.move_to_end((limits, *key))
            return found

    def add(self, key: tuple[Any, ...], limits: SqlLimits, result: ExecResult) -> None:
        """Add a result. The least recently used ones are removed."""
        size = len(result.output)
        if size > MAX_RESULT_CHARACTERS:
            return
        with self._lock:
            if (limits, *key) in self._results:
                return
            self._results[(limits, *key)] = result
            self._size += size
            while self._size > MAX_TOTAL_CHARACTERS:
                _, gone = self._results.popitem(last=False)
                self._size -= len(gone.output)
