"""Kills the connections whose statements do not end in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from intercode.sql.server.connection import ServerConnection

_GRACE_SECONDS = 0.2  # seconds that the server has to end a statement by itself
_POLL_SECONDS = 0.1


class Watchdog:
    """Kills the connections whose statements do not end in time. One thread, while it is needed."""

    def __init__(self, kill: Callable[[int], None]) -> None:
        self._kill = kill
        self._lock = threading.Lock()
        self._deadlines: dict[ServerConnection, float] = {}
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def watch(self, link: ServerConnection, seconds: float) -> None:
        """From now on the link has so many seconds, and a moment more."""
        with self._lock:
            self._deadlines[link] = time.monotonic() + seconds + _GRACE_SECONDS
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sql-time", daemon=True)
                self._thread.start()
        self._wake.set()

    def expire_now(self, link: ServerConnection) -> None:
        """Its time is over now."""
        self.watch(link, -_GRACE_SECONDS)

    def unwatch(self, link: ServerConnection) -> None:
        """The statement has ended."""
        with self._lock:
            self._deadlines.pop(link, None)

    def stop(self) -> None:
        """End the thread."""
        self._stopped = True
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            with self._lock:
                now = time.monotonic()
                late = [link for link, due in self._deadlines.items() if due < now]
                for link in late:
                    link.killed = True
                    del self._deadlines[link]
                if not self._deadlines:
                    self._wake.clear()
            for link in late:
                self._kill(link.id)
            self._wake.wait()
            time.sleep(_POLL_SECONDS)
