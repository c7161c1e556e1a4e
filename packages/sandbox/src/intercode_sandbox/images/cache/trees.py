"""Caches unpacked trees. Each is created once, atomically, by one process at a time."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.cache.in_use import mark_in_use
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.platforms.files import lock_file

__all__ = ["MIN_FILE_AGE", "cached_file_digest", "cached_tree", "file_lock", "mark_in_use"]

MIN_FILE_AGE = 2.0
"""Age in seconds below which a file may change again without a new modification time."""


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


def cached_file_digest(cache: Path, path: Path) -> str:
    """Return the SHA-256 of a file as hex, from the cache's index if the file has not changed.

    Raises DataError for a file that cannot be read.
    """
    try:
        before = path.stat()
        entry = cache / "digests" / _file_fingerprint(path, before)
        if entry.is_file() and len(known := entry.read_text()) == 64:
            return known
        with path.open("rb") as f:
            digest = hashlib.file_digest(f, "sha256").hexdigest()
        after = path.stat()
    except OSError as e:
        raise DataError(f"cannot read {path}: {e.strerror}") from e
    if _file_fingerprint(path, before) != _file_fingerprint(path, after):
        raise DataError(f"{path} changed while it was read: wait until it is complete")
    if time.time() - max(after.st_mtime, after.st_ctime) > MIN_FILE_AGE:
        with suppress(OSError):  # a cache that cannot be written remembers nothing
            entry.parent.mkdir(parents=True, exist_ok=True)
            partial = entry.with_name(f"{entry.name}.{os.getpid()}.{threading.get_ident()}")
            partial.write_text(digest)
            partial.replace(entry)
    return digest


def _file_fingerprint(path: Path, found: os.stat_result) -> str:
    """Return an identifier that changes with the file's path, inode, size or times."""
    identity = (path.resolve(), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return hashlib.sha256(repr(identity).encode("utf-8", "surrogateescape")).hexdigest()[:32]
