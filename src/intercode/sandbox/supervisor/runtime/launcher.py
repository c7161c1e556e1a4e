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
from .cgroups import Groups, memory_bound
from .hardening import refuse_calls
from .program import first_order, start

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_STOCK = 2  # keepers that wait
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
        groups, why = _groups(request["uid"])
        _start(request)
        groups, why = _seated(groups, why)
        refuse_calls()
        launcher = _Launcher(owner, groups, fds[0] if fds else -1)
    except OSError as e:
        protocol.send(owner, {"ok": False, "error": str(e)})
        return
    homes = list(groups.homes.values()) if groups else []
    protocol.send(owner, {"ok": True, "groups": homes, "why": why})
    gc.disable()  # a fork shares what is not touched, and collecting touches everything
    gc.freeze()
    try:
        launcher.serve()
    except (EOFError, ConnectionError):
        launcher.end()


def _groups(uid: int) -> tuple[Groups | None, str]:
    """Control groups, or what is in the way of them."""
    try:
        return Groups(uid), ""
    except OSError as e:
        return None, _reason(e)


def _seated(groups: Groups | None, why: str) -> tuple[Groups | None, str]:
    """The same, after the first use under the boxes' id."""
    try:
        if groups is not None:
            groups.sit()
    except OSError as e:
        return None, _reason(e)
    return groups, why


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)


def _start(request: dict[str, Any]) -> None:
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


def _idle_program() -> int:
    """A descriptor of what PID 1 is to be; -1 where it has to be this interpreter."""
    try:
        return init_program.opened(sys_.ARCH)
    except (KeyError, OSError):
        return -1


def _only(*kept: int) -> int:
    """Close every descriptor above 2 but these: nothing of other boxes, nor the owner's connection,
    may be held. Returns the last of them."""
    start = 3
    for fd in sorted(kept):
        if fd >= start:
            os.closerange(start, fd)
            start = fd + 1
    os.closerange(start, _MOST_DESCRIPTORS)
    return kept[-1]


class _Waiting:
    """A keeper that waits for its request on a socket, the group it is in, and its kind: whether it
    has a network of its own, and whether its PID 1 stays what it is."""

    def __init__(self, kind: tuple[bool, bool], group: str, connection: socket.socket) -> None:
        self.kind, self.group, self.socket = kind, group, connection


