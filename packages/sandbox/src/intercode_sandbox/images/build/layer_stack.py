"""Reads the files of stacked layers as a sandbox would see them, without a sandbox."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from intercode_sandbox.images.archives.links import resolve_links
from intercode_sandbox.overlay_format import is_opaque


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

        def link_target(name: str) -> str | None:
            found = self.find(name)
            return os.readlink(found[0]) if found and stat.S_ISLNK(found[1].st_mode) else None

        return resolve_links(path, link_target, "the image", last)

    def find(self, name: str) -> tuple[str, os.stat_result] | None:
        """Return the location of a resolved path on this machine and its status, or None."""
        trees = self._visible_trees(name.rpartition("/")[0])
        top = next(_existing(trees, name), None)
        return None if top is None or _is_whiteout(top[2]) else top[1:]

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
    top = next(_existing(trees, name), None)
    if top is None or _is_whiteout(top[2]):
        return
    _, path, status = top
    yield name, path, status
    if stat.S_ISDIR(status.st_mode) and depth > 0:
        inside = _visible_in(trees, name)
        names = {entry for tree in inside for entry in os.listdir(tree / name)}
        for entry in sorted(names):
            yield from _walk_trees(inside, f"{name}/{entry}" if name else entry, depth - 1)


def _existing(trees: Sequence[Path], name: str) -> Iterator[tuple[Path, str, os.stat_result]]:
    """Yield each tree that has the path ``name``, with the location and the status."""
    for tree in trees:
        path = f"{tree}/{name}" if name else str(tree)
        try:
            yield tree, path, os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue


def _visible_in(trees: tuple[Path, ...], name: str) -> tuple[Path, ...]:
    """Return the trees whose directory ``name`` is visible."""
    seen: list[Path] = []
    for tree, path, status in _existing(trees, name):
        if not stat.S_ISDIR(status.st_mode):
            break
        seen.append(tree)
        if _is_opaque(path):
            break
    return tuple(seen)


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(path: str) -> bool:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return is_opaque(fd)
    finally:
        os.close(fd)
