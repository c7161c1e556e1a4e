"""What every model behind a network has in common: cache, pace, retries, price, views."""

from __future__ import annotations

import asyncio
import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from intercode.core.errors import ModelRefusedError, ModelUnavailableError
from intercode.models.base import Completion, Message, Tool
from intercode.models.cache import CompletionCache, cache_key
from intercode.models.options import GenerationOptions, RequestOptions, shallow_asdict
from intercode.models.prices import find_price
from intercode.models.redaction import find_secrets, is_secret_header, redact, redact_text
from intercode.models.token_count import Calibration, estimate_tokens
from intercode.models.transport import event_loop
from intercode.models.transport.concurrency import ConcurrencyLimiter, Traffic
from intercode.models.transport.retry import AttemptError


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


__all__ = ["CallLimits", "Channel", "DeadlineExceededError", "Endpoint"]

SINGLE_REQUEST_STATUSES = frozenset({400, 413, 422, 451})
"""Refusals that may be of this conversation only: content filters, lengths, forms."""


class Channel:
    """What belongs to one event loop: connections, and how many requests go at once."""

    def __init__(self, client: Any, pace: ConcurrencyLimiter) -> None:
        self.loop = asyncio.get_running_loop()
        self.client, self.limiter = client, pace

    async def aclose(self) -> None:
        """Close the connections."""
        close = getattr(self.client, "aclose", None) or getattr(self.client, "close", None)
        if close is not None:
            await close()


class _SharedState:
    """What a model and its views have in common."""

    def __init__(self, conduct: RequestOptions) -> None:
        self.channel: Channel | None = None
        self.traffic = Traffic()
        self.max_concurrency = conduct.concurrency
        self.cache = CompletionCache(conduct.cache, conduct.cache_mode) if conduct.cache else None


