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
from intercode.sandbox.contract import Breach, Sandbox, SandboxSpec
from intercode.sandbox.output import Collector, communicate, decode
from intercode.sandbox.supervisor.connection import READ_SECONDS, KeeperLink, file_of
from intercode.sandbox.supervisor.process import KeptProcess
from intercode.sandbox.supervisor.process_table import Member, below, free
from intercode.sandbox.supervisor.runtime import protocol
from intercode.sandbox.supervisor.watchdog import Watch, Watchdog

_TICKS = os.sysconf("SC_CLK_TCK")
_LITTLE = 1 << 16  # bytes of room that may be left on a full disk


class KeptSandbox(Sandbox):
    """See ``Sandbox``. A subclass sets ``spec``, ``tier``, ``env``, ``link``, ``keeper``, the
    keeper's process number on this machine, and ``trees``, the directories of this machine that
    hold what the box begins with, the topmost first.
    """

    env: Mapping[str, str]
    link: KeeperLink
    keeper: int
    trees: Sequence[str]
    _watch: Watch | None = None
    _crowd = False  # whether what ran in the background was ended since this was last asked

    @cached_property
    def _spawned(self) -> WeakSet[KeptProcess]:
        """The processes that the owner started, and still has."""
        return WeakSet()

    def _watched(self, spec: SandboxSpec, memory: int | None) -> None:
        """Have a thread of this process look at what nothing else bounds: the memory in bytes, and
        the processor time of an action."""
        if memory is not None or spec.limits.cpu_seconds is not None:
            self._watch = Watch(self.keeper, memory, spec.limits.cpu_seconds)
            with suppress(OSError):  # it has ended already
                Watchdog.watch(self._watch)

    def breach(self) -> Breach:
        met = self._met()
        crowd, self._crowd = self._crowd, False
        return "crowd" if crowd else met

    def _met(self) -> Breach:
        """The limit that was met in the box."""
        if self._watch is None:
            return ""
        found, self._watch.breach = self._watch.breach, ""
        return found

    def full(self) -> Literal["", "disk", "inodes"]:
        answer, _ = self.link.request("size")
        if answer["files_left"] == 0:
            return "inodes"
        return "disk" if answer["bytes_left"] < _LITTLE else ""

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        fds: Mapping[int, int] | None = None,
        picture: int | None = None,
    ) -> KeptProcess:
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
        if picture is not None:
            given[1:1], do, told["standard"] = [picture], "plant", [0, *fds]
        try:
            answer = self._begun(do, given, told)
        except BaseException:
            os.close(status_r)
            raise
        finally:
            os.close(status_w)
        process = KeptProcess(self.link, answer["pid"], answer["child"], status_r)
        self._spawned.add(process)
        return process

    def _begun(self, do: str, given: Sequence[int], told: Mapping[str, Any]) -> dict[str, Any]:
        """Have the keeper start a program. Where there may be no process more, all that the owner
        did not start is ended."""
        try:
            return self.link.request(do, given, late=self._unblock, **told)[0]
        except BlockingIOError:
            self.kill_since(0, [p.pid for p in self._spawned if not p.collected])
            answer = self.link.request(do, given, late=self._unblock, **told)[0]
            self._crowd = True
            return answer

    def _members(self) -> list[Member]:
        """The processes of the box."""
        return below(self.keeper)

    def descendants(self, pid: int) -> list[int]:
        """The processes that descend from one of the box's, all by their numbers inside."""
        members = self._members()
        below = {m.pid for m in members if m.inside == pid}
        found: list[int] = []
        while more := [m for m in members if m.parent in below and m.inside not in found]:
            below = {m.pid for m in more}
            found += [m.inside for m in more]
        return found

    def _unblock(self) -> None:
        """What runs in the box can stop a program before it begins, and with it the keeper."""
        free(self.keeper)

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
        return ExecResult(decode(data), code, timed_out=code is None, cut=cut)

    def run_bytes(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 10.0,
        to_the_end: bool = False,
    ) -> tuple[bytes, int | None, int]:
        """As ``run``: the output as bytes, the exit status or None at the time-out, bytes cut.

        ``to_the_end`` waits until nothing holds the output open any more."""
        mark = self.mark()
        read, write = os.pipe()
        collector = Collector(self.spec.limits.output)
        try:
            fds = {1: write, 2: write}
            with file_of(stdin) as source:
                if stdin:
                    fds[0] = source.fileno()
                process = self.spawn(argv, cwd=cwd, env=env, fds=fds)
            os.close(write)
            write = -1
            if not communicate(process, {read: collector}, timeout, to_the_end):
                self.kill_since(mark)
                communicate(process, {read: collector}, 1.0)
                return collector.bytes(), None, collector.cut
            return collector.bytes(), process.wait(), collector.cut
        finally:
            protocol.close_all([fd for fd in (read, write) if fd >= 0])

    def changes(self, digests: bool = True, still: bool = False) -> dict[str, FileEntry]:
        answer, _ = self.link.request("changes", seconds=READ_SECONDS, digests=digests, still=still)
        return {row[0]: FileEntry(*row[1:]) for row in answer["rows"]}

    def changed(self) -> list[str]:
        answer, _ = self.link.request("changed", seconds=READ_SECONDS)
        return list(answer["paths"])

    def read_file(self, path: str, limit: int = 64 << 20) -> bytes:
        fd = self.link.given("open", path=path)
        with open(fd, "rb") as f:
            data = f.read(limit + 1)
        if len(data) > limit:
            raise OSError(27, f"{path} is larger than {limit} bytes")
        return data

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        with file_of(data) as source:
            self.link.request("write", [source.fileno()], path=path, mode=mode)

    @abstractmethod
    def clone(self) -> Self:
        """See ``Sandbox``. The box's processes are halted meanwhile."""

    @abstractmethod
    def write_upper(self, directory: Path) -> None:
        """Fill an empty directory with the box's own files, as the upper layer of an overlay:
        whiteouts stand for what is gone."""

    @abstractmethod
    def refile(self, other: KeptSandbox | Path) -> None:
        """Give the box the files of another one of the same kind, or of a directory as
        ``write_upper`` fills it, in place of its own. What runs in it waits meanwhile. Raises
        SandboxError where that cannot be."""

    @abstractmethod
    def renew(self) -> None:
        """End everything in the box and begin again on the image, as a new box would. Raises
        SandboxError where it cannot be as new: close it then."""

    def picture(self, pid: int, standard: Sequence[int]) -> int:
        """A descriptor: a process of the box as a file; see sessions/python/migration.py. Raises
        OSError."""
        child = next((m.pid for m in self._members() if m.inside == pid), -1)
        return self.link.given("picture", child=child, standard=list(standard))

    def size(self) -> tuple[int, int]:
        """Bytes and number of the box's own files and directories."""
        answer, _ = self.link.request("size")
        return answer["bytes"], answer["files"]

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Nothing in the box runs meanwhile."""
        self.link.request("freeze", on=True)
        try:
            yield
        finally:
            self.link.request("freeze", on=False)

    def processes(self) -> tuple[str, ...]:
        answer, _ = self.link.request("processes")
        return tuple(answer["processes"])

    def mark(self) -> int:
        if self._watch is not None:
            self._watch.restart()
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)

    def signal(self, pid: int, number: int) -> None:
        self.link.request("signal", pid=pid, number=number)

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        self.link.request("kill_since", seconds=READ_SECONDS, mark=mark, keep=list(keep))

    def close(self, wait: bool = False) -> None:
        """End the box; with ``wait``, return only when its last process is gone."""
        self.link.close(wait)
        watch, self._watch = self._watch, None
        if watch is not None:
            Watchdog.unwatch(watch)


def refused(error: OSError, what: str) -> SandboxError:
    """The error for something that a keeper would not do."""
    return SandboxError(f"the box cannot be {what}: {error.strerror}")
