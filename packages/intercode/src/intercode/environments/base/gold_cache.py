"""Caches the states that golds reach, so that stable golds need not run again.

`intercode check` runs each gold twice. If both runs reach the same state, it writes that state to
the cache, unless one before it in the task is not cached. The key of an entry covers everything
that the state depends on: gold and setup, content of image and layers, limits, network, session,
kernel, and the code of this package that creates and reads sandboxes. Golds that read a clock or
the machine are never cached, nor golds that ran with a network or on an image without a digest. An
entry is valid for one day. An entry that holds for one dating of the files only (see
sandbox/images/build/layer_dates.py) is valid for that dating. The files lie in the cache directory,
which no sandbox can read.
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
from functools import cache, lru_cache
from itertools import takewhile
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
"""Code whose result may depend on the time or the machine."""

_DETERMINISTIC_CODE = re.compile(
    r"""(?<![\w./-])find\s/\s-path\s/proc\s-prune\s-o\s-path\s/sys\s-prune\s-o\s(?!.*\s-d(?:epth|elete)?\b)
      |(?<=-exec\s)ls\s-\w+\s\{\}\s(?:\\;|\+)\s*\|\s*wc\s-l(?=\s*(?:\Z|[|;&)]))
      |(?<=-exec\s)(?:mv|cp)\s-t\s/(?=\s)
      |(?<![\w./-])n?cal\s(?:-\d\s)?\d{1,2}\s\d{4}(?![\w-])""",
    re.VERBOSE | re.DOTALL,
)
"""Code that looks as if it depended on the time or the machine, and does not: a search that prunes
/proc and /sys (`-depth` and `-delete` turn that off), a count of the lines of `ls`, a move to `/`,
the calendar of a named month."""

_TREE_WALK = re.compile(
    r"(?<![\w./-])(?:find|tree|ls\s+-\w*R\w*|[ef]?grep\s+(?:-\w+\s+)*-\w*[rR]\w*)(?P<rest>[^|;&]*)"
)
"""Commands that read a directory tree. From `/` they also read /proc, which changes all the
time."""
_CHANGES_DIRECTORY = re.compile(r"\bcd (?:/\w[\w.-]*)+/?\s*(?:&&|;)(?:(?!\bcd\b)[^()])*\Z")
"""Code that changes to a directory below `/`, whose shell then runs what follows."""
_EXPLICIT_PATH = re.compile(r"""["']?(?:~|/[\w.])""")


@runtime_checkable
class CachesGolds(Protocol):
    """An environment with a cache of golds. ``use_gold_cache``: whether it reads the cache."""

    use_gold_cache: bool

    def cache_golds(self, states: Sequence[State], current_dates_only: bool) -> bool:
        """Write the states of the current task's golds, up to the first that is not cacheable.
        Returns False if that is the first of all.

        ``current_dates_only``: the states hold for the current dating of the files only.
        """
        ...


@lru_cache(maxsize=4096)  # every score asks for the golds of its task
def nondeterminism_reason(code: str, cwd: str) -> str:
    """Return why the result of code may depend on time or machine. Empty: nothing suggests it."""
    code = _DETERMINISTIC_CODE.sub(":", code)
    if match := _NONDETERMINISTIC_CODE.search(code):
        return f"it uses {match.group().strip()!r}, which depends on time, machine or chance"
    if _reads_whole_tree(code, cwd):
        return "it reads the tree from / down, and so /proc, which changes all the time"
    return ""


def count_cacheable(task: Task, spec: SandboxSpec) -> int:
    """Return how many golds of a task, from the first, may be cached, provided that they are
    stable. Each gold runs in a sandbox of its own, so the others do not matter."""
    if spec.network != "none" or spec.image.root is None:
        return 0
    if nondeterminism_reason(task.setup or "", task.cwd):
        return 0
    return len(list(takewhile(lambda code: not nondeterminism_reason(code, task.cwd), task.golds)))


def _reads_whole_tree(code: str, cwd: str) -> bool:
    """Return whether code may read the directory tree from `/` down."""
    for walk in _TREE_WALK.finditer(code):
        words = walk["rest"].split()
        in_root = cwd == "/" and not _CHANGES_DIRECTORY.search(code, 0, walk.start())
        if "/" in words or (in_root and not any(map(_EXPLICIT_PATH.match, words))):
            return True
    return False


def contains_current_time(text: str, now: float) -> bool:
    """Return whether a text may contain the current day, hour or minute.

    ``now`` is in seconds since the epoch. A gold that prints the time prints another text tomorrow.
    """
    marks = {str(int(now))[:5]}
    for moment in (now - 60, now):
        for at in (time.gmtime(moment), time.localtime(moment)):
            marks |= {time.strftime(form, at) for form in ("%H:%M", "%Y", "%b %e", "%e %b", "%D")}
    return any(mark.strip() in text for mark in marks)


def load_golds(task: Task, spec: SandboxSpec, session: str) -> list[State] | None:
    """Return the cached states of a task's golds in their order, or None if not even that of the
    first is cached. Those of the last golds may be missing.

    Removes an entry that is broken or expired.
    """
    count = count_cacheable(task, spec)
    if not count:
        return None
    for current_dates_only in (False, True):
        key = _entry_key(task, spec, session, current_dates_only)
        path = _cache_directory() / f"{_digest(key)}.json"
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError:
            return None
        states = _parse_entry(data, key)
        if states is not None and 0 < len(states) <= count:
            return states
        with suppress(OSError):
            path.unlink()
    return None


def save_golds(
    task: Task, spec: SandboxSpec, session: str, states: Sequence[State], current_dates_only: bool
) -> bool:
    """Write the states of a task's golds, up to the first gold that is not cacheable because it
    reads a clock or prints the time. ``current_dates_only``: see ``CachesGolds``.

    Returns False if none is written. The states may also be too large.
    """
    now = time.time()
    states = states[: count_cacheable(task, spec)]
    states = list(takewhile(lambda s: not contains_current_time(s.output or "", now), states))
    if not states:
        return False
    key = _entry_key(task, spec, session, current_dates_only)
    body = json.dumps({"key": key, "verified_at": now, "states": [to_jsonable(s) for s in states]})
    if len(body) > _MAX_ENTRY_BYTES:
        return False
    home = _cache_directory()
    home.mkdir(exist_ok=True, mode=0o700)
    _remove_expired(home, now)
    fd, temporary = tempfile.mkstemp(dir=home, prefix=".")
    with open(fd, "w", encoding="ascii") as f:
        f.write(f"{_digest(body)}\n{body}")
    os.replace(temporary, home / f"{_digest(key)}.json")
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


def _entry_key(task: Task, spec: SandboxSpec, session: str, current_dates_only: bool) -> str:
    """Return a text of everything that the state of a gold depends on."""
    layers = [layer.digest for layer in spec.layers]
    if not current_dates_only:
        layers = [digest.partition("@")[0] for digest in layers]
    others = {
        f.name: repr(getattr(spec, f.name)) for f in fields(spec) if f.name not in _DIGESTED_FIELDS
    }
    return json.dumps(
        {
            "golds": task.golds,
            "setup": task.setup,
            "cwd": task.cwd,
            "dated": current_dates_only,
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
def _machine() -> tuple[str, str, int | None]:
    """Return what the state of a gold may depend on of the machine."""
    return platform.release(), platform.machine(), os.cpu_count()


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


def _remove_expired(home: Path, now: float) -> None:
    for path in home.iterdir():
        with suppress(OSError):
            if now - path.stat().st_mtime > MAX_AGE:
                path.unlink()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
