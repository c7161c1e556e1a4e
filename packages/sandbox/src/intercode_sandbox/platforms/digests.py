"""The digests of files, each read once until the file changes."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.errors import DataError

MIN_FILE_AGE = 2.0
"""Age in seconds below which a file may change again without a new modification time."""


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
