"""Reads what an episode changed out of the upper layer, so that the cost grows with the change."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HASH_BUDGET = 2 << 30  # bytes read per call, so that huge sparse files cannot stall a score
_MOST_ENTRIES = 200_000

Row = list[Any]  # path, kind, mode, size, digest, target, new


def changes(upper: int, lower: int) -> list[Row]:
    """One row per path that differs between the lower layers and upper over them, sorted.

    A copied-up file that is what it was, and a parent directory that only holds changes, are none.
    """
    walk = _Walk(lower)
    walk.directory(upper, "", opaque=False)
    return sorted(walk.rows)


class _Walk:
    def __init__(self, lower: int) -> None:
        self.lower = lower
        self.rows: list[Row] = []
        self.budget = _HASH_BUDGET

    def below(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(path, dir_fd=self.lower, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def add(
        self, path: str, kind: str, info: os.stat_result | None, new: bool, **more: str
    ) -> None:
        mode = stat.S_IMODE(info.st_mode) if info else 0
        size = info.st_size if info and kind == "file" else 0
        row = ["/" + path, kind, mode, size, more.get("digest", ""), more.get("target", ""), new]
        if len(self.rows) < _MOST_ENTRIES:
            self.rows.append(row)

    def directory(self, fd: int, prefix: str, opaque: bool) -> None:
        with os.scandir(fd) as entries:
            names = [entry.name for entry in entries]
        if opaque:
            self.gone_below(prefix.rstrip("/"), set(names))
        for name in names:
            try:
                info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                continue
            self.entry(fd, name, prefix + name, info)

    def entry(self, fd: int, name: str, path: str, info: os.stat_result) -> None:
        old = self.below(path)
        mode = info.st_mode
        if stat.S_ISCHR(mode) and info.st_rdev == 0:
            if old is not None:
                self.gone(path, old)
        elif stat.S_ISDIR(mode):
            self.real_directory(fd, name, path, info, old)
        elif stat.S_ISLNK(mode):
            target = os.readlink(name, dir_fd=fd)
            if not (old and stat.S_ISLNK(old.st_mode) and self.old_link(path) == target):
                self.replaced(path, old)
                self.add(path, "link", info, old is None, target=target)
        elif stat.S_ISREG(mode):
            self.regular(fd, name, path, info, old)
        else:
            kind = "fifo" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
            self.replaced(path, old)
            self.add(path, kind, info, old is None)

    def old_link(self, path: str) -> str:
        return os.readlink(path, dir_fd=self.lower)

    def real_directory(
        self, fd: int, name: str, path: str, info: os.stat_result, old: os.stat_result | None
    ) -> None:
        was_directory = old is not None and stat.S_ISDIR(old.st_mode)
        if not was_directory or (old and stat.S_IMODE(old.st_mode) != stat.S_IMODE(info.st_mode)):
            self.add(path, "dir", info, old is None)
        inner = os.open(name, _DIRECTORY, dir_fd=fd)
        try:
            self.directory(inner, path + "/", opaque=was_directory and _is_opaque(inner))
        finally:
            os.close(inner)

    def regular(
        self, fd: int, name: str, path: str, info: os.stat_result, old: os.stat_result | None
    ) -> None:
        digest = self.digest(fd, name, info)
        if old is not None and stat.S_ISREG(old.st_mode):
            same = info.st_size == old.st_size and info.st_mode == old.st_mode
            if same and digest == self.digest(self.lower, path, old):
                return
        self.replaced(path, old)
        self.add(path, "file", info, old is None, digest=digest)

    def digest(self, fd: int, name: str, info: os.stat_result) -> str:
        """SHA-256 of a file; its size alone once the budget is spent."""
        self.budget -= info.st_size
        if self.budget < 0:
            return f"unread:{info.st_size}"
        try:
            handle = os.open(name, _FILE, dir_fd=fd)
        except FileNotFoundError:
            return ""
        with open(handle, "rb", buffering=0) as f:
            if info.st_size <= 1 << 16:
                return hashlib.sha256(f.read()).hexdigest()
            return hashlib.file_digest(f, "sha256").hexdigest()

    def replaced(self, path: str, old: os.stat_result | None) -> None:
        """A directory that became something else takes what it held with it."""
        if old is not None and stat.S_ISDIR(old.st_mode):
            self.gone_below(path, set())

    def gone(self, path: str, old: os.stat_result) -> None:
        self.add(path, "gone", None, False)
        if stat.S_ISDIR(old.st_mode):
            self.gone_below(path, set())

    def gone_below(self, path: str, kept: set[str]) -> None:
        """Every lower entry of a directory but ``kept`` is gone."""
        fd = os.open(path or ".", _DIRECTORY, dir_fd=self.lower)
        try:
            names = [n for n in os.listdir(fd) if n not in kept]
        finally:
            os.close(fd)
        for name in names:
            inner = f"{path}/{name}" if path else name
            old = self.below(inner)
            if old is not None:
                self.gone(inner, old)


def _is_opaque(fd: int) -> bool:
    try:
        return os.getxattr(fd, "user.overlay.opaque") == b"y"
    except OSError:
        return False
