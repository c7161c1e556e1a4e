"""Reads and writes files of the sandbox from outside, without following links out of it."""

from __future__ import annotations

import errno
import os
import posixpath
import stat

from .syscalls import open_in_root

_WRITE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK
_PATH_FLAGS = os.O_PATH | os.O_DIRECTORY
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MAX_PATH_BYTES = 4095  # the kernel's limit on paths
_MAX_DEPTH = 200  # directory levels to visit


def open_regular(root: int, path: str) -> int:
    """Open a regular file for reading. Raises OSError for any other kind of file.

    Files of /proc are refused, because this process can read more from them than the sandbox can.
    """
    fd = open_in_root(root, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    info = os.fstat(fd)
    mode = info.st_mode
    if info.st_dev == os.stat("proc", dir_fd=root).st_dev:
        os.close(fd)
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)
    if not stat.S_ISREG(mode):
        os.close(fd)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, os.strerror(code), path)
    return fd


def write_file(root: int, path: str, source: int, mode: int) -> None:
    """Write all of ``source`` to a regular file, and make its parent directories."""
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path[:99])
    _make_parents(root, posixpath.dirname(posixpath.normpath("/" + path)))
    target = open_in_root(root, path, _WRITE_FLAGS, mode)
    try:
        if not stat.S_ISREG(os.fstat(target).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        os.lseek(source, 0, os.SEEK_SET)
        while os.sendfile(target, source, None, 1 << 30):
            pass
        os.fchmod(target, mode)
    finally:
        os.close(target)


def _make_parents(root: int, path: str) -> None:
    parent = "/"
    for name in path.strip("/").split("/"):
        inner = posixpath.join(parent, name)
        try:
            os.close(open_in_root(root, inner, _PATH_FLAGS))
        except FileNotFoundError:
            fd = open_in_root(root, parent, _PATH_FLAGS)
            try:
                os.mkdir(name, 0o755, dir_fd=fd)
            finally:
                os.close(fd)
        parent = inner


def visit_directories(fd: int, depth: int = 0) -> None:
    """Visit every directory of a file system in a fixed order. An overlay numbers a directory when
    it is first visited, so ``ls -i`` would otherwise depend on which of two programs came first."""
    if depth > _MAX_DEPTH:
        return
    with os.scandir(fd) as entries:
        names = sorted(os.fsencode(e.name) for e in entries if e.is_dir(follow_symlinks=False))
    for name in names:
        try:
            subdirectory = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        except OSError:
            continue
        try:
            if os.fstat(subdirectory).st_dev == os.fstat(fd).st_dev:
                visit_directories(subdirectory, depth + 1)
        finally:
            os.close(subdirectory)
