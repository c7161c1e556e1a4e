"""Creates a control group for each sandbox, through which the kernel limits the whole sandbox.

Moving a process between groups can block for some milliseconds. So no sandbox is moved: the
template that forks its supervisor is already in the group of the next sandbox, and the fork
inherits the group. The template then enters a new group, by itself, while no request waits. Some
groups of ended sandboxes are reused. Groups are created below the owner's own group, so that the
owner's limits still apply. A sandbox cannot see its group. The processors are divided between the
groups where that controller is available (processor_shares.py).
"""

from __future__ import annotations

import contextlib
import errno
import os

from . import processor_shares
from .control_files import read_control_file, write_control_file

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Bounds = tuple[int, int, float | None]

_PREFIX = "intercode-"  # prefix of names; the user id of the sandboxes follows
_IDLE = "idle"  # the group of supervisors, and of launchers that end
_MAX_FREE = 4  # limit on unused groups
_DEVICE_FILES_MEMORY = 65 << 20  # bytes of files in /dev and /dev/shm of a sandbox


class CgroupAllocator:
    """Creates the groups of one launcher. Raises OSError if that is not possible."""

    def __init__(
        self, uid: int, groups_by_controller: tuple[int, dict[str, str]] | None = None
    ) -> None:
        self.version, parents = groups_by_controller or usable_parents(own_groups())
        if self.version == 2:
            delegate_controllers(parents[""])
        self.directories = {name: f"{parent}/{_PREFIX}{uid}" for name, parent in parents.items()}
        self._enter: Callable[[Sequence[str]], None] = _enter_groups
        self.current: str | None = None
        """The group of the process that forks supervisors, which the next one inherits."""
        self._count = 0
        self._bounds: Bounds | None = None
        self._applied_bounds: dict[str, Bounds] = {}
        self._free: list[str] = []
        self._max_free = _MAX_FREE
        self._partly_removed: set[str] = set()
        for home in self.directories.values():
            _enter_directory(home, uid)
            if self.version == 2:
                os.chmod(home, 0o700)  # see _open_to_supervisors
            self._open_to_supervisors(home)
        pid, namespace = os.getpid(), os.stat("/proc/self/ns/pid").st_ino
        self._name_prefix = f"{namespace}.{pid}.{process_start_ticks(pid)}"
        self.remove_stale()

    def paths(self, name: str) -> dict[str, str]:
        """Return a group's directory per controller."""
        return {controller: f"{home}/{name}" for controller, home in self.directories.items()}

    def supervisor_paths(self) -> dict[str, str]:
        """Return the files of the current group that a supervisor needs: those to enter the group
        and to leave it, and of version 2 its directory. It only has to leave the group that limits
        memory."""
        assert self.current is not None
        controller, file = ("", "cgroup.procs") if self.version == 2 else ("memory", "tasks")
        home = self.directories[controller]
        inside = f"{home}/{self.current}"
        paths = {"enter": f"{inside}/{file}", "leave": f"{home}/{_IDLE}/{file}"}
        return {**paths, "directory": inside} if self.version == 2 else paths

    def enter_next(self) -> None:
        """Move the process that forks supervisors into the group of the next sandbox."""
        if self._free:
            name = self._free.pop()
        else:
            name = f"{self._name_prefix}.{self._count}"
            self._count += 1
            for path in self.paths(name).values():
                os.mkdir(path)
                self._open_to_supervisors(path)
            if self._bounds:  # the last limits are most likely those of the next sandbox
                self._write_bounds(name, self._bounds)
        self._enter(self.entries(name))
        self.current = name

    def set_forker(self, enter: Callable[[Sequence[str]], None]) -> None:
        """Let another process fork the supervisors. ``enter`` makes it write to the files that
        ``entries`` returns. It takes this process's place in the current group. Raises OSError."""
        self._enter = enter
        if self.current is not None:
            enter(self.entries(self.current))
        _enter_groups(self.entries(_IDLE))

    def entries(self, name: str) -> list[str]:
        """Return the files of a group through which a process enters it by itself. Version 1 can
        move a single thread through the file ``tasks``, which does not block."""
        file = "cgroup.procs" if self.version == 2 else "tasks"
        return [f"{path}/{file}" for path in self.paths(name).values()]

    def _open_to_supervisors(self, path: str) -> None:
        """Let supervisors with other user ids than this process start programs in a group of
        version 2. They have opened its files as this process. Whoever can open them can move any
        process between groups, so nobody else may enter the directory above the groups."""
        if self.version == 2 and os.geteuid() == 0:
            os.chmod(f"{path}/cgroup.procs", 0o666)

    def take_current(self) -> str:
        """Return the current group, which now belongs to the sandbox that was forked in it."""
        assert self.current is not None
        name, self.current = self.current, None
        return name

    def set_bounds(
        self, name: str, memory: int, processes: int, processors: float | None = None
    ) -> None:
        """Set the limits of a group in bytes, processes and processors; 0 or None means none.
        Raises OSError."""
        self._bounds = (memory, processes, processors)
        if self._applied_bounds.get(name) != self._bounds:
            self._write_bounds(name, self._bounds)

    def _write_bounds(self, name: str, bounds: Bounds) -> None:
        memory, processes, processors = bounds
        paths, fresh = self.paths(name), name not in self._applied_bounds
        if processors or not fresh:
            processor_shares.limit(paths.get("cpu") or paths.get("", ""), processors)
        self._applied_bounds[name] = bounds
        if self.version == 2:
            write_control_file(f"{paths['']}/memory.max", str(memory or "max"))
            write_control_file(f"{paths['']}/pids.max", str(processes or "max"))
            if os.path.exists(f"{paths['']}/memory.swap.max"):
                write_control_file(f"{paths['']}/memory.swap.max", "0" if memory else "max")
            return
        both = f"{paths['memory']}/memory.memsw.limit_in_bytes"
        with_swap = os.path.exists(both)
        if with_swap and not fresh:  # the kernel requires limit with swap >= limit without
            write_control_file(both, "-1")
        write_control_file(f"{paths['memory']}/memory.limit_in_bytes", str(memory or -1))
        if with_swap and memory:
            write_control_file(both, str(memory))
        write_control_file(f"{paths['pids']}/pids.max", str(processes or "max"))

    def move(self, name: str, pid: int) -> None:
        """Move another process to a group, which can block all processes for some milliseconds."""
        for file in self.entries(name):
            write_control_file(file, str(pid))

    def thaw(self, name: str) -> None:
        """Unfreeze a group, because version 1 cannot kill frozen processes."""
        with contextlib.suppress(OSError):
            if self.version == 2:
                write_control_file(f"{self.directories['']}/{name}/cgroup.freeze", "0")
            elif "freezer" in self.directories:
                write_control_file(f"{self.directories['freezer']}/{name}/freezer.state", "THAWED")

    def release(self, name: str) -> bool:
        """Keep the group of an ended sandbox for another one, or remove it. Return False while it
        still has processes."""
        if name not in self._partly_removed:
            if self._has_processes(name):  # removed in part, it could not be reused
                return False
            if len(self._free) < self._max_free and self._is_reusable(name):
                self._free.append(name)
                return True
        return self.remove(name)

    def _has_processes(self, name: str) -> bool:
        paths = self.paths(name)
        try:
            return read_control_file(f"{paths.get('pids') or paths['']}/pids.current") != "0\n"
        except OSError:
            return False

    def killed_for_memory(self, name: str) -> bool:
        """Return whether the kernel killed a process of the group because of its memory limit."""
        paths = self.paths(name)
        file = "memory.oom_control" if "memory" in paths else "memory.events"
        try:
            text = read_control_file(f"{paths.get('memory') or paths['']}/{file}")
        except OSError:
            return False
        return any(
            line.startswith("oom_kill ") and line != "oom_kill 0" for line in text.splitlines()
        )

    def _is_reusable(self, name: str) -> bool:
        """Return whether no process of a group has exceeded a limit."""
        paths = self.paths(name)
        v1 = "pids" in paths
        pids, memory = (paths["pids"], paths["memory"]) if v1 else (paths[""], paths[""])
        counts = f"{memory}/memory.{'oom_control' if v1 else 'events'}"
        try:
            lines = [
                *read_control_file(f"{pids}/pids.events").splitlines(),
                *read_control_file(counts).splitlines(),
            ]
        except OSError:
            return False
        return lines[0] == "max 0" and "oom_kill 0" in lines[1:]

    def remove(self, name: str) -> bool:
        """Remove a group. Return False while it still has processes."""
        complete = True
        for path in self.paths(name).values():
            try:
                os.rmdir(path)
            except FileNotFoundError:
                pass
            except OSError:
                complete = False
        if complete:
            self._applied_bounds.pop(name, None)
            self._partly_removed.discard(name)
        else:  # some of its directories may be gone, so it cannot be reused
            self._partly_removed.add(name)
        return complete

    def leave_current(self) -> list[str]:
        """Leave the current group and stop reusing groups. Return the groups to be removed."""
        self._max_free = 0
        for path in self.paths(_IDLE).values():
            with contextlib.suppress(OSError):
                os.mkdir(path)
        with contextlib.suppress(OSError):
            self._enter(self.entries(_IDLE))
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


