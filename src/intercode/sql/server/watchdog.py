"""Kills the connections whose statements do not end in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from intercode.sql.server.connection import Link

_GRACE = 0.2  # seconds that the server has to end a statement by itself
_PULSE = 0.1


class Watchdog:
    """Kills the connections whose statements do not end in time. One thread, while it is needed."""

    def __init__(self, kill: Callable[[int], None]) -> None:
        self._kill = kill
        self._lock = threading.Lock()
        self._due: dict[Link, float] = {}
        self._wake = threading.Event()
        self._over = False
        self._thread: threading.Thread | None = None

    def watch(self, link: Link, seconds: float) -> None:
        """From now on the link has so many seconds, and a moment more."""
        with self._lock:
            self._due[link] = time.monotonic() + seconds + _GRACE
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sql-time", daemon=True)
                self._thread.start()
        self._wake.set()

    def hurry(self, link: Link) -> None:
        """Its time is over now."""
        self.watch(link, -_GRACE)

    def leave(self, link: Link) -> None:
        """The statement has ended."""
        with self._lock:
            self._due.pop(link, None)

    def stop(self) -> None:
        """End the thread."""
        self._over = True
        self._wake.set()

    def _run(self) -> None:
        while not self._over:
            with self._lock:
                now = time.monotonic()
                late = [link for link, due in self._due.items() if due < now]
                for link in late:
                    link.killed = True
                    del self._due[link]
                if not self._due:
                    self._wake.clear()
            for link in late:
                self._kill(link.id)
            self._wake.wait()
            time.sleep(_PULSE)
