"""Translations on disk: what one process has read of MySQL's, the next need not.

One file in the user's cache for each version of the translator: its name is made of this code,
sqlglot, SQLite and Python, so that no other version's words are ever taken. A line is an entry:
a checksum, the digest of its key (dump, database, modes, text), and JSON. Processes append whole
lines and read what others have appended. It is a help only: a line that is broken, or a file that
others can write to, is passed over, and the statement translated anew.
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
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import version as version_of
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import sqlglot.parser

import intercode.sql
from intercode.core.paths import cache_root
from intercode.sql.dialect.errors import StatementError
from intercode.sql.embedded.catalog.types import Type
from intercode.sql.embedded.catalog.values import result_converter
from intercode.sql.embedded.compile.translation import Translation

DIRECTORY_VARIABLE = "INTERCODE_SQL_TRANSLATIONS"
"""An environment variable: the directory of these files; empty: nothing is kept."""
MAX_FILE_BYTES = 8 << 20
"""Bytes of a file; one that is larger is begun anew."""
MAX_ENTRY_CHARACTERS = 32 << 10
"""Characters of an entry; what is longer is worked out every time."""
_MAX_OLD_FILES = 3
_SOURCES = ("base.py", "deadline.py", "dialect", "embedded")
"""Files and folders of ``intercode.sql`` on which translations depend."""
_BATCH_SIZE = 32
"""Entries that are written at once."""
_MAX_TRANSLATIONS = 4096
"""Translations that a process keeps in memory."""


Key = tuple[str, str, Any, str]
"""A catalog's stamp, the database in use, sql_mode, a statement's text."""


Outcome = Translation | StatementError


class TranslationStore(Protocol):
    """What outlives the process."""

    def find(self, key: Key) -> Outcome | None:
        """What is kept under a key, if anything is."""
        ...

    def add(self, key: Key, value: Outcome) -> None:
        """Keep one."""
        ...

    def flush(self) -> None:
        """Let the next process have them."""
        ...


class TranslationCache:
    """Translations and errors by catalog, database, modes and text; those that last (of a pristine
    catalog, whose stamp means the same tomorrow) in a store too."""

    def __init__(self, store: TranslationStore) -> None:
        self._store = store
        self._entries: OrderedDict[Key, Outcome] = OrderedDict()

    def find(self, key: Key, lasting: bool) -> Translation | None:
        """What is kept. Raises the StatementError that was found before."""
        found = self._entries.get(key)
        if found is None and lasting:
            found = self._store.find(key)
            if found is not None:
                self._insert(key, found)
        if isinstance(found, StatementError):
            raise StatementError(found.number, found.message)
        return found

    def add(self, key: Key, value: Outcome, lasting: bool) -> None:
        """Keep one; the oldest makes room."""
        self._insert(key, value)
        if lasting:
            self._store.add(key, value)

    def flush(self) -> None:
        """Write down what lasts."""
        self._store.flush()

    def _insert(self, key: Key, value: Outcome) -> None:
        self._entries[key] = value
        while len(self._entries) > _MAX_TRANSLATIONS:
            try:
                self._entries.popitem(last=False)
            except KeyError:  # another thread was quicker
                return


class NoStore:
    """Keeps nothing."""

    def find(self, key: Key) -> Outcome | None:  # noqa: ARG002
        return None

    def add(self, key: Key, value: Outcome) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        """Nothing waits."""


class FileStore:
    """See above. For several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._lines: dict[bytes, tuple[bytes, bytes]] = {}
        self._pending: list[bytes] = []
        self._last_lookup: tuple[Key | None, bytes] = (
            None,
            b"",
        )  # what is kept was mostly asked for last
        self._inode, self._read_bytes = 0, 0  # its inode, and how far it was read

    @functools.cached_property
    def path(self) -> str:
        """The file of this version."""
        return str(self._folder / f"translations-{translator_digest()}")

    def find(self, key: Key) -> Outcome | None:
        """What is kept under a key, if anything sound is."""
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
        """Keep one, soon."""
        text = _ENCODE(_to_json(value)).encode()
        if len(text) > MAX_ENTRY_CHARACTERS:
            return
        asked, name = self._last_lookup
        name = name if asked is key else _key_digest(key)
        with self._lock:
            self._pending.append(b" ".join((_checksum(name, text), name, text)))
        if len(self._pending) >= _BATCH_SIZE:
            self.flush()

    def flush(self) -> None:
        """Append what waits."""
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
        """Read the lines that were appended since. Raises OSError where there is no file."""
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


def open_store() -> FileStore | NoStore:
    """The store of this user; none where there can be no such file."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    if chosen == "":
        return NoStore()
    try:
        folder = Path(chosen) if chosen else cache_root() / "sql" / "translations"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_private(folder.stat(), str(folder))
        return FileStore(folder)
    except OSError:
        return NoStore()


@functools.cache
def translator_digest() -> str:
    """A name for all that a translation depends on, but for its key."""
    digest = hashlib.sha256()
    kind = Path(sqlglot.parser.__file__).suffix
    for fact in (version_of("sqlglot"), kind, sqlite3.sqlite_version, sys.version):
        digest.update(f"{fact}\0".encode())
    root = Path(intercode.sql.__file__).parent
    for name in _SOURCES:
        source = root / name
        paths = [source] if source.suffix else sorted(source.rglob("*.py"))
        if not paths:
            raise FileNotFoundError(f"{source}: no sources of the translator are there")
        for path in paths:
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _require_private(status: os.stat_result, path: str) -> None:
    """Raises PermissionError for what others than this user can write to."""
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise PermissionError(f"others can write to {path}")


def _remove_old_files(path: Path) -> None:
    """Remove the files of other versions, but for the last ones."""
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


def _from_json(told: dict[str, Any]) -> Outcome:
    if "number" in told:
        return StatementError(told["number"], told["message"])
    types = tuple(_type_from_json(facts) for facts in told["types"])
    readers = tuple(result_converter(kind) for kind in types)
    return Translation(told["sql"], tuple(told["names"]), types, readers, frozenset(told["used"]))


def _type_from_json(facts: list[Any]) -> Type:
    known = dict(zip(_TYPE_FIELDS, facts, strict=True))
    return Type(**{**known, "words": tuple(known["words"])})


_: type[TranslationStore] = FileStore
