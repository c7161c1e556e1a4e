"""The processes of a box as its owner sees them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from intercode.sandbox.supervisor.runtime.cgroups import process_start_ticks

_SUPERVISOR_NAMES = ("intercode", "init")  # what a keeper calls itself, the second in a container
_PASSES = 5


class HostProcess:
    """A process of a group: its number here and ``inside`` the box, its parent, its name, its
    ``state`` in a letter, and when it ``started``, in clock ticks since boot. Raises OSError,
    ValueError or IndexError where it has ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        fields = tail.split()
        self.name = head.partition("(")[2]
        self.state, self.parent, self.start_ticks = fields[0], int(fields[1]), int(fields[19])
        status = Path(f"/proc/{pid}/status").read_text()
        self.inner_pid = int(status.partition("NSpid:")[2].splitlines()[0].split()[-1])

    def is_alive(self) -> bool:
        """Whether it has not ended. Its parent need not have collected it."""
        try:
            return process_start_ticks(self.pid) == self.start_ticks
        except OSError:
            return False

    def signal(self, number: int) -> None:
        """Send a signal; frozen, it cannot have been replaced by another process."""
        with suppress(OSError):
            os.kill(self.pid, number)


def list_descendants(keeper: int) -> list[HostProcess]:
    """All processes that descend from a keeper: those of its box."""
    children: dict[int, list[HostProcess]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                member = HostProcess(int(name))
                children.setdefault(member.parent, []).append(member)
    found, next_ones = [], [keeper]
    while next_ones:
        more = children.pop(next_ones.pop(), [])
        found += more
        next_ones += [member.pid for member in more]
    return found


def is_supervisor_blocked(keeper: int, members: list[HostProcess]) -> bool:
    """Whether a child of the keeper was stopped before it could execute its program."""
    return any(m.state in "Tt" and _is_starting_child(m, keeper) for m in members)


def _is_starting_child(member: HostProcess, keeper: int) -> bool:
    if member.parent != keeper or member.name not in _SUPERVISOR_NAMES:
        return False
    try:  # it executes what the keeper does; nothing else in a box can
        return os.path.samefile(f"/proc/{member.pid}/exe", f"/proc/{keeper}/exe")
    except OSError:  # not for everybody to see
        return True


def unblock_supervisor(keeper: int) -> None:
    """See to it that a keeper goes on which what runs in its box holds up."""
    if is_supervisor_blocked(keeper, list_descendants(keeper)):
        kill_blocking_processes(keeper, lambda: list_descendants(keeper))


def kill_blocking_processes(keeper: int, members: Callable[[], list[HostProcess]]) -> None:
    """End what may hold up a keeper that starts a program: all but the keeper, PID 1, and the child
    that is about to execute the program, which goes on if it was stopped."""
    for _ in range(_PASSES):
        others = [m for m in members() if m.inner_pid != 1 and m.pid != keeper]
        begun = [m for m in others if not _is_starting_child(m, keeper)]
        for member in begun:
            member.signal(signal.SIGKILL)
        for member in others:
            if member not in begun:
                member.signal(signal.SIGCONT)
        if not begun:
            return
