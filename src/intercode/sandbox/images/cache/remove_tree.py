"""Removing a tree that nobody vouches for: however deep it is, whatever its modes are."""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: Path) -> int:
    """Remove a directory and all that is in it, and tell how many bytes of the disk that gives
    back. No link is followed. Raises OSError.

    What lies deeper is moved up to the top first, as a path may be longer than the kernel takes,
    and a directory deeper than Python calls itself.
    """
    top, mark, moved, given = os.open(path, _DIRECTORY), uuid.uuid4().hex, 0, 0
    try:
        while names := os.listdir(top):
            for name in names:
                if not _is_directory(name, top):
                    given += _unlink(name, top)
                    continue
                inner = os.open(name, _DIRECTORY, dir_fd=top)
                try:
                    for below in os.listdir(inner):
                        if _is_directory(below, inner):
                            os.rename(below, f"{mark}{moved}", src_dir_fd=inner, dst_dir_fd=top)
                            moved += 1
                        else:
                            given += _unlink(below, inner)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path)
    return given


def _is_directory(name: str, at: int) -> bool:
    """Whether a name is a directory's; its owner may do all with it from now on."""
    info = os.stat(name, dir_fd=at, follow_symlinks=False)
    if stat.S_ISDIR(info.st_mode) and info.st_mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=at)
    return stat.S_ISDIR(info.st_mode)


def _unlink(name: str, at: int) -> int:
    """Remove what is no directory: the bytes that go with its last name."""
    info = os.stat(name, dir_fd=at, follow_symlinks=False)
    os.unlink(name, dir_fd=at)
    return info.st_blocks * 512 if info.st_nlink == 1 else 0
