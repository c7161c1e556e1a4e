"""The launcher: one single-threaded process that forks a keeper per sandbox and waits for more.

A few keepers are forked ahead, when nobody waits, and get ready for what will be asked. The
launcher ends when its owner hangs up; its keepers end with it. Where control groups are writable,
each keeper is forked into one of its own, which is removed when its last process is gone.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import select
import signal
import socket
import time

from . import init_program, protocol
from . import supervisor as keeper
from . import syscalls as sys_
from .cgroups import CgroupAllocator, memory_limit
from .hardening import install_seccomp_filter
from .program import first_message, start_program

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PREWARMED_COUNT = 2  # keepers that wait
_MOST_DESCRIPTORS = 4096
_RETRY_MS = 10  # until a group that still holds processes is tried again
_END_SECONDS = 5.0  # for the boxes to be gone, once the owner has


def main(fd: int) -> None:
    """Serve creation requests on an inherited socket until the owner hangs up."""
    owner = socket.socket(fileno=fd)
    owner.set_inheritable(False)  # whatever its number, no keeper may have it
    sys_.hide_command_line(b"intercode")
    request, fds = protocol.receive(owner)
    try:
        groups, why = _create_allocator(request["uid"])
        _drop_root(request)
        groups, why = _enter_first_group(groups, why)
        install_seccomp_filter()
        launcher = _Launcher(owner, groups, fds[0] if fds else -1)
    except OSError as e:
        protocol.send(owner, {"ok": False, "error": str(e)})
        return
    homes = list(groups.directories.values()) if groups else []
    protocol.send(owner, {"ok": True, "groups": homes, "why": why})
    gc.disable()  # a fork shares what is not touched, and collecting touches everything
    gc.freeze()
    try:
        launcher.serve()
    except (EOFError, ConnectionError):
        launcher.shut_down()


def _create_allocator(uid: int) -> tuple[CgroupAllocator | None, str]:
    """Control groups, or what is in the way of them."""
    try:
        return CgroupAllocator(uid), ""
    except OSError as e:
        return None, _error_text(e)


def _enter_first_group(
    groups: CgroupAllocator | None, why: str
) -> tuple[CgroupAllocator | None, str]:
    """The same, after the first use under the boxes' id."""
    try:
        if groups is not None:
            groups.enter_next()
    except OSError as e:
        return None, _error_text(e)
    return groups, why