def _enter_groups(files: Sequence[str]) -> None:
    """Move this process, which has one thread, to groups. Raises OSError."""
    for file in files:
        write_control_file(file, "0")


def remove_directories(homes: Sequence[str]) -> None:
    """Remove the directories of ended launchers, unless other launchers use them."""
    for home in homes:
        with contextlib.suppress(OSError):
            os.rmdir(f"{home}/{_IDLE}")
        with contextlib.suppress(OSError):
            os.rmdir(home)


def memory_limit(limits: dict[str, int], in_memory: bool) -> int:
    """Return the memory limit of a sandbox's group in bytes. It includes the space for files in
    memory, so that a program that fills the disk gets an error and is not killed."""
    return limits["memory"] + _DEVICE_FILES_MEMORY + (limits["disk"] if in_memory else 0)


def process_start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot. Raises OSError if it is not
    alive."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # no thread is alive
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), str(pid))
    return int(fields[19])


def _enter_directory(home: str, uid: int) -> None:
    """Make the directory of launchers and enter it, so that no other process removes it."""
    for last in (False, False, False, True):
        try:
            _make_group(home, uid)
            if os.path.exists(f"{home}/cgroup.subtree_control"):
                processor_shares.enable_controllers(home, _ENABLED)
            processor_shares.weigh(home)
            _make_group(f"{home}/{_IDLE}", uid)
            write_control_file(f"{home}/{_IDLE}/cgroup.procs", "0")
            return
        except FileNotFoundError:  # the owner of another launcher removed it
            if last:
                raise


