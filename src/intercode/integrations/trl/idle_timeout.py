"""Ends what a framework has forgotten: objects that it never closes, in which nothing happens."""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakKeyDictionary

_CHECKS_PER_TIMEOUT = 4  # while something may be idle


class Expirable(Protocol):
    """What a reaper looks after."""

    def _end_if_idle(self) -> None:
        """End it if it has been idle too long. Called often, and from the reaper's thread."""


class IdleReaper:
    """One thread for all that is watched in a process; it lives as long as there is any."""

    def __init__(self) -> None:
        self._watched: WeakKeyDictionary[Expirable, float] = WeakKeyDictionary()
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._interval = 0.0
        self._thread: threading.Thread | None = None

    def watch(self, what: Expirable, idle_timeout: float) -> None:
        """Look after an object as long as it is there, some times in ``idle`` seconds."""
        with self._lock:
            self._watched[what] = idle_timeout
            if self._thread is None or not self._thread.is_alive():  # a forked child has none
                self._thread = threading.Thread(
                    target=self._run, name="intercode-idle", daemon=True
                )
                self._thread.start()
            elif idle_timeout / _CHECKS_PER_TIMEOUT < self._interval:
                self._wake.set()

    def _run(self) -> None:
        while self._check_all():
            self._wake.wait(self._interval)
            self._wake.clear()

    def _check_all(self) -> bool:
        """Whether there was anything to look at. Keeps nothing alive afterwards."""
        with self._lock:
            watched = dict(self._watched)
            if not watched:
                self._thread = None
                return False
            self._interval = min(watched.values()) / _CHECKS_PER_TIMEOUT
        for what in watched:
            what._end_if_idle()
        return True