def _error_text(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _drop_root(request: dict[str, Any]) -> None:
    """As root: put the shown directories where an ordinary id can reach them, then become one."""
    os.umask(0o022)
    if os.geteuid() != 0:
        return
    if request["prepare"]:
        sys_.unshare(sys_.CLONE_NEWNS)
        sys_.mount("none", "/", flags=sys_.MS_REC | sys_.MS_PRIVATE)
    for source, target in request["prepare"]:
        os.makedirs(target, exist_ok=True)
        sys_.mount(source, target, flags=sys_.MS_BIND | sys_.MS_REC)
    os.setgroups([])
    os.setresgid(*[request["uid"]] * 3)
    os.setresuid(*[request["uid"]] * 3)


def _open_init_program() -> int:
    """A descriptor of what PID 1 is to be; -1 where it has to be this interpreter."""
    try:
        return init_program.open_program(sys_.ARCH)
    except (KeyError, OSError):
        return -1


def _close_other_descriptors(*kept: int) -> int:
    """Close every descriptor above 2 but these: nothing of other boxes, nor the owner's connection,
    may be held. Returns the last of them."""
    start = 3
    for fd in sorted(kept):
        if fd >= start:
            os.closerange(start, fd)
            start = fd + 1
    os.closerange(start, _MOST_DESCRIPTORS)
    return kept[-1]


class _PrewarmedSupervisor:
    """A keeper that waits for its request on a socket, the group it is in, and its kind: whether it
    has a network of its own, and whether its PID 1 stays what it is."""

    def __init__(self, kind: tuple[bool, bool], group: str, connection: socket.socket) -> None:
        self.kind, self.group, self.socket = kind, group, connection


class _Launcher:
    """Forks keepers, and collects them where their groups have to be removed."""

    def __init__(self, owner: socket.socket, groups: CgroupAllocator | None, compiled: int) -> None:
        self._owner, self._groups = owner, groups
        self._program_fd = compiled  # a descriptor of the keeper as a program; -1: there is none
        self._stage = ""  # as of the last request
        self._kind = (True, True)
        self._init_program_fd = _open_init_program()
        self._prewarmed: list[_PrewarmedSupervisor] = []
        self._fork_failed = False  # no keeper could be forked ahead
        self._group_of_pid: dict[int, str] = {}  # keeper -> its group
        self._ending_groups: list[str] = []  # groups whose keeper has ended
        self._wakeup_read, self._wakeup_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        sys_.prctl(sys_.PR_SET_CHILD_SUBREAPER, 1)  # not every machine's PID 1 collects orphans
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's to handle
        if groups is None:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are collected by the kernel
        else:
            signal.signal(signal.SIGCHLD, lambda *_: None)
            signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Create boxes until the owner hangs up. Raises EOFError or ConnectionError then."""
        poll = select.poll()
        poll.register(self._owner, select.POLLIN)
        poll.register(self._wakeup_read, select.POLLIN)
        while True:
            short = self._stage and not self._fork_failed and self._needs_prewarm()
            ready = poll.poll(0 if short else _RETRY_MS if self._ending_groups else None)
            for fd, _ in ready:
                if fd == self._wakeup_read:
                    os.read(fd, 1 << 12)
                    continue
                request, fds = protocol.receive(self._owner)
                try:
                    self._create(request, fds)
                finally:
                    protocol.close_all(fds)
            self._collect()
            if short and not ready:
                try:
                    self._prewarmed.append(self._fork())
                except OSError:  # the next request says why
                    self._fork_failed = True
                self._enter_next_group()

    def _needs_prewarm(self) -> bool:
        """Whether too few keepers of the kind that was last asked for wait."""
        return sum(waiting.kind == self._kind for waiting in self._prewarmed) < _PREWARMED_COUNT

    def _create(self, request: dict[str, Any], fds: list[int]) -> None:
        """Hand a request to a keeper that waits for one, or to a new one."""
        self._stage = request["stage"]
        self._kind = (request["network"] != "host", request["look"] == "plain")
        self._fork_failed = False
        try:
            while not self._dispatch(request, fds):
                pass  # that keeper was killed while it waited
        except OSError as e:
            with socket.socket(fileno=os.dup(fds[0])) as asking, contextlib.suppress(OSError):
                protocol.send(asking, {"ok": False, "error": f"nothing can be started: {e}"})
        self._enter_next_group()

    def _dispatch(self, request: dict[str, Any], fds: list[int]) -> bool:
        """Whether a keeper has got the request. Raises OSError where there is none."""
        keeper = self._take_prewarmed()
        request["groups"] = self._apply_bounds(keeper.group, request)
        with keeper.socket:
            try:
                protocol.send(keeper.socket, request, fds)
            except (BrokenPipeError, ConnectionResetError):
                return False
            except OSError as e:
                if e.errno != errno.ETOOMANYREFS:
                    raise
                # a box of this id holds up the passing of descriptors: a fork inherits them
                heir = self._fork(request, fds)
                heir.socket.close()
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
        """A new keeper, in the group that waits for it; it need not wait for a request that it is
        given. Raises OSError where there is none."""
        if self._groups is not None and self._groups.current is None:
            self._groups.enter_next()
        if request is not None:
            name = self._groups.current if self._groups is not None else ""
            request["groups"] = self._apply_bounds(str(name), request)
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
        """The process of a new keeper: the program, or this interpreter forked."""
        if self._program_fd >= 0:
            try:
                pid = start_program(self._program_fd, theirs.fileno(), self._init_program_fd, fds)
            except OSError:  # the cache lies where nothing may be executed
                os.close(self._program_fd)
                self._program_fd = -1
            else:
                order = first_message(self._stage, self._kind, self._init_program_fd, request, fds)
                protocol.send(ours, order)
                return pid
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            program = _close_other_descriptors(*fds, theirs.fileno(), self._init_program_fd)
            given = (request, list(fds)) if request is not None else None
            keeper.run_supervisor(theirs, given, self._stage, *self._kind, program)
        return pid

    def _enter_next_group(self) -> None:
        """Go out of the group of a box that was just forked, and prepare the next one's."""
        if self._groups is not None and self._groups.current is None:
            with contextlib.suppress(OSError):  # then the next fork tries again, and says so
                self._groups.enter_next()

    def _apply_bounds(self, group: str, request: dict[str, Any]) -> dict[str, str]:
        """Bound a box's group, and tell its directories; none where it has no bounds."""
        if self._groups is None:
            return {}
        limits = request["limits"]
        if not limits["groups"]:
            self._groups.set_bounds(group, 0, 0)
            return {}
        memory = memory_limit(limits, request["upper"] is None)
        self._groups.set_bounds(group, memory, limits["processes"])
        return self._groups.paths(group)

    def _collect(self) -> None:
        """Take note of keepers that have ended, and remove the groups that are empty."""
        if self._groups is None:
            return
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if group := self._group_of_pid.pop(
                    pid, ""
                ):  # else the PID 1 of a box whose keeper went
                    self._ending_groups.append(group)
        self._ending_groups = [
            name for name in self._ending_groups if not self._groups.release(name)
        ]

    def shut_down(self) -> None:
        """End every box and remove what was made for them."""
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
