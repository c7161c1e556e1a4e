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

from .cgroup_paths import (
    delegate_controllers,
    own_groups,
    read_control_file,
    usable_parents,
    write_control_file,
)

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence

_PREFIX = "intercode-"  # and the id of the boxes
_IDLE = "idle"  # where a launcher goes before it ends
_MAX_FREE = 4  # groups without a box
_DEVICE_FILES_MEMORY = 65 << 20  # what /dev and /dev/shm of a box may hold


class CgroupAllocator:
    """The groups that one launcher makes. Raises OSError where it cannot make any."""

    def __init__(self, uid: int, places: tuple[int, dict[str, str]] | None = None) -> None:
        self.version, parents = places or usable_parents(own_groups())
        if self.version == 2:
            delegate_controllers(parents[""])
        self.directories = {name: f"{parent}/{_PREFIX}{uid}" for name, parent in parents.items()}
        self.current: str | None = None
        """The group that this process is in, and its next fork will be."""
        self._count = 0
        self._bounds: tuple[int, int] | None = None
        self._applied_bounds: dict[str, tuple[int, int]] = {}
        self._free: list[str] = []
        self._max_free = _MAX_FREE
        self._partly_removed: set[str] = set()
        for home in self.directories.values():
            _enter_directory(home, uid)
        self._name_prefix = f"{os.stat('/proc/self/ns/pid').st_ino}.{os.getpid()}.{process_start_ticks(os.getpid())}"
        self.remove_stale()

    def paths(self, name: str) -> dict[str, str]:
        """A group's directory per controller."""
        return {controller: f"{home}/{name}" for controller, home in self.directories.items()}

    def enter_next(self) -> None:
        """Move this process into the group of the box that is forked next."""
        if self._free:
            name = self._free.pop()
        else:
            name = f"{self._name_prefix}.{self._count}"
            self._count += 1
            for path in self.paths(name).values():
                os.mkdir(path)
            if self._bounds:  # those of the last box, most likely also those of the next
                self._write_bounds(name, self._bounds)
        self._move(name)
        self.current = name

    def take_current(self) -> str:
        """The group that a fork was made in: from now on no longer this process's to give."""
        assert self.current is not None
        name, self.current = self.current, None
        return name

    def set_bounds(self, name: str, memory: int, processes: int) -> None:
        """Give a group that was taken its bounds (bytes, count; 0 for none). Raises OSError."""
        self._bounds = (memory, processes)
        if self._applied_bounds.get(name) != self._bounds:
            self._write_bounds(name, self._bounds)

    def _write_bounds(self, name: str, bounds: tuple[int, int]) -> None:
        memory, processes = bounds
        paths, fresh = self.paths(name), name not in self._applied_bounds
        self._applied_bounds[name] = bounds
        if self.version == 2:
            write_control_file(f"{paths['']}/memory.max", str(memory or "max"))
            write_control_file(f"{paths['']}/pids.max", str(processes or "max"))
            if os.path.exists(f"{paths['']}/memory.swap.max"):
                write_control_file(f"{paths['']}/memory.swap.max", "0" if memory else "max")
            return
        both = f"{paths['memory']}/memory.memsw.limit_in_bytes"
        with_swap = os.path.exists(both)
        if with_swap and not fresh:  # it may never be below the other
            write_control_file(both, "-1")
        write_control_file(f"{paths['memory']}/memory.limit_in_bytes", str(memory or -1))
        if with_swap and memory:
            write_control_file(both, str(memory))
        write_control_file(f"{paths['pids']}/pids.max", str(processes or "max"))

    def _move(self, name: str) -> None:
        """Go into a group. This process has one thread, for which version 1 has a file that does
        not make it wait for all others."""
        for path in self.paths(name).values():
            write_control_file(f"{path}/{'cgroup.procs' if self.version == 2 else 'tasks'}", "0")

    def thaw(self, name: str) -> None:
        """Let what was frozen go on, or in version 1 it could not even be killed."""
        with contextlib.suppress(OSError):
            if self.version == 2:
                write_control_file(f"{self.directories['']}/{name}/cgroup.freeze", "0")
            elif "freezer" in self.directories:
                write_control_file(f"{self.directories['freezer']}/{name}/freezer.state", "THAWED")

    def release(self, name: str) -> bool:
        """A box has ended: keep its group for another one, or remove it. False while there still
        are processes in it."""
        whole = name not in self._partly_removed
        if whole and len(self._free) < self._max_free and self._is_reusable(name):
            self._free.append(name)
            return True
        return self.remove(name)

    def _is_reusable(self, name: str) -> bool:
        paths = self.paths(name)
        v1 = "pids" in paths
        pids, memory = (paths["pids"], paths["memory"]) if v1 else (paths[""], paths[""])
        counts = f"{memory}/memory.{'oom_control' if v1 else 'events'}"
        try:
            if int(read_control_file(f"{pids}/pids.current")):
                return False
            lines = [
                *read_control_file(f"{pids}/pids.events").splitlines(),
                *read_control_file(counts).splitlines(),
            ]
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
            self._applied_bounds.pop(name, None)
            self._partly_removed.discard(name)
        else:  # in part, maybe: it cannot be kept any more
            self._partly_removed.add(name)
        return gone

    def leave_current(self) -> list[str]:
        """Go out of the group that waits for the next box, and keep none from now on. Returns those
        that have to be removed."""
        self._max_free = 0
        for path in self.paths(_IDLE).values():
            with contextlib.suppress(OSError):
                os.mkdir(path)
        with contextlib.suppress(OSError):
            self._move(_IDLE)
        left, self._free = [*self._free, *([self.current] if self.current else [])], []
        return left

    def remove_stale(self) -> None:
        """Remove the groups of launchers that were killed."""
        space = self._name_prefix.partition(".")[0]
        names = {name for home in self.directories.values() for name in os.listdir(home)}
        for name in names:
            parts = name.split(".")
            if len(parts) != 4 or parts[0] != space:
                continue
            try:
                alive = process_start_ticks(int(parts[1])) == int(parts[2])
            except (OSError, ValueError):
                alive = False
            if not alive:
                self.thaw(name)
                self.remove(name)


