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
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import version as version_of
from operator import attrgetter
from pathlib import Path
from typing import Any

import sqlglot.parser

from intercode.core.paths import cache_root
from intercode.sql.dialect.errors import StatementError
from intercode.sql.embedded.catalog.result_values import reader
from intercode.sql.embedded.catalog.types import Type
from intercode.sql.embedded.compile.translation import Key, Outcome, Store, Translation

FOLDER = "INTERCODE_SQL_TRANSLATIONS"
"""An environment variable: the directory of these files; empty: nothing is kept."""
MOST = 8 << 20
"""Bytes of a file; one that is larger is begun anew."""
LONGEST = 32 << 10
"""Characters of an entry; what is longer is worked out every time."""
_VERSIONS = 3
_TOGETHER = 32
"""Entries that are written at once."""


class NoStore:
    """Keeps nothing."""

    def find(self, key: Key) -> Outcome | None:  # noqa: ARG002
        return None

    def keep(self, key: Key, value: Outcome) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        """Nothing waits."""


class FileStore:
    """See above. For several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._lines: dict[bytes, tuple[bytes, bytes]] = {}
        self._waiting: list[bytes] = []
        self._asked: tuple[Key | None, bytes] = None, b""  # what is kept was mostly asked for last
        self._file, self._read = 0, 0  # its inode, and how far it was read

    @functools.cached_property
    def path(self) -> str:
        """The file of this version."""
        return str(self._folder / f"translations-{translator()}")

    def find(self, key: Key) -> Outcome | None:
        """What is kept under a key, if anything sound is."""
        name = _digest(key)
        self._asked = key, name
        line = self._lines.get(name)
        if line is None:
            with self._lock, suppress(OSError):
                self._catch_up()
            line = self._lines.get(name)
        if line is None or line[0] != _checksum(name, line[1]):
            return None
        with suppress(ValueError, TypeError, KeyError, IndexError):
            return _outcome(json.loads(line[1]))
        return None

    def keep(self, key: Key, value: Outcome) -> None:
        """Keep one, soon."""
        text = _ENCODE(_told(value)).encode()
        if len(text) > LONGEST:
            return
        asked, name = self._asked
        name = name if asked is key else _digest(key)
        with self._lock:
            self._waiting.append(b" ".join((_checksum(name, text), name, text)))
        if len(self._waiting) >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Append what waits."""
        with self._lock:
            lines, self._waiting = self._waiting, []
            if lines:
                with suppress(OSError):
                    self._append(b"\n" + b"\n".join(lines) + b"\n")

    def _append(self, text: bytes) -> None:
        new = not os.path.exists(self.path)
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            _require_ours(os.fstat(fd), self.path)
            if os.fstat(fd).st_size > MOST:
                os.unlink(self.path)
                return
            os.write(fd, text)
        finally:
            os.close(fd)
        if new:
            _forget_others(Path(self.path))

    def _catch_up(self) -> None:
        """Read the lines that were appended since. Raises OSError where there is no file."""
        status = os.stat(self.path)
        if (status.st_ino, status.st_size) == (self._file, self._read):
            return
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            _require_ours(status, self.path)
            if status.st_ino != self._file or status.st_size < self._read:
                self._lines, self._file, self._read = {}, status.st_ino, 0
            file.seek(self._read)
            text = file.read(2 * MOST)
        self._read += len(text)
        for line in text.split(b"\n"):
            parts = line.split(b" ", 2)
            if len(parts) == 3:
                self._lines[parts[1]] = (parts[0], parts[2])


def open_store() -> FileStore | NoStore:
    """The store of this user; none where there can be no such file."""
    chosen = os.environ.get(FOLDER)
    if chosen == "":
        return NoStore()
    try:
        folder = Path(chosen) if chosen else cache_root() / "sql" / "translations"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _require_ours(folder.stat(), str(folder))
        return FileStore(folder)
    except OSError:
        return NoStore()


@functools.cache
def translator() -> str:
    """A name for all that a translation depends on, but for its key."""
    digest = hashlib.sha256()
    kind = Path(sqlglot.parser.__file__).suffix
    for fact in (version_of("sqlglot"), kind, sqlite3.sqlite_version, sys.version):
        digest.update(f"{fact}\0".encode())
    root = Path(__file__).parents[2]
    for path in sorted(
        [*root.glob("*.py"), *root.glob("dialect/*.py"), *root.glob("embedded/**/*.py")]
    ):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _require_ours(status: os.stat_result, path: str) -> None:
    """Raises PermissionError for what others than this user can write to."""
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise PermissionError(f"others can write to {path}")


def _forget_others(path: Path) -> None:
    """Remove the files of other versions, but for the last ones."""
    with suppress(OSError):
        others = set(path.parent.glob("translations-*")) - {path}
        for old in sorted(others, key=lambda p: p.stat().st_mtime)[: -_VERSIONS or None]:
            old.unlink(missing_ok=True)


# ---------------------------------------------------------------- entries
_NAMES = tuple(field.name for field in fields(Type))
_FACTS = attrgetter(*_NAMES)
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


def _digest(key: Key) -> bytes:
    return hashlib.sha256(repr(key).encode()).hexdigest().encode()


def _checksum(name: bytes, text: bytes) -> bytes:
    return hashlib.sha256(name + text).hexdigest()[:32].encode()


def _told(value: Outcome) -> dict[str, Any]:
    if isinstance(value, StatementError):
        return {"number": value.number, "message": value.message}
    types = [_FACTS(kind) for kind in value.types]
    return {"sql": value.sql, "names": value.names, "types": types, "used": sorted(value.used)}


def _outcome(told: dict[str, Any]) -> Outcome:
    if "number" in told:
        return StatementError(told["number"], told["message"])
    types = tuple(_type(facts) for facts in told["types"])
    readers = tuple(reader(kind) for kind in types)
    return Translation(told["sql"], tuple(told["names"]), types, readers, frozenset(told["used"]))


def _type(facts: list[Any]) -> Type:
    known = dict(zip(_NAMES, facts, strict=True))
    return Type(**{**known, "words": tuple(known["words"])})


_: type[Store] = FileStore
