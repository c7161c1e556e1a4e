"""The caches of all sessions: translations, in memory and on disk, results and databases.

There is one SQLite file of translations per version of the translator in the user's cache. Its name
contains a digest of this code, sqlglot, SQLite and Python, so that translations of other versions
are never used. An entry is the digest of its key (dump, database, modes, text), JSON and a
checksum. Broken entries, and directories that other users can write to, are ignored.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sqlite3
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import lru_cache
from importlib.metadata import version as version_of
from operator import attrgetter
from pathlib import Path
from typing import Any

import sqlglot.parser

import intercode_sql
from intercode_sql.base import SqlLimits
from intercode_sql.dialect.errors import StatementError
from intercode_sql.embedded.catalog.catalog import BuiltDatabases, Catalog
from intercode_sql.embedded.catalog.types import Type, tuples
from intercode_sql.embedded.catalog.values import result_converter
from intercode_sql.embedded.compile.translation import Translation
from intercode_sql.errors import SqlDataError
from intercode_sql.host import cache_root, run_after_fork
from intercode_sql.types import ExecResult

DIRECTORY_VARIABLE = "INTERCODE_SQL_TRANSLATIONS"
"""Environment variable: the directory of these files. If it is empty, nothing is stored."""
MAX_ENTRIES = 10_000
"""Limit of the entries of a file. The oldest ones are removed when it is opened."""
MAX_ENTRY_CHARACTERS = 16 << 10
"""Limit of an entry in characters. Longer ones are not stored."""
_LOCK_SECONDS = 1.0
"""How long a process waits for another one that writes."""
_MAX_OLD_FILES = 3
_SOURCES = ("base.py", "dialect", "embedded")
"""Files and folders of ``intercode_sql`` on which translations depend."""
_MAX_TRANSLATIONS = 4096
"""Limit of translations in memory."""


Key = tuple[str, str, Any, str]
"""The catalog's stamp, the default database, sql_mode and the text of the statement."""


Outcome = Translation | StatementError


class TranslationCache:
    """Translations and errors by key. ``persistent`` ones are also in a store, because the stamp of
    a pristine catalog has the same meaning in every process."""

    def __init__(self, store: TranslationStore | None) -> None:
        self._store = store
        self._entries: OrderedDict[Key, Outcome] = OrderedDict()

    def find(self, key: Key, lasting: bool) -> Translation | None:
        """Return the translation of a key, or None. Raises the StatementError that is cached."""
        found = self._entries.get(key)
        if found is None and lasting and self._store is not None:
            found = self._store.find(key)
            if found is not None:
                self._insert(key, found)
        if isinstance(found, StatementError):
            raise StatementError(found.number, found.message)
        return found

    def add(self, key: Key, value: Outcome, lasting: bool) -> None:
        """Add an entry. The oldest ones are removed."""
        self._insert(key, value)
        if lasting and self._store is not None:
            self._store.add(key, value)

    def _insert(self, key: Key, value: Outcome) -> None:
        self._entries[key] = value
        while len(self._entries) > _MAX_TRANSLATIONS:
            self._entries.popitem(last=False)


class TranslationStore:
    """Translations in an SQLite file that processes share. Safe for several threads.

    A process does not use a file any more that has failed once, such as one that stays locked.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = sqlite3.connect(
            path, _LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._execute("PRAGMA synchronous = OFF")
        self._execute(
            "CREATE TABLE IF NOT EXISTS translation "
            "(number INTEGER PRIMARY KEY, key BLOB UNIQUE, value TEXT, checksum BLOB)"
        )
        last = "(SELECT max(number) FROM translation)"
        self._execute(f"DELETE FROM translation WHERE number <= {last} - ?", MAX_ENTRIES)

    def find(self, key: Key) -> Outcome | None:
        """Return the entry of a key, or None if there is none or it is broken."""
        name = _key_digest(key)
        found = self._execute("SELECT value, checksum FROM translation WHERE key = ?", name)
        for value, checksum in found:
            if checksum == _checksum(name, value):
                return _from_json(json.loads(value))
        return None

    def add(self, key: Key, value: Outcome) -> None:
        """Add an entry."""
        name, text = _key_digest(key), _ENCODE(_to_json(value))
        if len(text) <= MAX_ENTRY_CHARACTERS:
            self._execute(
                "REPLACE INTO translation (key, value, checksum) VALUES (?, ?, ?)",
                name,
                text,
                _checksum(name, text),
            )

    def _execute(self, code: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            if self._file is not None:
                try:
                    return self._file.execute(code, values).fetchall()
                except sqlite3.Error:
                    self._file = None
            return []


def open_store() -> TranslationStore | None:
    """Open the store of this user. Return None if no file can be used."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen == "":
        return None
    with suppress(OSError, sqlite3.Error):
        folder = Path(chosen) if chosen else cache_root() / "sql" / "translations"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
        own = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
        if own and (os.name != "posix" or not about.st_mode & 0o022):
            path = folder / f"translations-{translator_digest()}"
            _remove_old_files(path)
            return TranslationStore(path)
    return None


@functools.cache
def translator_digest() -> str:
    """Return a digest of everything that translations depend on, apart from their keys.

    Raises FileNotFoundError if sources are missing.
    """
    digest = hashlib.sha256()
    kind = Path(sqlglot.parser.__file__).suffix
    for fact in (version_of("sqlglot"), kind, sqlite3.sqlite_version, sys.version):
        digest.update(f"{fact}\0".encode())
    root = Path(intercode_sql.__file__).parent
    for name in _SOURCES:
        source = root / name
        paths = [source] if source.suffix else sorted(source.rglob("*.py"))
        if not paths:
            raise FileNotFoundError(f"{source}: the sources of the translator are missing")
        for path in paths:
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _remove_old_files(path: Path) -> None:
    """Delete the files of all but the most recent other versions."""
    others = [p for p in path.parent.glob("translations-*") if not p.name.startswith(path.name)]
    for old in sorted(others, key=lambda p: p.stat().st_mtime)[:-_MAX_OLD_FILES]:
        old.unlink(missing_ok=True)


# ---------------------------------------------------------------- entries
_TYPE_FIELDS = tuple(field.name for field in fields(Type))
_type_values = attrgetter(*_TYPE_FIELDS)
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


def _key_digest(key: Key) -> bytes:
    return hashlib.sha256(repr(key).encode()).digest()


def _checksum(name: bytes, text: str) -> bytes:
    return hashlib.sha256(name + text.encode()).digest()


def _to_json(value: Outcome) -> dict[str, Any]:
    if isinstance(value, StatementError):
        return {"number": value.number, "message": value.message}
    types = [_type_values(kind) for kind in value.types]
    return {"sql": value.sql, "names": value.names, "types": types, "used": sorted(value.databases)}


def _from_json(record: dict[str, Any]) -> Outcome:
    if "number" in record:
        return StatementError(record["number"], record["message"])
    types = tuple(Type(*tuples(values)) for values in record["types"])
    readers = tuple(result_converter(kind) for kind in types)
    return Translation(
        record["sql"], tuple(record["names"]), types, readers, frozenset(record["used"])
    )


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
