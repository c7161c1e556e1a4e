"""The launcher: one process with a single thread that starts a supervisor per sandbox.

A few supervisors are started ahead, when no request waits, and prepare themselves. If the same
sandbox was requested three times in a row, one sets up the next ahead (prewarmed.py). The launcher
ends when its owner closes the connection, or ends although a child that it forked holds the
connection open, and its supervisors end with it. Where control groups are
writable, each supervisor starts in a group of its own, which is removed after its last process.

If root starts the launcher and the kernel can show layers to other owners, each supervisor becomes
a user of its own (user_ids.py). The launcher then remains root with the few capabilities that this
takes; otherwise it becomes the user that all sandboxes share. An ordinary user's launcher of
sandboxes with several users enters a user namespace (id_maps.py). It reads nothing from a sandbox.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import time

from . import protocol
from . import syscalls as sys_
from .cgroups import CgroupAllocator, memory_limit
from .prewarmed import PrewarmedSupervisor, RequestHistory
from .rights import STAGE, Rights, error_text, install_seccomp_filter, prepare_rights
from .start import Template, copy_to_memory, first_message, start_program
from .user_ids import INNER_ROOT, RANGE_SIZE

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .prewarmed import RepeatedRequest
    from .start import Kind

_PREWARMED_COUNT = 2  # supervisors to prewarm
_PREWARM_DELAY = 0.005  # seconds for a new sandbox to run its first program meanwhile
_RETRY_MS = 10  # delay before another attempt to remove a group
_END_SECONDS = 5.0  # time for sandboxes to end after the owner
_REMEMBERED_KILLS = 1000  # supervisors killed because their sandbox exceeded its memory limit

_MAX_DESCRIPTORS = 250
"""Limit on the descriptors that are passed to a supervisor (see supervisor.h)."""


def main(fd: int) -> None:
    """Serve requests on an inherited socket until the owner closes it."""
    owner = socket.socket(fileno=fd)
    owner.set_inheritable(False)  # no supervisor may inherit it
    sys_.hide_command_line(b"intercode")
    request, fds = protocol.receive(owner)
    ended = os.pidfd_open(os.getppid())
    try:
        groups, why = _create_allocator(request["uid"])
        rights = prepare_rights(request)
        groups, why = _enter_first_group(groups, why)
        install_seccomp_filter(rights, request["users"], has_groups=groups is not None)
        launcher = _Launcher(owner, ended, groups, rights, fds[0], request["users"])
    except OSError as e:
        protocol.send(owner, {"ok": False, "error": str(e)})
        return
    directories = list(groups.directories.values()) if groups else []
    protocol.send(
        owner,
        {
            "ok": True,
            "cgroups": directories,
            "cgroups_error": why,
            "user_ids_error": rights.user_ids_error,
        },
    )
    try:
        launcher.serve()
    except (EOFError, ConnectionError):
        launcher.shut_down()


def _create_allocator(uid: int) -> tuple[CgroupAllocator | None, str]:
    """Return an allocator of control groups, or None with the reason."""
    try:
        return CgroupAllocator(uid), ""
    except OSError as e:
        return None, error_text(e)


def _enter_first_group(
    groups: CgroupAllocator | None, why: str
) -> tuple[CgroupAllocator | None, str]:
    """Enter the first group as the sandboxes' user. Return the same pair."""
    try:
        if groups is not None:
            groups.enter_next()
    except OSError as e:
        return None, error_text(e)
    return groups, why


