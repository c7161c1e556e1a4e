"""Measures how slow the machine is: a program runs again and again in an idle sandbox."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from intercode.core.errors import SandboxLostError
from intercode.sandbox.contract import Sandbox

_PAUSE = 0.05  # seconds between two programs
_IDLE = 0.02  # maximum seconds of /bin/true on an idle machine
_HOPS = 4.0  # a killed action waits for other processes as often as this many programs
_MOST = 10.0  # maximum factor


class Pulse:
    """A thread that times ``/bin/true`` in an idle sandbox.

    On a busy machine the owner of a sandbox reacts late. The delay is measured at the same time and
    in the same way as the tested action: spawn, run, answer.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._box = sandbox
        self._beats: deque[tuple[float, float]] = deque(maxlen=2000)  # start, end
        self._crowds: deque[tuple[float, float]] = deque(
            maxlen=2000
        )  # time, programs per processor
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
                self._crowds.append((self._began, _running()))
                self._began = float("inf")
                self._over.wait(_PAUSE)

    def worst(self, since: float) -> float:
        """Return the longest time in seconds of the programs that ran at ``since`` or later."""
        now = time.monotonic()
        took = [ended - began for began, ended in list(self._beats) if ended >= since]
        return max([*took, now - self._began, 0.0])

    def late(self, since: float) -> float:
        """Return the seconds by which work that started at ``since`` may be late because of the
        machine."""
        return _HOPS * self.worst(since)

    def crowded(self, since: float) -> float:
        """Return how many programs waited for each processor since then, on average, 1 to 10.
        Computing takes that many times longer."""
        seen = [count for when, count in list(self._crowds) if when >= since]
        return min(_MOST, max(1.0, sum(seen) / len(seen))) if seen else 1.0

    def slower(self) -> float:
        """Return how many times slower than idle the machine was in the last second, 1 to 10."""
        return min(_MOST, max(1.0, self.worst(time.monotonic() - 1.0) / _IDLE))

    def stop(self) -> None:
        """End the thread; the sandbox can then be closed."""
        self._over.set()
        self._thread.join(60)


def _running() -> float:
    """Return the programs that wait for a processor now, per processor."""
    running = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
    return int(running) / (os.cpu_count() or 1)
