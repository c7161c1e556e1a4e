"""Copies an overlay's upper directory, including whiteouts and opaque marks."""

from __future__ import annotations

import contextlib
import os
import stat

_CHUNK = 1 << 30
_MAX_DEPTH = 100
OPAQUE_ATTRIBUTE = "user.overlay.opaque"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_tree(source: int, target: int, depth: int = 0) -> None:
    """Copy everything from one directory descriptor to another: content, holes, modes, times,
    links, FIFOs, whiteouts and opaque marks.

    Existing entries of the target count as a layer below and are replaced, except directories,
    which are merged unless they are opaque. Sockets are left out, because nothing could listen on
    them, and so are entries more than a hundred levels deep.
    """
    with os.scandir(source) as entries:
        names = [entry.name for entry in entries]
    existing_names = set(os.listdir(target))
    for name in names:
        try:
            info = os.stat(name, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if name in existing_names:
            _remove_hidden(name, info, source, target)
        if stat.S_ISDIR(info.st_mode):
            _copy_directory(name, source, target, depth)
            _copy_mode_and_times(name, info, target)
        else:
            copy_entry(name, info, source, target)
    _copy_user_attributes(source, target)


def copy_entry(name: str, info: os.stat_result, source: int, target: int) -> None:
    """Copy an entry other than a directory to a name that does not exist yet. Sockets are left
    out."""
    if stat.S_ISREG(info.st_mode):
        _copy_file(name, source, target)
    elif stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    elif stat.S_ISFIFO(info.st_mode) or stat.S_ISCHR(info.st_mode):
        os.mknod(name, info.st_mode, info.st_rdev, dir_fd=target)
    else:
        return
    _copy_mode_and_times(name, info, target)


def _copy_mode_and_times(name: str, info: os.stat_result, target: int) -> None:
    """Set the mode and times of a copy."""
    if not stat.S_ISLNK(info.st_mode):
        os.chmod(name, stat.S_IMODE(info.st_mode), dir_fd=target)
    times = (info.st_atime_ns, info.st_mtime_ns)
    os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)


def _remove_hidden(name: str, info: os.stat_result, source: int, target: int) -> None:
    """Remove what an entry of a higher layer hides."""
    old = os.stat(name, dir_fd=target, follow_symlinks=False)
    if not stat.S_ISDIR(old.st_mode):
        os.unlink(name, dir_fd=target)
        return
    if stat.S_ISDIR(info.st_mode):
        inner = os.open(name, _DIRECTORY, dir_fd=source)
        try:
            if not is_opaque(inner):
                return
        finally:
            os.close(inner)
    _remove_tree(name, target)


def _remove_tree(name: str, parent: int) -> None:
    """Remove a directory and everything in it. Nothing else may change it during the call."""
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        os.chmod(fd, 0o700)
        for entry in os.listdir(fd):
            if stat.S_ISDIR(os.stat(entry, dir_fd=fd, follow_symlinks=False).st_mode):
                _remove_tree(entry, fd)
            else:
                os.unlink(entry, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def _copy_directory(name: str, source: int, target: int, depth: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=target)
    inner = os.open(name, _DIRECTORY, dir_fd=source)
    outer = os.open(name, _DIRECTORY, dir_fd=target)
    try:
        os.chmod(outer, 0o700)
        if depth < _MAX_DEPTH:
            copy_tree(inner, outer, depth + 1)
    finally:
        os.close(inner)
        os.close(outer)


def is_opaque(fd: int) -> bool:
    """Return whether a directory of an upper layer hides everything below it."""
    return OPAQUE_ATTRIBUTE in os.listxattr(fd) and os.getxattr(fd, OPAQUE_ATTRIBUTE) == b"y"


def _copy_file(name: str, source: int, target: int) -> None:
    inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
    try:
        outer = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target
        )
        try:
            _copy_data(inner, outer)
            _copy_user_attributes(inner, outer)
        finally:
            os.close(outer)
    finally:
        os.close(inner)


def _copy_data(source: int, target: int) -> None:
    """Copy the content of a file and keep its holes."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    position = 0
    while position < size:
        try:
            start = os.lseek(source, position, os.SEEK_DATA)
        except OSError:  # only a hole is left
            return
        position = end = os.lseek(source, start, os.SEEK_HOLE)
        os.lseek(target, start, os.SEEK_SET)
        while start < end and (
            sent := os.sendfile(target, source, start, min(end - start, _CHUNK))
        ):
            start += sent


def _copy_user_attributes(source: int, target: int) -> None:
    for name in os.listxattr(source):
        if name.startswith("user."):
            os.setxattr(target, name, os.getxattr(source, name))