class _Launcher:
    """Starts supervisors, and collects ended ones if their groups have to be removed."""

    def __init__(
        self,
        owner: socket.socket,
        owner_ended: int,
        groups: CgroupAllocator | None,
        rights: Rights,
        program: int,
        has_users: bool,
    ) -> None:
        self._has_users = has_users
        self._owner, self._owner_ended, self._groups = owner, owner_ended, groups
        self._rights, self._ids = rights, rights.user_ids
        self._program_fd = program  # of the supervisor
        self._template = self._start_template()
        if groups is not None:
            groups.set_forker(self._move_template)
        if self._ids is not None:
            self._ids.start_holders_with(self._hold_namespace)
        self._stage = ""  # the stage of the last request
        self._kind: Kind = (True, True, False, None)
        self._unmappable: set[str] = set()  # layers that only the shared user id can use
        self._prewarmed: list[PrewarmedSupervisor] = []
        self._history = RequestHistory()
        self._prewarm_time = 0.0  # when the next supervisor may be started ahead
        self._fork_failed = False  # no supervisor could be started ahead
        self._group_of_pid: dict[int, str] = {}  # pid of a supervisor: its group
        self._user_of_pid: dict[int, int] = {}  # pid of a supervisor: its user id
        self._ending_groups: list[str] = []  # groups of ended supervisors
        self._memory_kills: list[int] = []  # pids of the supervisors that they killed
        self._wakeup_read, self._wakeup_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        sys_.prctl(sys_.PR_SET_CHILD_SUBREAPER, 1)  # not every PID 1 collects orphans
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner
        if groups is None and self._ids is None:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects ended supervisors
        else:
            signal.signal(signal.SIGCHLD, lambda *_: None)
            signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve requests until the owner is gone. Raises EOFError or ConnectionError then."""
        poll = select.poll()
        poll.register(self._owner, select.POLLIN)
        poll.register(self._wakeup_read, select.POLLIN)
        poll.register(self._owner_ended, select.POLLIN)
        while True:
            needs_prewarm = self._stage and not self._fork_failed and self._needs_prewarm()
            delay = 1000 * max(0.0, self._prewarm_time - time.monotonic())
            ready = poll.poll(
                delay if needs_prewarm else _RETRY_MS if self._ending_groups else None
            )
            for fd, _ in ready:
                if fd == self._wakeup_read:
                    os.read(fd, 1 << 12)
                    continue
                if fd == self._owner_ended:
                    raise EOFError
                request, fds = protocol.receive(self._owner)
                try:
                    if "ended" in request:
                        self._report_end(request["ended"], fds[0])
                    elif "map_for" in request:
                        self._map(request, fds)
                    else:
                        self._create(request, fds)
                finally:
                    protocol.close_all(fds)
            self._collect()
            if needs_prewarm and not ready and time.monotonic() >= self._prewarm_time:
                try:
                    self._prewarm()
                except OSError:  # the next request reports the error
                    self._fork_failed = True
                self._enter_next_group()

    def _of_last_kind(self) -> list[PrewarmedSupervisor]:
        return [waiting for waiting in self._prewarmed if waiting.kind == self._kind]

    def _expected(self) -> RepeatedRequest | None:
        """Return the request whose sandbox should be set up now."""
        expected = self._history.expected
        if expected is None or expected[1] != self._kind:
            return None
        return None if any(waiting.ahead for waiting in self._prewarmed) else expected

    def _needs_prewarm(self) -> bool:
        """Return whether there is something to do for the next request. No gateway is made ahead,
        because they differ so much."""
        if self._kind[3] is not None:
            return False
        return len(self._of_last_kind()) < _PREWARMED_COUNT or self._expected() is not None

    def _prewarm(self) -> None:
        """Start a supervisor, or let one set up the expected sandbox. Raises OSError."""
        waiting, expected = self._of_last_kind(), self._expected()
        if waiting and expected is not None:
            self._set_up_ahead(waiting[0], expected)
        else:
            self._prewarmed.append(self._fork())

    def _set_up_ahead(self, standby: PrewarmedSupervisor, expected: RepeatedRequest) -> None:
        standby.expect(expected)
        request, _ = expected
        try:
            message = {**self._message(request, standby.group), "ahead": True}
            layers = self._clone_layers(request, standby)
            try:
                protocol.send(standby.socket, {**message, "has_layers": bool(layers)}, layers)
            finally:
                protocol.close_all(layers)
        except OSError:  # the next request reports it, if it is still so
            self._history.expected = None
            self._drop(standby)

    def _drop(self, standby: PrewarmedSupervisor) -> None:
        standby.socket.close()
        self._prewarmed.remove(standby)

    def _create(self, request: dict[str, Any], fds: list[int]) -> None:
        """Hand a request to a waiting supervisor, or to a new one."""
        self._stage = request["stage"]
        own_user = (
            request["own_user"]
            and self._ids is not None
            and self._unmappable.isdisjoint(request["layers"])
            and 1 + len(request["layers"]) + len(request["owners"]) <= _MAX_DESCRIPTORS
        ) or (self._has_users and self._ids is not None)
        self._kind = (
            request["network"] != "host",
            request["appearance"] == "plain",
            own_user,
            request.get("gateway"),
        )
        for mount in request["anonymous_mounts"]:  # of the interpreter, which only root may reach
            mount[0] = self._rights.bound.get(mount[0], mount[0])
        asked = self._history.add(request, self._kind, has_descriptors=len(fds) > 1)
        for waiting in [waiting for waiting in self._prewarmed if waiting.ahead is not None]:
            if waiting.ahead != self._history.expected:
                self._drop(waiting)
            elif not waiting.is_current():
                self._history.restart()
                self._drop(waiting)
        self._fork_failed = False
        try:
            while not self._dispatch(request, fds, asked):
                pass  # that supervisor was killed while it waited
        except OSError as e:
            with socket.socket(fileno=os.dup(fds[0])) as requester, contextlib.suppress(OSError):
                protocol.send(requester, {"ok": False, "error": f"nothing can be started: {e}"})
        self._enter_next_group()
        self._prewarm_time = time.monotonic() + _PREWARM_DELAY if self._of_last_kind() else 0.0

    def _dispatch(
        self, request: dict[str, Any], fds: list[int], asked: RepeatedRequest | None
    ) -> bool:
        """Send a request to a supervisor. Return False if another one has to be tried. Raises
        OSError if none can be started."""
        standby = self._take_prewarmed(asked)
        if standby.ahead is not None:
            with standby.socket:
                return standby.hand_over(fds[0])
        self._enter_next_group()  # what is forked now does not count for this sandbox
        try:
            layers = self._clone_layers(request, standby)
        except OSError:
            standby.socket.close()
            if self._has_users:
                raise
            self._kind = (*self._kind[:2], False, self._kind[3])
            return False
        try:
            with standby.socket:
                self._map_given(request, fds[1:], standby.user)
                return self._send_request(standby, request, fds, layers)
        finally:
            protocol.close_all(layers)

    def _send_request(
        self,
        standby: PrewarmedSupervisor,
        request: dict[str, Any],
        fds: Sequence[int],
        layers: Sequence[int],
    ) -> bool:
        """Send a request with its descriptors. Return False if the supervisor was killed."""
        message = {**self._message(request, standby.group), "has_layers": bool(layers)}
        try:
            protocol.send(standby.socket, message, [fds[0], *layers, *fds[1:]])
        except (BrokenPipeError, ConnectionResetError):
            return False
        except OSError as e:
            if e.errno != errno.ETOOMANYREFS or standby.kind[2]:
                raise
            # another sandbox of this user blocks the passing of descriptors: let a new process
            # inherit them
            inheriting = self._fork(request, fds)
            inheriting.socket.close()
        return True

    def _clone_layers(self, request: dict[str, Any], standby: PrewarmedSupervisor) -> list[int]:
        """Return mounts of the layers for a sandbox with a user id of its own. Raises OSError if
        that is not possible."""
        layers: list[int] = []
        if self._ids is None or not standby.kind[2]:
            return layers
        for path in request["layers"]:
            try:
                layers.append(self._ids.clone_layer(path, standby.user))
            except (OSError, ValueError) as e:  # ValueError: no file can have this name
                if not isinstance(e, ChildProcessError):  # that may go better next time
                    self._unmappable.add(path)
                protocol.close_all(layers)
                raise OSError(errno.EINVAL, f"the layer {path!r}: {e}") from e
        return layers

    def _map_given(self, request: dict[str, Any], fds: Sequence[int], user: int) -> None:
        """Show upper layers of other sandboxes, as mounts, to the one with this user id."""
        if self._ids is not None:
            for fd, owner in zip(fds, request["owners"], strict=True):
                if owner != user:
                    self._ids.map_mount(fd, INNER_ROOT, user)

    def _map(self, request: dict[str, Any], fds: list[int]) -> None:
        """Answer with a mount that shows files to the sandbox with the user id ``map_for``: those
        of a path, which belong to the shared id, or those of a mount of a sandbox's upper layer."""
        answer: dict[str, Any] = {"ok": True}
        mounts: list[int] = []
        try:
            if self._ids is None:
                raise OSError(errno.EPERM, self._rights.user_ids_error)
            if "path" in request:
                mounts.append(self._ids.clone_layer(request["path"], request["map_for"]))
            else:
                self._ids.map_mount(fds[1], INNER_ROOT, request["map_for"])
                mounts.append(os.dup(fds[1]))
        except OSError as e:
            answer = {"ok": False, "error": error_text(e)}
        try:
            with socket.socket(fileno=os.dup(fds[0])) as owner, contextlib.suppress(OSError):
                protocol.send(owner, answer, mounts)
        finally:
            protocol.close_all(mounts)

    def _take_prewarmed(self, asked: RepeatedRequest | None) -> PrewarmedSupervisor:
        """Return a supervisor that waits, if possible one that has set up what is asked for."""
        fitting = [waiting for waiting in self._of_last_kind() if waiting.ahead in (None, asked)]
        if not fitting:
            return self._fork()
        taken = max(fitting, key=lambda waiting: waiting.ahead is not None)
        self._prewarmed.remove(taken)
        return taken

    def _fork(
        self, request: dict[str, Any] | None = None, fds: Sequence[int] = ()
    ) -> PrewarmedSupervisor:
        """Start a supervisor in the current group. With ``request`` it does not wait for one.
        Raises OSError."""
        if self._groups is not None and self._groups.current is None:
            self._groups.enter_next()
        if request is not None:
            name = self._groups.current if self._groups is not None else ""
            request = self._message(request, str(name))
        ours, theirs = socket.socketpair()
        user = self._take_user()
        try:
            with theirs:
                pid = self._start_process(ours, theirs, user, request, fds)
        except BaseException:
            self._release_user(user)
            raise
        if self._ids is not None:
            self._user_of_pid[pid] = user
        group = ""
        if self._groups is not None:
            self._group_of_pid[pid] = group = self._groups.take_current()
        return PrewarmedSupervisor(self._kind, group, user, ours)

    def _take_user(self) -> int:
        """Return the user id of the next supervisor."""
        if self._ids is None:
            return os.geteuid()
        return self._ids.take() if self._kind[2] else self._ids.shared

    def _release_user(self, user: int) -> None:
        if self._ids is not None and user != self._ids.shared:
            self._ids.release(user)

    def _start_process(
        self,
        ours: socket.socket,
        theirs: socket.socket,
        user: int,
        request: dict[str, Any] | None,
        fds: Sequence[int],
    ) -> int:
        """Start the process of a supervisor and send it the first message. Return its pid."""
        pid = 0
        if request is None:
            pid = self._fork_template(theirs)
        if not pid:
            pid = start_program(self._program_fd, theirs.fileno(), fds)
            if self._groups is not None:
                self._groups.move(str(self._groups.current), pid)
        setup = {"stage": self._stage, "devices": self._rights.nodes.take()}
        if self._ids is not None:
            setup = {**setup, "stage": STAGE, "user": str(user)}
            if self._has_users:
                setup |= dict.fromkeys(("uid_map", "gid_map"), f"0 {user} {RANGE_SIZE}")
        setup |= self._rights.id_maps
        message = first_message(setup, self._kind, request, fds)
        group = self._groups.supervisor_paths() if self._groups is not None else {}
        protocol.send(ours, {**message, "group": group})
        return pid

    def _start_template(self) -> Template:
        try:
            return Template(self._program_fd)
        except PermissionError:  # it is on a file system mounted with noexec, or not for this user
            on_disk, self._program_fd = self._program_fd, copy_to_memory(self._program_fd)
            os.close(on_disk)
            return Template(self._program_fd)

    def _hold_namespace(self, connection: socket.socket) -> int:
        return self._fork_template(connection, "namespace")

    def _fork_template(self, connection: socket.socket, what: str = "supervisor") -> int:
        """Fork a process from the template. Return its pid, or 0 if that is not possible."""
        try:
            return self._template.fork(what, connection)
        except ConnectionError:  # it was killed
            self._replace_template()
            if self._groups is not None and self._groups.current is not None:
                self._move_template(self._groups.entries(self._groups.current))
        except OSError:  # descriptors cannot be passed to it
            pass
        return 0

    def _move_template(self, files: Sequence[str]) -> None:
        """Let the template enter control groups. Raises OSError."""
        try:
            self._template.enter(files)
        except ConnectionError:  # it was killed
            self._replace_template()
            self._template.enter(files)

    def _replace_template(self) -> None:
        self._template.close()
        self._template = self._start_template()

    def _enter_next_group(self) -> None:
        """Leave the group of the sandbox that was just forked, and enter that of the next."""
        if self._groups is not None and self._groups.current is None:
            with contextlib.suppress(OSError):  # the next fork tries again and reports the error
                self._groups.enter_next()

    def _message(self, request: dict[str, Any], group: str) -> dict[str, Any]:
        """Set the limits of a sandbox's group. Return the request as its supervisor gets it."""
        message = {**request, "template": self._template.pid, "cgroups": {}}
        if self._groups is None:
            return message
        limits = request["limits"]
        if not limits["cgroups"]:
            self._groups.set_bounds(group, 0, 0)
            return message
        memory = memory_limit(limits, request["upper"] is None)
        self._groups.set_bounds(group, memory, limits["processes"], limits["cpus"])
        # The kernel applies the limit of the user first, and does not count what that one refuses:
        # it is one higher than that of the group.
        more = {**limits, "processes": limits["processes"] + 1}
        return {**message, "limits": more, "cgroups": self._groups.paths(group)}

    def _collect(self) -> None:
        """Collect ended supervisors, and what they had."""
        if self._groups is None and self._ids is None:
            return
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                # other children are the PID 1 of a sandbox whose supervisor has ended, and
                # processes that held a user namespace
                if user := self._user_of_pid.pop(pid, 0):
                    self._release_user(user)
                if self._groups is not None and (group := self._group_of_pid.pop(pid, "")):
                    self._ending_groups.append(group)
                    if status == signal.SIGKILL and self._groups.killed_for_memory(group):
                        self._memory_kills = [*self._memory_kills[-_REMEMBERED_KILLS:], pid]
        if self._groups is not None:
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
            with contextlib.suppress(OSError), open("/proc/thread-self/children") as children:
                for child in children.read().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(child), signal.SIGKILL)
            return
        self._ending_groups += self._groups.leave_current()
        for pid, name in self._group_of_pid.items():
            self._groups.thaw(name)
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _END_SECONDS
        while (self._group_of_pid or self._ending_groups) and time.monotonic() < deadline:
            self._collect()
            time.sleep(_RETRY_MS / 1e3)
