"""What stood at a path of a box before its episode: read from the trees that it lies on."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from intercode.core.types import FileEntry
from intercode.sandbox.supervisor.runtime.overlay import is_opaque

MAX_FILE_BYTES = 64 << 10
"""Bytes of a file up to which its content is read."""
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class PathState(NamedTuple):
    """What stands at a path. ``data``: a file's content, None where it is not at hand."""

    entry: FileEntry
    data: bytes | None = None


def read_lower(roots: Sequence[str], path: str) -> PathState | None:
    """What the trees at ``roots``, the topmost first, hold at an absolute path; None for nothing,
    or nothing that this process may read. No link in them is followed."""
    *parents, name = path.strip("/").split("/")
    for root in roots:
        try:
            found = _read_in_tree(root, parents, name)
        except OSError:  # an unreadable one, and a parent that is no directory: it covers the rest
            return None
        if found is not None:
            return None if found.entry.kind == "gone" else found
    return None


def _read_in_tree(root: str, parents: Sequence[str], name: str) -> PathState | None:
    """What one tree holds; ``gone`` where it hides what the trees below hold."""
    at = os.open(root, _DIRECTORY_FLAGS)
    hides = False
    try:
        for part in parents:
            inner = os.open(part, _DIRECTORY_FLAGS, dir_fd=at)
            os.close(at)
            at = inner
            hides = hides or is_opaque(at)
        return _read_entry(name, at)
    except FileNotFoundError:
        return PathState(FileEntry("gone")) if hides else None
    finally:
        os.close(at)


def _read_entry(name: str, at: int) -> PathState:
    info = os.stat(name, dir_fd=at, follow_symlinks=False)
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        return PathState(FileEntry("gone"))
    if stat.S_ISLNK(info.st_mode):
        return PathState(FileEntry("link", mode, target=os.readlink(name, dir_fd=at)))
    if stat.S_ISDIR(info.st_mode):
        return PathState(FileEntry("dir", mode))
    if not stat.S_ISREG(info.st_mode):
        return PathState(FileEntry("fifo" if stat.S_ISFIFO(info.st_mode) else "device", mode))
    with open(os.open(name, _FILE_FLAGS, dir_fd=at), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        data = file.read(MAX_FILE_BYTES) if info.st_size <= MAX_FILE_BYTES else None
    return PathState(FileEntry("file", mode, info.st_size, digest), data)
