"""Processes, control groups and files of a process that opens sandboxes, to detect when they are
gone."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Alive = tuple[int, str]
"""A process: its number and its start, because numbers are reused."""


@dataclass(frozen=True, slots=True)
class Family:
    """A process and all its descendants, by role."""

    owner: Alive
    launchers: tuple[Alive, ...]
    supervisors: tuple[Alive, ...]
    inits: tuple[Alive, ...]
    others: tuple[Alive, ...]

    @property
    def sandboxes(self) -> tuple[Alive, ...]:
        """Return all processes except the owner and its launchers."""
        return (*self.supervisors, *self.inits, *self.others)


def family(owner: int) -> Family:
    """Return the launchers of a process, their supervisors (also those of prewarmed sandboxes), and
    the processes in the sandboxes."""
    children: defaultdict[int, list[Alive]] = defaultdict(list)
    for pid, parent, when in _table():
        children[parent].append((pid, when))
    launchers = tuple(p for p in children[owner] if _name(p[0]) == "intercode")
    supervisors = tuple(k for launcher in launchers for k in children[launcher[0]])
    inside = [p for supervisor in supervisors for p in _descendants(supervisor[0], children)]
    inits = tuple(p for p in inside if _number_inside(p[0]) == 1)
    others = tuple(p for p in inside if p not in inits)
    return Family((owner, started(owner)), launchers, supervisors, inits, others)


def living(processes: tuple[Alive, ...]) -> list[Alive]:
    """Return the processes that still run; zombies do not count."""
    return [p for p in processes if p[1] and started(p[0]) == p[1]]


def groups_of(launchers: tuple[Alive, ...]) -> list[Path]:
    """Return the existing control groups of these launchers."""
    names = {f".{pid}.{when}." for pid, when in launchers}
    top = Path("/sys/fs/cgroup")
    found = []
    for directory, below, _ in os.walk(top):
        found += [Path(directory, d) for d in below if any(name in f".{d}" for name in names)]
        if len(Path(directory).relative_to(top).parts) > 4:
            below.clear()
    return found


def eventually(condition: Callable[[], object], seconds: float) -> float | None:
    """Return the seconds until a condition holds, or None if it does not hold in time."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            return None
        time.sleep(0.01)
    return time.monotonic() - start


def proportional(processes: tuple[Alive, ...]) -> int:
    """Return the bytes of memory of processes; shared memory is divided among its users. For
    processes that this user may not inspect, the resident memory counts."""
    return sum(_memory(pid) for pid, _ in processes)


def _memory(pid: int) -> int:
    for name, word in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with suppress(OSError), open(f"/proc/{pid}/{name}", errors="replace") as f:
            for line in f:
                if line.startswith(word):
                    return int(line.split()[1]) << 10
    return 0


def sleeping(family: Family) -> list[Alive]:
    """Return the processes called ``sleep`` in the sandboxes of a family."""
    return [process for process in family.others if _comm(process[0]) == "sleep"]


def _comm(pid: int) -> str:
    with suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def sandbox_of(pid: int) -> tuple[int, int]:
    """Return PID 1 and the supervisor of the sandbox of a process."""
    space = os.readlink(f"/proc/{pid}/ns/pid")
    parent = pid
    while os.readlink(f"/proc/{parent}/ns/pid") == space:
        parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    inits = [int(c) for c in children if _is_init(int(c))]
    return inits[0], parent


def _is_init(pid: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(x for x in lines if x.startswith("NSpid:")).split()[-1] == "1"


def _table() -> Iterator[tuple[int, int, str]]:
    """Return number, parent and start of every process that has not ended."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        fields = _fields(int(entry))
        if fields:
            yield int(entry), int(fields[1]), fields[19]


def _fields(pid: int) -> list[str]:
    """Return the fields of a live process after its name; none if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[0] in "ZX" and int(fields[17]) <= 1 else fields


def started(pid: int) -> str:
    """Return the start of a process in clock ticks since boot; empty if it has ended."""
    fields = _fields(pid)
    return fields[19] if fields else ""


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode(errors="replace")
    return ""


def _number_inside(pid: int) -> int:
    with suppress(OSError), open(f"/proc/{pid}/status", errors="replace") as f:
        for line in f:
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def _descendants(pid: int, children: dict[int, list[Alive]]) -> list[Alive]:
    found: list[Alive] = []
    left = [pid]
    while left:
        more = children.get(left.pop(), [])
        found += more
        left += [p for p, _ in more]
    return found
