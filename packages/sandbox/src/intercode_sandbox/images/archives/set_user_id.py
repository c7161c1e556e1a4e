"""Set-user-ID programs of images.

The files of images belong to users of this machine, so a set-user-ID bit would give every user of
the machine the rights of the owner. An attribute replaces the bit. Overlays hide it from sandboxes.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

ATTRIBUTE = "user.overlay.set-user-id"


def mark_program(file: int | str) -> None:
    """Mark an open file, or the file at a path, as a set-user-ID program. A file system without
    extended attributes loses it."""
    if hasattr(os, "setxattr"):
        with suppress(OSError):
            os.setxattr(file, ATTRIBUTE, b"y")


def is_program(path: str, status: os.stat_result) -> bool:
    """Return whether the entry of a stored tree at a path, with this status, was marked."""
    if not (stat.S_ISREG(status.st_mode) and status.st_mode & 0o111 and hasattr(os, "getxattr")):
        return False
    with suppress(OSError):
        return os.getxattr(path, ATTRIBUTE, follow_symlinks=False) == b"y"
    return False


def replace_bit(path: str, status: os.stat_result) -> None:
    """Take the set-id bits of a file that a sandbox has written, and mark it if one of them is the
    set-user-ID bit. Raises OSError."""
    if stat.S_ISREG(status.st_mode) and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        mode = stat.S_IMODE(status.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
        if status.st_mode & stat.S_ISUID:
            os.chmod(path, mode | stat.S_IWUSR)  # its owner can mark only what it can write
            mark_program(path)
        os.chmod(path, mode)
