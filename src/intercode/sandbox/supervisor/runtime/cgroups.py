"""Control groups: one per box, in which the kernel bounds what the whole box uses.

Moving a process between groups can make the kernel wait for some milliseconds. So the launcher
itself always sits in the group of the next box, which a fork inherits, and moves on afterwards,
when nobody waits for it. A few groups whose boxes have ended are kept for the next ones. Groups lie
below the group that the owner runs in, so that the owner's own bounds still hold for its boxes.
Nothing here is visible from within a box.
"""

from __future__ import annotations

import contextlib
import errno
import os

from .cgroup_paths import divide, here, read, usable, write

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence

_HOME = "intercode-"  # and the id of the boxes
_IDLE = "idle"  # where a launcher goes before it ends
_KEPT = 4  # groups without a box
_DEVICES_MEMORY = 65 << 20  # what /dev and /dev/shm of a box may hold


class Groups:
    """The groups that one launcher makes. Raises OSError where it cannot make any."""

    def __init__(self, uid: int, places: tuple[int, dict[str, str]] | None = None) -> None:
        self.version, parents = places or usable(here())
        if self.version == 2:
            divide(parents[""])
        self.homes = {name: f"{parent}/{_HOME}{uid}" for name, parent in parents.items()}
        self.name: str | None = None
        """The group that this process is in, and its next fork will be."""
        self._count = 0
        self._bounds: tuple[int, int] | None = None
        self._set_on: dict[str, tuple[int, int]] = {}
        self._free: list[str] = []
        self._most_free = _KEPT
        self._going: set[str] = set()
        for home in self.homes.values():
            _settle(home, uid)
        self._mine = f"{os.stat('/proc/self/ns/pid').st_ino}.{os.getpid()}.{started(os.getpid())}"
        self.sweep()

    def paths(self, name: str) -> dict[str, str]:
        """A group's directory per controller."""
        return {controller: f"{home}/{name}" for controller, home in self.homes.items()}

    def sit(self) -> None:
        """Move this process into the group of the box that is forked next."""
        if self._free:
            name = self._free.pop()
        else:
            name = f"{self._mine}.{self._count}"
            self._count += 1
            for path in self.paths(name).values():
                os.mkdir(path)
            if self._bounds:  # those of the last box, most likely also those of the next
                self._set(name, self._bounds)
        self._move(name)
        self.name = name

    def take(self) -> str:
        """The group that a fork was made in: from now on no longer this process's to give."""
        assert self.name is not None
        name, self.name = self.name, None
        return name

    def bound(self, name: str, memory: int, processes: int) -> None:
        """Give a group that was taken its bounds (bytes, count; 0 for none). Raises OSError."""
        self._bounds = (memory, processes)
        if self._set_on.get(name) != self._bounds:
            self._set(name, self._bounds)

    def _set(self, name: str, bounds: tuple[int, int]) -> None:
        memory, processes = bounds
        paths, fresh = self.paths(name), name not in self._set_on
        self._set_on[name] = bounds
        if self.version == 2:
            write(f"{paths['']}/memory.max", str(memory or "max"))
            write(f"{paths['']}/pids.max", str(processes or "max"))
            if os.path.exists(f"{paths['']}/memory.swap.max"):
                write(f"{paths['']}/memory.swap.max", "0" if memory else "max")
            return
        both = f"{paths['memory']}/memory.memsw.limit_in_bytes"
        with_swap = os.path.exists(both)
        if with_swap and not fresh:  # it may never be below the other
            write(both, "-1")
        write(f"{paths['memory']}/memory.limit_in_bytes", str(memory or -1))
        if with_swap and memory:
            write(both, str(memory))
        write(f"{paths['pids']}/pids.max", str(processes or "max"))

    def _move(self, name: str) -> None:
        """Go into a group. This process has one thread, for which version 1 has a file that does
        not make it wait for all others."""
        for path in self.paths(name).values():
            write(f"{path}/{'cgroup.procs' if self.version == 2 else 'tasks'}", "0")

    def thaw(self, name: str) -> None:
        """Let what was frozen go on, or in version 1 it could not even be killed."""
        with contextlib.suppress(OSError):
            if self.version == 2:
                write(f"{self.homes['']}/{name}/cgroup.freeze", "0")
            elif "freezer" in self.homes:
                write(f"{self.homes['freezer']}/{name}/freezer.state", "THAWED")

    def give_back(self, name: str) -> bool:
        """A box has ended: keep its group for another one, or remove it. False while there still
        are processes in it."""
        whole = name not in self._going
        if whole and len(self._free) < self._most_free and self._is_as_new(name):
            self._free.append(name)
            return True
        return self.remove(name)

    def _is_as_new(self, name: str) -> bool:
        paths = self.paths(name)
        v1 = "pids" in paths
        pids, memory = (paths["pids"], paths["memory"]) if v1 else (paths[""], paths[""])
        counts = f"{memory}/memory.{'oom_control' if v1 else 'events'}"
        try:
            if int(read(f"{pids}/pids.current")):
                return False
            lines = [*read(f"{pids}/pids.events").splitlines(), *read(counts).splitlines()]
        except OSError:
            return False
        return lines[0] == "max 0" and "oom_kill 0" in lines[1:]  # no limit was met in it

    def remove(self, name: str) -> bool:
        """Remove a group. False while there still are processes in it."""
        gone = True
        for path in self.paths(name).values():
            try:
                os.rmdir(path)
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        if gone:
            self._set_on.pop(name, None)
            self._going.discard(name)
        else:  # in part, maybe: it cannot be kept any more
            self._going.add(name)
        return gone

    def leave(self) -> list[str]:
        """Go out of the group that waits for the next box, and keep none from now on. Returns those
        that have to be removed."""
        self._most_free = 0
        for path in self.paths(_IDLE).values():
            with contextlib.suppress(OSError):
                os.mkdir(path)
        with contextlib.suppress(OSError):
            self._move(_IDLE)
        left, self._free = [*self._free, *([self.name] if self.name else [])], []
        return left

    def sweep(self) -> None:
        """Remove the groups of launchers that were killed."""
        space = self._mine.partition(".")[0]
        names = {name for home in self.homes.values() for name in os.listdir(home)}
        for name in names:
            parts = name.split(".")
            if len(parts) != 4 or parts[0] != space:
                continue
            try:
                alive = started(int(parts[1])) == int(parts[2])
            except (OSError, ValueError):
                alive = False
            if not alive:
                self.thaw(name)
                self.remove(name)


