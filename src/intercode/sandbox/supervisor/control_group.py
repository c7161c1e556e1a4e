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

from intercode.sandbox.supervisor.process_table import Member

_FREEZE_SECONDS = 2.0
_END_SECONDS = 0.6  # to wait for what was killed: what dies late is told of in the next action
Met = Literal["memory", "processes"]


class BoxGroup:
    """The directories of one box's group, by controller; ``""`` for version 2.

    ``launcher`` is the pid of the process that was in the group when it forked the box, and is
    about to leave it.
    """

    def __init__(self, paths: Mapping[str, str], launcher: int) -> None:
        v1 = "memory" in paths
        memory, pids = (paths["memory"], paths["pids"]) if v1 else (paths[""], paths[""])
        self._counters: dict[Met, Counter] = {
            "memory": Counter(f"{memory}/memory.{'oom_control' if v1 else 'events'}", b"oom_kill"),
            "processes": Counter(f"{pids}/pids.events", b"max"),
        }
        self._launcher = str(launcher)
        self._left = False
        if v1:
            top = paths.get("freezer")
            self._switch = Path(top, "freezer.state") if top else None
            self._words = ("THAWED", "FROZEN")
            self._state, self._frozen = self._switch, "FROZEN"
        else:
            self._switch = Path(paths[""], "cgroup.freeze")
            self._words = ("0", "1")
            self._state, self._frozen = Path(paths[""], "cgroup.events"), "frozen 1"

    def breach(self) -> Literal["", "memory", "processes"]:
        """What the kernel has ended a process of the box for (its memory), or refused it one
        (processes), since this was last asked.

        Raises nothing: a group that has gone with its box has no more to tell.
        """
        met = [limit for limit, counter in self._counters.items() if counter.rose()]
        return met[0] if met else ""

    def close(self) -> None:
        """Be done with it. May be called again."""
        for counter in self._counters.values():
            counter.close()

    def freeze(self) -> bool:
        """Halt every process of the box, its keeper too, without their noticing.

        False where that cannot be had (then nothing is halted). End it with ``thaw``.
        """
        if self._switch is None or self._state is None:
            return False
        deadline = time.monotonic() + _FREEZE_SECONDS
        try:
            while not self._without_launcher():
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.0002)
            self._switch.write_text(self._words[1])
            while self._frozen not in self._state.read_text().splitlines():
                if time.monotonic() > deadline:
                    self.thaw()
                    return False
                time.sleep(0.0002)
        except OSError:
            self.thaw()
            return False
        return True

    def kill_since(self, mark: int, spared: Callable[[Member], bool]) -> bool:
        """Kill what started at ``mark`` (clock ticks since boot) or later, but what is spared, all
        at once: halted, it cannot multiply meanwhile. False where the box cannot be halted."""
        if not self.freeze():
            return False
        try:
            killed = [m for m in self.members() if m.started >= mark and not spared(m)]
            for member in killed:
                member.signal(signal.SIGKILL)
        finally:
            self.thaw()
        deadline = time.monotonic() + _END_SECONDS
        while any(member.alive() for member in killed) and time.monotonic() < deadline:
            time.sleep(0.0005)
        return True

    def members(self) -> list[Member]:
        """The processes of the box, its keeper too."""
        if self._switch is None:
            return []
        found = []
        with suppress(FileNotFoundError):  # the box has ended
            for pid in self._switch.with_name("cgroup.procs").read_text().split():
                with suppress(OSError, ValueError, IndexError):  # it has ended
                    found.append(Member(int(pid)))
        return found

    def _without_launcher(self) -> bool:
        """Whether the launcher has left: what it is frozen with cannot be copied."""
        if not self._left and self._switch is not None:
            inside = self._switch.with_name("cgroup.procs").read_text().split()
            self._left = self._launcher not in inside
        return self._left

    def thaw(self) -> None:
        """Let a frozen box go on."""
        if self._switch is not None:
            with suppress(OSError):  # it has gone
                self._switch.write_text(self._words[0])


class Counter:
    """The number behind a name in a group's file. Every action asks, so that the file stays open:
    it takes a microsecond.

    ``file``: its path, opened when it is first asked, or a descriptor, which is then the counter's.
    """

    def __init__(self, file: str | int, name: bytes) -> None:
        self._path, self._name = file, name + b" "
        self._file = FileIO(file) if isinstance(file, int) else None
        self._told, self._count = b"", 0

    def rose(self) -> bool:
        """Whether it is more than when this was last asked. False where the group has gone."""
        before = self._count
        with suppress(OSError, ValueError):  # ValueError: closed meanwhile
            self._file = file = self._file or FileIO(self._path)
            told = os.pread(file.fileno(), 4096, 0)
            if told != self._told:
                self._told = told
                rows = [r for r in told.splitlines() if r.startswith(self._name)]
                self._count = int(rows[0].split()[1]) if rows else before
        return self._count > before

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
