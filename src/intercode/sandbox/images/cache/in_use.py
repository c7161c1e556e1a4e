"""Which trees of the cache live processes use, so that nothing removes them meanwhile.

A process that uses a tree writes its name into a file of its own under ``users`` and keeps that
file locked until it ends, however it ends. Who removes trees looks which files are still locked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

READ_ONLY_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What the kernel says of a cache that somebody else made for us to read."""

_user_files: dict[Path, tuple[int, set[str]]] = {}
"""By cache: this process's file, kept open and locked, and what stands in it."""
_mutex = threading.Lock()


def _reset_after_fork() -> None:
    """A fork may have happened while another thread held the lock."""
    global _mutex
    _mutex = threading.Lock()


os.register_at_fork(after_in_child=_reset_after_fork)


def mark_in_use(cache: Path, name: str) -> None:
    """From now until this process ends, and those it forks, nothing removes ``name``.

    ``name`` is a path in the cache (``layers/KEY``). Call it before looking whether it is there.
    """
    with _mutex:
        known = _user_files.get(cache)
        if known and name in known[1]:
            return
        try:
            with usage_lock(cache, fcntl.LOCK_SH):
                if known is None:
                    _user_files[cache] = known = (_create_user_file(cache / "users"), set())
                os.write(known[0], f"{name}\n".encode())
        except OSError as e:
            if e.errno not in READ_ONLY_ERRNOS:
                raise
            return  # a cache that this process cannot change is kept by those who can
        known[1].add(name)


def _create_user_file(users: Path) -> int:
    users.mkdir(exist_ok=True, mode=0o755)
    descriptor, _ = tempfile.mkstemp(dir=users)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@contextmanager
def usage_lock(cache: Path, kind: int) -> Iterator[None]:
    """The lock between those who begin to use trees (shared) and who removes them (exclusive)."""
    cache.mkdir(parents=True, exist_ok=True, mode=0o755)
    with (cache / ".gate.lock").open("ab") as f:
        fcntl.flock(f, kind)
        yield


def paths_in_use(cache: Path) -> set[str]:
    """What live processes use, this one too. Call it behind the exclusive ``gate``.

    Files of processes that have ended are removed.
    """
    found: set[str] = set()
    for path in (cache / "users").glob("*"):
        with path.open("rb") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.update(f.read().decode().splitlines())
            else:
                path.unlink()
    return found
