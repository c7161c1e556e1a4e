"""Copies layers with shifted dates, so that their files always look freshly set up.

Tasks ask for files that changed in the last hour, week or month. The files of a cached layer grow
older and the answers would change, so such a layer is copied once per hour with shifted dates.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.overlay_format import copy_tree
from intercode_sandbox.platforms.files import O_CLOEXEC, O_DIRECTORY, lock_file
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.remote.references import RemoteLayer
from intercode_sandbox.types import Layer

SETUP_AGE = 2 * 3600
"""Seconds between the set-up and the hour in which the layer is used."""
_SETUP_WINDOW = (
    3600  # seconds: files at most this much older than the newest were written by set-up
)
_MAX_COPY_AGE = 48 * 3600  # seconds after which a copy is removed
_DIRECTORY = os.O_RDONLY | O_DIRECTORY | O_CLOEXEC


def redated_layer(layer: Layer, home: Path, now: float | None = None) -> Layer:
    """Return the layer with the dates of its set-up shifted to two hours before the current hour.

    Files that are more than an hour older than the newest keep their dates, which set-up chose.
    ``home`` is the directory of the copies; ``now`` is in seconds since the epoch.
    """
    hour = int(now if now is not None else time.time()) // 3600 * 3600
    if isinstance(layer, RemoteLayer):
        return layer.redated(hour)
    name = f"{layer.digest.rpartition(':')[2][:24]}-{sandbox_uid()}-{hour}"
    final = home / name
    result = Layer(final, f"{layer.digest}@{hour}")
    if final.is_dir():
        return result
    home.mkdir(exist_ok=True)
    with open(home / "lock", "w") as lock:
        lock_file(lock)
        if final.is_dir():
            return result
        _remove_old_copies(home, hour)
        partial = home / f"half-{name}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o755)
        _copy_layer(layer.root, partial)
        _shift_dates(partial, hour - SETUP_AGE)
        partial.rename(final)
    return result


def stopped_clock_copies(cache: Path, now: int) -> Path:
    """Return the directory of the copies for a stopped clock, which do not age. Those that nobody
    has used for two days are removed."""
    home = cache / "dated" / f"clock.{now // 3600}"
    home.mkdir(parents=True, exist_ok=True)
    os.utime(home)
    for other in home.parent.glob("clock.*"):
        with suppress(OSError):
            if other.stat().st_mtime < time.time() - _MAX_COPY_AGE:
                remove_tree(other)
    return home


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
