"""The launcher: one process with a single thread that starts a supervisor per sandbox.

A few supervisors are started ahead, when no request waits, and prepare themselves. The launcher
ends when its owner closes the connection, and its supervisors end with it. Where control groups are
writable, each supervisor starts in a group of its own, which is removed after its last process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import time

from . import protocol, seccomp
from . import syscalls as sys_
from .cgroups import CgroupAllocator, memory_limit
from .device_nodes import DeviceNodes

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PREWARMED_COUNT = 2  # supervisors to prewarm
_RETRY_MS = 10  # delay before another attempt to remove a group
_END_SECONDS = 5.0  # time for sandboxes to end after the owner
_REMEMBERED_KILLS = 1000  # supervisors killed because their sandbox exceeded its memory limit

_COUNTED_LIMITS = (resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE, resource.RLIMIT_MEMLOCK)
"""The kernel compares these limits of the launcher with the sum over all sandboxes. Each sandbox
has lower ones of its own."""


def main(fd: int) -> None:
    """Serve requests on an inherited socket until the owner closes it."""
    owner = socket.socket(fileno=fd)
    owner.set_inheritable(False)  # no supervisor may inherit it
    sys_.hide_command_line(b"intercode")
    request, fds = protocol.receive(owner)
    try:
        groups, why = _create_allocator(request["uid"])
        nodes = _drop_root(request)
        groups, why = _enter_first_group(groups, why)
        _install_seccomp_filter()
        launcher = _Launcher(owner, groups, nodes, fds[0])
    except OSError as e:
        protocol.send(owner, {"ok": False, "error": str(e)})
        return
    directories = list(groups.directories.values()) if groups else []
    protocol.send(owner, {"ok": True, "cgroups": directories, "cgroups_error": why})
    try:
        launcher.serve()
    except (EOFError, ConnectionError):
        launcher.shut_down()


def _create_allocator(uid: int) -> tuple[CgroupAllocator | None, str]:
    """Return an allocator of control groups, or None with the reason."""
    try:
        return CgroupAllocator(uid), ""
    except OSError as e:
        return None, _error_text(e)


def _enter_first_group(
    groups: CgroupAllocator | None, why: str
) -> tuple[CgroupAllocator | None, str]:
    """Enter the first group as the sandboxes' user. Return the same pair."""
    try:
        if groups is not None:
            groups.enter_next()
    except OSError as e:
        return None, _error_text(e)
    return groups, why


def _error_text(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _drop_root(request: dict[str, Any]) -> DeviceNodes:
    """As root: bind directories where an ordinary user can reach them, make device nodes, and
    become that user."""
    os.umask(0o022)
    if os.geteuid() != 0:
        return DeviceNodes(may_mount=False)
    for limit in _COUNTED_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # without the capability to raise limits
            resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    may_mount = True
    try:
        sys_.unshare(sys_.CLONE_NEWNS)
    except PermissionError:  # root of a container
        may_mount = False
        if request["binds"]:
            raise
    if may_mount:
        sys_.mount("none", "/", flags=sys_.MS_REC | sys_.MS_SLAVE)
    for source, target in request["binds"]:
        os.makedirs(target, exist_ok=True)
        sys_.mount(source, target, flags=sys_.MS_BIND | sys_.MS_REC)
    nodes = DeviceNodes(may_mount)
    os.setgroups([])
    os.setresgid(*[request["uid"]] * 3)
    os.setresuid(*[request["uid"]] * 3)
    return nodes


def _install_seccomp_filter() -> None:
    """Install the filter for this process and its children, for good."""
    sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1)
    sys_.install_filter(seccomp.build_filter(sys_.ARCH, sys_.KEY))


class _PrewarmedSupervisor:
    """A supervisor that waits for a request on a socket: its control group, and its kind, which is
    whether it has its own network and whether its PID 1 is the plain one."""

    def __init__(self, kind: tuple[bool, bool], group: str, connection: socket.socket) -> None:
        self.kind, self.group, self.socket = kind, group, connection


