"""What every box has that a keeper of ours controls, wherever the isolation comes from.

The owner asks the keeper over a socket (namespace/link.py, box/wire.py), and passes descriptors
with what it asks: so a program inside reads and writes pipes of the owner's, and a command costs
the same in every kind of box.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self
from weakref import WeakSet

from intercode.core.errors import SandboxError
from intercode.core.paths import sandbox_uid
from intercode.core.types import ExecResult, FileEntry
from intercode.sandbox.contract import LimitExceeded, Sandbox, SandboxSpec
from intercode.sandbox.output import Collector, communicate, decode
from intercode.sandbox.supervisor.connection import READ_SECONDS, SupervisorConnection, memory_file
from intercode.sandbox.supervisor.process import SupervisedProcess
from intercode.sandbox.supervisor.process_table import (
    HostProcess,
    list_descendants,
    unblock_supervisor,
)
from intercode.sandbox.supervisor.runtime import protocol
from intercode.sandbox.supervisor.watchdog import Watch, Watchdog

_TICKS = os.sysconf("SC_CLK_TCK")
_MIN_FREE_BYTES = 1 << 16  # bytes of room that may be left on a full disk


class SupervisedSandbox(Sandbox):
    """See ``Sandbox``. A subclass sets ``spec``, ``tier``, ``env``, ``link``, ``keeper``, the
    keeper's process number on this machine, and ``trees``, the directories of this machine that
    hold what the box begins with, the topmost first.
    """

    env: Mapping[str, str]
    connection: SupervisorConnection
    supervisor_pid: int
    base_trees: Sequence[str]
    _watch: Watch | None = None
    _background_killed = (
        False  # whether what ran in the background was ended since this was last asked
    )

    @cached_property
    def _spawned(self) -> WeakSet[SupervisedProcess]:
        """The processes that the owner started, and still has."""
        return WeakSet()

    def _start_watchdog(self, spec: SandboxSpec, memory: int | None) -> None:
        """Have a thread of this process look at what nothing else bounds: the memory in bytes, and
        the processor time of an action."""
        if memory is not None or spec.limits.cpu_seconds is not None:
            self._watch = Watch(self.supervisor_pid, memory, spec.limits.cpu_seconds)
            with suppress(OSError):  # it has ended already
                Watchdog.watch(self._watch)

    def limit_exceeded(self) -> LimitExceeded:
        met = self._poll_limit_exceeded()
        crowd, self._background_killed = self._background_killed, False
        return "crowd" if crowd else met

    def _poll_limit_exceeded(self) -> LimitExceeded:
        """The limit that was met in the box."""
        if self._watch is None:
            return ""
        found, self._watch.limit_exceeded = self._watch.limit_exceeded, ""
        return found

    def storage_exhausted(self) -> Literal["", "disk", "inodes"]:
        answer, _ = self.connection.request("size")
        if answer["files_left"] == 0:
            return "inodes"
        return "disk" if answer["bytes_left"] < _MIN_FREE_BYTES else ""

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        fds: Mapping[int, int] | None = None,
        checkpoint: int | None = None,
    ) -> SupervisedProcess:
        """See ``Sandbox``. ``picture``: of a process that goes on in the program's place, with the
        given descriptors and those files that it had open; see sessions/python/migration.py."""
        environment = dict(self.env if env is None else env)
        fds = fds or {}
        if os.geteuid() == 0:  # or /dev/stdout could not be opened by name inside
            for fd in fds.values():
                os.fchown(fd, sandbox_uid(), sandbox_uid())
        status_r, status_w = os.pipe()
        told: dict[str, Any] = {"argv": list(argv), "cwd": cwd, "env": environment}
        told["targets"] = list(fds)
        given, do = [status_w, *fds.values()], "spawn"
        if checkpoint is not None:
            given[1:1], do, told["standard"] = [checkpoint], "plant", [0, *fds]
        try:
            answer = self._request_spawn(do, given, told)
        except BaseException:
            os.close(status_r)
            raise
        finally:
            os.close(status_w)
        process = SupervisedProcess(self.connection, answer["pid"], answer["child"], status_r)
        self._spawned.add(process)
        return process

    def _request_spawn(
        self, do: str, given: Sequence[int], told: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Have the keeper start a program. Where there may be no process more, all that the owner
        did not start is ended."""
        try:
            return self.connection.request(do, given, on_delay=self._unblock, **told)[0]
        except BlockingIOError:
            self.kill_since(0, [p.pid for p in self._spawned if not p.is_reaped])
            answer = self.connection.request(do, given, on_delay=self._unblock, **told)[0]
            self._background_killed = True
            return answer

    def _list_processes(self) -> list[HostProcess]:
        """The processes of the box."""
        return list_descendants(self.supervisor_pid)

    def descendants(self, pid: int) -> list[int]:
        """The processes that descend from one of the box's, all by their numbers inside."""
        members = self._list_processes()
        below = {m.pid for m in members if m.inner_pid == pid}
        found: list[int] = []
        while more := [m for m in members if m.parent in below and m.inner_pid not in found]:
            below = {m.pid for m in more}
            found += [m.inner_pid for m in more]
        return found

    def _unblock(self) -> None:
        """What runs in the box can stop a program before it begins, and with it the keeper."""
        unblock_supervisor(self.supervisor_pid)

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
    ) -> ExecResult:
        data, code, cut = self.run_bytes(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout)
        return ExecResult(decode(data), code, timed_out=code is None, omitted_bytes=cut)

    def run_bytes(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
        until_eof: bool = False,
    ) -> tuple[bytes, int | None, int]:
        """As ``run``: the output as bytes, the exit status or None at the time-out, bytes cut.

        ``to_the_end`` waits until nothing holds the output open any more."""
        mark = self.mark()
        read, write = os.pipe()
        collector = Collector(self.spec.limits.output)
        try:
            fds = {1: write, 2: write}
            with memory_file(stdin) as source:
                if stdin:
                    fds[0] = source.fileno()
                process = self.spawn(argv, cwd=cwd, env=env, fds=fds)
            os.close(write)
            write = -1
            if not communicate(process, {read: collector}, timeout, until_eof):
                self.kill_since(mark)
                communicate(process, {read: collector}, 1.0)
                return collector.bytes(), None, collector.dropped
            return collector.bytes(), process.wait(), collector.dropped
        finally:
            protocol.close_all([fd for fd in (read, write) if fd >= 0])

    def changes(self, digests: bool = True, pause: bool = False) -> dict[str, FileEntry]:
        answer, _ = self.connection.request(
            "changes", seconds=READ_SECONDS, digests=digests, still=pause
        )
        return {row[0]: FileEntry(*row[1:]) for row in answer["rows"]}

    def changed_paths(self) -> list[str]:
        answer, _ = self.connection.request("changed", seconds=READ_SECONDS)
        return list(answer["paths"])

    def read_file(self, path: str, limit: int = 64 << 20) -> bytes:
        fd = self.connection.request_fd("open", path=path)
        with open(fd, "rb") as f:
            data = f.read(limit + 1)
        if len(data) > limit:
            raise OSError(27, f"{path} is larger than {limit} bytes")
        return data

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        with memory_file(data) as source:
            self.connection.request("write", [source.fileno()], path=path, mode=mode)

    @abstractmethod
    def clone(self) -> Self:
        """See ``Sandbox``. The box's processes are halted meanwhile."""

    @abstractmethod
    def write_upper(self, directory: Path) -> None:
        """Fill an empty directory with the box's own files, as the upper layer of an overlay:
        whiteouts stand for what is gone."""

    @abstractmethod
    def replace_files(self, other: SupervisedSandbox | Path) -> None:
        """Give the box the files of another one of the same kind, or of a directory as
        ``write_upper`` fills it, in place of its own. What runs in it waits meanwhile. Raises
        SandboxError where that cannot be."""

    @abstractmethod
    def recycle(self) -> None:
        """End everything in the box and begin again on the image, as a new box would. Raises
        SandboxError where it cannot be as new: close it then."""

    def checkpoint(self, pid: int, given_fds: Sequence[int]) -> int:
        """A descriptor: a process of the box as a file; see sessions/python/migration.py. Raises
        OSError."""
        child = next((m.pid for m in self._list_processes() if m.inner_pid == pid), -1)
        return self.connection.request_fd("picture", child=child, standard=list(given_fds))

    def size(self) -> tuple[int, int]:
        """Bytes and number of the box's own files and directories."""
        answer, _ = self.connection.request("size")
        return answer["bytes"], answer["files"]

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Nothing in the box runs meanwhile."""
        self.connection.request("freeze", on=True)
        try:
            yield
        finally:
            self.connection.request("freeze", on=False)

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
        self.connection.request("kill_since", seconds=READ_SECONDS, mark=mark, keep=list(keep))

    def close(self, wait: bool = False) -> None:
        """End the box; with ``wait``, return only when its last process is gone."""
        self.connection.close(wait)
        watch, self._watch = self._watch, None
        if watch is not None:
            Watchdog.unwatch(watch)


def refusal_error(error: OSError, what: str) -> SandboxError:
    """The error for something that a keeper would not do."""
    return SandboxError(f"the box cannot be {what}: {error.strerror}")
