"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio

from intercode.core.clock import Clock


class FakeClock(Clock):
    """Blocking sleeps end at once and move the time; waiting tasks go on when ``advance`` reaches
    the end of their wait. ``slept`` has the seconds of the blocking sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._time = 1000.0
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []
        self._arrival: asyncio.Event | None = None

    def now(self) -> float:
        return self._time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._time += seconds

    async def wait(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((self._time + seconds, future))
        if self._arrival is not None:
            self._arrival.set()
        await future

    def pass_time(self, seconds: float) -> None:
        """Move the time without waking a task."""
        self._time += seconds

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
