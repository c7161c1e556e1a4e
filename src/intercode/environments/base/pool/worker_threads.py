"""Threads that do what blocks for an event loop. Most of the time they wait.

An executor's futures have a lock and a condition each, and every result wakes the loop by a write
of its own. Here all results that have come meanwhile are taken at one wake-up, which at hundreds
of steps a second is a tenth of the cost.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

_Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]


class WorkerThreads:
    """At most ``size`` threads, started as they are needed; they die with the process. For one
    event loop."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]] | None] = (
            SimpleQueue()
        )
        self._results: deque[_Outcome] = deque()
        self._wakeup_scheduled = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Have something done. Cancelling the future does not end the work."""
        self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._work.put((future, work))
        if len(self._threads) < self._size:
            name = f"intercode-pool-{len(self._threads)}"
            self._threads.append(threading.Thread(target=self._run_worker, name=name, daemon=True))
            self._threads[-1].start()
        return future

    def close(self) -> None:
        """Wait for what is under way, and end the threads."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run_worker(self) -> None:
        while (given := self._work.get()) is not None:
            future, work = given
            try:
                self._results.append((future, work(), None))
            except BaseException as e:
                self._results.append((future, None, e))
            del given, future, work
            if not self._wakeup_scheduled and self._loop is not None:
                self._wakeup_scheduled = True
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._deliver_results)

    def _deliver_results(self) -> None:
        self._wakeup_scheduled = False  # first: what comes from here on calls again
        while self._results:
            future, result, error = self._results.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
