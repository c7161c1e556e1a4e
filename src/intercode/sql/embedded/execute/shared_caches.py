"""What all embedded engines of a process know together: built databases, translations, results."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from intercode.core.errors import DataError
from intercode.core.paths import cache_root
from intercode.sql.embedded.catalog.catalog import Catalog
from intercode.sql.embedded.compile.translation import Translations
from intercode.sql.embedded.execute.result_cache import Results
from intercode.sql.embedded.execute.translation_store import FOLDER, open_store
from intercode.sql.embedded.load.build import Built, built


class Shared:
    """For several threads."""

    def __init__(self) -> None:
        self.translations = Translations(open_store())
        self.results = Results()
        self._lock = threading.Lock()
        self._built: dict[tuple[Path, int, int], Built] = {}
        self._catalogs: dict[tuple[str, str], Catalog] = {}

    def data(self, path: Path) -> Built:
        """The databases of a dump. Raises DataError where it cannot be read or is no dump."""
        try:
            status = os.stat(path)
        except OSError as e:
            raise DataError(f"{path}: the dump cannot be read ({e.strerror})") from e
        key = (path, status.st_mtime_ns, status.st_size)
        found = self._built.get(key)
        if found is None:
            with self._lock:
                found = self._built[key] = self._built.get(key) or built(path)
        return found

    def alone(self, data: Built, name: str) -> Catalog:
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


@lru_cache(maxsize=4)
def _of(cache: Path, store: str | None) -> Shared:
    return Shared()


def shared() -> Shared:
    """That of this process, for the cache that it uses now."""
    return _of(cache_root(), os.environ.get(FOLDER))


if hasattr(os, "register_at_fork"):  # another thread may hold a lock of it at that moment
    os.register_at_fork(after_in_child=_of.cache_clear)
