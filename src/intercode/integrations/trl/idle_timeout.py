"""Ends what a framework has forgotten: objects that it never closes, in which nothing happens."""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakKeyDictionary

_LOOKS = 4  # while something may be idle


class Forgettable(Protocol):
    """What a reaper looks after."""

    def _reap(self) -> None:
        """End it if it has been idle too long. Called often, and from the reaper's thread."""


class Reaper:
    """One thread for all that is watched in a process; it lives as long as there is any."""

    def __init__(self) -> None:
        self._watched: WeakKeyDictionary[Forgettable, float] = WeakKeyDictionary()
        self._lock, self._sooner = threading.Lock(), threading.Event()
        self._pause = 0.0
        self._thread: threading.Thread | None = None

    def watch(self, what: Forgettable, idle: float) -> None:
        """Look after an object as long as it is there, some times in ``idle`` seconds."""
        with self._lock:
            self._watched[what] = idle
            if self._thread is None or not self._thread.is_alive():  # a forked child has none
                self._thread = threading.Thread(
                    target=self._run, name="intercode-idle", daemon=True
                )
                self._thread.start()
            elif idle / _LOOKS < self._pause:
                self._sooner.set()

    def _run(self) -> None:
        while self._look():
            self._sooner.wait(self._pause)
            self._sooner.clear()

    def _look(self) -> bool:
        """Whether there was anything to look at. Keeps nothing alive afterwards."""
        with self._lock:
            watched = dict(self._watched)
            if not watched:
                self._thread = None
                return False
            self._pause = min(watched.values()) / _LOOKS
        for what in watched:
            what._reap()
        return True
