"""Reads and freezes the control group of a sandbox. runtime/cgroups.py creates and removes it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO
from typing import Literal

from intercode_sandbox.supervisor.process_table import HostProcess
from intercode_sandbox.supervisor.runtime.control_files import read_control_file, write_control_file

_FREEZE_SECONDS = 2.0
_SPIN_SECONDS = 0.001  # most groups freeze in less time than the kernel takes to end a sleep
_KILL_WAIT_SECONDS = 0.6  # wait for killed processes; the next action reports later ones
CountedLimit = Literal["memory", "processes"]


class ControlGroup:
    """The directories of one sandbox's control group, by controller; ``""`` for version 2.

    ``template``: pid of the process that forked the sandbox in this group and is about to leave it.
    """

    def __init__(self, paths: Mapping[str, str], template: int) -> None:
        v1 = "memory" in paths
        memory, pids = (paths["memory"], paths["pids"]) if v1 else (paths[""], paths[""])
        self._counters: dict[CountedLimit, CgroupCounter] = {
            "memory": CgroupCounter(
                f"{memory}/memory.{'oom_control' if v1 else 'events'}", b"oom_kill"
            ),
            "processes": CgroupCounter(f"{pids}/pids.events", b"max"),
        }
        self._template = str(template)
        self._template_left = False
        if v1:
            top = paths.get("freezer")
            self._freeze_file = f"{top}/freezer.state" if top else ""
            self._freeze_values = ("THAWED", "FROZEN")
            self._state_file, self._frozen_line = self._freeze_file, "FROZEN"
        else:
            self._freeze_file = f"{paths['']}/cgroup.freeze"
            self._freeze_values = ("0", "1")
            self._state_file, self._frozen_line = f"{paths['']}/cgroup.events", "frozen 1"

    def limit_exceeded(self) -> Literal["", "memory", "processes"]:
        """Return the limit because of which the kernel killed a process (memory) or refused to
        start one (processes) since the last call. Returns ``""`` if the group is gone."""
        exceeded = [limit for limit, counter in self._counters.items() if counter.increased()]
        return exceeded[0] if exceeded else ""

    def close(self) -> None:
        """Close the counters. May be called again."""
        for counter in self._counters.values():
            counter.close()

    def freeze(self) -> bool:
        """Freeze every process of the sandbox, including its supervisor, until ``thaw``.

        Returns False if that is not possible; then nothing is frozen.
        """
        if not self._freeze_file:
            return False
        deadline = time.monotonic() + _FREEZE_SECONDS
        try:
            while not self._has_template_left():
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.0002)
            start = time.monotonic()
            write_control_file(self._freeze_file, self._freeze_values[1])
            while self._frozen_line not in read_control_file(self._state_file).splitlines():
                now = time.monotonic()
                if now > deadline:
                    self.thaw()
                    return False
                if now - start < _SPIN_SECONDS:
                    os.sched_yield()
                else:
                    time.sleep(0.0002)
        except OSError:
            self.thaw()
            return False
        return True

    def kill_since(self, mark: int, keep: Sequence[int], supervisor_pid: int) -> bool:
        """Kill all processes that started at ``mark`` (clock ticks since boot) or later, except
        the supervisor and those with the numbers ``keep`` in the sandbox, while the group is
        frozen, so that they cannot multiply. Return False if it cannot be frozen."""
        if not self.freeze():
            return False
        try:
            killed = [
                m for m in self.members() if m.start_ticks >= mark and m.inner_pid not in keep
            ]
            killed = [m for m in killed if m.pid != supervisor_pid]
            for member in killed:
                member.signal(signal.SIGKILL)
        finally:
            self.thaw()
        deadline = time.monotonic() + _KILL_WAIT_SECONDS
        while any(member.is_alive() for member in killed) and time.monotonic() < deadline:
            time.sleep(0.0005)
        return True

    def members(self) -> list[HostProcess]:
        """Return the processes of the sandbox, including its supervisor."""
        if not self._freeze_file:
            return []
        found = []
        with suppress(FileNotFoundError):  # the sandbox has ended
            for pid in self._member_pids():
                with suppress(OSError, ValueError, IndexError):  # the process has ended
                    found.append(HostProcess(int(pid)))
        return found

    def _has_template_left(self) -> bool:
        """Return whether the template has left the group. If it were frozen with the sandbox, the
        sandbox could not be copied."""
        if not self._template_left:
            self._template_left = self._template not in self._member_pids()
        return self._template_left

    def _member_pids(self) -> list[str]:
        return read_control_file(f"{os.path.dirname(self._freeze_file)}/cgroup.procs").split()

    def thaw(self) -> None:
        """Let the processes continue."""
        if self._freeze_file:
            with suppress(OSError):  # the group is gone
                write_control_file(self._freeze_file, self._freeze_values[0])


class CgroupCounter:
    """A number in a file of a control group. The file stays open, because every action reads it.

    ``file``: a path, opened at the first read, or a descriptor, which the counter then owns.
    """

    def __init__(self, file: str | int, name: bytes) -> None:
        # a closed descriptor is not opened again: its number may be that of another file
        self._path, self._name = "" if isinstance(file, int) else file, name + b" "
        self._file = FileIO(file) if isinstance(file, int) else None
        self._last_text, self._count = b"", 0

    def increased(self) -> bool:
        """Return whether the number has increased since the last call. False if the group is
        gone."""
        before = self._count
        with suppress(OSError, ValueError):  # ValueError: closed by another thread
            self._file = file = self._file or FileIO(self._path)
            text = os.pread(file.fileno(), 4096, 0)
            if text != self._last_text:
                self._last_text = text
                rows = [r for r in text.splitlines() if r.startswith(self._name)]
                self._count = int(rows[0].split()[1]) if rows else before
        return self._count > before

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


_DISK_CACHE = (b"active_file", b"inactive_file")  # copies of files on disks


class GroupMemory:
    """The memory of a control group that also holds the files of its sandbox, for the watchdog.

    The kernel bounds both together, so that a program which fills the disk gets an error. This is a
    cheap look at whether the processes alone may have exceeded ``limit``.
    """

    def __init__(self, paths: Mapping[str, str], limit: int) -> None:
        self._limit = limit
        directory = paths["memory"] if "memory" in paths else paths[""]
        name = "usage_in_bytes" if "memory" in paths else "current"
        self._usage = FileIO(f"{directory}/memory.{name}")
        self._statistics = f"{directory}/memory.stat"

    def may_be_exceeded(self) -> bool:
        """Return whether more than the limit is used, besides copies of files on disks, or the
        group is gone."""
        if (used := self._used()) <= self._limit:
            return used < 0
        counts = self._read_statistics()
        return used - sum(counts.get(name, 0) for name in _DISK_CACHE) > self._limit

    def is_certain(self) -> bool:
        """Return whether processes map more than the limit, with each shared page once."""
        counts = self._read_statistics()
        own = counts.get(b"rss", counts.get(b"anon", 0))
        shared = counts.get(b"mapped_file", counts.get(b"file_mapped", 0))
        return own + min(shared, counts.get(b"shmem", 0)) > self._limit

    def _read_statistics(self) -> dict[bytes, int]:
        with suppress(OSError, ValueError), open(self._statistics, "rb") as file:
            return {name: int(count) for name, _, count in (line.partition(b" ") for line in file)}
        return {}

    def _used(self) -> int:
        with suppress(OSError, ValueError):  # ValueError: closed by another thread
            return int(os.pread(self._usage.fileno(), 32, 0))
        return -1

    def close(self) -> None:
        """Close the file. May be called again."""
        self._usage.close()