def remove_directories(homes: Sequence[str]) -> None:
    """Remove the directories of launchers that have all ended, or leave them to those in use."""
    for home in homes:
        with contextlib.suppress(OSError):
            os.rmdir(f"{home}/{_IDLE}")
        with contextlib.suppress(OSError):
            os.rmdir(home)


def memory_limit(limits: dict[str, int], in_memory: bool) -> int:
    """Bytes for a box's group: what its processes may use, and what its files may take up, so that
    a full disk is told to the program that fills it and does not kill it."""
    return limits["memory"] + _DEVICE_FILES_MEMORY + (limits["disk"] if in_memory else 0)


def process_start_ticks(pid: int) -> int:
    """When a process began, in clock ticks since boot. Raises OSError where none is alive."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # no thread of it goes on
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), str(pid))
    return int(fields[19])


def _enter_directory(home: str, uid: int) -> None:
    """Make a launchers' directory and go into it, so that nobody else removes it."""
    for last in (False, False, False, True):
        try:
            _make_group(home, uid)
            if os.path.exists(f"{home}/cgroup.subtree_control"):
                write_control_file(f"{home}/cgroup.subtree_control", "+memory +pids")
            _make_group(f"{home}/{_IDLE}", uid)
            write_control_file(f"{home}/{_IDLE}/cgroup.procs", "0")
            return
        except FileNotFoundError:  # another launcher's owner was just clearing up
            if last:
                raise


def _make_group(path: str, uid: int) -> None:
    """Make a group that the boxes' id may divide and move its processes between."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    if os.geteuid() == 0:
        for part in ("", "/cgroup.procs", "/tasks", "/cgroup.subtree_control"):
            with contextlib.suppress(FileNotFoundError):
                os.chown(path + part, uid, uid)
