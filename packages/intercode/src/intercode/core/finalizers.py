"""Closes what nobody has closed, after the object that needs it was collected."""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from intercode_sandbox.platforms.forks import run_after_fork

_LOG = logging.getLogger(__name__)


class _Closer:
    """Calls functions in a thread of its own, and those that are left when the process ends."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ends = False

    def start(self) -> None:
        if self._thread is None or not self._thread.is_alive():  # threads end at a fork
            self._thread = threading.Thread(target=self._run, name="intercode-closer", daemon=True)
            self._thread.start()

    def call(self, close: Callable[[], object]) -> None:
        """Call ``close`` soon. This takes no lock that any other code holds."""
        if self._ends:
            close()
        else:
            self._waiting.put(close)

    def end(self) -> None:
        """Call what waits. What comes later is called at once."""
        self._ends = True
        with suppress(Empty):
            while True:
                self._waiting.get_nowait()()

    def _run(self) -> None:
        while True:
            close = self._waiting.get()
            try:
                close()
            except Exception:
                _LOG.exception("what was collected could not be closed")
            del close


_closer = _Closer()
atexit.register(lambda: _closer.end())


def _forget() -> None:
    global _closer
    _closer = _Closer()


run_after_fork(_forget)


def close_when_collected(owner: object, close: Callable[[], object]) -> None:
    """Call ``close`` after ``owner`` was collected, or at the end of the process.

    Objects are collected in the middle of any code, which may hold locks that ``close`` needs, so
    another thread calls it. ``close`` must not refer to ``owner``, and may be called twice.
    """
    _closer.start()
    weakref.finalize(owner, lambda: _closer.call(close))
