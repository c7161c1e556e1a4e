"""Lists and signals the processes of a sandbox from the host."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.supervisor.runtime.cgroups import process_start_ticks

_SUPERVISOR_NAMES = ("intercode", "init")  # back end namespace, back end container
_PASSES = 5


class HostProcess:
    """A process of a sandbox: its numbers on the host and in the sandbox, its parent, name, state
    letter, and start in clock ticks since boot. Raises OSError, ValueError or IndexError if it has
    ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        head, _, tail = _read(f"/proc/{pid}/stat").rpartition(")")
        fields = tail.split()
        self.name = head.partition("(")[2]
        self.state, self.parent, self.start_ticks = fields[0], int(fields[1]), int(fields[19])
        status = _read(f"/proc/{pid}/status")
        self.inner_pid = int(status.partition("NSpid:")[2].splitlines()[0].split()[-1])

    def is_alive(self) -> bool:
        """Return whether the process has not ended. A zombie counts as ended."""
        try:
            return process_start_ticks(self.pid) == self.start_ticks
        except OSError:
            return False

    def signal(self, number: int) -> None:
        """Send a signal. The caller keeps the process frozen, so that its number cannot be
        reused."""
        with suppress(OSError):
            os.kill(self.pid, number)


def _read(path: str) -> str:
    """Return a file of the kernel. A process can give itself a name that is not UTF-8."""
    return Path(path).read_text("utf-8", "surrogateescape")


def list_descendants(supervisor_pid: int) -> list[HostProcess]:
    """Return all descendants of a supervisor, which are the processes of its sandbox."""
    children: dict[int, list[HostProcess]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                member = HostProcess(int(name))
                children.setdefault(member.parent, []).append(member)
    found, parents = [], [supervisor_pid]
    while parents:
        more = children.pop(parents.pop(), [])
        found += more
        parents += [member.pid for member in more]
    return found


def is_supervisor_blocked(supervisor_pid: int, members: list[HostProcess]) -> bool:
    """Return whether a child of the supervisor was stopped before it executed its program."""
    return any(m.state in "Tt" and _is_starting_child(m, supervisor_pid) for m in members)


def _is_starting_child(member: HostProcess, supervisor_pid: int) -> bool:
    if member.parent != supervisor_pid or member.name not in _SUPERVISOR_NAMES:
        return False
    try:  # it still executes the supervisor's program; nothing else in a sandbox can
        return os.path.samefile(f"/proc/{member.pid}/exe", f"/proc/{supervisor_pid}/exe")
    except OSError:  # not readable for this user
        return True


def unblock_supervisor(supervisor_pid: int) -> None:
    """Unblock a supervisor that a process of its sandbox blocks."""
    if is_supervisor_blocked(supervisor_pid, list_descendants(supervisor_pid)):
        kill_blocking_processes(supervisor_pid, lambda: list_descendants(supervisor_pid))


def kill_blocking_processes(supervisor_pid: int, members: Callable[[], list[HostProcess]]) -> None:
    """Kill all processes that may block a supervisor while it starts a program: all except the
    supervisor, PID 1, and the new child, which is continued."""
    for _ in range(_PASSES):
        others = [m for m in members() if m.inner_pid != 1 and m.pid != supervisor_pid]
        running = [m for m in others if not _is_starting_child(m, supervisor_pid)]
        for member in running:
            member.signal(signal.SIGKILL)
        for member in others:
            if member not in running:
                member.signal(signal.SIGCONT)
        if not running:
            return
