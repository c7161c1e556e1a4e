"""Directories in the cache for files of a sandbox while they are saved, sent or opened."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.platforms.paths import cache_root

_FOLDER = "staging"
_ABANDONED_SECONDS = 3600  # without a change


@contextmanager
def staging_directory() -> Iterator[Path]:
    """Make an empty directory, and remove it at the end with whatever it holds then."""
    above = cache_root() / _FOLDER
    above.mkdir(exist_ok=True)
    above.chmod(0o711)  # the user of sandboxes reads the files if root starts them
    directory = Path(tempfile.mkdtemp(dir=above))
    try:
        directory.chmod(0o711)
        yield directory
    finally:
        remove_tree(directory)


@contextmanager
def staged_upper_layer() -> Iterator[Path]:
    """Make an empty directory for an upper layer, whose mode is that of ``/`` in a sandbox."""
    with staging_directory() as directory:
        files = directory / "files"
        files.mkdir()
        files.chmod(0o755)
        yield files


def abandoned_directories(cache: Path) -> Iterator[Path]:
    """Yield the directories of processes that were killed: nothing in them changed for an hour."""
    above = cache / _FOLDER
    for directory in sorted(above.iterdir()) if above.is_dir() else ():
        with suppress(OSError):  # its process has just removed it
            newest = max(path.lstat().st_mtime for path in (directory, *directory.iterdir()))
            if newest < time.time() - _ABANDONED_SECONDS:
                yield directory
