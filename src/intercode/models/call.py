"""One call of a model: attempts at the endpoint's pace, until an answer or the end of patience."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from intercode.core.errors import ModelUnavailableError
from intercode.models.base import Completion
from intercode.models.transport.retry import AttemptError

if TYPE_CHECKING:
    from intercode.models.endpoint import Channel, Endpoint


class DeadlineExceededError(ModelUnavailableError):
    """No answer came before the time of a budget was up."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What budgets leave for one call.

    ``max_tokens`` of the answer at most; ``deadline`` by ``time.monotonic``. ``lost`` is told of
    every attempt whose answer was lost, ``again`` is asked before another attempt and may raise.
    """

    max_tokens: int | None = None
    deadline: float | None = None
    on_lost_response: Callable[[], None] = lambda: None
    before_retry: Callable[[], None] = lambda: None


UNLIMITED = CallLimits()

LENGTH_FINISH_REASONS = ("length", "max_tokens", "MAX_TOKENS")
"""What endpoints call the end of an answer at its limit."""


async def request_completion(
    model: Endpoint, request: dict[str, Any], allowed: CallLimits
) -> Completion:
    """The answer, with everything that it took in its usage. On the models' event loop.

    Raises ModelRefusedError, ModelUnavailableError, BudgetError, OutOfTimeError.
    """
    call = _Call(model, request, allowed)
    while True:
        try:
            answer = await call.attempt()
        except AttemptError as e:
            wait = call.retry_delay(e)
        else:
            return call.with_usage(answer)
        await model.retry.sleep(wait)


class _Call:
    """The state of one call between its attempts."""

    def __init__(self, model: Endpoint, request: dict[str, Any], allowed: CallLimits) -> None:
        self.model, self.limits = model, allowed
        self.request = request
        if allowed.max_tokens is not None:
            own = request.get("max_tokens")
            most = allowed.max_tokens if own is None else min(own, allowed.max_tokens)
            self.request = {**request, "max_tokens": most}
        self.clock = model.retry.clock
        self.started = self.clock()
        self.queued = 0.0  # seconds in the queue: they cost no patience
        self.attempts = self.requests_sent = 0

    @property
    def patience_deadline(self) -> float:
        """When patience ends."""
        return self.started + self.queued + self.model.retry.patience

    async def attempt(self) -> Completion:
        """One attempt, at the endpoint's pace."""
        lane = self.model.channel()
        joined = self.clock()
        try:
            async with asyncio.timeout(self._seconds_left(joined, None)):
                entered = await lane.limiter.acquire()
        except TimeoutError as e:
            raise AttemptError("the time was up before its turn came") from e
        self.queued += self.clock() - joined
        return await self._send(lane, entered)

    async def _send(self, lane: Channel, entered: int) -> Completion:
        self.attempts += 1
        now = self.clock()
        seconds = max(
            self._seconds_left(
                now, min(self.model.request_options.timeout, self.patience_deadline - now)
            ),
            0.001,
        )
        answered = crowded = False
        try:
            answer = await self.model.attempt(lane.client, self.request, seconds)
            answered = True
            return answer
        except AttemptError as e:
            crowded = e.overloaded
            raise
        finally:
            lane.limiter.release(entered, answered=answered, overloaded=crowded)

    def _seconds_left(self, now: float, seconds: float | None) -> float:
        """Seconds until the deadline, at most ``seconds``; a very long time where there is none."""
        most = 1e9 if seconds is None else seconds
        return most if self.limits.deadline is None else min(most, self.limits.deadline - now)

    def retry_delay(self, error: AttemptError) -> float:
        """Seconds to wait before the next attempt. Raises where there is to be none."""
        retry, traffic = self.model.retry, self.model.traffic()
        self.requests_sent += error.requests_sent
        if error.response_lost:
            traffic.lost += 1
            self.limits.on_lost_response()
        wait = retry.delay_after(max(self.attempts, 1), error.retry_after)
        now = self.clock()
        deadline = self.limits.deadline
        if deadline is not None and now + wait >= deadline:
            raise DeadlineExceededError(self._error_text(f"{error}")) from error
        if self.attempts >= retry.max_attempts:
            why = f"{self.attempts} attempts failed, the last: {error}"
            raise ModelUnavailableError(self._error_text(why)) from error
        if now + wait >= self.patience_deadline:
            why = f"{error}; the next attempt would be {wait:.0f} s away, past the patience"
            raise ModelUnavailableError(
                self._error_text(f"{why} of {retry.patience:.0f} s")
            ) from error
        self.limits.before_retry()
        traffic.retries += 1
        return wait

    def with_usage(self, answer: Completion) -> Completion:
        """The answer with its price and the effort it took."""
        usage, price = answer.usage, self.model.price
        self.model.traffic().answers += 1
        cost = usage.cost
        if cost is None and price and usage.prompt_tokens is not None:
            completion = usage.completion_tokens
            if completion is not None:
                cost = price.cost(usage.prompt_tokens, completion, usage.cached_tokens or 0)
        usage = replace(
            usage,
            requests=usage.requests + self.requests_sent,
            cost=cost,
            seconds=self.clock() - self.started,
        )
        return replace(answer, usage=usage)

    def _error_text(self, what: str) -> str:
        return self.model.redact(
            f"no answer from {self.model.name!r} at {self.model.endpoint}: {what}"
        )
