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

UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What the kernel says of a cache that somebody else made for us to read."""

_mine: dict[Path, tuple[int, set[str]]] = {}
"""By cache: this process's file, kept open and locked, and what stands in it."""
_guard = threading.Lock()


def _anew() -> None:
    """A fork may have happened while another thread held the lock."""
    global _guard
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_anew)


def hold(cache: Path, name: str) -> None:
    """From now until this process ends, and those it forks, nothing removes ``name``.

    ``name`` is a path in the cache (``layers/KEY``). Call it before looking whether it is there.
    """
    with _guard:
        known = _mine.get(cache)
        if known and name in known[1]:
            return
        try:
            with gate(cache, fcntl.LOCK_SH):
                if known is None:
                    _mine[cache] = known = (_enlist(cache / "users"), set())
                os.write(known[0], f"{name}\n".encode())
        except OSError as e:
            if e.errno not in UNWRITABLE:
                raise
            return  # a cache that this process cannot change is kept by those who can
        known[1].add(name)


def _enlist(users: Path) -> int:
    users.mkdir(exist_ok=True, mode=0o755)
    descriptor, _ = tempfile.mkstemp(dir=users)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@contextmanager
def gate(cache: Path, kind: int) -> Iterator[None]:
    """The lock between those who begin to use trees (shared) and who removes them (exclusive)."""
    cache.mkdir(parents=True, exist_ok=True, mode=0o755)
    with (cache / ".gate.lock").open("ab") as f:
        fcntl.flock(f, kind)
        yield


def in_use(cache: Path) -> set[str]:
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
