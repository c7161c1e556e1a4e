"""Limits how many requests to an endpoint run at once, adapting to its signs of overload."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

INITIAL_LIMIT = 64
"""The initial limit, before the first answer of an endpoint."""


@dataclass
class Traffic:
    """Counts of requests, for progress reports. ``limit`` is how many requests may run now;
    ``lost`` counts attempts that were sent and gave no usable answer, ``overloads`` those that the
    endpoint refused because of too many requests, ``timeouts`` those without an answer in time.

    >>> from intercode.models import Traffic, open_model
    >>> with open_model("my-model", "http://localhost:8000/v1") as model:
    ...     model.traffic() == Traffic()  # nothing was requested yet
    True
    """

    limit: int = 0
    in_flight: int = 0
    waiting: int = 0
    answers: int = 0
    retries: int = 0
    lost: int = 0
    overloads: int = 0
    timeouts: int = 0
    from_cache: int = 0


class ConcurrencyLimiter:
    """Adaptive concurrency: additive increase, multiplicative decrease (Chiu and Jain 1989).

    At first every answer raises the limit by one, which doubles it in each round trip. A sign of
    overload (429, 503, a time-out) halves the limit; requests sent before the last halving do not
    halve it again. From then on a full round of answers raises it by one. The limit stays between 1
    and ``max_limit``. An instance belongs to one event loop and admits waiting requests in order.
    """

    def __init__(self, max_limit: int, limit: float | None = None, linear: bool = False) -> None:
        self.max_limit = max_limit
        self.limit = float(min(max_limit, INITIAL_LIMIT)) if limit is None else limit
        self.in_flight = 0
        self._linear = linear  # true after the first overload: the limit grows slowly
        self._round = 0
        self._peak = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """The number of requests in the queue."""
        return len(self._queue)

    def copy_for_loop(self) -> ConcurrencyLimiter:
        """Return a limiter for another event loop, with the limit that this one has reached."""
        return ConcurrencyLimiter(self.max_limit, self.limit, self._linear)

    async def acquire(self) -> int:
        """Wait until a request may be sent. Pass the returned number to ``release``."""
        if self._queue or self.in_flight >= int(self.limit):
            turn = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.in_flight -= 1
                    self._admit()
                elif turn in self._queue:
                    self._queue.remove(turn)
                raise
        else:
            self.in_flight += 1
        self._peak = max(self._peak, self.in_flight)
        return self._round

    def release(self, round_number: int, *, answered: bool, overloaded: bool = False) -> None:
        """End a request and report its outcome."""
        self.in_flight -= 1
        if overloaded and round_number == self._round:
            self.limit = max(1.0, min(self.limit, self.in_flight + 1) / 2)
            self._linear = True
            self._round += 1
            self._peak = self.in_flight
        elif answered:
            grown = self.limit + (1 / self.limit if self._linear else 1.0)
            used = 2 * self._peak >= self.limit  # else the answer shows nothing about the limit
            self.limit = min(float(self.max_limit), grown) if used else self.limit
        self._admit()

    def _admit(self) -> None:
        while self._queue and self.in_flight < int(self.limit):
            turn = self._queue.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)
