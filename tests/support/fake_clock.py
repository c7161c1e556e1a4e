"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
import threading

from intercode_sandbox.clock import Clock

_PATIENCE = 120.0  # seconds of real time until a thread waits that a test expects to wait


class FakeClock(Clock):
    """Blocking sleeps end at once and move the time. Waiting asyncio tasks go on when ``advance``
    reaches the end of their wait, waiting threads when ``advance_threads`` does.

    ``slept`` has the seconds of all sleeps that have ended. With ``jumps``, the waits of tasks end
    at once, like sleeps.
    """

    def __init__(self, *, jumps: bool = False) -> None:
        self.slept: list[float] = []
        self._jumps = jumps
        self._time = 1000.0
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []
        self._arrival: asyncio.Event | None = None
        self._threads: list[tuple[float, threading.Event]] = []
        self._thread_arrival = threading.Condition()

    def now(self) -> float:
        return self._time

    def date(self) -> float:
        return self._time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._time += seconds

    async def wait(self, seconds: float) -> None:
        if self._jumps:
            self.sleep(seconds)
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((self._time + seconds, future))
        if self._arrival is not None:
            self._arrival.set()
        await future

    def wait_for(self, event: threading.Event, seconds: float) -> None:
        with self._thread_arrival:
            self._threads.append((self._time + seconds, event))
            self._thread_arrival.notify_all()
        event.wait()
        with self._thread_arrival:
            self._threads = [row for row in self._threads if row[1] is not event]

    def pass_time(self, seconds: float) -> None:
        """Move the time without waking a task."""
        self._time += seconds

    def advance_threads(self, seconds: float) -> None:
        """Wait until a thread waits, move the time, and wake the threads that wait no longer."""
        with self._thread_arrival:
            arrived = self._thread_arrival.wait_for(lambda: self._threads, _PATIENCE)
            assert arrived, "no thread waits"
            self._time += seconds
            due = [event for when, event in self._threads if when <= self._time]
            self._threads = [row for row in self._threads if row[1] not in due]
            for event in due:
                event.set()

    async def advance(self, seconds: float) -> None:
        """Move the time on to each end of a wait within ``seconds`` in turn, until a task waits
        beyond them. The component must have a task that waits, now or soon."""
        end = self._time + seconds
        while True:
            pending = [(when, future) for when, future in self._waiting if not future.done()]
            if not pending:
                self._waiting = []
                self._arrival = asyncio.Event()
                await self._arrival.wait()
                continue
            when, future = min(pending, key=lambda row: row[0])
            if when > end:
                self._time = end
                return
            self._time = max(self._time, when)
            self._waiting = [row for row in pending if row[1] is not future]
            future.set_result(None)
