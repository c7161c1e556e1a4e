"""The caches of all sessions: translations, in memory and on disk, results and databases.

There is one file of translations per version of the translator in the user's cache. Its name
contains a digest of this code, sqlglot, SQLite and Python, so that translations of other versions
are never used. Each line is an entry: a checksum, the digest of its key (dump, database, modes,
text), and JSON. Processes append whole lines and read those that others have appended. Broken
lines, and files that other users can write to, are ignored.
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
MAX_FILE_BYTES = 8 << 20
"""Limit of a file in bytes. A larger one is deleted and started again."""
MAX_ENTRY_CHARACTERS = 32 << 10
"""Limit of an entry in characters. Longer ones are not stored."""
_MAX_OLD_FILES = 3
_SOURCES = ("base.py", "dialect", "embedded")
"""Files and folders of ``intercode_sql`` on which translations depend."""
_BATCH_SIZE = 32
"""Number of entries that are written together."""
_MAX_TRANSLATIONS = 4096
"""Limit of translations in memory."""


Key = tuple[str, str, Any, str]
"""The catalog's stamp, the default database, sql_mode and the text of the statement."""


Outcome = Translation | StatementError


class TranslationCache:
    """Translations and errors by key. ``persistent`` ones are also in a store, because the stamp of
    a pristine catalog has the same meaning in every process."""

    def __init__(self, store: FileStore | None) -> None:
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

    def flush(self) -> None:
        """Write pending entries to the store."""
        if self._store is not None:
            self._store.flush()

    def _insert(self, key: Key, value: Outcome) -> None:
        self._entries[key] = value
        while len(self._entries) > _MAX_TRANSLATIONS:
            self._entries.popitem(last=False)


class FileStore:
    """A store in a file. Safe for several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._lines: dict[bytes, tuple[bytes, bytes]] = {}
        self._pending: list[bytes] = []
        self._last_lookup: tuple[Key | None, bytes] = (
            None,
            b"",
        )  # a key is usually looked up before it is added
        self._inode, self._read_bytes = 0, 0  # the inode of the file, and how many bytes were read

    @functools.cached_property
    def path(self) -> str:
        """The file of this version of the translator."""
        return str(self._folder / f"translations-{translator_digest()}")

    def find(self, key: Key) -> Outcome | None:
        """Return the entry of a key, or None if there is none or it is broken."""
        name = _key_digest(key)
        self._last_lookup = key, name
        line = self._lines.get(name)
        if line is None:
            with self._lock, suppress(OSError):
                self._read_new_lines()
            line = self._lines.get(name)
        if line is None or line[0] != _checksum(name, line[1]):
            return None
        with suppress(ValueError, TypeError, KeyError, IndexError):
            return _from_json(json.loads(line[1]))
        return None

    def add(self, key: Key, value: Outcome) -> None:
        """Add an entry. It is written with the next batch."""
        text = _ENCODE(_to_json(value)).encode()
        if len(text) > MAX_ENTRY_CHARACTERS:
            return
        last_key, name = self._last_lookup
        name = name if last_key is key else _key_digest(key)
        with self._lock:
            self._pending.append(b" ".join((_checksum(name, text), name, text)))
        if len(self._pending) >= _BATCH_SIZE:
            self.flush()

    def flush(self) -> None:
        """Append the pending entries to the file."""
        with self._lock:
            lines, self._pending = self._pending, []
            if lines:
                with suppress(OSError):
                    self._append(b"\n" + b"\n".join(lines) + b"\n")

    def _append(self, text: bytes) -> None:
        new = not os.path.exists(self.path)
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            _require_private(os.fstat(fd), self.path)
            if os.fstat(fd).st_size > MAX_FILE_BYTES:
                os.unlink(self.path)
                return
            os.write(fd, text)
        finally:
            os.close(fd)
        if new:
            _remove_old_files(Path(self.path))

    def _read_new_lines(self) -> None:
        """Read the lines that were appended since the last call. Raises OSError if there is no
        file."""
        status = os.stat(self.path)
        if (status.st_ino, status.st_size) == (self._inode, self._read_bytes):
            return
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            _require_private(status, self.path)
            if status.st_ino != self._inode or status.st_size < self._read_bytes:
                self._lines, self._inode, self._read_bytes = {}, status.st_ino, 0
            file.seek(self._read_bytes)
            text = file.read(2 * MAX_FILE_BYTES)
        self._read_bytes += len(text)
        for line in text.split(b"\n"):
            parts = line.split(b" ", 2)
            if len(parts) == 3:
                self._lines[parts[1]] = (parts[0], parts[2])


def open_store() -> FileStore | None:
    """Open the store of this user. Return None if no file can be used."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen == "":
        return None
    try:
        folder = Path(chosen) if chosen else cache_root() / "sql" / "translations"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(folder.stat(), str(folder))
        return FileStore(folder)
    except OSError:
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


def _require_private(status: os.stat_result, path: str) -> None:
    """Raise PermissionError for a file that other users can write to."""
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise PermissionError(f"others can write to {path}")


def _remove_old_files(path: Path) -> None:
    """Delete the files of all but the most recent other versions."""
    with suppress(OSError):
        others = set(path.parent.glob("translations-*")) - {path}
        for old in sorted(others, key=lambda p: p.stat().st_mtime)[: -_MAX_OLD_FILES or None]:
            old.unlink(missing_ok=True)


# ---------------------------------------------------------------- entries
_TYPE_FIELDS = tuple(field.name for field in fields(Type))
_type_values = attrgetter(*_TYPE_FIELDS)
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


def _key_digest(key: Key) -> bytes:
    return hashlib.sha256(repr(key).encode()).hexdigest().encode()


def _checksum(name: bytes, text: bytes) -> bytes:
    return hashlib.sha256(name + text).hexdigest()[:32].encode()


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
