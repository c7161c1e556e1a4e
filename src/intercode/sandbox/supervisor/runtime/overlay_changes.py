"""Lists what an episode changed, from the upper layers. The cost grows with the changes."""

from __future__ import annotations

import errno
import os
import stat

try:  # built in; hashlib would load OpenSSL into every supervisor
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:  # Python 3.11
    from _sha256 import sha256  # type: ignore[import-not-found]

from .overlay import is_opaque

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from typing import Any

    Row = list[Any]  # path, kind, mode, size, digest, target, new

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HASH_BUDGET = 512 << 20  # bytes read per call, so that huge sparse files cannot stall it
_CHUNK = 1 << 18
_MAX_ROWS = 200_000
_RACE_ERRORS = (
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO,
)  # fmt: skip
"""Errors for a name that was deleted or replaced by another kind of file during the scan."""
_MAX_ATTEMPTS = 5  # a name that still changes then counts as deleted
_MAX_DEPTH = 100  # levels; deeper directories are reported as unread
UNREAD = "unread"
"""Digest of a directory that is too deep, or prefix of the digest of a file that is too large."""


def list_changes(uppers: list[int], lower: int, digests: bool) -> list[Row]:
    """Return one row per path that differs between the lower layers and the uppers above them (the
    topmost first), sorted.

    Without ``digests``, files are read only to find out whether they changed. Unchanged copies of
    files and parent directories without changes of their own are not listed.
    """
    walk = _Walk(digests)
    walk.compare_directory(uppers, lower, False, "", 0)
    walk.rows.sort()
    return walk.rows


