"""Giving the cache's disk back: what killed processes left, and what nobody needs any more."""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from intercode.sandbox.images.cache import records
from intercode.sandbox.images.cache.in_use import paths_in_use, usage_lock
from intercode.sandbox.images.cache.remove_tree import remove_tree

REPRODUCIBLE_PREFIXES = ("tar:", "dir:", "docker-archive:", "oci:", "registry:")
"""Images that can be unpacked or fetched again by their own name."""


_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What was given back: images by name, trees and files, and their bytes on the disk."""

    images: tuple[str, ...]
    trees: int
    bytes: int


def disk_usage(path: Path) -> int:
    """The bytes that a file or tree takes on the disk, hard links counted once. What goes
    meanwhile, or lies too deep to be named, is left out."""
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
    """Remove what a killed process left half-made, downloads that were unpacked, saved archives of
    engines, and trees that no record names. ``everything``: images too, as far as they can be
    unpacked or fetched again by their name.

    What a live process uses stays; so does what ``keep`` names (paths in the cache).
    """
    gone: list[str] = []
    trash = cache / "trash"
    trash.mkdir(parents=True, exist_ok=True, mode=0o700)
    with usage_lock(cache, fcntl.LOCK_EX):
        used = paths_in_use(cache) | set(protected)
        for record in records.all_records(cache):
            tree = f"layers/{record.tree}"
            remade = (
                everything and record.name.startswith(REPRODUCIBLE_PREFIXES) and tree not in used
            )
            if remade or not (cache / tree).is_dir():
                records.delete_record(cache, record.name)
                gone.append(record.name)
        named = {f"layers/{record.tree}" for record in records.all_records(cache)}
        for path in _removable_paths(cache, used | named):
            path.rename(trash / uuid.uuid4().hex)
    return _empty_trash(trash, gone)


def remove_image(cache: Path, name: str, protected: Collection[str] = ()) -> PruneResult | None:
    """Forget the image ``name`` and remove its tree where nothing else needs it. None where there
    is no such image. ``trees`` is 0 where another image or a live process has it."""
    record = records.find_record(cache, name)
    if record is None:
        return None
    trash = cache / "trash"
    trash.mkdir(parents=True, exist_ok=True, mode=0o700)
    with usage_lock(cache, fcntl.LOCK_EX):
        records.delete_record(cache, name)
        needed = {f"layers/{other.tree}" for other in records.all_records(cache)}
        tree = f"layers/{record.tree}"
        if tree not in needed | paths_in_use(cache) | set(protected) and (cache / tree).is_dir():
            (cache / tree).rename(trash / uuid.uuid4().hex)
    return _empty_trash(trash, [name])


def _empty_trash(trash: Path, gone: list[str]) -> PruneResult:
    found = list(trash.iterdir())
    whole = 0
    for path in found:
        with suppress(OSError):  # another process may be at it as well
            if path.is_dir() and not path.is_symlink():
                whole += remove_tree(path)
            else:
                whole += path.lstat().st_blocks * 512
                path.unlink()
    return PruneResult(tuple(gone), len(found), whole)


def _removable_paths(cache: Path, needed: set[str]) -> Iterator[Path]:
    """What may go. Who makes a thing holds its lock: what is locked is not touched."""
    for home in ("layers", "built", "blobs", "images", "images/engines"):
        for path in _children(cache / home):
            if f"{home}/{path.name}" in needed or not _is_removable(home, path):
                continue
            with _try_lock(_lock_path(path)) as free:
                if free:
                    yield path
    for home in ("layers", "blobs", "images/engines"):
        for path in _children(cache / home):
            with _try_lock(path) as free:
                if path.suffix == ".lock" and free and not _locked_path(path).exists():
                    path.unlink()  # whoever waits for it sees that and begins anew
    for path in (*_children(cache / "images" / "records"), *_children(cache / "digests")):
        if path.name.startswith(".half-") or "." in path.stem:
            yield path


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_removable(home: str, path: Path) -> bool:
    """Whether a thing that nothing needs is one that may be removed at all."""
    if path.suffix == ".lock":
        return False
    if path.name.startswith("former-"):  # of which a box may still see a part
        return time.time() - path.stat().st_ctime > _DAY
    if home == "images":
        return path.name.startswith(".") and path.suffix == ".half"
    return home in ("blobs", "images/engines") or path.is_dir()


def _lock_path(path: Path) -> Path:
    """The lock under which a thing, or a half of it, is made."""
    if path.parent.name == "built":
        return path.with_name(f"{path.name.split('.')[0]}.lock")
    stem = path.name.removeprefix(".").removesuffix(".half").removesuffix(".part")
    return path.with_name(f".{stem}.lock")


def _locked_path(lock: Path) -> Path:
    return lock.with_name(lock.name.removeprefix(".").removesuffix(".lock"))


@contextmanager
def _try_lock(lock: Path) -> Iterator[bool]:
    """Whether nobody holds that lock; if so, nobody gets it before the end of this."""
    if not lock.is_file():
        yield True  # who makes a thing makes its lock first, and stands behind the gate for that
        return
    with lock.open("rb") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