class _Launcher:
    """Forks keepers, and collects them where their groups have to be removed."""

    def __init__(self, owner: socket.socket, groups: Groups | None, compiled: int) -> None:
        self._owner, self._groups = owner, groups
        self._compiled = compiled  # a descriptor of the keeper as a program; -1: there is none
        self._stage = ""  # as of the last request
        self._kind = (True, True)
        self._program = _idle_program()
        self._stock: list[_Waiting] = []
        self._held_up = False  # no keeper could be forked ahead
        self._boxes: dict[int, str] = {}  # keeper -> its group
        self._leaving: list[str] = []  # groups whose keeper has ended
        self._wake, self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        sys_.prctl(sys_.PR_SET_CHILD_SUBREAPER, 1)  # not every machine's PID 1 collects orphans
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's to handle
        if groups is None:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are collected by the kernel
        else:
            signal.signal(signal.SIGCHLD, lambda *_: None)
            signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Create boxes until the owner hangs up. Raises EOFError or ConnectionError then."""
        poll = select.poll()
        poll.register(self._owner, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            short = self._stage and not self._held_up and self._is_short()
            ready = poll.poll(0 if short else _RETRY_MS if self._leaving else None)
            for fd, _ in ready:
                if fd == self._wake:
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
                    self._stock.append(self._fork())
                except OSError:  # the next request says why
                    self._held_up = True
                self._move_on()

    def _is_short(self) -> bool:
        """Whether too few keepers of the kind that was last asked for wait."""
        return sum(waiting.kind == self._kind for waiting in self._stock) < _STOCK

    def _create(self, request: dict[str, Any], fds: list[int]) -> None:
        """Hand a request to a keeper that waits for one, or to a new one."""
        self._stage = request["stage"]
        self._kind = (request["network"] != "host", request["look"] == "plain")
        self._held_up = False
        try:
            while not self._handed_over(request, fds):
                pass  # that keeper was killed while it waited
        except OSError as e:
            with socket.socket(fileno=os.dup(fds[0])) as asking, contextlib.suppress(OSError):
                protocol.send(asking, {"ok": False, "error": f"nothing can be started: {e}"})
        self._move_on()

    def _handed_over(self, request: dict[str, Any], fds: list[int]) -> bool:
        """Whether a keeper has got the request. Raises OSError where there is none."""
        keeper = self._keeper()
        request["groups"] = self._bound(keeper.group, request)
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

    def _keeper(self) -> _Waiting:
        for waiting in self._stock:
            if waiting.kind == self._kind:
                self._stock.remove(waiting)
                return waiting
        return self._fork()

    def _fork(self, request: dict[str, Any] | None = None, fds: Sequence[int] = ()) -> _Waiting:
        """A new keeper, in the group that waits for it; it need not wait for a request that it is
        given. Raises OSError where there is none."""
        if self._groups is not None and self._groups.name is None:
            self._groups.sit()
        if request is not None:
            name = self._groups.name if self._groups is not None else ""
            request["groups"] = self._bound(str(name), request)
        ours, theirs = socket.socketpair()
        with theirs:
            pid = self._begin(ours, theirs, request, fds)
        group = ""
        if self._groups is not None:
            self._boxes[pid] = group = self._groups.take()
        return _Waiting(self._kind, group, ours)

    def _begin(
        self, ours: socket.socket, theirs: socket.socket, request: dict[str, Any] | None,
        fds: Sequence[int],
    ) -> int:  # fmt: skip
        """The process of a new keeper: the program, or this interpreter forked."""
        if self._compiled >= 0:
            try:
                pid = start(self._compiled, theirs.fileno(), self._program, fds)
            except OSError:  # the cache lies where nothing may be executed
                os.close(self._compiled)
                self._compiled = -1
            else:
                order = first_order(self._stage, self._kind, self._program, request, fds)
                protocol.send(ours, order)
                return pid
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            program = _only(*fds, theirs.fileno(), self._program)
            given = (request, list(fds)) if request is not None else None
            keeper.run(theirs, given, self._stage, *self._kind, program)
        return pid

    def _move_on(self) -> None:
        """Go out of the group of a box that was just forked, and prepare the next one's."""
        if self._groups is not None and self._groups.name is None:
            with contextlib.suppress(OSError):  # then the next fork tries again, and says so
                self._groups.sit()

    def _bound(self, group: str, request: dict[str, Any]) -> dict[str, str]:
        """Bound a box's group, and tell its directories; none where it has no bounds."""
        if self._groups is None:
            return {}
        limits = request["limits"]
        if not limits["groups"]:
            self._groups.bound(group, 0, 0)
            return {}
        memory = memory_bound(limits, request["upper"] is None)
        self._groups.bound(group, memory, limits["processes"])
        return self._groups.paths(group)

    def _collect(self) -> None:
        """Take note of keepers that have ended, and remove the groups that are empty."""
        if self._groups is None:
            return
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if group := self._boxes.pop(pid, ""):  # else the PID 1 of a box whose keeper went
                    self._leaving.append(group)
        self._leaving = [name for name in self._leaving if not self._groups.give_back(name)]

    def end(self) -> None:
        """End every box and remove what was made for them."""
        if self._groups is None:
            return
        self._leaving += self._groups.leave()
        for pid, name in self._boxes.items():
            self._groups.thaw(name)
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _END_SECONDS
        while (self._boxes or self._leaving) and time.monotonic() < deadline:
            self._collect()
            time.sleep(_RETRY_MS / 1e3)
