"""Keeps the files of a layer as old as they were right after set-up.

Tasks ask for files that changed in the last hour, week or month. A layer in a cache ages, and their
answers with it; so such a layer is copied once an hour with its dates moved.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from pathlib import Path

from intercode.core.paths import sandbox_uid
from intercode.core.types import Layer
from intercode.sandbox.supervisor.runtime.overlay import copy_tree

SETUP_AGE = 2 * 3600
"""Seconds between set-up and the hour in which the layer is used."""
_SETUP_WINDOW = (
    3600  # seconds: what is at most this much older than the newest file was written by set-up
)
_MAX_COPY_AGE = 48 * 3600  # seconds after which a copy is no longer in use and is removed
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def redated_layer(layer: Layer, home: Path, now: float | None = None) -> Layer:
    """The layer with the dates of its set-up moved to two hours before the current hour.

    Files that are more than an hour older than the newest keep their dates: set-up gave them those.
    ``home`` is where copies are kept; ``now`` is in seconds since the epoch.
    """
    hour = int(now if now is not None else time.time()) // 3600 * 3600
    name = f"{layer.digest.rpartition(':')[2][:24]}-{sandbox_uid()}-{hour}"
    final = home / name
    result = Layer(final, f"{layer.digest}@{hour}")
    if final.is_dir():
        return result
    home.mkdir(exist_ok=True)
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if final.is_dir():
            return result
        _remove_old_copies(home, hour)
        half = home / f"half-{name}"
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o755)
        _copy_layer(layer.root, half)
        _shift_dates(half, hour - SETUP_AGE)
        half.rename(final)
    return result


def _copy_layer(source: Path, target: Path) -> None:
    inner, outer = os.open(source, _DIRECTORY), os.open(target, _DIRECTORY)
    try:
        copy_tree(inner, outer)
    finally:
        os.close(inner)
        os.close(outer)
    shutil.copystat(source, target)


def _shift_dates(tree: Path, newest_becomes: int) -> None:
    paths = [tree, *(Path(top, n) for top, d, f in os.walk(tree) for n in (*d, *f))]
    dates = {path: path.lstat().st_mtime for path in paths}
    newest = max(dates.values())
    for path, date in dates.items():
        if os.geteuid() == 0:
            os.lchown(path, sandbox_uid(), sandbox_uid())
        if date >= newest - _SETUP_WINDOW:
            moved = date - newest + newest_becomes
            os.utime(path, (moved, moved), follow_symlinks=False)


def _remove_old_copies(home: Path, hour: int) -> None:
    for copy in home.iterdir():
        stamp = copy.name.rpartition("-")[2]
        if copy.is_dir() and stamp.isdigit() and int(stamp) < hour - _MAX_COPY_AGE:
            shutil.rmtree(copy, ignore_errors=True)
