"""Reads which limits a container exceeded from its control group."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.contract import LimitExceeded, Limits
from intercode_sandbox.supervisor.connection import SupervisorConnection
from intercode_sandbox.supervisor.control_group import CgroupCounter, ControlGroup
from intercode_sandbox.supervisor.runtime import cgroups

SHARED_MEMORY_SIZE = 64 << 20
"""Size of a container's /dev/shm in bytes, in addition to the memory of its processes."""
_COUNTERS: tuple[tuple[LimitExceeded, bytes, tuple[tuple[str, str], ...]], ...] = (
    (
        "memory",
        b"oom_kill",
        (
            ("memory/memory.oom_control", "memory/memory.limit_in_bytes"),
            ("memory.events", "memory.max"),
        ),
    ),
    ("processes", b"max", (("pids/pids.events", "pids/pids.max"), ("pids.events", "pids.max"))),
)
"""Per limit: the line with its counter and, for control groups of version 1 and 2, the file with
this line and the file with the limit."""
_CGROUP_MOUNT = "/sys/fs/cgroup/"


def open_control_group(supervisor_pid: int) -> ControlGroup | None:
    """Return a container's control group for freezing it. Returns None if this process may not
    freeze it, or sees no group of this container alone."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        paths = cgroups.find_groups(mounts, Path(f"/proc/{supervisor_pid}/cgroup").read_text())
        own = cgroups.own_groups()
    except (OSError, ValueError):
        return None
    names = [""] if "memory" not in paths else ["memory", "pids", "freezer"]
    if any(name not in paths or paths[name] == own.get(name) for name in names):
        return None
    top = paths[names[-1]]
    file = f"{top}/{'freezer.state' if len(names) > 1 else 'cgroup.freeze'}"
    if not os.access(file, os.W_OK):
        return None
    return ControlGroup({name: paths[name] for name in names}, 0)


class LimitCounters:
    """The counters of one container, for control groups of version 1 or 2, on descriptors that its
    supervisor has opened.

    Without root and with control groups of version 1, an engine starts containers in its caller's
    group, which has neither limits nor counters of the container.
    """

    def __init__(self, connection: SupervisorConnection, limits: Limits) -> None:
        self._counters: dict[LimitExceeded, CgroupCounter] = {}
        maximum = {
            "memory": limits.memory + SHARED_MEMORY_SIZE,
            "processes": max(limits.processes, 3),
        }
        for limit, word, files in _COUNTERS:
            for counter, bound in files:
                with suppress(OSError):
                    if _is_within(connection, _CGROUP_MOUNT + bound, maximum[limit]):
                        file = connection.request_fd("open", path=_CGROUP_MOUNT + counter)
                        self._counters[limit] = CgroupCounter(file, word)
                    break
        self.limit_exceeded()  # discard earlier events

    @property
    def counts_memory(self) -> bool:
        """Whether the kernel counts processes killed for their memory."""
        return "memory" in self._counters

    def limit_exceeded(self) -> LimitExceeded:
        """Return the limit because of which the kernel killed a process or refused to start one
        since the last call."""
        met = [limit for limit, counter in self._counters.items() if counter.increased()]
        return met[0] if met else ""

    def close(self) -> None:
        """Close the descriptors. May be called again."""
        counters, self._counters = self._counters, {}
        for counter in counters.values():
            counter.close()


def _is_within(connection: SupervisorConnection, path: str, maximum: int) -> bool:
    """Return whether the limit of a group is at most the requested one. Raises OSError if it has
    none."""
    with open(connection.request_fd("open", path=path), "rb") as f:
        text = f.read().strip()
    return text.isdigit() and int(text) <= maximum
