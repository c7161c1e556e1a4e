"""A box's control group as its owner sees it. Who makes and removes it: see box/groups.py."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Literal

from intercode.sandbox.supervisor.process_table import HostProcess

_FREEZE_SECONDS = 2.0
_KILL_WAIT_SECONDS = (
    0.6  # to wait for what was killed: what dies late is told of in the next action
)
CountedLimit = Literal["memory", "processes"]


class ControlGroup:
    """The directories of one box's group, by controller; ``""`` for version 2.

    ``launcher`` is the pid of the process that was in the group when it forked the box, and is
    about to leave it.
    """

    def __init__(self, paths: Mapping[str, str], launcher: int) -> None:
        v1 = "memory" in paths
        memory, pids = (paths["memory"], paths["pids"]) if v1 else (paths[""], paths[""])
        self._counters: dict[CountedLimit, CgroupCounter] = {
            "memory": CgroupCounter(
                f"{memory}/memory.{'oom_control' if v1 else 'events'}", b"oom_kill"
            ),
            "processes": CgroupCounter(f"{pids}/pids.events", b"max"),
        }
        self._launcher = str(launcher)
        self._launcher_left = False
        if v1:
            top = paths.get("freezer")
            self._freeze_file = Path(top, "freezer.state") if top else None
            self._freeze_values = ("THAWED", "FROZEN")
            self._state_file, self._frozen_line = self._freeze_file, "FROZEN"
        else:
            self._freeze_file = Path(paths[""], "cgroup.freeze")
            self._freeze_values = ("0", "1")
            self._state_file, self._frozen_line = Path(paths[""], "cgroup.events"), "frozen 1"

    def limit_exceeded(self) -> Literal["", "memory", "processes"]:
        """What the kernel has ended a process of the box for (its memory), or refused it one
        (processes), since this was last asked.

        Raises nothing: a group that has gone with its box has no more to tell.
        """
        met = [limit for limit, counter in self._counters.items() if counter.increased()]
        return met[0] if met else ""

    def close(self) -> None:
        """Be done with it. May be called again."""
        for counter in self._counters.values():
            counter.close()

    def freeze(self) -> bool:
        """Halt every process of the box, its keeper too, without their noticing.

        False where that cannot be had (then nothing is halted). End it with ``thaw``.
        """
        if self._freeze_file is None or self._state_file is None:
            return False
        deadline = time.monotonic() + _FREEZE_SECONDS
        try:
            while not self._has_launcher_left():
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.0002)
            self._freeze_file.write_text(self._freeze_values[1])
            while self._frozen_line not in self._state_file.read_text().splitlines():
                if time.monotonic() > deadline:
                    self.thaw()
                    return False
                time.sleep(0.0002)
        except OSError:
            self.thaw()
            return False
        return True

    def kill_since(self, mark: int, spared: Callable[[HostProcess], bool]) -> bool:
        """Kill what started at ``mark`` (clock ticks since boot) or later, but what is spared, all
        at once: halted, it cannot multiply meanwhile. False where the box cannot be halted."""
        if not self.freeze():
            return False
        try:
            killed = [m for m in self.members() if m.start_ticks >= mark and not spared(m)]
            for member in killed:
                member.signal(signal.SIGKILL)
        finally:
            self.thaw()
        deadline = time.monotonic() + _KILL_WAIT_SECONDS
        while any(member.is_alive() for member in killed) and time.monotonic() < deadline:
            time.sleep(0.0005)
        return True

    def members(self) -> list[HostProcess]:
        """The processes of the box, its keeper too."""
        if self._freeze_file is None:
            return []
        found = []
        with suppress(FileNotFoundError):  # the box has ended
            for pid in self._freeze_file.with_name("cgroup.procs").read_text().split():
                with suppress(OSError, ValueError, IndexError):  # it has ended
                    found.append(HostProcess(int(pid)))
        return found

    def _has_launcher_left(self) -> bool:
        """Whether the launcher has left: what it is frozen with cannot be copied."""
        if not self._launcher_left and self._freeze_file is not None:
            inside = self._freeze_file.with_name("cgroup.procs").read_text().split()
            self._launcher_left = self._launcher not in inside
        return self._launcher_left

    def thaw(self) -> None:
        """Let a frozen box go on."""
        if self._freeze_file is not None:
            with suppress(OSError):  # it has gone
                self._freeze_file.write_text(self._freeze_values[0])


class CgroupCounter:
    """The number behind a name in a group's file. Every action asks, so that the file stays open:
    it takes a microsecond.

    ``file``: its path, opened when it is first asked, or a descriptor, which is then the counter's.
    """

    def __init__(self, file: str | int, name: bytes) -> None:
        self._path, self._name = file, name + b" "
        self._file = FileIO(file) if isinstance(file, int) else None
        self._last_text, self._count = b"", 0

    def increased(self) -> bool:
        """Whether it is more than when this was last asked. False where the group has gone."""
        before = self._count
        with suppress(OSError, ValueError):  # ValueError: closed meanwhile
            self._file = file = self._file or FileIO(self._path)
            told = os.pread(file.fileno(), 4096, 0)
            if told != self._last_text:
                self._last_text = told
                rows = [r for r in told.splitlines() if r.startswith(self._name)]
                self._count = int(rows[0].split()[1]) if rows else before
        return self._count > before

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
