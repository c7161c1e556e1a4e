"""Reads and writes a container's own files in the format of an overlay's upper layer.

An agent controls these files, so links in them are never followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from intercode_sandbox.overlay_format import copy_entry, is_opaque

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_upper_layer(target: int, root: int, paths: Sequence[str]) -> None:
    """Copy the given paths (parents first) from below one directory to an empty one. A whiteout
    marks a path that does not exist. Raises OSError."""
    directories: list[tuple[str, os.stat_result]] = []
    for path in paths:
        parents, name = _split(path)
        if not name:  # the root directory itself
            continue
        with (
            _open_directory(root, parents) as source,
            _make_directories(target, parents, root) as into,
        ):
            if into < 0:
                continue
            info = None
            if source >= 0:
                with suppress(FileNotFoundError):
                    info = os.stat(name, dir_fd=source, follow_symlinks=False)
            if info is None:
                os.mknod(name, stat.S_IFCHR, 0, dir_fd=into)
            elif stat.S_ISDIR(info.st_mode):
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=into)
                directories.append((path, info))
            else:
                copy_entry(name, info, source, into)
    for path, info in reversed(directories):
        parents, name = _split(path)
        with _open_directory(target, parents) as at:
            if at >= 0:
                os.chmod(name, stat.S_IMODE(info.st_mode), dir_fd=at)
                os.utime(name, ns=(info.st_atime_ns, info.st_mtime_ns), dir_fd=at)


def change_owner(directory: Path, owner: int) -> None:
    """Change the owner of a directory and everything in it. Raises OSError."""
    for above, directories, files in os.walk(directory):
        for name in (*directories, *files, "."):
            os.chown(Path(above, name), owner, owner, follow_symlinks=False)


def list_changed_paths(upper: int, trees: Sequence[str]) -> list[str]:
    """Return the paths, parents first, at which an upper layer changes the trees below it (the
    topmost first): its own paths, and those that it hides."""
    out: list[str] = []
    _collect_paths(upper, "", [Path(tree) for tree in trees], out)
    return out


def _collect_paths(at: int, prefix: str, lower_trees: Sequence[Path], out: list[str]) -> None:
    for name in sorted(os.listdir(at)):
        path = f"{prefix}/{name}"
        out.append(path)
        info = os.stat(name, dir_fd=at, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode):
            continue
        inner = os.open(name, _DIRECTORY, dir_fd=at)
        try:
            if is_opaque(inner):
                own = set(os.listdir(inner))
                out += [f"{path}/{n}" for n in sorted(_names_at(lower_trees, path)) if n not in own]
            _collect_paths(inner, path, lower_trees, out)
        finally:
            os.close(inner)


def _names_at(trees: Sequence[Path], path: str) -> set[str]:
    """Return the names in the directories at a path of the trees."""
    found: set[str] = set()
    for tree in trees:
        with (
            suppress(OSError),
            _open_directory(_open_tree(tree), path.strip("/").split("/"), own=True) as at,
        ):
            if at >= 0:
                found |= set(os.listdir(at))
    return found


def _open_tree(tree: Path) -> int:
    return os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _split(path: str) -> tuple[list[str], str]:
    *parents, name = path.strip("/").split("/")
    return parents, name


@contextmanager
def _open_directory(root: int, parents: Sequence[str], own: bool = False) -> Iterator[int]:
    """Open the directory at ``parents`` below ``root``; -1 if it does not exist. ``own``: also
    close ``root``."""
    with _walk_down(root if own else os.dup(root), parents, lambda *_: None) as at:
        yield at


@contextmanager
def _make_directories(target: int, parents: Sequence[str], root: int) -> Iterator[int]:
    """Open a directory like ``_open_directory``, and make missing ones with the modes of those
    below ``root``; -1 if a parent is hidden by a file or whiteout."""

    def make(at: int, depth: int) -> None:
        with suppress(FileExistsError):
            os.mkdir(parents[depth], 0o755, dir_fd=at)
            with _open_directory(root, parents[: depth + 1]) as like:
                if like >= 0:
                    os.chmod(parents[depth], stat.S_IMODE(os.fstat(like).st_mode), dir_fd=at)

    with _walk_down(os.dup(target), parents, make) as at:
        yield at


@contextmanager
def _walk_down(
    at: int, parents: Sequence[str], before: Callable[[int, int], None]
) -> Iterator[int]:
    """Open the directory at the end of a path, or -1. ``before`` is called with each directory and
    its depth. Closes ``at``."""
    try:
        for depth, part in enumerate(parents):
            before(at, depth)
            try:
                inner = os.open(part, _DIRECTORY, dir_fd=at)
            except OSError:
                os.close(at)
                at = -1
                break
            os.close(at)
            at = inner
        yield at
    finally:
        if at >= 0:
            os.close(at)
