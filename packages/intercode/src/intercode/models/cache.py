"""A cache of completions on disk, keyed by the whole request."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from intercode.core.errors import ConfigError
from intercode.core.types import Usage
from intercode.models.base import Completion
from intercode.models.options import CacheMode
from intercode_sandbox.platforms.paths import cache_root

FORMAT_VERSION = 1
"""Raised when the form of a key or an entry changes; older entries are then not found."""

ZERO_USAGE = Usage(
    prompt_tokens=0, completion_tokens=0, cached_tokens=0, reasoning_tokens=0, cost=0.0
)
"""The usage of a completion that came from the cache."""

_BUSY_TIMEOUT = 60.0  # seconds to wait for another process that writes
_CREATE_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, made REAL, answer TEXT)"


def cache_key(request: Mapping[str, Any]) -> str:
    """Return the key under which the completion of a request is stored."""
    text = json.dumps([FORMAT_VERSION, request], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class CompletionCache:
    """A cache of completions in an SQLite file. It is safe with many threads and processes and
    survives ``kill -9``.

    ``path`` True means ``answers.sqlite`` in the package's cache directory. Only the owner can read
    the file. Raises ConfigError, now or at a later call, if the file cannot be used.
    """

    def __init__(self, path: bool | str | Path, mode: CacheMode = "use") -> None:
        self.path = cache_root() / "answers.sqlite" if path is True else Path(str(path))
        self.mode = mode
        self._open: tuple[int, sqlite3.Connection, threading.Lock] | None = None
        self._opening = threading.Lock()
        self._connection()

    def get(self, key: str) -> Completion | None:
        """Return the cached completion with zero usage, or None if there is none."""
        if self.mode == "refresh":
            return None
        connection, lock = self._connection()
        with lock, self._config_errors():
            row = connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        entry = json.loads(row[0])
        original_usage = Usage(**entry.pop("usage"))
        entry["calls"] = tuple(entry["calls"])
        return Completion(**entry, usage=ZERO_USAGE, cached=True, original_usage=original_usage)

    def put(self, key: str, completion: Completion) -> None:
        """Store a completion. Does nothing in the modes that only read."""
        if self.mode not in ("use", "refresh"):
            return
        entry = asdict(replace(completion, cached=False, original_usage=Usage()))
        del entry["cached"], entry["original_usage"]
        text = json.dumps(entry, default=str)
        connection, lock = self._connection()
        with lock, self._config_errors(), connection:
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, time.time(), text)
            )

    def close(self) -> None:
        """Close the file. May be called again; the next use reopens it."""
        with self._opening:
            opened, self._open = self._open, None
        if opened is not None and opened[0] == os.getpid():
            with opened[2]:
                opened[1].close()

    def _connection(self) -> tuple[sqlite3.Connection, threading.Lock]:
        """Return this process's connection and its lock: SQLite connections must not cross a
        fork."""
        opened = self._open
        if opened is None or opened[0] != os.getpid():
            with self._opening if opened is None else threading.Lock():
                opened = self._open = (os.getpid(), self._connect(), threading.Lock())
        return opened[1], opened[2]

    def _connect(self) -> sqlite3.Connection:
        with self._config_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))):
                pass
            connection = sqlite3.connect(
                self.path, timeout=_BUSY_TIMEOUT, check_same_thread=False, isolation_level=None
            )
            _use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_CREATE_TABLE)
        return connection

    @contextmanager
    def _config_errors(self) -> Iterator[None]:
        """Raise ConfigError if the file cannot be used: no later request would succeed either."""
        try:
            yield
        except (OSError, sqlite3.Error) as e:
            raise ConfigError(f"cannot use {self.path} as a cache of completions: {e}") from e


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Change the journal of a database. SQLite does not wait for other processes in this, whatever
    the time-out of the connection."""
    end = time.monotonic() + _BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.01)
