"""Implements the methods of a sandbox as requests to its supervisor, for all back ends.

The requests go over a socket (connection.py, runtime/protocol.py), together with descriptors. So a
program in the sandbox reads and writes the owner's pipes directly, and a command takes the same
time in every back end.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any, Literal
from weakref import WeakSet

from intercode_sandbox.contract import (
    BaseSandbox,
    Capability,
    Checkpoint,
    LimitExceeded,
    ProgramSpec,
    SandboxSpec,
)
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.streams import memory_file
from intercode_sandbox.supervisor.connection import READ_SECONDS, SupervisorConnection
from intercode_sandbox.supervisor.control_group import ControlGroup, GroupMemory
from intercode_sandbox.supervisor.process_table import (
    HostProcess,
    list_descendants,
    unblock_supervisor,
)
from intercode_sandbox.supervisor.socket_memory import SocketMemory
from intercode_sandbox.supervisor.supervised_process import SupervisedProcess
from intercode_sandbox.supervisor.watchdog import Watch, Watchdog, measure_processes
from intercode_sandbox.types import TRUNCATED_CHANGES, FileEntry, FileInfo, ResourceUsage

_TICKS = os.sysconf("SC_CLK_TCK")
_MIN_FREE_BYTES = 1 << 16  # free space below which the disk counts as full


class CheckpointFile:
    """A checkpoint in a file, whose descriptor it owns."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._lock = descriptor, threading.Lock()

    def duplicate(self) -> int:
        """Return a descriptor of the file, for the caller to close. Raises OSError after
        ``close``, which another thread may call."""
        with self._lock:
            if self._descriptor < 0:
                raise OSError(errno.EBADF, "the checkpoint is closed")
            return os.dup(self._descriptor)

    def close(self) -> None:
        """Free the file. May be called again."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class SupervisedSandbox(BaseSandbox):
    """A sandbox with a supervisor.

    A subclass sets ``spec``, ``tier``, ``env``, ``base_trees``, ``connection``, and
    ``supervisor_pid``, the supervisor's process number on this machine. ``user_id`` is the user id
    of its processes outside of the sandbox. ``_group`` is a control group that can be frozen.
    """

    connection: SupervisorConnection
    user_id: int
    supervisor_pid: int
    script_path = "/dev/bash"
    _watch: Watch | None = None
    _group: ControlGroup | None = None
    _background_killed = False  # reset by ``limit_exceeded``
    _pauses = 0

    @cached_property
    def _pause_lock(self) -> threading.Lock:
        return threading.Lock()

    @cached_property
    def _spawned(self) -> WeakSet[SupervisedProcess]:
        """The processes that the owner started and still refers to."""
        return WeakSet()

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset({"listing", "processes", "fork", "restore", "recycle", "save", "usage"})

    @property
    def is_lost(self) -> bool:
        return self.connection.is_lost

    def _start_watchdog(
        self, spec: SandboxSpec, memory: int | None, group: GroupMemory | None = None
    ) -> None:
        """Start to enforce limits that nothing else enforces: ``memory`` in bytes, and the
        processor time of an action. ``group``: the memory of the sandbox's control group."""
        if memory is not None or spec.limits.cpu_seconds is not None:
            sockets = [SocketMemory(fd) for fd in self.connection.given_fds]
            self._watch = Watch(
                self.supervisor_pid, memory, spec.limits.cpu_seconds, sockets, group
            )
            with suppress(OSError):  # the supervisor has ended already
                Watchdog.watch(self._watch)

    def limit_exceeded(self) -> LimitExceeded:
        exceeded = self._poll_limit_exceeded()
        background, self._background_killed = self._background_killed, False
        return "background" if background else exceeded

    def _poll_limit_exceeded(self) -> LimitExceeded:
        """Return the limit that the watchdog enforced since the last call."""
        if self._watch is None:
            return ""
        result, self._watch.limit_exceeded = self._watch.limit_exceeded, ""
        return result

    def storage_exhausted(self) -> Literal["", "disk", "inodes", "shared_memory"]:
        answer, _ = self.connection.request("size")
        if answer["files_left"] == 0:
            return "inodes"
        if answer["bytes_left"] < _MIN_FREE_BYTES:
            return "disk"
        return "shared_memory" if answer.get("shared_memory_full") else ""

    def start(self, program: ProgramSpec) -> SupervisedProcess:
        fds, user = program.fds, program.user
        uid, gid = (user.uid, user.gid) if user else (0, 0)
        if os.geteuid() == 0:  # otherwise a command could not open /dev/stdout by name
            for fd in fds.values():
                os.fchown(fd, self.user_id + uid, self.user_id + gid)
        arguments: dict[str, Any] = {"argv": list(program.argv), "cwd": program.cwd}
        arguments["env"] = dict(self.env if program.env is None else program.env)
        arguments["targets"] = list(fds)
        if program.on_terminal:
            arguments["on_terminal"] = True
        if user is not None:
            arguments["user"] = {"uid": uid, "gid": gid, "groups": list(user.groups)}
        operation = "spawn"
        status, *own = os.pipe()
        try:
            if program.checkpoint is not None:
                if not isinstance(program.checkpoint, CheckpointFile):
                    raise SandboxError("a checkpoint of another back end cannot be continued here")
                operation, arguments["given_fds"] = "restore_checkpoint", [0, *fds]
                own.append(program.checkpoint.duplicate())
            answer = self._request_spawn(operation, [*own, *fds.values()], arguments)
        except BaseException:
            os.close(status)
            raise
        finally:
            for fd in own:
                os.close(fd)
        kill = partial(self.connection.request, "kill", child=answer["child"])
        process = SupervisedProcess(answer["pid"], status, kill, self.connection.lost_error)
        self._spawned.add(process)
        return process

    def open_terminal(self, size: tuple[int, int]) -> tuple[int, int]:
        if "terminal" not in self.capabilities:
            return super().open_terminal(size)
        master = self.connection.request_fd("terminal")
        try:
            return master, open_slave(master, size)
        except BaseException:
            os.close(master)
            raise

    def connect(self, address: int | str) -> socket.socket:
        if "connect" not in self.capabilities:
            return super().connect(address)
        if isinstance(address, int):
            return self._connected(port=address)
        return self._connected(path=address)

    def _connected(self, **where: int | str) -> socket.socket:
        connection = socket.socket(fileno=self.connection.request_fd("connect", **where))
        try:
            complete_connection(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def listen(self, port: int = 0) -> socket.socket:
        if "listen" not in self.capabilities:
            return super().listen(port)
        return socket.socket(fileno=self.connection.request_fd("listen", port=port))

    def usage(self) -> ResourceUsage:
        disk, files = self.size()
        seconds, memory, processes = measure_processes(self.supervisor_pid)
        return ResourceUsage(seconds, memory, processes, disk, files)

    def _request_spawn(
        self, operation: str, descriptors: Sequence[int], arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Ask the supervisor to start a program. If the limit of processes is reached, kill all
        processes that the owner did not start, and ask again."""
        try:
            return self.connection.request(
                operation, descriptors, on_delay=self._unblock, **arguments
            )[0]
        except BlockingIOError:
            self.kill_since(0, [p.pid for p in self._spawned if not p.is_reaped])
            answer = self.connection.request(
                operation, descriptors, on_delay=self._unblock, **arguments
            )[0]
            self._background_killed = True
            return answer

    def _list_processes(self) -> list[HostProcess]:
        """Return the processes of the sandbox."""
        return list_descendants(self.supervisor_pid)

    def descendants(self, pid: int) -> list[int]:
        """Return the descendants of a process, all by their numbers in the sandbox."""
        members = self._list_processes()
        return _find_descendants(members, [m for m in members if m.inner_pid == pid])

    def started_by_earlier(self, mark: int) -> list[int]:
        """Return the descendants of processes that started before ``mark``, except PID 1, to which
        every orphan belongs."""
        members = list_descendants(self.supervisor_pid)
        earlier = [m for m in members if m.start_ticks < mark and m.inner_pid != 1]
        return _find_descendants(members, earlier)

    def _unblock(self) -> None:
        """Unblock the supervisor if a process of the sandbox has stopped a new process before it
        executed its program. The supervisor waits for that."""
        unblock_supervisor(self.supervisor_pid)

    def changes(self, digests: bool = True, pause: bool = False) -> dict[str, FileEntry]:
        rows, truncated = self._request_rows("changes", digests=digests, pause=pause)
        entries = dict(rows)
        changes = {path: entries[path] for path in _sort_paths(list(entries))}
        if truncated:
            changes[TRUNCATED_CHANGES] = FileEntry("device", size=-1)
        return changes

    def changed_paths(self) -> list[str]:
        paths, truncated = self._request_rows("changed_paths")
        return _sort_paths(paths) + [TRUNCATED_CHANGES] * truncated

    def _request_rows(self, operation: str, **arguments: Any) -> tuple[list[Any], bool]:
        """Return the rows of a listing, which are paths or pairs of a path and its entry, and
        whether rows are missing because the listing would be too long."""
        rows: list[Any] = []

        def add(part: dict[str, Any]) -> None:
            for row in part["rows"]:
                if isinstance(row, int):  # the supervisor takes back the rows from this number on
                    del rows[row:]
                else:
                    rows.append(row if isinstance(row, str) else (row[0], FileEntry(*row[1:])))

        answer, _ = self.connection.request(
            operation, seconds=READ_SECONDS, on_part=add, **arguments
        )
        add(answer)
        return rows, answer["truncated"]

    def read(self, path: str, limit: int = 64 << 20) -> bytes:
        fd = self.connection.request_fd("open", path=path)
        with open(fd, "rb") as f:
            data = f.read(limit + 1)
        if len(data) > limit:
            raise OSError(27, f"{path} is larger than {limit} bytes")
        return data

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        with memory_file(data) as source:
            self.connection.request("write", [source.fileno()], path=path, mode=mode)

    def file_info(self, path: str, follow: bool = True) -> FileInfo:
        answer, _ = self.connection.request("file", path=path, follow=follow)
        return _file_info(answer["file"])

    def list_directory(self, path: str) -> dict[str, FileInfo]:
        answer, _ = self.connection.request("files", seconds=READ_SECONDS, path=path)
        return {name: _file_info(row) for name, row in answer["files"].items()}

    def remove(self, path: str, recursive: bool = False) -> None:
        self.connection.request("remove", seconds=READ_SECONDS, path=path, recursive=recursive)

    def checkpoint(self, pid: int, given_fds: Sequence[int]) -> Checkpoint:
        if "checkpoint" not in self.capabilities:
            return super().checkpoint(pid, given_fds)
        child = next((m.pid for m in self._list_processes() if m.inner_pid == pid), -1)
        fd = self.connection.request_fd("checkpoint", child=child, given_fds=list(given_fds))
        return CheckpointFile(fd)

    def size(self) -> tuple[int, int]:
        """Return the bytes and the number of the sandbox's own files and directories."""
        answer, _ = self.connection.request("size")
        return answer["bytes"], answer["files"]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause all processes of the sandbox inside the ``with`` block, or the outermost of several
        in one another."""
        with self._pause_lock:
            self._pauses += 1
            if self._pauses == 1:
                self.connection.request("freeze", on=True)
        try:
            yield
        finally:
            with self._pause_lock:
                self._pauses -= 1
                if not self._pauses:
                    self.connection.request("freeze", on=False)

    _paused = paused

    def processes(self) -> tuple[str, ...]:
        answer, _ = self.connection.request("processes")
        return tuple(answer["processes"])

    def mark(self) -> int:
        if self._watch is not None:
            self._watch.restart()
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)

    def signal(self, pid: int, number: int) -> None:
        self.connection.request("signal", pid=pid, number=number)

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        group = self._group  # frozen, its processes cannot multiply meanwhile
        if group is None or not group.kill_since(mark, (1, *keep), self.supervisor_pid):
            self.connection.request("kill_since", seconds=READ_SECONDS, mark=mark, keep=list(keep))

    def close(self, wait: bool = False) -> None:
        self.connection.close(wait)
        watch, self._watch = self._watch, None
        if watch is not None:
            Watchdog.unwatch(watch)
            watch.close()


def _find_descendants(members: list[HostProcess], ancestors: list[HostProcess]) -> list[int]:
    """Return the descendants of some of the processes, by their numbers in the sandbox."""
    parents = {m.pid for m in ancestors}
    result: list[int] = []
    while children := [m for m in members if m.parent in parents and m.inner_pid not in result]:
        parents = {m.pid for m in children}
        result += [m.inner_pid for m in children]
    return result


def _file_info(row: list[Any]) -> FileInfo:
    kind, mode, size, seconds, nanoseconds, target = row
    return FileInfo(kind, mode, size, seconds + nanoseconds / 1e9, target)


def _sort_paths(paths: list[str]) -> list[str]:
    """Sort paths by their bytes, in place, and return them."""
    paths.sort(key=None if all(map(str.isascii, paths)) else os.fsencode)
    return paths


def refusal_error(error: OSError, what: str) -> SandboxError:
    """Return the error for a request that the supervisor refused."""
    return SandboxError(f"the sandbox cannot be {what}: {error.strerror}")


def unlimited_processors_error(tier: str) -> SandboxUnavailableError:
    """Return the error for a limit on processors where sandboxes have no control group."""
    return SandboxUnavailableError(
        f"a sandbox of the tier {tier} cannot limit its processors, for want of a control group: "
        "use namespace/1, docker or podman, or leave out `cpus`"
    )


# The owner's ends of terminals and connections that a supervisor opens in its sandbox.
_GET_SLAVE = 0x5441  # TIOCGPTPEER
_CONNECT_SECONDS = 5.0


def open_slave(master: int, size: tuple[int, int]) -> int:
    """Return the slave side of a terminal, given this number of rows and columns. It is the one in
    the sandbox, whose name means nothing on this machine."""
    import fcntl  # not on Windows, which imports this module for remote sandboxes
    import termios

    slave = fcntl.ioctl(master, _GET_SLAVE, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    termios.tcsetwinsize(slave, size)
    return slave


def complete_connection(connection: socket.socket) -> None:
    """Wait until a connection is established. Raises OSError if it is not."""
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    if not poll.poll(_CONNECT_SECONDS * 1000):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    if code := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(code, os.strerror(code))
    connection.setblocking(True)
