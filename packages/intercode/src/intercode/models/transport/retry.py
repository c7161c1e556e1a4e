"""When to retry a request, and how long to wait before that."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from intercode_sandbox.clock import SYSTEM_CLOCK, Clock

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed. Every 5xx is retried as well."""

OVERLOAD_STATUSES = frozenset({429, 503, 529})
"""Statuses that signal too many requests."""


class AttemptError(Exception):
    """A failed attempt; a retry may succeed.

    ``retry_after``: seconds that the server asked to wait. ``overloaded``: the server signals too
    many requests. ``timed_out``: there was no answer in time, which may be a sign of the same.
    ``response_lost``: the endpoint may have worked, and may charge for it, although
    no answer arrived. ``requests_sent``: the number of requests that the attempt sent.
    """

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        overloaded: bool = False,
        timed_out: bool = False,
        response_lost: bool = False,
        requests_sent: int = 1,
    ) -> None:
        super().__init__(message)
        self.retry_after, self.overloaded = retry_after, overloaded
        self.timed_out = timed_out
        self.response_lost, self.requests_sent = response_lost, requests_sent


def is_transient(status: int) -> bool:
    """Return whether the same request may succeed later."""
    return status in RETRYABLE_STATUSES or status >= 500


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds to wait by a Retry-After header: a number or an HTTP date (RFC 9110,
    10.2.3).

    None if there is no header or it is invalid; never negative.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


@dataclass
class RetryPolicy:
    """Exponential backoff with jitter.

    The wait before attempt k+1 is between half and all of ``initial_delay * 2**(k-1)`` seconds, at
    most ``max_delay``. A wait that the server asks for is kept in full, plus up to a second so that
    parallel episodes do not retry at the same moment. ``patience`` bounds a whole call in seconds,
    attempts included, by ``clock``.
    """

    max_attempts: int = 6
    initial_delay: float = 1.0
    max_delay: float = 60.0
    patience: float = 900.0
    clock: Clock = SYSTEM_CLOCK
    jitter: random.Random = field(default_factory=random.Random)

    def delay_after(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds to wait after failed attempt number ``attempt`` (the first is 1)."""
        if retry_after is not None:
            return retry_after + self.jitter.uniform(0.0, min(1.0, retry_after))
        top = min(self.max_delay, self.initial_delay * 2.0 ** min(attempt - 1, 30))
        return top * self.jitter.uniform(0.5, 1.0)
