"""Files on every operating system: flags, locks, and whether they belong to numbered users."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO, Any

from intercode_sandbox.errors import DataError

O_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
O_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
"""Flags of ``os.open``, 0 where a system does not have them. Sandboxes run only where it does."""


def lock_file(file: int | IO[Any], *, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file until its descriptor and all copies of it are closed.

    Raises BlockingIOError if another process has locked it and ``wait`` is false. Does nothing on
    systems without these locks, which have no sandboxes of their own.
    """
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def has_user_ids() -> bool:
    """Return whether processes and files belong to numbered users."""
    return hasattr(os, "geteuid")


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as hex. Raises DataError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as e:  # the latter for a path with a NUL byte
        raise DataError(f"cannot read {path}: {getattr(e, 'strerror', e)}") from e
