"""Enforces limits that no control group does, in a thread of the owner that reads /proc.

If a sandbox exceeds its memory limit, its largest process is killed; if an action exceeds its
processor time, the process that used most of it. Several times a second, the watchdog reads the
resident memory of the processes, the buffers of their sockets, and the files in memory that they
have open. The kernel bounds System V shared memory, message queues, and pipes. The watchdog does
not see the rest: shared memory that only an ended process has used, files in memory that are being
passed over a socket, and processes that live for less than an interval.

The control group of a sandbox bounds its memory together with its files, if those are in memory.
The watchdog then bounds the memory alone. It looks at the group every 20 ms, and reads /proc only
while that uses more.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from intercode_sandbox.contract import LimitExceeded
from intercode_sandbox.supervisor.control_group import GroupMemory
from intercode_sandbox.supervisor.runtime.cgroups import process_start_ticks
from intercode_sandbox.supervisor.socket_memory import OpenFiles, SocketMemory

_INTERVAL_SECONDS = 0.1  # minimum time between two checks
_GROUP_SECONDS = 0.02  # minimum time between two looks at a control group
_MAX_CPU_SHARE = 0.1  # share of a processor that checks may take
_ENDING_SECONDS = 1.0  # time for a killed process to give back its memory
_GRACE_SECONDS = 0.2  # further processor time before another process is killed
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class _Process:
    pid: int
    parent: int
    cpu_ticks: int  # processor time in clock ticks
    child_cpu_ticks: int  # the same for children that have ended
    start_ticks: int
    resident: int  # bytes


@dataclass(slots=True)
class Watch:
    """A watched sandbox. ``memory`` is in bytes; None disables a limit. ``sockets``: its sockets,
    if they are known. ``group``: the memory of its control group, if it has one.
    ``limit_exceeded`` is the limit because of which a process was last killed.
    """

    supervisor_pid: int
    memory: int | None
    cpu_seconds: float | None
    sockets: Sequence[SocketMemory] = ()
    group: GroupMemory | None = None
    limit_exceeded: LimitExceeded = ""
    start_ticks: int = 0
    restart_requested: bool = True
    cpu_deadline: float = 0.0
    cpu_ticks_at_start: dict[int, int] = field(default_factory=dict)
    victim: _Process | None = None
    killed_at: float = 0.0

    def is_victim_ending(self) -> bool:
        """Return whether the last process that was killed still has its memory. To read its maps
        would keep the memory while others already continue."""
        if self.victim is None or time.monotonic() > self.killed_at + _ENDING_SECONDS:
            return False
        with suppress(OSError):
            return process_start_ticks(self.victim.pid) == self.victim.start_ticks
        return False

    def restart(self) -> None:
        """Begin an action, whose processor time counts from now."""
        self.restart_requested = True

    @property
    def needs_scan(self) -> bool:
        """Whether its processes have to be looked at, whatever its control group uses."""
        return self.cpu_seconds is not None or self.group is None

    def close(self) -> None:
        """Close the descriptors. Call it once, when it is not watched any more."""
        for sockets in self.sockets:
            sockets.close()
        if self.group is not None:
            self.group.close()


class Watchdog:
    """The thread and the sandboxes that it watches. Use ``watch`` and ``unwatch``."""

    _current: Watchdog | None = None
    _owner_pid = 0
    _lock = threading.Lock()

    def __init__(self) -> None:
        self._watches: dict[int, Watch] = {}
        self._thread: threading.Thread | None = None
        self._next_check = 0.0  # of sandboxes without a control group

    @classmethod
    def watch(cls, watch: Watch) -> None:
        """Start watching a sandbox. The thread runs while there is one."""
        if cls._owner_pid != os.getpid():  # a forked child has no such thread
            cls._current, cls._owner_pid, cls._lock = cls(), os.getpid(), threading.Lock()
        with cls._lock:
            watchdog = cls._current = cls._current or cls()
            watch.start_ticks = process_start_ticks(watch.supervisor_pid)
            watchdog._watches[watch.supervisor_pid] = watch
            if watchdog._thread is None:
                watchdog._thread = threading.Thread(
                    target=watchdog._run, name="intercode-watch", daemon=True
                )
                watchdog._thread.start()

    @classmethod
    def unwatch(cls, watch: Watch) -> None:
        """Stop watching a sandbox that has ended."""
        if cls._current is not None and cls._owner_pid == os.getpid():
            cls._current._watches.pop(watch.supervisor_pid, None)

    def _run(self) -> None:
        pause = _INTERVAL_SECONDS
        while True:
            time.sleep(pause)
            began = time.thread_time()  # processor time: a busy machine is checked as often
            with self._lock:
                if not self._watches:
                    self._thread = None
                    return
            self.check_all()
            has_groups = any(watch.group for watch in list(self._watches.values()))
            interval = _GROUP_SECONDS if has_groups else _INTERVAL_SECONDS
            pause = max(interval, (time.thread_time() - began) / _MAX_CPU_SHARE)

    def check_all(self) -> None:
        """Check every watched sandbox, those without a control group at most ten times a second."""
        is_due = time.monotonic() >= self._next_check
        if is_due:
            self._next_check = time.monotonic() + _INTERVAL_SECONDS
        watches = [
            watch
            for watch in list(self._watches.values())
            if (is_due and watch.needs_scan) or (watch.group and watch.group.may_be_exceeded())
        ]
        if not watches:
            return
        found = {
            p.pid: p
            for name in os.listdir("/proc")
            if name.isdigit() and (p := _read_process(name))
        }
        families: defaultdict[int, list[_Process]] = defaultdict(list)
        for process in found.values():
            families[process.parent].append(process)
        for watch in watches:
            supervisor = found.get(watch.supervisor_pid)
            if supervisor is None or supervisor.start_ticks != watch.start_ticks:
                self._watches.pop(watch.supervisor_pid, None)
                continue
            members = _descendants(watch.supervisor_pid, families)
            if watch.memory is None or not members or watch.is_victim_ending():
                pass
            elif watch.group is not None and watch.group.is_certain():
                _kill_certain(watch, members)
            elif is_due or watch.group is None:
                _enforce_memory(watch, members)
            if watch.cpu_seconds is not None:
                _enforce_cpu_time(watch, members, supervisor.child_cpu_ticks)


def measure_processes(supervisor_pid: int) -> tuple[float, int, int]:
    """Return the processor time in seconds, the memory in bytes and the number of the processes
    of a sandbox, from outside of it. The time includes that of commands which have ended."""
    families: defaultdict[int, list[_Process]] = defaultdict(list)
    supervisor = _read_process(str(supervisor_pid))
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := _read_process(name)):
            families[process.parent].append(process)
    members = _descendants(supervisor_pid, families)
    ticks = sum(p.cpu_ticks + p.child_cpu_ticks for p in members)
    ticks += supervisor.child_cpu_ticks if supervisor else 0
    return ticks / _TICK, sum(_proportional_memory(p)[0] for p in members), len(members)


def _read_process(name: str) -> _Process | None:
    try:
        with open(f"/proc/{name}/stat", "rb", buffering=0) as f:
            fields = f.read(2048).rpartition(b")")[2].split()
    except OSError:
        return None
    pages = int(fields[21])
    if not pages and int(fields[17]) > 1:
        pages = _pages_of_threads(name)
    return _Process(
        int(name),
        int(fields[1]),
        int(fields[11]) + int(fields[12]),
        int(fields[13]) + int(fields[14]),
        int(fields[19]),
        pages * _PAGE,
    )


def _pages_of_threads(name: str) -> int:
    """Return the memory of a process whose first thread has ended. Only its other threads report
    it."""
    pages = 0
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{name}/task"):
            with suppress(OSError), open(f"/proc/{name}/task/{thread}/statm", "rb") as f:
                pages = max(pages, int(f.read().split()[1]))
    return pages


def _descendants(supervisor: int, families: dict[int, list[_Process]]) -> list[_Process]:
    """Return the descendants of a supervisor, which are the processes of its sandbox."""
    out: list[_Process] = []
    left = [supervisor]
    while left:
        children = families.get(left.pop(), [])
        out += children
        left += [child.pid for child in children]
    return out


def _kill_certain(watch: Watch, members: list[_Process]) -> None:
    """Kill the largest process of a sandbox whose control group is over the limit, without a look
    at its maps, which would keep its memory after its end.

    A process that the kernel is ending reports no memory while the group still has it. The others
    are then below the limit, and none of them is killed for it.
    """
    assert watch.memory is not None
    now = [p for member in members if (p := _read_process(str(member.pid)))]
    if sum(p.resident for p in now) > watch.memory:
        _kill(watch, max(now, key=lambda p: p.resident), "memory")
    else:
        _enforce_memory(watch, now)


def _enforce_memory(watch: Watch, members: list[_Process]) -> None:
    assert watch.memory is not None
    opened = OpenFiles.of(p.pid for p in members)
    sockets = sum(count for _, count in opened.by_process.values())
    buffers = sum(each.total() for each in watch.sockets) if sockets else 0
    if sum(p.resident for p in members) + opened.total + buffers <= watch.memory:
        return
    mapped = {p.pid: _proportional_memory(p) for p in members}  # counts shared pages once
    unmapped_files = max(0, opened.total - sum(shared for _, shared in mapped.values()))
    if sum(size for size, _ in mapped.values()) + unmapped_files + buffers <= watch.memory:
        return

    def held(process: _Process) -> int:
        files, own_sockets = opened.by_process.get(process.pid, (0, 0))
        return mapped[process.pid][0] + files + buffers * own_sockets // max(1, sockets)

    _kill(watch, max(members, key=held), "memory")


def _proportional_memory(process: _Process) -> tuple[int, int]:
    """Return a process's memory with its share of shared pages, and that of files in memory alone;
    or all that it maps and 0, if the kernel does not report the shares."""
    shares = {"Pss": process.resident, "Pss_Shmem": 0}
    with suppress(OSError, ValueError), open(f"/proc/{process.pid}/smaps_rollup") as f:
        for line in f:
            name, _, size = line.partition(":")
            if name in shares:
                shares[name] = int(size.split()[0]) << 10
    return shares["Pss"], shares["Pss_Shmem"]


def _enforce_cpu_time(watch: Watch, members: list[_Process], ended: int) -> None:
    assert watch.cpu_seconds is not None
    total = (ended + sum(p.cpu_ticks + p.child_cpu_ticks for p in members)) / _TICK
    if watch.restart_requested:
        watch.restart_requested = False
        watch.cpu_deadline = total + watch.cpu_seconds
        watch.cpu_ticks_at_start = {p.pid: p.cpu_ticks for p in members}
    elif total > watch.cpu_deadline and members:
        watch.cpu_deadline = total + _GRACE_SECONDS
        busiest = max(members, key=lambda p: p.cpu_ticks - watch.cpu_ticks_at_start.get(p.pid, 0))
        _kill(watch, busiest, "cpu")


def _kill(watch: Watch, process: _Process, limit: LimitExceeded) -> None:
    with suppress(OSError):  # the process has ended
        fd = os.pidfd_open(process.pid)
        try:
            if process_start_ticks(process.pid) == process.start_ticks:
                # first, because another thread may read it as soon as the process has ended
                watch.limit_exceeded = limit
                watch.victim, watch.killed_at = process, time.monotonic()
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)
