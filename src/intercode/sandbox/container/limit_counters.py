"""What the kernel says of a container's bounds: read from its own control group, as it sees it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from intercode.sandbox.contract import Breach, Limits
from intercode.sandbox.supervisor.connection import KeeperLink
from intercode.sandbox.supervisor.control_group import BoxGroup, Counter
from intercode.sandbox.supervisor.runtime import cgroup_paths

SHARED_MEMORY = 64 << 20
"""Bytes that a container may have in /dev/shm, beside what its processes may use."""
_COUNTERS: tuple[tuple[Breach, bytes, tuple[tuple[str, str], ...]], ...] = (
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
_HOME = "/sys/fs/cgroup/"


def group_of(keeper: int) -> BoxGroup | None:
    """A container's control group as this process may use it: to halt all of it at once. None where
    it may not, or sees no group that is the container's alone."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        paths = cgroup_paths.locate(mounts, Path(f"/proc/{keeper}/cgroup").read_text())
        own = cgroup_paths.here()
    except (OSError, ValueError):
        return None
    names = [""] if "memory" not in paths else ["memory", "pids", "freezer"]
    if any(name not in paths or paths[name] == own.get(name) for name in names):
        return None
    top = paths[names[-1]]
    file = f"{top}/{'freezer.state' if len(names) > 1 else 'cgroup.freeze'}"
    if not os.access(file, os.W_OK):
        return None
    return BoxGroup({name: paths[name] for name in names}, 0)


class Bounds:
    """The counters of one container, of version 1 or 2: descriptors that its keeper has opened.

    Without root, and under control groups of version 1, engines start a container in the group of
    who starts it: such a group bounds nothing, and its counters are not the container's.
    """

    def __init__(self, link: KeeperLink, limits: Limits) -> None:
        self._counters: dict[Breach, Counter] = {}
        most = {"memory": limits.memory + SHARED_MEMORY, "processes": max(limits.processes, 3)}
        for limit, word, files in _COUNTERS:
            for counter, bound in files:
                with suppress(OSError):
                    if _holds(link, _HOME + bound, most[limit]):
                        file = link.given("open", path=_HOME + counter)
                        self._counters[limit] = Counter(file, word)
                    break
        self.breach()  # what was before does not count

    @property
    def memory(self) -> bool:
        """Whether the kernel counts what was killed for the memory."""
        return "memory" in self._counters

    def breach(self) -> Breach:
        """What the kernel has ended a process for, or refused one, since this was last asked."""
        met = [limit for limit, counter in self._counters.items() if counter.rose()]
        return met[0] if met else ""

    def close(self) -> None:
        """Free the descriptors. May be called again."""
        counters, self._counters = self._counters, {}
        for counter in counters.values():
            counter.close()


def _holds(link: KeeperLink, path: str, most: int) -> bool:
    """Whether a group's bound is no more than was asked for. Raises OSError where it has none."""
    with open(link.given("open", path=path), "rb") as f:
        text = f.read().strip()
    return text.isdigit() and int(text) <= most
