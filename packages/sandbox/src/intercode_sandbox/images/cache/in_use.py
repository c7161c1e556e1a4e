"""Records which entries of the cache live processes use, to prevent their removal.

A process that uses an entry writes the entry's name into its own file under ``users`` and holds a
lock on that file until it ends. Pruning skips the entries in files that are still locked.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intercode_sandbox.platforms.files import lock_file
from intercode_sandbox.platforms.forks import ForkSafeLock

READ_ONLY_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors when writing to a cache that this process may only read."""
DATABASE_FOLDERS = ("families/sql", "sql", "variants")
"""Folders of drawn databases, of databases built from dumps, and of variants. A process that opens
databases uses these folders as a whole."""

_user_files: dict[Path, tuple[int, set[str]]] = {}
"""By cache: the descriptor of this process's locked file, and the names in the file."""
_mutex = ForkSafeLock()


def mark_in_use(cache: Path, name: str) -> None:
    """Prevent the removal of ``name`` until this process and its forks end.

    ``name`` is a path in the cache (``layers/KEY``). Call this before you test that it exists.
    """
    with _mutex:
        known = _user_files.get(cache)
        if known and name in known[1]:
            return
        try:
            with usage_lock(cache, shared=True):
                if known is None:
                    _user_files[cache] = known = (_create_user_file(cache / "users"), set())
                os.write(known[0], f"{name}\n".encode())
        except OSError as e:
            if e.errno not in READ_ONLY_ERRNOS:
                raise
            return  # left to processes that can write to this cache
        known[1].add(name)


def _create_user_file(users: Path) -> int:
    users.mkdir(exist_ok=True, mode=0o755)
    descriptor, _ = tempfile.mkstemp(dir=users)
    lock_file(descriptor)
    return descriptor


@contextmanager
def usage_lock(cache: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock that orders use and removal of entries: shared to use them."""
    cache.mkdir(parents=True, exist_ok=True, mode=0o755)
    with (cache / ".gate.lock").open("ab") as f:
        lock_file(f, shared=shared)
        yield


def paths_in_use(cache: Path) -> set[str]:
    """Return the entries that live processes use, this one included.

    Removes the files of processes that have ended. The caller holds the exclusive ``usage_lock``.
    """
    found: set[str] = set()
    for path in (cache / "users").glob("*"):
        with path.open("rb") as f:
            try:
                lock_file(f, wait=False)
            except BlockingIOError:
                found.update(f.read().decode().splitlines())
            else:
                path.unlink()
    return found
