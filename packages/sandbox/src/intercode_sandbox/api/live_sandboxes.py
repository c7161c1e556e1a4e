"""Records which sandboxes of this user are live, so that another process can list and end them.

Each has a small file in the cache, which names its owner process and its supervisor. Numbers of
processes are used again, so a record also has the time at which each process started, and the
records of each process namespace have a directory of their own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import SandboxError, UsageError
from intercode_sandbox.platforms.paths import cache_root

_numbers = count()
_swept: set[Path] = set()
"""Directories from which this process has removed the records of ended processes."""


@dataclass(frozen=True, slots=True)
class LiveSandbox:
    """A live sandbox. ``pid``: its supervisor, a process of this machine, or its owner if it has
    none here. ``owner``: the process that opened it. ``opened``: seconds since 1970. ``memory``:
    bytes, None if it cannot be measured from here."""

    pid: int
    owner: int
    image: str
    tier: str
    opened: float
    memory: int | None


def record_live(base: BaseSandbox) -> Path | None:
    """Record an open sandbox. Return its record, or None where none can be written."""
    if sys.platform != "linux":
        return None
    owner = os.getpid()
    supervisor: int = getattr(base, "supervisor_pid", 0)
    values = {
        "pid": supervisor,
        "pid_ticks": _start_ticks(supervisor),
        "owner_ticks": _start_ticks(owner),
        "image": base.spec.image.name,
        "tier": base.tier,
        "opened": time.time(),
    }
    with suppress(OSError):  # a cache that this process may only read, or a full disk
        directory = _directory()
        path = directory / f"{owner}-{next(_numbers)}"
        if directory not in _swept:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _remove_ended(directory)
            _swept.add(directory)
        path.write_text(json.dumps(values))
        return path
    return None


def remove_record(path: Path | None) -> None:
    """Remove the record of a closed sandbox. May be called again."""
    if path is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def list_live(measure: bool = True) -> list[LiveSandbox]:
    """Return the live sandboxes that programs of this user have opened through
    ``intercode_sandbox.Sandbox``, the oldest first. ``measure``: also their memory."""
    found = [_describe(path, values, measure) for path, values in _read_records()]
    return sorted(found, key=lambda live: live.opened)


def end_live(pid: int) -> LiveSandbox:
    """End a sandbox of ``list_live`` with all its processes; its owner then finds it lost. Raises
    UsageError for another process, SandboxError if the sandbox has no process here that could be
    ended without its owner."""
    for path, values in _read_records():
        live = _describe(path, values, measure=False)
        if live.pid != pid:
            continue
        if live.pid == live.owner:
            raise SandboxError(
                f"the sandbox has no process of its own here: end its owner, the process {pid}"
            )
        handle = os.pidfd_open(pid)
        try:
            # the handle keeps the number: it is the process of the record, or nothing is sent
            if _start_ticks(pid) == values["pid_ticks"]:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except PermissionError as e:
            raise SandboxError(
                f"the process {pid} of the sandbox belongs to another user: end its owner, the "
                f"process {live.owner}"
            ) from e
        finally:
            os.close(handle)
        return live
    raise UsageError(f"no live sandbox has the process {pid}; see `intercode-sandbox list`")


def _directory() -> Path:
    """Return the directory for the records of this process namespace."""
    return cache_root() / "live" / str(os.stat("/proc/self/ns/pid").st_ino)


def _remove_ended(directory: Path) -> None:
    """Remove the records of processes that have ended without closing their sandboxes."""
    for name in os.listdir(directory):
        if not os.path.exists(f"/proc/{name.partition('-')[0]}"):
            with suppress(OSError):
                os.unlink(directory / name)


def _read_records() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the records of sandboxes whose owner and supervisor are live."""
    if sys.platform != "linux":
        return
    directory = _directory()
    for path in directory.iterdir() if directory.is_dir() else ():
        try:
            values = json.loads(path.read_text())
        except (OSError, ValueError):  # removed, or not yet written
            continue
        is_live = values["owner_ticks"] == _start_ticks(_owner(path))
        if is_live and values["pid_ticks"] == _start_ticks(values["pid"]):
            yield path, values


def _describe(path: Path, values: dict[str, Any], measure: bool) -> LiveSandbox:
    owner, supervisor = _owner(path), values["pid"]
    memory = None
    if measure and supervisor:
        from intercode_sandbox.supervisor.watchdog import measure_processes  # only on Linux

        memory = measure_processes(supervisor)[1]
    return LiveSandbox(
        supervisor or owner, owner, values["image"], values["tier"], values["opened"], memory
    )


def _owner(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return int(fields[19])