class _Walk:
    """Walks all trees in parallel. A lower directory that does not exist is None."""

    def __init__(self, digests: bool) -> None:
        self.digests = digests
        self.rows: list[Row] = []
        self.budget = _HASH_BUDGET

    def add_row(
        self, path: str, kind: str, info: os.stat_result | None, new: bool,
        digest: str = "", target: str = "",
    ) -> None:  # fmt: skip
        mode = stat.S_IMODE(info.st_mode) if info else 0
        size = info.st_size if info and kind == "file" else 0
        if len(self.rows) < _MAX_ROWS:
            self.rows.append(["/" + path, kind, mode, size, digest, target, new])

    def compare_directory(
        self, uppers: list[int], lower: int | None, hides: bool, prefix: str, depth: int
    ) -> None:
        """Compare a directory. ``hides``: the lower directory does not show through."""
        names: dict[str, int] = {}
        for i in reversed(range(len(uppers))):
            names.update(dict.fromkeys(os.listdir(uppers[i]), i))
        if hides and lower is not None:
            self.add_deleted_children(lower, prefix, set(names), depth)
        for name, first in names.items():
            lower_directory, rows_before = uppers[first:] if first else uppers, len(self.rows)
            for _ in range(_MAX_ATTEMPTS):
                try:
                    self.compare_name(lower_directory, lower, name, prefix + name, depth)
                    break
                except OSError as e:
                    if e.errno not in _RACE_ERRORS:
                        raise
                    del self.rows[rows_before:]

    def compare_name(
        self, uppers: list[int], lower: int | None, name: str, path: str, depth: int
    ) -> None:
        """Compare one name. Raises OSError if it is replaced during the call."""
        info = os.stat(name, dir_fd=uppers[0], follow_symlinks=False)
        old = None if lower is None else _stat(name, lower)
        if old is None and stat.S_ISREG(info.st_mode):  # the most frequent case first
            digest = self.digest(uppers[0], name, info) if self.digests else ""
            self.add_row(path, "file", info, True, digest)
        else:
            self.compare_entry(uppers, lower, name, path, info, old, depth)

    def compare_entry(
        self, uppers: list[int], lower: int | None, name: str, path: str, info: os.stat_result,
        old: os.stat_result | None, depth: int,
    ) -> None:  # fmt: skip
        upper, mode = uppers[0], info.st_mode
        if stat.S_ISCHR(mode) and info.st_rdev == 0:
            if old is not None and lower is not None:
                self.add_deleted(lower, name, path, old, depth)
            return
        was_directory = old is not None and stat.S_ISDIR(old.st_mode)
        if stat.S_ISDIR(mode):
            lower_directory = lower if was_directory else None
            self.compare_subdirectory(uppers, lower_directory, name, path, info, old, depth)
            return
        if was_directory and lower is not None:  # its content is deleted with it
            self.add_deleted_tree(lower, name, path, depth)
        new = old is None
        if stat.S_ISREG(mode):
            unchanged, digest = self.compare_file(upper, lower, name, info, old)
            if not unchanged:
                self.add_row(path, "file", info, new, digest)
        elif stat.S_ISLNK(mode):
            target = os.readlink(name, dir_fd=upper)
            if not self.same_link(lower, name, old, target):
                self.add_row(path, "link", info, new, target=target)
        else:
            kind = "fifo" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
            self.add_row(path, kind, info, new)

    def compare_subdirectory(
        self, uppers: list[int], lower: int | None, name: str, path: str, info: os.stat_result,
        old: os.stat_result | None, depth: int,
    ) -> None:  # fmt: skip
        old_mode = None if lower is None or old is None else stat.S_IMODE(old.st_mode)
        if depth >= _MAX_DEPTH:
            self.add_row(path, "dir", info, old is None, digest=UNREAD)
            return
        if old_mode != stat.S_IMODE(info.st_mode):
            self.add_row(path, "dir", info, old is None)
        inner, hides = _open_merged(uppers, name)
        lower_directory = None if lower is None else os.open(name, _DIRECTORY, dir_fd=lower)
        try:
            self.compare_directory(inner, lower_directory, hides, path + "/", depth + 1)
        finally:
            for fd in inner:
                os.close(fd)
            if lower_directory is not None:
                os.close(lower_directory)

    def compare_file(
        self, upper: int, lower: int | None, name: str, info: os.stat_result,
        old: os.stat_result | None,
    ) -> tuple[bool, str]:  # fmt: skip
        """Return whether a file is unchanged, and its digest if it was computed."""
        alike = old is not None and (old.st_mode, old.st_size) == (info.st_mode, info.st_size)
        if not alike and not self.digests:
            return False, ""
        digest = self.digest(upper, name, info)
        if not alike or lower is None or old is None:
            return False, digest
        return digest == self.digest(lower, name, old), digest

    def same_link(
        self, lower: int | None, name: str, old: os.stat_result | None, target: str
    ) -> bool:
        if lower is None or old is None or not stat.S_ISLNK(old.st_mode):
            return False
        return os.readlink(name, dir_fd=lower) == target

    def digest(self, fd: int, name: str, info: os.stat_result) -> str:
        """Return the SHA-256 of a file, or its size once the budget is spent."""
        self.budget -= info.st_size
        if self.budget < 0:
            return f"{UNREAD}:{info.st_size}"
        handle = os.open(name, _FILE, dir_fd=fd)
        try:
            state, room = sha256(), min(info.st_size + 1, _CHUNK)  # a large buffer is slow
            while data := os.read(handle, room):
                state.update(data)
                if len(data) < room:
                    break
            return str(state.hexdigest())
        finally:
            os.close(handle)

    def add_deleted(
        self, lower: int, name: str, path: str, old: os.stat_result, depth: int
    ) -> None:
        self.add_row(path, "gone", None, False)
        if stat.S_ISDIR(old.st_mode):
            self.add_deleted_tree(lower, name, path, depth)

    def add_deleted_tree(self, lower: int, name: str, path: str, depth: int) -> None:
        """Add rows for everything in a deleted directory."""
        if depth >= _MAX_DEPTH:
            return
        fd = os.open(name, _DIRECTORY, dir_fd=lower)
        try:
            self.add_deleted_children(fd, path + "/", set(), depth + 1)
        finally:
            os.close(fd)

    def add_deleted_children(self, lower: int, prefix: str, excluded: set[str], depth: int) -> None:
        for name in os.listdir(lower):
            old = None if name in excluded else _stat(name, lower)
            if old is not None:
                self.add_deleted(lower, name, prefix + name, old, depth)


def _stat(name: str, fd: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _open_merged(uppers: list[int], name: str) -> tuple[list[int], bool]:
    """Open a directory of the topmost layer and those below it that show through. Also return
    whether the lower layers are hidden."""
    merged = [os.open(name, _DIRECTORY, dir_fd=uppers[0])]
    hides = is_opaque(merged[0])
    for upper in uppers[1:]:
        info = None if hides else _stat(name, upper)
        if info is not None and stat.S_ISDIR(info.st_mode):
            merged.append(os.open(name, _DIRECTORY, dir_fd=upper))
            hides = is_opaque(merged[-1])
        elif info is not None:
            hides = True
    return merged, hides
