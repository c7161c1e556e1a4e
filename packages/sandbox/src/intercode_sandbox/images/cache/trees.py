"""Caches unpacked trees. Each is created once, atomically, by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from intercode_sandbox.images.cache.in_use import mark_in_use
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.platforms.files import lock_file

__all__ = ["cached_tree", "file_lock", "mark_in_use"]


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``. Other processes wait for it; a killed process releases it."""
    while True:
        with path.open("ab") as f:
            lock_file(f)
            if not _is_same_file(f.fileno(), path):
                continue  # it was removed while this process waited
            yield
            return


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether an open file is still the one at ``path``."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def cached_tree(cache: Path, key: str, fill: Callable[[Path], None]) -> Path:
    """Return the directory ``layers/<key>`` of the cache; ``fill`` creates it if it is absent.

    ``fill`` receives an empty directory, which gets its final name when ``fill`` returns. What a
    killed process left is removed first. Nothing removes the tree while this process lives.
    """
    layers = cache / "layers"
    final = layers / key
    mark_in_use(cache, f"layers/{key}")
    if final.is_dir():
        return final
    layers.mkdir(parents=True, exist_ok=True, mode=0o755)
    with file_lock(layers / f".{key}.lock"):
        if final.is_dir():
            return final
        partial = layers / f".{key}.half"
        _remove_if_exists(partial)
        partial.mkdir(mode=0o700)
        try:
            fill(partial)
            partial.rename(final)
        except BaseException:
            _remove_if_exists(partial)
            raise
    return final


def _remove_if_exists(path: Path) -> None:
    if path.is_symlink() or path.exists():
        remove_tree(path)