def clear(homes: Sequence[str]) -> None:
    """Remove the directories of launchers that have all ended, or leave them to those in use."""
    for home in homes:
        with contextlib.suppress(OSError):
            os.rmdir(f"{home}/{_IDLE}")
        with contextlib.suppress(OSError):
            os.rmdir(home)


def memory_bound(limits: dict[str, int], in_memory: bool) -> int:
    """Bytes for a box's group: what its processes may use, and what its files may take up, so that
    a full disk is told to the program that fills it and does not kill it."""
    return limits["memory"] + _DEVICES_MEMORY + (limits["disk"] if in_memory else 0)


def started(pid: int) -> int:
    """When a process began, in clock ticks since boot. Raises OSError where none is alive."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # no thread of it goes on
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), str(pid))
    return int(fields[19])


def _settle(home: str, uid: int) -> None:
    """Make a launchers' directory and go into it, so that nobody else removes it."""
    for last in (False, False, False, True):
        try:
            _own(home, uid)
            if os.path.exists(f"{home}/cgroup.subtree_control"):
                write(f"{home}/cgroup.subtree_control", "+memory +pids")
            _own(f"{home}/{_IDLE}", uid)
            write(f"{home}/{_IDLE}/cgroup.procs", "0")
            return
        except FileNotFoundError:  # another launcher's owner was just clearing up
            if last:
                raise


def _own(path: str, uid: int) -> None:
    """Make a group that the boxes' id may divide and move its processes between."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    if os.geteuid() == 0:
        for part in ("", "/cgroup.procs", "/tasks", "/cgroup.subtree_control"):
            with contextlib.suppress(FileNotFoundError):
                os.chown(path + part, uid, uid)