def _make_group(path: str, uid: int) -> None:
    """Create a group in which the sandboxes' user may create groups and move its processes."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    if os.geteuid() == 0:
        for part in ("", "/cgroup.procs", "/tasks", "/cgroup.subtree_control"):
            with contextlib.suppress(FileNotFoundError):
                os.chown(path + part, uid, uid)


REQUIRED_CONTROLLERS = ("memory", "pids")
_ENABLED = "+memory +pids"
_OPTIONAL = ("freezer", "cpu")  # of version 1
_OTHERS_GROUP = "intercode-rest"  # version 2: the group for other processes of a delegated group


def find_groups(mounts: str, own: str) -> dict[str, str]:
    """Return the directory of this process's group by controller, of version 2 as ``""``.

    ``mounts`` and ``own`` are the texts of /proc/self/mountinfo and /proc/self/cgroup.
    """
    groups = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            groups[name] = path
    found: dict[str, str] = {}
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            if name in groups and name not in found:
                relative = os.path.relpath(groups[name], root)
                if not relative.startswith(".."):
                    found[name] = os.path.normpath(f"{point}/{relative}")
    return found


def own_groups() -> dict[str, str]:
    """Return the result of ``find_groups`` for this process."""
    with open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as own:
        return find_groups(mounts.read(), own.read())


def usable_parents(groups_by_controller: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    """Return the version of control groups, and the directories in which groups can be created.

    Raises OSError with a message that says what is missing.
    """
    if all(name in groups_by_controller for name in REQUIRED_CONTROLLERS):
        names = [*REQUIRED_CONTROLLERS, *(n for n in _OPTIONAL if n in groups_by_controller)]
        version, parents = 1, {name: groups_by_controller[name] for name in names}
        if "cpu" in parents and not os.access(parents["cpu"], os.W_OK):
            del parents["cpu"]
    elif "" in groups_by_controller:
        parent = groups_by_controller[""]
        if os.path.basename(parent) == _OTHERS_GROUP:
            parent = os.path.dirname(parent)
        version, parents = 2, {"": parent}
        missing = set(REQUIRED_CONTROLLERS) - set(
            read_control_file(f"{parent}/cgroup.controllers").split()
        )
        if missing:
            raise OSError(errno.ENOENT, f"{parent} has no controller {', '.join(sorted(missing))}")
    else:
        raise OSError(errno.ENOENT, "no control groups for memory and pids are mounted")
    for parent in parents.values():
        if not os.access(parent, os.W_OK):
            raise OSError(errno.EACCES, f"{parent} is not writable")
    if version == 2 and not _may_delegate(parents[""]):
        raise OSError(errno.EBUSY, f"{parents['']} is not delegated to this process")
    return version, parents


def _may_delegate(parent: str) -> bool:
    """Return whether a version 2 group already delegates memory and pids, or may be changed to do
    so: if systemd delegated it, this user owns it, or it is the root group of a container."""
    if set(REQUIRED_CONTROLLERS) <= set(
        read_control_file(f"{parent}/cgroup.subtree_control").split()
    ):
        return True
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(parent, name) == b"1":
                return True
    is_owner = os.stat(parent).st_uid == os.geteuid() != 0
    with open("/proc/self/cgroup") as f:
        top = any(line.strip() in ("0::/", f"0::/{_OTHERS_GROUP}") for line in f)
    return is_owner or top


def delegate_controllers(parent: str) -> None:
    """Enable memory and pids for the groups below a version 2 group.

    The kernel allows this only if the group itself holds no process, so its processes are moved to
    a group below it. Raises OSError if that fails.
    """
    if not set(REQUIRED_CONTROLLERS) <= set(
        read_control_file(f"{parent}/cgroup.controllers").split()
    ):
        return
    for _ in range(10):
        if set(REQUIRED_CONTROLLERS) <= set(
            read_control_file(f"{parent}/cgroup.subtree_control").split()
        ):
            with contextlib.suppress(OSError):
                processor_shares.enable_controllers(parent, _ENABLED)
            return
        with contextlib.suppress(OSError):
            processor_shares.enable_controllers(parent, _ENABLED)
            return
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{parent}/{_OTHERS_GROUP}")
        for pid in read_control_file(f"{parent}/cgroup.procs").split():
            with contextlib.suppress(OSError):
                write_control_file(f"{parent}/{_OTHERS_GROUP}/cgroup.procs", pid)
    raise OSError(errno.EBUSY, f"the processes of {parent} could not be moved to a group below it")
