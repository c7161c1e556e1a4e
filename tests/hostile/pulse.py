"""Measures how late the machine is: how slow programs are, how long processes wait for a processor,
and how long the whole machine stands still."""

from __future__ import annotations

import atexit
import functools
import mmap
import os
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from intercode.core.errors import SandboxLostError
from intercode_sandbox.contract import BaseSandbox

_PAUSE = 0.05  # seconds between two programs
_IDLE = 0.02  # maximum seconds of /bin/true on an idle machine
_MOST = 10.0  # maximum factor
_BEAT = 0.05  # seconds between two beats of the clock process
_STILL = 0.2  # a beat that is later than this shows that the machine stood still
_CLOCK = """
import mmap, os, struct, sys, time
shared, owner, beat, still = mmap.mmap(int(sys.argv[1]), 16), *map(float, sys.argv[2:])
last, paused = time.monotonic(), 0.0
while os.getppid() == owner:
    struct.pack_into("dd", shared, 0, paused, last)
    time.sleep(beat)
    now = time.monotonic()
    late, last = now - last - beat, now
    paused += late if late > still else 0.0
"""


class ClockProcess:
    """A process that sleeps for short times, and notes when it wakes up much too late.

    A virtual machine may stand still for a second or two, which no figure of its kernel shows.
    """

    def __init__(self) -> None:
        fd = os.memfd_create("clock")
        os.ftruncate(fd, mmap.PAGESIZE)
        self._shared = mmap.mmap(fd, 16)
        words = [str(fd), *map(str, (os.getpid(), _BEAT, _STILL))]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CLOCK, *words],
            pass_fds=[fd],
            cwd="/",
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(fd)
        atexit.register(self._end)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def paused(self) -> float:
        """Return for how many seconds the machine has stood still since the start of the process.
        Waits until the process has noted a pause that has just ended."""
        now = time.monotonic()
        while True:
            paused, last = struct.unpack_from("dd", self._shared)
            if last > now - 2 * _BEAT:
                return float(paused)
            assert self._process.poll() is None, "the clock process has ended"
            time.sleep(_BEAT / 5)


@functools.cache
def _clock(pid: int) -> ClockProcess:
    """Return the clock process of the process with this number, which is this one."""
    return ClockProcess()


def _paused() -> float:
    return _clock(os.getpid()).paused()


class ProcessorWait:
    """The time for which this thread and some processes have waited for a processor, and for which
    the machine has stood still, since the creation of this object. On a busy machine, an operation
    that is not slow takes longer by this time."""

    def __init__(self, *pids: int) -> None:
        self._paused = _paused()
        self._files = [Path("/proc/thread-self/schedstat")]
        self._files += [Path(f"/proc/{pid}/schedstat") for pid in pids]
        self._before = [_waited(file) for file in self._files]

    def seconds(self) -> float:
        """Return the sum of all. A process that has ended counts as one that did not wait."""
        now = [_waited(file) for file in self._files]
        waited = sum(max(0.0, b - a) for a, b in zip(self._before, now, strict=True))
        return waited + _paused() - self._paused


class ProcessorTime:
    """The processor time that this process and its descendants have used since the creation of this
    object. It does not depend on how busy the machine is."""

    def __init__(self) -> None:
        self._before = _used_by_family()

    def seconds(self) -> float:
        """Return the sum of all, with the processes that have ended."""
        return _used_by_family() - self._before


def _used_by_family() -> float:
    """Return the processor time of this process and of its descendants. A process has that of those
    that it has waited for (proc_pid_stat(5))."""
    family, ticks = [os.getpid()], 0
    for pid in family:
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    family += map(int, (task / "children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


def _waited(file: Path) -> float:
    with suppress(OSError):
        return int(file.read_text().split()[1]) / 1e9
    return 0.0


class Pulse:
    """A thread that times ``/bin/true`` in an idle sandbox."""

    def __init__(self, sandbox: BaseSandbox) -> None:
        self._box = sandbox
        self._beats: deque[tuple[float, float]] = deque(maxlen=2000)  # start, end
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(SandboxLostError):  # the sandbox was closed
            while not self._over.is_set():
                self._began = time.monotonic()
                self._box.run(["/bin/true"], timeout=60)
                self._beats.append((self._began, time.monotonic()))
                self._began = float("inf")
                self._over.wait(_PAUSE)

    def slower(self, since: float | None = None) -> float:
        """Return how many times slower than idle the machine was, 1 to 10: by the longest time of
        the programs that ran at ``since`` or later, which is by default a second ago."""
        now = time.monotonic()
        since = now - 1.0 if since is None else since
        took = [ended - began for began, ended in list(self._beats) if ended >= since]
        return min(_MOST, max(*took, now - self._began, _IDLE, 0.0) / _IDLE)

    def stop(self) -> None:
        """End the thread; the sandbox can then be closed."""
        self._over.set()
        self._thread.join(60)
