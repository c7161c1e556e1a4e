"""The clock of components that wait, so that a test can let time pass."""

from __future__ import annotations

import asyncio
import threading
import time


class Clock:
    """Tells the time and waits. The default of every component that takes a clock."""

    def now(self) -> float:
        """Return seconds that never go back (``time.monotonic``)."""
        return time.monotonic()

    def date(self) -> float:
        """Return the seconds since 1970, as the wall clock tells them (``time.time``)."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Block this thread for some seconds."""
        time.sleep(seconds)

    def wait_for(self, event: threading.Event, seconds: float) -> None:
        """Block this thread until ``event`` is set, for at most ``seconds``."""
        event.wait(seconds)

    async def wait(self, seconds: float) -> None:
        """Let this asyncio task wait for some seconds."""
        await asyncio.sleep(seconds)


SYSTEM_CLOCK = Clock()
