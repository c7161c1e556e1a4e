"""A box's control group as its owner sees it. Who makes and removes it: see box/groups.py."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_FREEZE_SECONDS = 2.0


class BoxGroup:
    """The directories of one box's group, by controller; ``""`` for version 2.

    ``launcher`` is the pid of the process that was in the group when it forked the box, and is
    about to leave it.
    """

    def __init__(self, paths: Mapping[str, str], launcher: int) -> None:
        v1 = "memory" in paths
        self._events = Path(paths["memory"], "memory.oom_control") if v1 else (
            Path(paths[""], "memory.events"))  # fmt: skip
        self._oom_seen = 0
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

    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process of the box for its memory since this was last asked.

        Raises nothing: a group that has gone with its box has no more to tell.
        """
        seen = self._oom_seen
        with suppress(OSError):
            for line in self._events.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    self._oom_seen = int(count)
        return self._oom_seen > seen

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
