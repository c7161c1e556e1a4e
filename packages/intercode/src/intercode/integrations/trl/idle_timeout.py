"""Ends idle objects that a framework never closes."""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakKeyDictionary

from intercode_sandbox.clock import SYSTEM_CLOCK, Clock

_CHECKS_PER_TIMEOUT = 4


class Expirable(Protocol):
    """An object that a reaper watches."""

    def _end_if_idle(self) -> None:
        """End the object if it has been idle too long. Called often, from the reaper's thread."""


class IdleReaper:
    """One thread for all watched objects of a process; it runs while there are any.

    ``clock`` is also the one by which the objects measure how long they have been idle."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self._watched: WeakKeyDictionary[Expirable, float] = WeakKeyDictionary()
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._interval = 0.0
        self._thread: threading.Thread | None = None

    def watch(self, item: Expirable, idle_timeout: float) -> None:
        """Watch an object while it exists, checking several times within ``idle_timeout``
        seconds."""
        with self._lock:
            self._watched[item] = idle_timeout
            if self._thread is None or not self._thread.is_alive():  # threads end at a fork
                self._thread = threading.Thread(
                    target=self._run, name="intercode-idle", daemon=True
                )
                self._thread.start()
            elif idle_timeout / _CHECKS_PER_TIMEOUT < self._interval:
                self._wake.set()

    def _run(self) -> None:
        while self._check_all():
            self.clock.wait_for(self._wake, self._interval)
            self._wake.clear()

    def _check_all(self) -> bool:
        """Check all watched objects and return whether there were any. Keeps none of them alive."""
        with self._lock:
            watched = dict(self._watched)
            if not watched:
                self._thread = None
                return False
            self._interval = min(watched.values()) / _CHECKS_PER_TIMEOUT
        for item in watched:
            item._end_if_idle()
        return True
