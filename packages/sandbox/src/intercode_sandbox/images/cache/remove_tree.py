"""Removes untrusted directory trees of any depth and with any modes."""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path

from intercode_sandbox.platforms.files import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW

_DIRECTORY = os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC


def remove_tree(path: Path) -> int:
    """Remove a directory tree and return the freed bytes. Follows no link. Raises OSError.

    Nested directories are moved to the top first, because a path may be longer than the kernel
    allows, and the tree deeper than Python's recursion limit.
    """
    top, mark, moved, freed = os.open(path, _DIRECTORY), uuid.uuid4().hex, 0, 0
    try:
        while names := os.listdir(top):
            for name in names:
                if not _is_directory(name, top):
                    freed += _unlink(name, top)
                    continue
                inner = os.open(name, _DIRECTORY, dir_fd=top)
                try:
                    for child in os.listdir(inner):
                        if _is_directory(child, inner):
                            os.rename(child, f"{mark}{moved}", src_dir_fd=inner, dst_dir_fd=top)
                            moved += 1
                        else:
                            freed += _unlink(child, inner)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path)
    return freed


def _is_directory(name: str, at: int) -> bool:
    """Return whether a name is that of a directory, and give its owner all permissions on it."""
    info = os.stat(name, dir_fd=at, follow_symlinks=False)
    if stat.S_ISDIR(info.st_mode) and info.st_mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=at)
    return stat.S_ISDIR(info.st_mode)


def _unlink(name: str, at: int) -> int:
    """Remove a file or link; return the freed bytes, 0 if another hard link remains."""
    info = os.stat(name, dir_fd=at, follow_symlinks=False)
    os.unlink(name, dir_fd=at)
    return info.st_blocks * 512 if info.st_nlink == 1 else 0
