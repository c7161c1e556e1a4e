"""How slow the machine is at this moment: a program is run again and again in a calm box."""

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
_IDLE = 0.02  # seconds that /bin/true takes at most where nothing else runs
_HOPS = 4.0  # an action that is given up waits for other processes as often as so many programs do
_MOST = 10.0  # times slower, that are allowed for


class Pulse:
    """A thread that times ``/bin/true`` in a box which does nothing else.

    What the owner waits for is late by what the machine is late. That cannot be known afterwards
    or before, so it is measured at the same time, by the same way: spawn, run, answer.
    """

    def __init__(self, box: Sandbox) -> None:
        self._box = box
        self._beats: deque[tuple[float, float]] = deque(maxlen=2000)  # began, ended
        self._crowds: deque[tuple[float, float]] = deque(maxlen=2000)  # when, how many a processor
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(SandboxLostError):  # the box was closed
            while not self._over.is_set():
                self._began = time.monotonic()
                self._box.run(["/bin/true"], timeout=60)
                self._beats.append((self._began, time.monotonic()))
                self._crowds.append((self._began, _running()))
                self._began = float("inf")
                self._over.wait(_PAUSE)

    def worst(self, since: float) -> float:
        """The longest that a program took, of those that ran at ``since`` or later, in seconds."""
        now = time.monotonic()
        took = [ended - began for began, ended in list(self._beats) if ended >= since]
        return max([*took, now - self._began, 0.0])

    def late(self, since: float) -> float:
        """Seconds by which what began at ``since`` may be late for reasons of the machine."""
        return _HOPS * self.worst(since)

    def crowded(self, since: float) -> float:
        """How many programs wanted each processor since then, on average, 1 to 10: what computes
        takes that much longer."""
        seen = [count for when, count in list(self._crowds) if when >= since]
        return min(_MOST, max(1.0, sum(seen) / len(seen))) if seen else 1.0

    def slower(self) -> float:
        """How many times slower than an idle machine this one was in the last second, 1 to 10."""
        return min(_MOST, max(1.0, self.worst(time.monotonic() - 1.0) / _IDLE))

    def stop(self) -> None:
        """End the thread; the box can then be closed."""
        self._over.set()
        self._thread.join(60)


def _running() -> float:
    """Programs that want a processor now, per processor."""
    running = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
    return int(running) / (os.cpu_count() or 1)
