"""Golds that need not run again: `check` has seen them do the same twice, and kept what they leave.

An entry is found under everything that it depends on: the gold and its setup, image and layers by
content, limits, network, session, kernel, and this package's own code as far as it makes and reads
a box. What reads a clock or the machine is never kept, nor what ran with a network or on an image
that its digest does not name. A proof is good for a day; one that holds for one dating of the files
only (see sandbox/images/build/layer_dates.py), for that dating. Entries lie in the cache, out of every box's reach.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import intercode
from intercode.core.paths import cache_root
from intercode.core.types import FileEntry, State, Task, to_jsonable
from intercode.sandbox import SandboxSpec

ENABLE_VARIABLE = "INTERCODE_GOLD_CACHE"
"""An environment variable: 0 turns the cache off."""
MAX_AGE = 24 * 3600.0
"""Seconds for which a proof is trusted."""
_MAX_ENTRY_BYTES = 8 << 20  # bytes of an entry: what is larger is cheaper to run again
_DIGESTED_PATHS = (
    "core/types",
    "sandbox",
    "sessions",
    "environments/base/layers.py",
    "environments/bash/profiles.py",
    "environments/base/gold_cache.py",
)
_DIGESTED_FIELDS = (
    "image",
    "layers",
    "upper",
)  # parts of a specification that their digests stand for
_NONDETERMINISTIC_CODE = re.compile(
    r"""(?:(?<![\w./%-])|(?<=bin/))(?:date|n?cal|uptime|who|last|lastlog|ps|p?top|pstree|pgrep|pidof|free|df|du
      |vmstat|iostat|lsof|fuser|mount|findmnt|uname|nproc|lscpu|hostid|mktemp|shuf|openssl|uuidgen
      |stat|times|jobs|ping|curl|wget|dig|host|nslookup)(?![\w.=/-])
      |(?:^|[|;&(`])\s*w(?:\s*$|\s*[|;&]|\s+-)
      |/proc\b|/sys\b|/dev/u?random|RANDOM|SECONDS|EPOCH|BASHPID|PPID|\$\$|\$!
      |%\([^)]*\)T|-printf\b.*%[AaCcTtDi]|-f?ls\b|-daystart|-newer|-[amc](?:time|min)\b|--time
      |sort\s+-R|\bls\b[^|;&]*\s-\w*[lgnoicsu]|--full-time|\btree\b[^|;&]*\s-\w*[Dsh]""",
    re.VERBOSE | re.MULTILINE,
)
"""Words of code whose result may depend on when, or on what machine, it runs."""

_TREE_WALK = re.compile(
    r"(?<![\w./-])(?:find|tree|ls\s+-\w*R\w*|[ef]?grep\s+(?:-\w+\s+)*-\w*[rR]\w*)(?P<rest>[^|;&]*)"
)
"""What reads a tree. From `/` it reads /proc too: what it sees there is a race."""
_EXPLICIT_PATH = re.compile(r"""["']?(?:~|/[\w.])""")


@runtime_checkable
class CachesGolds(Protocol):
    """An environment whose golds can be kept. ``cached_golds``: whether it uses what is kept."""

    use_gold_cache: bool

    def cache_golds(self, states: Sequence[State], current_dates_only: bool) -> bool:
        """Keep what the current task's golds leave; False where that may not be.

        ``dated``: it was seen for the current dating of the files only.
        """
        ...


def is_enabled() -> bool:
    """Whether the cache may be used in this process."""
    return os.environ.get(ENABLE_VARIABLE, "1") != "0"


def nondeterminism_reason(code: str, cwd: str) -> str:
    """Why the result of code may depend on when, or where, it runs; empty: nothing shows that."""
    if found := _NONDETERMINISTIC_CODE.search(code):
        return f"it uses {found.group().strip()!r}, which tells the time, the machine or chance"
    if _reads_whole_tree(code, cwd):
        return "it reads the tree from / down, and so /proc, which changes under it"
    return ""


def is_cacheable(task: Task, spec: SandboxSpec) -> bool:
    """Whether nothing speaks against keeping a task's golds, once they were seen to be steady."""
    if not is_enabled() or spec.network != "none" or spec.image.root is None or not task.golds:
        return False
    return not any(
        nondeterminism_reason(code, task.cwd) for code in (*task.golds, task.setup or "")
    )


def _reads_whole_tree(code: str, cwd: str) -> bool:
    """Whether code may read the tree from `/` down."""
    for walk in _TREE_WALK.finditer(code):
        words = walk["rest"].split()
        if "/" in words or (cwd == "/" and not any(map(_EXPLICIT_PATH.match, words))):
            return True
    return False


def contains_current_time(text: str, now: float) -> bool:
    """Whether a text holds what could be a rendering of this day, hour or minute (in seconds since
    the epoch): a gold that printed it would print something else tomorrow."""
    marks = {str(int(now))[:5]}
    for moment in (now - 60, now):
        for at in (time.gmtime(moment), time.localtime(moment)):
            marks |= {time.strftime(form, at) for form in ("%H:%M", "%Y", "%b %e", "%e %b", "%D")}
    return any(mark.strip() in text for mark in marks)


def load_golds(task: Task, spec: SandboxSpec, session: str) -> list[State] | None:
    """What the golds of a task are known to leave, in their order, or None.

    What cannot be read, is not whole, or has outlived its proof is removed.
    """
    if not is_cacheable(task, spec):
        return None
    for dated in (False, True):
        key = _entry_key(task, spec, session, dated)
        path = _cache_directory() / f"{_digest(key)}.json"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError:
            return None
        states = _parse_entry(data, key)
        if states is not None and len(states) == len(task.golds):
            return states
        with suppress(OSError):
            path.unlink()
    return None


def save_golds(
    task: Task, spec: SandboxSpec, session: str, states: Sequence[State], current_dates_only: bool
) -> bool:
    """Keep what the golds leave. ``dated``: for the current dating of the files only.

    False where it may not be kept: what reads a clock, what prints the time, what is too large.
    """
    now = time.time()
    if not is_cacheable(task, spec) or any(
        contains_current_time(s.output or "", now) for s in states
    ):
        return False
    key = _entry_key(task, spec, session, current_dates_only)
    body = json.dumps({"key": key, "proven": now, "states": [to_jsonable(s) for s in states]})
    if len(body) > _MAX_ENTRY_BYTES:
        return False
    home = _cache_directory()
    _remove_expired(home, now)
    fd, half = tempfile.mkstemp(dir=home, prefix=".")
    with open(fd, "w", encoding="ascii") as f:
        f.write(f"{_digest(body)}\n{body}")
    os.replace(half, home / f"{_digest(key)}.json")
    return True


def _parse_entry(data: bytes, key: str) -> list[State] | None:
    """The states of an entry that is whole, of this key and not too old."""
    try:
        digest, _, body = data.decode("ascii").partition("\n")
        if digest != _digest(body):
            return None
        entry = json.loads(body)
        if entry["key"] != key or not 0 <= time.time() - entry["proven"] < MAX_AGE:
            return None
        return [_state_from_row(row) for row in entry["states"]]
    except (ValueError, KeyError, TypeError):
        return None


def _state_from_row(row: Mapping[str, Any]) -> State:
    files = {path: FileEntry(**entry) for path, entry in row["files"].items()}
    return State(row["output"], files, cwd=row["cwd"], exit_code=row["exit_code"])


def _entry_key(task: Task, spec: SandboxSpec, session: str, dated: bool) -> str:
    """Everything that a gold's end state depends on, as text."""
    layers = [layer.digest for layer in spec.layers]
    if not dated:
        layers = [digest.partition("@")[0] for digest in layers]
    others = {
        f.name: repr(getattr(spec, f.name)) for f in fields(spec) if f.name not in _DIGESTED_FIELDS
    }
    return json.dumps({
        "golds": task.golds, "setup": task.setup, "cwd": task.cwd, "dated": dated,
        "image": [spec.image.digest, dict(spec.image.env)], "layers": layers, "spec": others,
        "machine": [platform.release(), platform.machine(), os.cpu_count()],
        "session": session, "code": _code_digest(),
    }, sort_keys=True)  # fmt: skip


@cache
def _code_digest() -> str:
    """A digest of the part of this package that makes, fills and reads a box."""
    home = Path(intercode.__file__).parent
    total = hashlib.sha256(intercode.__version__.encode())
    for name in _DIGESTED_PATHS:
        files = sorted((home / name).rglob("*.py")) if "." not in name else [home / name]
        if not files or not files[0].is_file():
            raise FileNotFoundError(f"the gold cache's digest names {name}, which is not in {home}")
        for path in files:
            total.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _cache_directory() -> Path:
    home = cache_root() / "golds"
    home.mkdir(exist_ok=True, mode=0o700)
    return home


def _remove_expired(home: Path, now: float) -> None:
    for path in home.iterdir():
        with suppress(OSError):
            if now - path.stat().st_mtime > MAX_AGE:
                path.unlink()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
