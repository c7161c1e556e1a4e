"""Frees disk space in the cache: removes leftovers of killed processes and unneeded entries."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from intercode_sandbox.images.cache import records
from intercode_sandbox.images.cache.in_use import DATABASE_FOLDERS, paths_in_use, usage_lock
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.images.cache.staging import abandoned_directories
from intercode_sandbox.platforms.files import lock_file

REPRODUCIBLE_PREFIXES = ("tar:", "dir:", "docker-archive:", "oci:", "registry:")
"""Prefixes of names by which an image can be unpacked or fetched again."""

_DAY = 86400.0
_BUILT_DATABASE = re.compile(r"\.building-.*|[0-9a-f]{32}-\d+(\.lock)?")
"""Names in the folder ``sql``, which also has translations."""


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The removed images by name, the number of removed trees and files, and the freed bytes."""

    images: tuple[str, ...]
    trees: int
    bytes: int


def disk_usage(path: Path) -> int:
    """Return the bytes of a file or tree on the disk; hard links count once. Files that vanish
    during the call, or whose paths are too long, do not count."""
    if path.is_file():
        return path.stat().st_blocks * 512
    blocks: dict[tuple[int, int], int] = {}
    todo = [os.fspath(path)]
    while todo:
        with suppress(OSError), os.scandir(todo.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    info = entry.stat(follow_symlinks=False)
                    blocks[info.st_dev, info.st_ino] = info.st_blocks
    return 512 * sum(blocks.values())


def prune(cache: Path, protected: Collection[str] = (), everything: bool = False) -> PruneResult:
    """Remove unfinished entries of killed processes, downloads that were unpacked, saved archives
    of engines, trees that no record names, links to this machine's programs that no sandbox of the
    tier chroot has used for a day, copies of layers with shifted dates that are more than a day
    old, files of sandboxes that killed processes saved or opened more than an hour ago, and
    databases that were drawn or built more than a day ago.

    With ``everything``, also remove younger databases, and images that can be unpacked or fetched
    again by their name. Databases are written again when they are needed; all of a kind stay while
    a process lives that has opened one. Entries that a live process uses, or that ``protected``
    names (paths in the cache), stay.
    """
    removed: list[str] = []
    trash = cache / "trash"
    trash.mkdir(parents=True, exist_ok=True, mode=0o700)
    with usage_lock(cache):
        used = paths_in_use(cache) | set(protected)
        for record in records.all_records(cache):
            tree = f"layers/{record.tree}"
            reproducible = (
                everything and record.name.startswith(REPRODUCIBLE_PREFIXES) and tree not in used
            )
            if reproducible or not (cache / tree).is_dir():
                records.delete_record(cache, record.name)
                removed.append(record.name)
        recorded_trees = {f"layers/{record.tree}" for record in records.all_records(cache)}
        removable = chain(
            _removable_paths(cache, used | recorded_trees),
            _databases(cache, used, everything),
            abandoned_directories(cache),
        )
        for path in removable:
            path.rename(trash / uuid.uuid4().hex)
    return _empty_trash(trash, removed)


def remove_image(cache: Path, name: str, protected: Collection[str] = ()) -> PruneResult | None:
    """Delete the record of the image ``name``, and its tree if nothing else needs it.

    Returns None if there is no such image. ``trees`` is 0 if another image or a live process uses
    the tree.
    """
    record = records.find_record(cache, name)
    if record is None:
        return None
    trash = cache / "trash"
    trash.mkdir(parents=True, exist_ok=True, mode=0o700)
    with usage_lock(cache):
        records.delete_record(cache, name)
        needed = {f"layers/{other.tree}" for other in records.all_records(cache)}
        tree = f"layers/{record.tree}"
        if tree not in needed | paths_in_use(cache) | set(protected) and (cache / tree).is_dir():
            (cache / tree).rename(trash / uuid.uuid4().hex)
    return _empty_trash(trash, [name])


def _empty_trash(trash: Path, removed: list[str]) -> PruneResult:
    found = list(trash.iterdir())
    freed = 0
    for path in found:
        with suppress(OSError):  # another process may remove it at the same time
            if path.is_dir() and not path.is_symlink():
                freed += remove_tree(path)
            else:
                freed += path.lstat().st_blocks * 512
                path.unlink()
    return PruneResult(tuple(removed), len(found), freed)


def _removable_paths(cache: Path, needed: set[str]) -> Iterator[Path]:
    """Yield the entries that may be removed. An entry whose lock is held is being made."""
    for folder in ("layers", "built", "blobs", "images", "images/engines", "shared", "dated"):
        for path in _children(cache / folder):
            if f"{folder}/{path.name}" in needed or not _is_removable(folder, path):
                continue
            with _try_lock(_lock_path(path)) as free:
                if free:
                    yield path
    for folder in ("layers", "blobs", "images/engines"):
        for path in _children(cache / folder):
            with _try_lock(path) as free:
                if path.suffix == ".lock" and free and not _locked_path(path).exists():
                    path.unlink()  # a waiting process notices, and creates a new one
    for path in (*_children(cache / "images" / "records"), *_children(cache / "digests")):
        if path.name.startswith(".half-") or "." in path.stem:
            yield path


def _databases(cache: Path, used: set[str], everything: bool) -> Iterator[Path]:
    """Yield the databases, drawn, built or varied, that may be removed, with their locks."""
    for folder in DATABASE_FOLDERS:
        for path in _children(cache / folder) if folder not in used else ():
            is_database = folder != "sql" or _BUILT_DATABASE.fullmatch(path.name)
            if is_database and (everything or time.time() - path.lstat().st_ctime > _DAY):
                yield path


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_removable(folder: str, path: Path) -> bool:
    """Return whether an entry that nothing needs may be removed."""
    if path.suffix == ".lock" or path.name == "lock":
        return False
    # a running sandbox may still have it mounted; the next one may use it again
    if path.name.startswith("former-") or folder in ("shared", "dated"):
        return time.time() - path.stat().st_ctime > _DAY
    if folder == "images":
        return path.name.startswith(".") and path.suffix == ".half"
    return folder in ("blobs", "images/engines") or path.is_dir()


def _lock_path(path: Path) -> Path:
    """Return the lock file of an entry, finished or not."""
    if path.parent.name == "built":
        return path.with_name(f"{path.name.split('.')[0]}.lock")
    stem = path.name.removeprefix(".").removesuffix(".half").removesuffix(".part")
    return path.with_name(f".{stem}.lock")


def _locked_path(lock: Path) -> Path:
    return lock.with_name(lock.name.removeprefix(".").removesuffix(".lock"))


@contextmanager
def _try_lock(lock: Path) -> Iterator[bool]:
    """Try to take a lock. Yields whether it was free; it is then held until the context ends."""
    if not lock.is_file():
        yield True  # without a lock file, no process is creating the entry
        return
    with lock.open("rb") as f:
        try:
            lock_file(f, wait=False)
        except BlockingIOError:
            yield False
        else:
            yield True
