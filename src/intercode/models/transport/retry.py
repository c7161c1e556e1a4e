"""How long to wait between attempts, and when to stop."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed; every 5xx is retried as well."""

OVERLOAD_STATUSES = frozenset({429, 503, 529})
"""Statuses that say that there are too many requests."""


class AttemptError(Exception):
    """One attempt that may go well the next time.

    ``wait``: seconds that the server asked for. ``crowded``: it has too much to do. ``lost``: the
    endpoint may have worked, and may charge for it, though no answer came. ``sent``: requests that
    the attempt took.
    """

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        overloaded: bool = False,
        response_lost: bool = False,
        requests_sent: int = 1,
    ) -> None:
        super().__init__(message)
        self.retry_after, self.overloaded, self.response_lost, self.requests_sent = (
            retry_after,
            overloaded,
            response_lost,
            requests_sent,
        )


def is_transient(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in RETRYABLE_STATUSES or status >= 500


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait by a Retry-After header: a number or an HTTP date (RFC 9110, 10.2.3).

    None where there is no header or it cannot be read; never negative.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        seconds = (when - (now or datetime.now(UTC))).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


@dataclass
class RetryPolicy:
    """Exponential waiting with jitter.

    Before attempt k+1 the wait is between half and all of ``first * 2**(k-1)`` seconds, at most
    ``longest``; what the server asks for is waited in full, plus up to a second so that parallel
    episodes do not come back together. ``patience`` bounds the whole of one call in seconds,
    attempts included. ``sleep`` and ``clock`` can be replaced in tests.
    """

    max_attempts: int = 6
    initial_delay: float = 1.0
    max_delay: float = 60.0
    patience: float = 900.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: random.Random = field(default_factory=random.Random)

    def delay_after(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after failed attempt number ``attempt`` (the first is 1)."""
        if retry_after is not None:
            return retry_after + self.jitter.uniform(0.0, min(1.0, retry_after))
        top = min(self.max_delay, self.initial_delay * 2.0 ** min(attempt - 1, 30))
        return top * self.jitter.uniform(0.5, 1.0)