class Endpoint(ABC):
    """A model behind a network; one instance serves many threads and event loops.

    A protocol gives ``connect``, ``request`` and ``attempt``. ``secrets`` are in no message, no
    repr and no fact.
    """

    def __init__(
        self,
        name: str,
        endpoint: str,
        generation: GenerationOptions,
        request_options: RequestOptions,
        *,
        provider: str = "",
        secrets: Sequence[str] = (),
    ) -> None:
        self.name, self.endpoint, self.provider = name, endpoint, provider
        self.generation, self.request_options = generation, request_options
        self.retry = request_options.build_retry_policy()
        self.price = find_price(provider, name, request_options.prices, request_options.price)
        self.calibration: Calibration | None = None
        self.sample = 0
        hidden = (*secrets, *find_secrets(shallow_asdict(generation)))
        self._secrets = tuple(sorted({s for s in hidden if s}, key=len, reverse=True))
        self._shared = _SharedState(request_options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.endpoint!r})"

    @property
    def address(self) -> str:
        """Where requests go; with a query, which ``endpoint`` does not tell."""
        return self.endpoint

    @abstractmethod
    def connect(self) -> Any:
        """A new client; called on the loop it will live on."""

    @abstractmethod
    def request(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        """What is sent, as plain data; the limit on the answer's tokens is ``max_tokens``."""

    @abstractmethod
    async def attempt(self, client: Any, request: dict[str, Any], seconds: float) -> Completion:
        """Send it once and read the answer. Raises AttemptError, ModelRefusedError."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        limits: CallLimits = UNLIMITED,
    ) -> Completion:
        """Continue the conversation; see Model. ``allowed``: what a budget leaves."""
        request, key = self._prepare(messages, tools)
        answer = self._get_cached(key)
        if answer is None:
            answer = event_loop.run_on_loop(request_completion(self, request, limits))
            self._store(key, limits, answer)
        return self._calibrate(messages, tools, answer)

    async def acomplete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        limits: CallLimits = UNLIMITED,
    ) -> Completion:
        """As ``complete``, for asynchronous callers, whose own event loop is not held up."""
        request, key = self._prepare(messages, tools)
        answer = await asyncio.to_thread(self._get_cached, key) if key else None
        if answer is None:
            answer = await event_loop.await_on_loop(request_completion(self, request, limits))
            if key:
                await asyncio.to_thread(self._store, key, limits, answer)
        return self._calibrate(messages, tools, answer)

    def get_cached(
        self, messages: Sequence[Message], tools: Sequence[Tool] = ()
    ) -> Completion | None:
        """The answer in the cache, None where there is none; nothing is asked."""
        return self._get_cached(self._prepare(messages, tools)[1]) if self._shared.cache else None

    def for_sample(self, sample: int) -> Self:
        """This model for one more sample of the same tasks: the cache keeps its answers apart, and
        a ``seed`` is raised by ``sample``. Connections are shared."""
        view = copy.copy(self)
        view.sample = sample
        view.calibration = Calibration()
        seed = self.generation.seed
        if seed is not None:
            view.generation = replace(self.generation, seed=seed - self.sample + sample)
        return view

    def metadata(self) -> dict[str, Any]:
        """What a run records of its model: everything that can change an answer, no secret."""
        return {
            "name": self.name,
            "provider": self.provider,
            "endpoint": self.endpoint,
            "generation": self.generation.metadata(),
            "timeout": self.request_options.timeout,
            "max_attempts": self.retry.max_attempts,
            "concurrency": self.request_options.concurrency,
            "cache": self.request_options.cache_mode if self.request_options.cache else None,
            "price": self.price.metadata() if self.price else None,
        }

    def traffic(self) -> Traffic:
        """What went to and fro so far, for progress reports."""
        told, lane = self._shared.traffic, self._shared.channel
        if lane is not None:
            told.limit, told.in_flight = int(lane.limiter.limit), lane.limiter.in_flight
            told.waiting = lane.limiter.waiting
        return told

    def redact(self, text: str) -> str:
        """The text without this model's secrets."""
        return redact_text(text, self._secrets)

    def channel(self) -> Channel:
        """Connections and pace of the running loop; made where there are none."""
        lane = self._shared.channel
        if lane is None or lane.loop is not asyncio.get_running_loop():
            pace = (
                ConcurrencyLimiter(self._shared.max_concurrency)
                if lane is None
                else lane.limiter.copy_for_loop()
            )
            lane = self._shared.channel = Channel(self.connect(), pace)
            event_loop.add_resource(lane)
        return lane

    def close(self) -> None:
        """Close the connections and the cache, of all views. May be called again."""
        lane, self._shared.channel = self._shared.channel, None
        if lane is not None:
            event_loop.close_resource(lane)
        if self._shared.cache is not None:
            self._shared.cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _prepare(
        self, messages: Sequence[Message], tools: Sequence[Tool]
    ) -> tuple[dict[str, Any], str]:
        request = self.request(messages, tools)
        if self._shared.cache is None:
            return request, ""
        headers = {k: v for k, v in self.generation.headers.items() if not is_secret_header(k)}
        asked = [type(self).__name__, self.address, headers, redact(request), self.sample]
        return request, cache_key({"asked": json.loads(json.dumps(asked, default=str))})

    def _get_cached(self, key: str) -> Completion | None:
        cache = self._shared.cache
        known = cache.get(key) if cache is not None and key else None
        if known is not None:
            self._shared.traffic.from_cache += 1
        elif cache is not None and cache.mode == "only":
            raise self.refusal(f"cache_mode is 'only' and {cache.path} has no answer to this")
        return known

    def _store(self, key: str, allowed: CallLimits, answer: Completion) -> None:
        """Put an answer into the cache, unless it was cut short by what a budget has left."""
        most, own = allowed.max_tokens, self.generation.max_answer_tokens
        lowered = most is not None and (own is None or most < own)
        cut = lowered and answer.finish_reason in LENGTH_FINISH_REASONS
        if self._shared.cache is not None and key and not cut:
            self._shared.cache.put(key, answer)

    def _calibrate(
        self, messages: Sequence[Message], tools: Sequence[Tool], answer: Completion
    ) -> Completion:
        """The answer, after this view has compared its estimate with the endpoint's count."""
        if self.calibration is not None:
            told = answer.original_usage if answer.cached else answer.usage
            self.calibration.update(estimate_tokens(messages, self.name, tools), told.prompt_tokens)
        return answer

    def refusal(self, what: str, status: int | None = None) -> ModelRefusedError:
        """The error for a refusal that asking again does not change. ``status``: the answer's; some
        speak of one request only."""
        text = self.redact(f"{self.name!r} at {self.endpoint} refused: {what}")
        return ModelRefusedError(text, affects_all_requests=status not in SINGLE_REQUEST_STATUSES)
