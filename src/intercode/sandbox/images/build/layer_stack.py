"""Reads the files of stacked layers as a sandbox would see them, without a sandbox."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from intercode.core.errors import DataError
from intercode.sandbox.layers import is_opaque

_MAX_SYMLINKS = 40
"""Limit on symbolic links in one path, as in Linux."""


class LayerStack:
    """Layers in the format of overlayfs, topmost first. The files and whiteouts of a layer hide
    files of lower layers."""

    def __init__(self, trees: Sequence[Path]) -> None:
        self.trees = tuple(trees)

    def resolve(self, path: str, last: bool = True) -> str:
        """Return a path relative to the root with links, ``.`` and ``..`` resolved. Parts that do
        not exist stay as they are.

        ``last``: resolve a link in the last part, too. Raises DataError for a loop.
        """
        todo, done, links = path.split("/")[::-1], list[str](), 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done[:-1]
                continue
            name = "/".join([*done, part])
            found = self.find(name)
            if found is None or not stat.S_ISLNK(found[1].st_mode) or not (todo or last):
                done.append(part)
                continue
            links += 1
            if links > _MAX_SYMLINKS:
                raise DataError(f"{path!r} has more than {_MAX_SYMLINKS} symbolic links")
            target = os.readlink(found[0])
            done = [] if target.startswith("/") else done
            todo += target.split("/")[::-1]
        return "/".join(done)

    def find(self, name: str) -> tuple[str, os.stat_result] | None:
        """Return the location of a resolved path on this machine and its status, or None."""
        for tree in self._visible_trees(name.rpartition("/")[0]):
            path = f"{tree}/{name}" if name else str(tree)
            try:
                status = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            return None if _is_whiteout(status) else (path, status)
        return None

    def read_text(self, path: str) -> str:
        """Return the content of a file, following links; empty if there is no such file."""
        found = self.find(self.resolve(path))
        if found is None or not stat.S_ISREG(found[1].st_mode):
            return ""
        return Path(found[0]).read_text("utf-8", "replace")

    def _visible_trees(self, name: str) -> tuple[Path, ...]:
        """Return the trees that contribute to the directory ``name``."""
        trees, parts = self.trees, name.split("/") if name else []
        for i in range(1, len(parts) + 1):
            trees = _visible_in(trees, "/".join(parts[:i]))
        return trees

    def walk(self, top: str = "", depth: int = 1000) -> Iterator[tuple[str, str, os.stat_result]]:
        """Yield the path, the location on this machine and the status of everything below ``top``.

        A directory precedes its entries, which are sorted; ``depth`` limits nested directories.
        """
        trees = self._visible_trees(top.rpartition("/")[0])
        yield from _walk_trees(trees, top, depth)


def _walk_trees(
    trees: tuple[Path, ...], name: str, depth: int
) -> Iterator[tuple[str, str, os.stat_result]]:
    for tree in trees:
        path = f"{tree}/{name}" if name else str(tree)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if _is_whiteout(status):
            return
        yield name, path, status
        if stat.S_ISDIR(status.st_mode) and depth > 0:
            inside = _visible_in(trees, name)
            names = {entry for tree in inside for entry in os.listdir(tree / name)}
            for entry in sorted(names):
                yield from _walk_trees(inside, f"{name}/{entry}" if name else entry, depth - 1)
        return


def _visible_in(trees: tuple[Path, ...], name: str) -> tuple[Path, ...]:
    """Return the trees whose directory ``name`` is visible."""
    seen: list[Path] = []
    for tree in trees:
        path = tree / name
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not stat.S_ISDIR(status.st_mode):
            break
        seen.append(tree)
        if _is_opaque(path):
            break
    return tuple(seen)


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return is_opaque(fd)
    finally:
        os.close(fd)
