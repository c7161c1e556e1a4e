"""What the kernel says of a container's bounds: read from its own control group, as it sees it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from intercode.sandbox.contract import LimitExceeded, Limits
from intercode.sandbox.supervisor.connection import SupervisorConnection
from intercode.sandbox.supervisor.control_group import CgroupCounter, ControlGroup
from intercode.sandbox.supervisor.runtime import cgroup_paths

SHARED_MEMORY_SIZE = 64 << 20
"""Bytes that a container may have in /dev/shm, beside what its processes may use."""
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
"""What is counted, the line that counts it, and of version 1 and 2 the file with that line and the
one with the bound."""
_CGROUP_MOUNT = "/sys/fs/cgroup/"


def open_control_group(keeper: int) -> ControlGroup | None:
    """A container's control group as this process may use it: to halt all of it at once. None where
    it may not, or sees no group that is the container's alone."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        paths = cgroup_paths.find_groups(mounts, Path(f"/proc/{keeper}/cgroup").read_text())
        own = cgroup_paths.own_groups()
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
    """The counters of one container, of version 1 or 2: descriptors that its keeper has opened.

    Without root, and under control groups of version 1, engines start a container in the group of
    who starts it: such a group bounds nothing, and its counters are not the container's.
    """

    def __init__(self, link: SupervisorConnection, limits: Limits) -> None:
        self._counters: dict[LimitExceeded, CgroupCounter] = {}
        most = {"memory": limits.memory + SHARED_MEMORY_SIZE, "processes": max(limits.processes, 3)}
        for limit, word, files in _COUNTERS:
            for counter, bound in files:
                with suppress(OSError):
                    if _is_within(link, _CGROUP_MOUNT + bound, most[limit]):
                        file = link.request_fd("open", path=_CGROUP_MOUNT + counter)
                        self._counters[limit] = CgroupCounter(file, word)
                    break
        self.limit_exceeded()  # what was before does not count

    @property
    def counts_memory(self) -> bool:
        """Whether the kernel counts what was killed for the memory."""
        return "memory" in self._counters

    def limit_exceeded(self) -> LimitExceeded:
        """What the kernel has ended a process for, or refused one, since this was last asked."""
        met = [limit for limit, counter in self._counters.items() if counter.increased()]
        return met[0] if met else ""

    def close(self) -> None:
        """Free the descriptors. May be called again."""
        counters, self._counters = self._counters, {}
        for counter in counters.values():
            counter.close()


def _is_within(link: SupervisorConnection, path: str, most: int) -> bool:
    """Whether a group's bound is no more than was asked for. Raises OSError where it has none."""
    with open(link.request_fd("open", path=path), "rb") as f:
        text = f.read().strip()
    return text.isdigit() and int(text) <= most
