"""Caches the states that golds reach, so that stable golds need not run again.

Whether a gold is stable is found by running it, never by reading it: `intercode check` runs golds
under several clocks and seeds (see evaluation/check/stable_golds.py) and writes the states to the
cache, up to the first of a task that differs. What no clock varies, such as the use of the machine,
may be equal by chance. So a cached state can only confirm a success: before any other score, the
golds run, and what they reach counts (see ``Profile.rerun_cached_golds``). An entry that turns out
to be of another state is removed.

The key of an entry covers everything that the state depends on: gold and setup, content of image
and layers, limits, network, session, the running system of this machine, and the code of this
package that creates and reads sandboxes. Golds that ran with a network or on an image without a
digest are never cached. An entry is valid for one day. The files lie in the cache directory, which
no sandbox can read.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import intercode
import intercode_sandbox
from intercode.core.types import FileEntry, State, Task, to_jsonable, tree_digest
from intercode_sandbox import SandboxSpec
from intercode_sandbox.platforms.paths import cache_root

MAX_AGE = 24 * 3600.0
"""Seconds for which an entry is valid."""
_MAX_ENTRY_BYTES = 8 << 20  # running the gold again is cheaper than reading more
_DIGESTED_PATHS = (
    "core/types",
    "sessions",
    "environments/base/diffs/initial_files.py",
    "environments/base/diffs/lower_layers.py",
    "environments/base/progress/initial_state.py",
    "environments/base/layers.py",
    "environments/bash/profiles.py",
    "environments/base/gold_cache.py",
)
"""The code on which cached states depend: folders and files of this package, beside all of the
sandboxes."""
_DIGESTED_FIELDS = ("image", "layers", "upper")
"""Fields of a specification that the key holds as digests."""


@runtime_checkable
class CachesGolds(Protocol):
    """An environment with a cache of golds. ``use_gold_cache``: whether it reads the cache."""

    use_gold_cache: bool

    def may_cache_golds(self) -> bool:
        """Return whether stable golds of the current task may be cached."""
        ...

    def cache_golds(self, states: Sequence[State]) -> bool:
        """Write the states of the current task's first golds. Returns False if none is written."""
        ...


def may_cache(spec: SandboxSpec) -> bool:
    """Return whether golds that run in such sandboxes may be cached, provided that they are
    stable."""
    return spec.network == "none" and spec.image.root is not None


def load_golds(task: Task, spec: SandboxSpec, session: str) -> list[State] | None:
    """Return the cached states of a task's golds in their order, or None if not even that of the
    first is cached. Those of the last golds may be missing.

    Removes an entry that is broken or expired.
    """
    key = _entry_key(task, spec, session)
    path = _path(key)
    try:
        states = _parse_entry(path.read_bytes(), key)
    except OSError:
        return None
    if states:
        return states
    with suppress(OSError):
        path.unlink()
    return None


def remove_golds(task: Task, spec: SandboxSpec, session: str) -> None:
    """Remove the entry of a task whose golds have reached another state than the cached one."""
    _path(_entry_key(task, spec, session)).unlink(missing_ok=True)


def save_golds(task: Task, spec: SandboxSpec, session: str, states: Sequence[State]) -> bool:
    """Write the states of a task's first golds.

    Returns False if none is written. The states may also be too large.
    """
    now = time.time()
    if not states or not may_cache(spec):
        return False
    key = _entry_key(task, spec, session)
    body = json.dumps({"key": key, "verified_at": now, "states": [to_jsonable(s) for s in states]})
    if len(body) > _MAX_ENTRY_BYTES:
        return False
    home = _cache_directory()
    home.mkdir(exist_ok=True, mode=0o700)
    _remove_expired(home, now)
    fd, temporary = tempfile.mkstemp(dir=home, prefix=".")
    with open(fd, "w", encoding="ascii") as f:
        f.write(f"{_digest(body)}\n{body}")
    os.replace(temporary, _path(key))
    return True


def _parse_entry(data: bytes, key: str) -> list[State] | None:
    """Return the states of an entry, or None if it is broken, expired or of another key."""
    try:
        digest, _, body = data.decode("ascii").partition("\n")
        if digest != _digest(body):
            return None
        entry = json.loads(body)
        if entry["key"] != key or not 0 <= time.time() - entry["verified_at"] < MAX_AGE:
            return None
        return [_state_from_row(row) for row in entry["states"]]
    except (ValueError, KeyError, TypeError):
        return None


def _state_from_row(row: Mapping[str, Any]) -> State:
    files, initial_files = (
        {path: FileEntry(**entry) for path, entry in row[name].items()}
        for name in ("files", "initial_files")
    )
    return State(
        row["output"],
        files,
        cwd=row["cwd"],
        exit_code=row["exit_code"],
        texts=row["texts"],
        initial_files=initial_files,
        initial_texts=row["initial_texts"],
    )


def _entry_key(task: Task, spec: SandboxSpec, session: str) -> str:
    """Return a text of everything that the state of a stable gold depends on: not the dates of
    layers, which follow the clock (see sandbox/images/build/layer_dates.py)."""
    layers = [layer.digest.partition("@")[0] for layer in spec.layers]
    others = {
        f.name: repr(getattr(spec, f.name)) for f in fields(spec) if f.name not in _DIGESTED_FIELDS
    }
    return json.dumps(
        {
            "golds": task.golds,
            "setup": task.setup,
            "cwd": task.cwd,
            "files": tree_digest(task.initial_files),
            "image": [spec.image.digest, dict(spec.image.env)],
            "layers": layers,
            "spec": others,
            "machine": _machine(),
            "session": session,
            "code": _code_digest(),
        },
        sort_keys=True,
    )


@cache
def _machine() -> tuple[str, str, str, str]:
    """Return what the state of a gold may depend on of the machine, which is the same until it
    starts again: kernel, processors, memory, file systems."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:  # another system than Linux
        boot = ""
    processors = (
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    return platform.release(), platform.machine(), repr(processors), boot


@cache
def _code_digest() -> str:
    """Return a digest of the code of this package that creates, fills and reads sandboxes."""
    home, sandboxes = Path(intercode.__file__).parent, Path(intercode_sandbox.__file__).parent
    total = hashlib.sha256(intercode.__version__.encode())
    for place, name in ((sandboxes, ""), *((home, name) for name in _DIGESTED_PATHS)):
        files = sorted((place / name).rglob("*.py")) if "." not in name else [place / name]
        if not files or not files[0].is_file():
            raise FileNotFoundError(f"the gold cache's digest names {name}: not in {place}")
        for path in files:
            total.update(path.relative_to(place).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _cache_directory() -> Path:
    return cache_root() / "golds"


def _path(key: str) -> Path:
    return _cache_directory() / f"{_digest(key)}.json"


def _remove_expired(home: Path, now: float) -> None:
    for path in home.iterdir():
        with suppress(OSError):
            if now - path.stat().st_mtime > MAX_AGE:
                path.unlink()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
