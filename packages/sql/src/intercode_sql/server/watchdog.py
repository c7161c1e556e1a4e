"""Kills connections whose statements exceed their time limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from intercode_sql.server.connection import ServerConnection

_GRACE_SECONDS = 0.2  # seconds for the server to end a statement by itself
_POLL_SECONDS = 0.1


class StatementWatchdog:
    """Kills connections whose statements exceed their time limit. Its thread starts with the first
    one."""

    def __init__(self, kill: Callable[[int], None]) -> None:
        self._kill = kill
        self._lock = threading.Lock()
        self._deadlines: dict[ServerConnection, float] = {}
        self._checks: dict[ServerConnection, Callable[[], None]] = {}
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def watch(
        self, connection: ServerConnection, seconds: float, check: Callable[[], None] | None = None
    ) -> None:
        """Kill the connection after ``seconds`` and a grace period, unless ``unwatch`` is called
        before. ``check`` is called from time to time meanwhile, in another thread."""
        with self._lock:
            if check is not None:
                self._checks[connection] = check
            self._deadlines[connection] = time.monotonic() + seconds + _GRACE_SECONDS
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sql-time", daemon=True)
                self._thread.start()
        self._wake.set()

    def expire_now(self, connection: ServerConnection) -> None:
        """Kill the connection as soon as possible."""
        self.watch(connection, -_GRACE_SECONDS)

    def unwatch(self, connection: ServerConnection) -> None:
        """Stop watching a connection."""
        with self._lock:
            self._deadlines.pop(connection, None)
            self._checks.pop(connection, None)

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped = True
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            with self._lock:
                now = time.monotonic()
                overdue = [connection for connection, due in self._deadlines.items() if due < now]
                for connection in overdue:
                    connection.killed = True
                    del self._deadlines[connection]
                checks = list(self._checks.values())
                if not self._deadlines:
                    self._wake.clear()
            for connection in overdue:
                self._kill(connection.id)
            for check in checks:
                check()
            self._wake.wait()
            time.sleep(_POLL_SECONDS)
