"""Reads paths of a sandbox as they were before its episode, from its image and layers."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from intercode.core.types import FileEntry
from intercode_sandbox.overlay_format import is_opaque
from intercode_sandbox.platforms.files import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK

MAX_FILE_BYTES = 64 << 10
"""The content of larger files is not read."""
_DIRECTORY_FLAGS = os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC


class PathState(NamedTuple):
    """The state of a path. ``data``: the content of a file, None if it is not available."""

    entry: FileEntry
    data: bytes | None = None


def read_lower(roots: Sequence[str], path: str) -> PathState | None:
    """Return the state of an absolute path in overlaid directory trees, the topmost first.

    Returns None if the path does not exist or this process must not read it. Follows no links.
    """
    *parents, name = path.strip("/").split("/")
    for root in roots:
        try:
            state = _read_in_tree(root, parents, name)
        except OSError:  # unreadable, or a parent that is not a directory and hides lower trees
            return None
        if state is not None:
            return None if state.entry.kind == "gone" else state
    return None


def _read_in_tree(root: str, parents: Sequence[str], name: str) -> PathState | None:
    """Return the state in one tree. ``gone``: the tree hides the path in the trees below it."""
    directory = os.open(root, _DIRECTORY_FLAGS)
    hides = False
    try:
        for part in parents:
            inner = os.open(part, _DIRECTORY_FLAGS, dir_fd=directory)
            os.close(directory)
            directory = inner
            hides = hides or is_opaque(directory)
        return _read_entry(name, directory)
    except FileNotFoundError:
        return PathState(FileEntry("gone")) if hides else None
    finally:
        os.close(directory)


def _read_entry(name: str, directory: int) -> PathState:
    info = os.stat(name, dir_fd=directory, follow_symlinks=False)
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        return PathState(FileEntry("gone"))
    if stat.S_ISLNK(info.st_mode):
        return PathState(FileEntry("link", mode, target=os.readlink(name, dir_fd=directory)))
    if stat.S_ISDIR(info.st_mode):
        return PathState(FileEntry("dir", mode))
    if not stat.S_ISREG(info.st_mode):
        return PathState(FileEntry("fifo" if stat.S_ISFIFO(info.st_mode) else "device", mode))
    with open(os.open(name, _FILE_FLAGS, dir_fd=directory), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        data = file.read(MAX_FILE_BYTES) if info.st_size <= MAX_FILE_BYTES else None
    return PathState(FileEntry("file", mode, info.st_size, digest), data)
