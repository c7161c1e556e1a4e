"""What engines need of the operating system: a cache directory, locks of files, and forks."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from intercode_sql.errors import SqlUsageError


def _default_cache() -> Path:
    """Create the cache directory of this user and return it.

    It is ``INTERCODE_CACHE``, else ``/var/cache/intercode`` for root, else
    ``$XDG_CACHE_HOME/intercode`` or ``~/.cache/intercode``. Raises SqlUsageError if another user
    owns it or can write to it.
    """
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if chosen := os.environ.get("INTERCODE_CACHE"):
        path = Path(chosen).absolute()
    elif root:
        path = Path("/var/cache/intercode")
    else:
        home = os.environ.get("XDG_CACHE_HOME")
        path = (Path(home) if home else Path.home() / ".cache") / "intercode"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = path.stat()
    foreign = hasattr(os, "geteuid") and about.st_uid not in (0, os.geteuid())
    if foreign or (os.name == "posix" and about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        raise SqlUsageError(
            f"the cache {path} is not safe to use: other users can write to it. Set "
            "INTERCODE_CACHE to a directory of your own"
        )
    return path


_find_cache = _default_cache


def cache_root() -> Path:
    """Return the directory in which engines keep what they have built."""
    return _find_cache()


def use_cache(find: Callable[[], Path]) -> None:
    """Keep what engines build in the directory that a function returns, which checks it."""
    global _find_cache
    _find_cache = find


def lock_file(file: int | IO[Any], *, wait: bool = True) -> None:
    """Lock an open file until its descriptor and all copies of it are closed.

    Raises BlockingIOError if another process has locked it and ``wait`` is false. Does nothing on
    systems without these locks, on which no server is started.
    """
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def run_after_fork(action: Callable[[], Any]) -> None:
    """Run a function in every child that is forked from this process, where forks exist."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)


class ForkSafeLock:
    """A lock of a module, which is free in every forked child.

    The thread that holds it during the fork does not exist in the child and cannot release it.
    """

    def __init__(self) -> None:
        self._reset()
        run_after_fork(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
