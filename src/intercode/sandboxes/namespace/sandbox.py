"""A sandbox made of Linux namespaces, as its owner sees it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Literal

from intercode.errors import SandboxError
from intercode.paths import sandbox_uid
from intercode.sandboxes.base import Sandbox, SandboxSpec
from intercode.sandboxes.namespace.box import wire
from intercode.sandboxes.namespace.cgroups import BoxGroup
from intercode.sandboxes.namespace.launcher import Launcher
from intercode.sandboxes.namespace.link import READ_SECONDS, KeeperLink, file_of
from intercode.sandboxes.namespace.members import below, is_held_up, unblock
from intercode.sandboxes.namespace.message import message
from intercode.sandboxes.namespace.process import NamespaceProcess
from intercode.sandboxes.namespace.sealed import LONGEST_CHAIN, SealedLayer
from intercode.sandboxes.namespace.watchdog import Breach, Watch, Watchdog
from intercode.sandboxes.output import Collector, communicate, decode
from intercode.types import ExecResult, FileEntry

_TICKS = os.sysconf("SC_CLK_TCK")
_LITTLE = 1 << 16  # bytes of room that may be left on a full disk


class NamespaceSandbox(Sandbox):
    """See ``Sandbox``. Raises SandboxError where the box cannot be set up.

    ``copies``: descriptors of upper layers to begin with a copy of, the lowest first. ``sealed``:
    layers between the image's and the box's own, the topmost first.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        copies: Sequence[int] = (),
        sealed: tuple[SealedLayer, ...] = (),
    ) -> None:
        told = {**message(spec), "copies": len(copies)}
        self.spec = spec
        self.env: dict[str, str] = told["env"]
        self.sealed: tuple[SealedLayer, ...] = ()
        self._group: BoxGroup | None = None
        self._watch: Watch | None = None
        mounted: list[int] = []
        try:
            mounted += [layer.mount() for layer in sealed]
            connection = Launcher.get().create(told, [*copies, *mounted])
        finally:
            wire.close_all(mounted)
        self.link = KeeperLink(connection)
        for layer in sealed:
            layer.hold()
        self.sealed = sealed
        self._bounded(self.link.welcome["pid"], self.link.welcome["groups"])

    def _bounded(self, keeper: int, groups: Mapping[str, str]) -> None:
        """Take note of what bounds the box as a whole, and have watched what is not."""
        self.tier = "namespace/1" if groups else "namespace/2"
        self._group = BoxGroup(groups, Launcher.get().pid) if groups else None
        limits = self.spec.limits
        if not groups or limits.cpu_seconds is not None:
            memory = None if groups else limits.memory
            self._watch = Watch(keeper, memory, limits.cpu_seconds)
            with suppress(OSError):  # it has ended already
                Watchdog.watch(self._watch)

    def breach(self) -> Breach:
        if self._group is not None and (met := self._group.breach()):
            return met
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
    ) -> NamespaceProcess:
        """See ``Sandbox``. ``picture``: of a process that goes on in the program's place, with the
        given descriptors and those files that it had open; see moving.py."""
        environment = self.env if env is None else dict(env)
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
            answer, _ = self.link.request(do, given, late=self._unblock, **told)
        except BaseException:
            os.close(status_r)
            raise
        finally:
            os.close(status_w)
        return NamespaceProcess(self.link, answer["pid"], answer["child"], status_r)

    def _unblock(self) -> None:
        """What runs in the box can stop a program before it begins, and with it the keeper."""
        keeper = self.link.welcome["pid"]
        known = self._group.members() if self._group else []
        if not is_held_up(keeper, known or below(keeper)):
            return  # the machine is busy, that is all
        if self._group is not None and self._group.freeze():
            try:
                unblock(keeper, self._group.members)
            finally:
                self._group.thaw()
        else:
            unblock(keeper, lambda: below(keeper))

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
            if not communicate(process, read, collector, timeout, to_the_end):
                self.kill_since(mark)
                communicate(process, read, collector, 1.0)
                return collector.bytes(), None, collector.cut
            return collector.bytes(), process.wait(), collector.cut
        finally:
            wire.close_all([fd for fd in (read, write) if fd >= 0])

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

    def clone(self) -> NamespaceSandbox:
        """See ``Sandbox``. The box's processes are halted meanwhile."""
        spec = replace(self.spec, upper=None)
        flatten = len(self.sealed) >= LONGEST_CHAIN
        copies: list[int] = []
        try:
            if flatten:
                copies += [layer.upper() for layer in reversed(self.sealed)]
            copies.append(self.link.given("upper"))
            with self._still():
                return NamespaceSandbox(spec, copies, () if flatten else self.sealed)
        finally:
            wire.close_all(copies)

    def seal(self) -> SealedLayer:
        """End everything in the box and give it up: its files are a layer from now on.

        Release it when it is no longer needed. Raises SandboxError where something in the box does
        not end; the box lives on then.
        """
        try:
            self.link.request("end_all")
        except OSError as e:
            raise SandboxError(f"a box with {e.strerror} cannot be sealed") from e
        return SealedLayer(self)

    def renew(self) -> None:
        """End everything in the box and begin again on the image, as a new box would but for the
        namespaces. Raises SandboxError where it cannot be as new: close it then."""
        if self.sealed or self.spec.upper or self.spec.look != "plain" or self.breach():
            raise SandboxError("only a plain box that met no limit can be renewed")
        try:
            self.link.request("renew", seconds=READ_SECONDS)
        except OSError as e:
            raise SandboxError(f"the box cannot be renewed: {e.strerror}") from e

    def refile(self, other: NamespaceSandbox) -> None:
        """Give the box the files of another one of the same kind, while what runs in it waits: that
        has the new files from its root on. Raises SandboxError where that cannot be."""
        if self.sealed or other.sealed or self.spec.upper or self.spec.look != "plain":
            raise SandboxError("only a plain box can be given other files")
        upper = other.link.given("upper")
        try:
            self.link.request("refile", [upper], seconds=READ_SECONDS)
        except OSError as e:
            raise SandboxError(f"the box cannot be given other files: {e.strerror}") from e
        finally:
            os.close(upper)

    def picture(self, pid: int, standard: Sequence[int]) -> int:
        """A descriptor: a process of the box as a file; see moving.py. Raises OSError."""
        keeper = self.link.welcome["pid"]
        known = self._group.members() if self._group else []
        child = next((m.pid for m in known or below(keeper) if m.inside == pid), -1)
        return self.link.given("picture", child=child, standard=list(standard))

    def size(self) -> tuple[int, int]:
        """Bytes and number of the box's own files and directories."""
        answer, _ = self.link.request("size")
        return answer["bytes"], answer["files"]

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Nothing in the box runs meanwhile; with a control group the keeper does not either."""
        if self._group is not None and self._group.freeze():
            try:
                yield
            finally:
                self._group.thaw()
            return
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
        keeper = self.link.welcome["pid"]
        if self._group is None or not self._group.kill_since(
            mark, lambda p: p.inside in (1, *keep) or p.pid == keeper
        ):
            self.link.request("kill_since", mark=mark, keep=list(keep))

    def close(self, wait: bool = False) -> None:
        """End the box; with ``wait``, return only when its last process is gone."""
        self.link.close(wait)
        layers, self.sealed = self.sealed, ()
        for layer in layers:
            layer.release()
        watch, self._watch = self._watch, None
        if watch is not None:
            Watchdog.unwatch(watch)