class _Launcher:
    """Starts supervisors, and collects ended ones if their groups have to be removed."""

    def __init__(
        self, owner: socket.socket, groups: CgroupAllocator | None, nodes: DeviceNodes,
        program: int,
    ) -> None:  # fmt: skip
        self._owner, self._groups, self._nodes = owner, groups, nodes
        self._program_fd = program  # of the supervisor
        self._stage = ""  # the stage of the last request
        self._kind = (True, True)
        self._prewarmed: list[_PrewarmedSupervisor] = []
        self._fork_failed = False  # no supervisor could be started ahead
        self._group_of_pid: dict[int, str] = {}  # pid of a supervisor: its group
        self._ending_groups: list[str] = []  # groups of ended supervisors
        self._memory_kills: list[int] = []  # pids of the supervisors that they killed
        self._wakeup_read, self._wakeup_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        sys_.prctl(sys_.PR_SET_CHILD_SUBREAPER, 1)  # not every PID 1 collects orphans
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner
        if groups is None:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects ended supervisors
        else:
            signal.signal(signal.SIGCHLD, lambda *_: None)
            signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve requests until the owner is gone. Raises EOFError or ConnectionError then."""
        poll = select.poll()
        poll.register(self._owner, select.POLLIN)
        poll.register(self._wakeup_read, select.POLLIN)
        while True:
            needs_prewarm = self._stage and not self._fork_failed and self._needs_prewarm()
            ready = poll.poll(0 if needs_prewarm else _RETRY_MS if self._ending_groups else None)
            for fd, _ in ready:
                if fd == self._wakeup_read:
                    os.read(fd, 1 << 12)
                    continue
                request, fds = protocol.receive(self._owner)
                try:
                    if "ended" in request:
                        self._report_end(request["ended"], fds[0])
                    else:
                        self._create(request, fds)
                finally:
                    protocol.close_all(fds)
            self._collect()
            if needs_prewarm and not ready:
                try:
                    self._prewarmed.append(self._fork())
                except OSError:  # the next request reports the error
                    self._fork_failed = True
                self._enter_next_group()

    def _needs_prewarm(self) -> bool:
        """Return whether too few supervisors of the last requested kind wait."""
        return sum(waiting.kind == self._kind for waiting in self._prewarmed) < _PREWARMED_COUNT

    def _create(self, request: dict[str, Any], fds: list[int]) -> None:
        """Hand a request to a waiting supervisor, or to a new one."""
        self._stage = request["stage"]
        self._kind = (request["network"] != "host", request["appearance"] == "plain")
        self._fork_failed = False
        try:
            while not self._dispatch(request, fds):
                pass  # that supervisor was killed while it waited
        except OSError as e:
            with socket.socket(fileno=os.dup(fds[0])) as requester, contextlib.suppress(OSError):
                protocol.send(requester, {"ok": False, "error": f"nothing can be started: {e}"})
        self._enter_next_group()

    def _dispatch(self, request: dict[str, Any], fds: list[int]) -> bool:
        """Send a request to a supervisor. Return False if it was killed. Raises OSError if none can
        be started."""
        standby = self._take_prewarmed()
        request["cgroups"] = self._apply_bounds(standby.group, request)
        with standby.socket:
            try:
                protocol.send(standby.socket, request, fds)
            except (BrokenPipeError, ConnectionResetError):
                return False
            except OSError as e:
                if e.errno != errno.ETOOMANYREFS:
                    raise
                # another sandbox of this user blocks the passing of descriptors: let a new process
                # inherit them
                inheriting = self._fork(request, fds)
                inheriting.socket.close()
            return True

    def _take_prewarmed(self) -> _PrewarmedSupervisor:
        for waiting in self._prewarmed:
            if waiting.kind == self._kind:
                self._prewarmed.remove(waiting)
                return waiting
        return self._fork()

    def _fork(
        self, request: dict[str, Any] | None = None, fds: Sequence[int] = ()
    ) -> _PrewarmedSupervisor:
        """Start a supervisor in the current group. With ``request`` it does not wait for one.
        Raises OSError."""
        if self._groups is not None and self._groups.current is None:
            self._groups.enter_next()
        if request is not None:
            name = self._groups.current if self._groups is not None else ""
            request["cgroups"] = self._apply_bounds(str(name), request)
        ours, theirs = socket.socketpair()
        with theirs:
            pid = self._start_process(ours, theirs, request, fds)
        group = ""
        if self._groups is not None:
            self._group_of_pid[pid] = group = self._groups.take_current()
        return _PrewarmedSupervisor(self._kind, group, ours)

    def _start_process(
        self, ours: socket.socket, theirs: socket.socket, request: dict[str, Any] | None,
        fds: Sequence[int],
    ) -> int:  # fmt: skip
        """Start the process of a supervisor and send it the first message. Return its pid."""
        given = theirs.fileno(), fds
        try:
            pid = start_program(self._program_fd, *given)
        except PermissionError:  # it is on a file system mounted with noexec, or not for this user
            on_disk, self._program_fd = self._program_fd, _copy_to_memory(self._program_fd)
            os.close(on_disk)
            pid = start_program(self._program_fd, *given)
        setup = {"stage": self._stage, "devices": self._nodes.take()}
        message = first_message(setup, self._kind, request, fds)
        group = self._groups.supervisor_paths() if self._groups is not None else {}
        protocol.send(ours, {**message, "group": group})
        return pid

    def _enter_next_group(self) -> None:
        """Leave the group of the sandbox that was just forked, and enter that of the next."""
        if self._groups is not None and self._groups.current is None:
            with contextlib.suppress(OSError):  # the next fork tries again and reports the error
                self._groups.enter_next()

    def _apply_bounds(self, group: str, request: dict[str, Any]) -> dict[str, str]:
        """Set the limits of a sandbox's group. Return its directories, or none if it has no
        limits."""
        if self._groups is None:
            return {}
        limits = request["limits"]
        if not limits["cgroups"]:
            self._groups.set_bounds(group, 0, 0)
            return {}
        memory = memory_limit(limits, request["upper"] is None)
        self._groups.set_bounds(group, memory, limits["processes"])
        return self._groups.paths(group)

    def _collect(self) -> None:
        """Collect ended supervisors and remove empty groups."""
        if self._groups is None:
            return
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                # other children are PID 1 of a sandbox whose supervisor has ended
                if group := self._group_of_pid.pop(pid, ""):
                    self._ending_groups.append(group)
                    if status == signal.SIGKILL and self._groups.killed_for_memory(group):
                        self._memory_kills = [*self._memory_kills[-_REMEMBERED_KILLS:], pid]
        self._ending_groups = [
            name for name in self._ending_groups if not self._groups.release(name)
        ]

    def _report_end(self, pid: int, reply: int) -> None:
        """Answer whether a supervisor has ended, and whether the kernel killed it because its
        sandbox exceeded the memory limit."""
        self._collect()
        answer = {"ended": pid not in self._group_of_pid, "memory": pid in self._memory_kills}
        with socket.socket(fileno=os.dup(reply)) as owner, contextlib.suppress(OSError):
            protocol.send(owner, answer)

    def shut_down(self) -> None:
        """End all sandboxes and remove their groups."""
        if self._groups is None:
            return
        self._ending_groups += self._groups.leave_current()
        for pid, name in self._group_of_pid.items():
            self._groups.thaw(name)
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _END_SECONDS
        while (self._group_of_pid or self._ending_groups) and time.monotonic() < deadline:
            self._collect()
            time.sleep(_RETRY_MS / 1e3)


_LAUNCHER, _INHERITED = 3, 4
_SAFE_DESCRIPTOR = 100  # above all inherited descriptors


def start_program(supervisor: int, connection: int, fds: Sequence[int]) -> int:
    """Execute the supervisor, a descriptor. Return its pid.

    It gets a connection to the launcher, and descriptors that cannot be sent. Raises OSError if it
    cannot be executed.
    """
    given = {_LAUNCHER: connection, **{_INHERITED + i: fd for i, fd in enumerate(fds)}}
    high = {
        target: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_DESCRIPTOR)
        for target, fd in {**given, -1: supervisor}.items()
    }
    itself = f"/proc/self/fd/{high[-1]}"
    actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in high.items() if target >= 0]
    try:
        return os.posix_spawn(itself, ["intercode"], {}, file_actions=actions, setsid=True)
    finally:
        for fd in high.values():
            os.close(fd)


def _copy_to_memory(program: int) -> int:
    """Return a descriptor of a copy of a program, a file in memory that can be executed."""
    copy = os.memfd_create("intercode", os.MFD_CLOEXEC)
    os.fchmod(copy, 0o755)
    position = 0
    while sent := os.sendfile(copy, program, position, 1 << 30):
        position += sent
    return copy


def first_message(
    setup: dict[str, str], kind: tuple[bool, bool], request: dict[str, Any] | None,
    fds: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """Return the first message to a supervisor: what to prepare, and the request if
    ``fds`` could not be sent with one. ``setup``: the directories of the stage and of the device
    nodes."""
    own_network, plain = kind
    message = {
        **setup, "own_network": own_network, "plain": plain, "key": str(sys_.KEY)
    }  # fmt: skip
    return message if request is None else {**message, "request": request, "inherited": len(fds)}
