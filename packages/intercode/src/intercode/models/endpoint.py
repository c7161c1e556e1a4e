"""The base class of models that are called over a network: cache, concurrency limit, retries,
prices, sample views."""

from __future__ import annotations

import asyncio
import copy
import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from intercode.core.errors import ModelRefusedError, ModelUnavailableError
from intercode.models.base import Completion, Message, Model, Tool, reached_token_limit
from intercode.models.cache import CompletionCache, cache_key
from intercode.models.options import GenerationOptions, RequestOptions, shallow_asdict
from intercode.models.prices import find_price
from intercode.models.redaction import find_secrets, is_secret_header, redact, redact_text
from intercode.models.token_count import Calibration, estimate_tokens
from intercode.models.transport.concurrency import ConcurrencyLimiter, Traffic
from intercode.models.transport.retry import AttemptError
from intercode_sandbox import event_loop


def lower_max_tokens(request: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    """Return a request whose field ``max_tokens`` is at most this number."""
    return {**request, "max_tokens": min(max_tokens, request.get("max_tokens") or max_tokens)}


class DeadlineExceededError(ModelUnavailableError):
    """No answer arrived before a budget's deadline."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits that budgets set for one call.

    ``max_tokens`` returns the bound on the answer of the next attempt; ``deadline`` is by the
    budget's clock. ``on_lost_response`` is called after every attempt whose answer was lost.
    ``on_error`` is called with the error of every failed attempt. ``before_retry`` returns whether
    a further attempt may begin, is called until it may, and may raise.
    """

    max_tokens: Callable[[], int | None] = lambda: None
    deadline: float | None = None
    on_lost_response: Callable[[], None] = lambda: None
    on_error: Callable[[str], None] = lambda _: None
    before_retry: Callable[[], bool] = lambda: True


UNLIMITED = CallLimits()

BUDGET_POLL = 0.02
"""Seconds between two looks at a budget of which other requests hold what this one needs."""


async def request_completion(
    model: Endpoint, request: dict[str, Any], limits: CallLimits
) -> Completion:
    """Return the answer; its usage includes all attempts. Runs on the models' event loop.

    Raises ModelRefusedError, ModelUnavailableError, BudgetError and DeadlineExceededError.
    """
    call = _Call(model, request, limits)
    while True:
        try:
            answer = await call.attempt()
        except AttemptError as e:
            wait = call.retry_delay(e)
        else:
            return call.with_usage(answer)
        await model.retry.clock.wait(wait)
        await call.wait_for_budgets()


class _Call:
    """The state of one call between its attempts."""

    def __init__(self, model: Endpoint, request: dict[str, Any], limits: CallLimits) -> None:
        self.model, self.limits = model, limits
        self.request = request
        self.clock = model.retry.clock
        self.started = self.clock.now()
        self.queued = 0.0  # seconds in the queue
        self.attempts = self.requests_sent = 0

    @property
    def patience_deadline(self) -> float:
        """The time at which the call is given up. Time in the queue does not count."""
        return self.started + self.queued + self.model.retry.patience

    async def attempt(self) -> Completion:
        """Make one attempt, once the concurrency limiter allows it."""
        channel = self.model.channel()
        joined = self.clock.now()
        try:
            async with asyncio.timeout(self._seconds_left(joined, None)):
                round_number = await channel.limiter.acquire()
        except TimeoutError as e:
            raise AttemptError("the deadline passed before the request could be sent") from e
        self.queued += self.clock.now() - joined
        return await self._send(channel, round_number)

    async def _send(self, channel: EndpointConnections, round_number: int) -> Completion:
        self.attempts += 1
        request, granted = self.request, self.limits.max_tokens()
        if granted is not None:
            request = self.model.limit_answer(request, granted)
        now = self.clock.now()
        seconds = max(
            self._seconds_left(now, min(self.model.attempt_timeout, self.patience_deadline - now)),
            0.001,
        )
        answered = overloaded = False
        try:
            answer = await self.model.attempt(channel.client, request, seconds)
            answered = True
            return answer
        except AttemptError as e:
            overloaded = e.overloaded or e.timed_out
            raise
        finally:
            channel.limiter.release(round_number, answered=answered, overloaded=overloaded)

    def _seconds_left(self, now: float, seconds: float | None) -> float:
        """Return the seconds until the deadline, at most ``seconds``; a very large number without
        either."""
        bound = 1e9 if seconds is None else seconds
        return bound if self.limits.deadline is None else min(bound, self.limits.deadline - now)

    def retry_delay(self, error: AttemptError) -> float:
        """Return the seconds to wait before the next attempt. Raises if there is to be none."""
        retry, traffic = self.model.retry, self.model.traffic()
        self.requests_sent += error.requests_sent
        traffic.overloads += error.overloaded
        traffic.timeouts += error.timed_out
        if error.response_lost:
            traffic.lost += 1
            self.limits.on_lost_response()
        self.limits.on_error(self._error_text(f"{error}"))
        wait = retry.delay_after(max(self.attempts, 1), error.retry_after)
        now = self.clock.now()
        deadline = self.limits.deadline
        if deadline is not None and now + wait >= deadline:
            raise DeadlineExceededError(self._error_text(f"{error}")) from error
        if self.attempts >= retry.max_attempts:
            reason = f"{self.attempts} attempts failed, the last: {error}"
            raise ModelUnavailableError(self._error_text(reason), self.attempts) from error
        if now + wait >= self.patience_deadline:
            reason = f"{error}; the next attempt would be {wait:.0f} s away, beyond the patience"
            raise ModelUnavailableError(
                self._error_text(f"{reason} of {retry.patience:.0f} s"), self.attempts
            ) from error
        traffic.retries += 1
        return wait

    async def wait_for_budgets(self) -> None:
        """Wait until the budgets allow a further attempt. Raises what they raise."""
        began = self.clock.now()
        while not self.limits.before_retry():
            await self.clock.wait(BUDGET_POLL)
        self.queued += self.clock.now() - began

    def with_usage(self, answer: Completion) -> Completion:
        """Return the answer with its cost, the number of requests and the time taken."""
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
            seconds=self.clock.now() - self.started,
        )
        return replace(answer, usage=usage)

    def _error_text(self, what: str) -> str:
        return self.model.redact(
            f"no answer from {self.model.name!r} at {self.model.endpoint}: {what}"
        )


SINGLE_REQUEST_STATUSES = frozenset({400, 413, 422, 451})
"""Statuses of refusals that may concern this conversation only: content filters, lengths,
formats."""


class EndpointConnections:
    """The connections and the concurrency limiter of one event loop."""

    def __init__(self, client: Any, limiter: ConcurrencyLimiter) -> None:
        self.loop = asyncio.get_running_loop()
        self.client, self.limiter = client, limiter

    async def aclose(self) -> None:
        """Close the connections."""
        close = getattr(self.client, "aclose", None) or getattr(self.client, "close", None)
        if close is not None:
            await close()


class _SharedState:
    """The state that a model shares with its sample views."""

    def __init__(self, options: RequestOptions) -> None:
        self.channel: EndpointConnections | None = None
        self.traffic = Traffic()
        self.max_concurrency = options.concurrency
        self.cache = CompletionCache(options.cache, options.cache_mode) if options.cache else None


class Endpoint(Model):
    """A model that is called over a network. One instance serves many threads and event loops.

    A subclass implements a protocol by ``connect``, ``request`` and ``attempt``. ``secrets`` never
    appear in messages, reprs or metadata.
    """

    endpoint: str
    key_source: str = ""
    """Where the key comes from, such as a variable, for the message that it was refused."""

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
        self.sample = self.repeat = 0
        hidden = (*secrets, *find_secrets(shallow_asdict(generation)))
        self._secrets = tuple(sorted({s for s in hidden if s}, key=len, reverse=True))
        self._shared = _SharedState(request_options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.endpoint!r})"

    @property
    def max_answer_tokens(self) -> int | None:
        return self.generation.max_answer_tokens

    @property
    def attempt_timeout(self) -> float:
        """The maximum seconds of an attempt."""
        return self.request_options.timeout

    @property
    def token_ratio(self) -> float:
        return self.calibration.ratio if self.calibration else 1.0

    @property
    def address(self) -> str:
        """The URL that requests go to, with its query; ``endpoint`` has a digest of it."""
        return self.endpoint

    @abstractmethod
    def connect(self) -> Any:
        """Return a new client. Called on the event loop that will use it."""

    @abstractmethod
    def request(self, messages: Sequence[Message], tools: Sequence[Tool]) -> dict[str, Any]:
        """Return the request as plain data: what is sent, or what ``attempt`` makes that of."""

    def limit_answer(self, request: dict[str, Any], max_tokens: int) -> dict[str, Any]:
        """Return a request whose answer has at most this many tokens, which a budget grants.

        This implementation returns the request itself, for a protocol without such a limit.
        """
        del max_tokens
        return request

    @abstractmethod
    async def attempt(self, client: Any, request: dict[str, Any], seconds: float) -> Completion:
        """Send the request once and return the answer. Raises AttemptError and
        ModelRefusedError."""

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        limits: CallLimits = UNLIMITED,
    ) -> Completion:
        """Continue the conversation; see Model. ``limits`` are what budgets allow."""
        request, keys = self._prepare(messages, tools)
        answer = self._get_cached(keys)
        if answer is None:
            answer = event_loop.run_on_loop(request_completion(self, request, limits))
            self._store(keys, limits, answer)
        return self._calibrate(messages, tools, answer)

    async def acomplete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        limits: CallLimits = UNLIMITED,
    ) -> Completion:
        """Request an answer without blocking the caller's event loop; see ``complete``."""
        request, keys = self._prepare(messages, tools)
        answer = await asyncio.to_thread(self._get_cached, keys) if keys else None
        if answer is None:
            answer = await event_loop.await_on_loop(request_completion(self, request, limits))
            if keys:
                await asyncio.to_thread(self._store, keys, limits, answer)
        return self._calibrate(messages, tools, answer)

    def get_cached(
        self, messages: Sequence[Message], tools: Sequence[Tool] = ()
    ) -> Completion | None:
        """Return the cached answer, or None if there is none. Sends nothing."""
        return self._get_cached(self._prepare(messages, tools)[1]) if self._shared.cache else None

    def answer_key(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str:
        """Return the key of the answer in the cache; empty without a cache."""
        return "".join(self._prepare(messages, tools)[1][:1]) if self._shared.cache else ""

    def for_repeat(self, repeat: int) -> Self:
        """Return a view of this model for a request that its episode has sent ``repeat`` times
        before. Its answer is another entry of the cache, unless the temperature is 0."""
        view = copy.copy(self)
        view.repeat = 0 if self.generation.temperature == 0 else repeat
        return view

    def for_sample(self, sample: int) -> Self:
        """Return a view of this model for another sample of the same tasks.

        The view has cache entries of its own, and its ``seed`` is raised by ``sample``. Connections
        are shared.
        """
        view = copy.copy(self)
        view.sample = sample
        view.calibration = Calibration()
        seed = self.generation.seed
        if seed is not None:
            view.generation = replace(self.generation, seed=seed - self.sample + sample)
        return view

    def metadata(self) -> dict[str, Any]:
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
        """Return the counts of requests so far, for progress reports."""
        traffic, channel = self._shared.traffic, self._shared.channel
        if channel is not None:
            traffic.limit, traffic.in_flight = int(channel.limiter.limit), channel.limiter.in_flight
            traffic.waiting = channel.limiter.waiting
        return traffic

    def redact(self, text: str) -> str:
        """Return the text without this model's secrets."""
        return redact_text(text, self._secrets)

    def channel(self) -> EndpointConnections:
        """Return the channel of the running event loop, created if there is none."""
        channel = self._shared.channel
        if channel is None or channel.loop is not asyncio.get_running_loop():
            limiter = (
                ConcurrencyLimiter(self._shared.max_concurrency)
                if channel is None
                else channel.limiter.copy_for_loop()
            )
            channel = self._shared.channel = EndpointConnections(self.connect(), limiter)
            event_loop.add_resource(channel)
        return channel

    def close(self) -> None:
        """Close the connections and the cache of all views. May be called again."""
        channel, self._shared.channel = self._shared.channel, None
        if channel is not None:
            event_loop.close_resource(channel)
        if self._shared.cache is not None:
            self._shared.cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(
        self, messages: Sequence[Message], tools: Sequence[Tool]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return a request and the keys of its answer in the cache: its own and, if it is a repeat,
        that of the first."""
        request = self.request(messages, tools)
        if self._shared.cache is None:
            return request, ()
        headers = {k: v for k, v in self.generation.headers.items() if not is_secret_header(k)}
        first = [type(self).__name__, self.address, headers, redact(request), self.sample]
        identities = [[*first, self.repeat], first] if self.repeat else [first]
        asked = json.loads(json.dumps(identities, default=str))
        return request, tuple(cache_key({"asked": identity}) for identity in asked)

    def _get_cached(self, keys: Sequence[str]) -> Completion | None:
        cache = self._shared.cache
        cached = cache.get(keys[0]) if cache is not None and keys else None
        if cached is None and cache is not None and cache.mode == "only":
            cached = cache.get(keys[-1])  # a version before had one answer to all repeats
        if cached is not None:
            self._shared.traffic.from_cache += 1
        elif cache is not None and cache.mode == "only":
            raise self.refusal(f"cache_mode is 'only' and {cache.path} has no answer to this")
        return cached

    def _store(self, keys: Sequence[str], limits: CallLimits, answer: Completion) -> None:
        """Cache an answer, unless a budget's limit cut it short."""
        granted, own = limits.max_tokens(), self.generation.max_answer_tokens
        lowered = granted is not None and (own is None or granted < own)
        truncated = lowered and reached_token_limit(answer)
        if self._shared.cache is not None and not truncated:
            self._shared.cache.put(keys[0], answer)

    def _calibrate(
        self, messages: Sequence[Message], tools: Sequence[Tool], answer: Completion
    ) -> Completion:
        """Calibrate this view's estimates by the endpoint's count, and return the answer. Token ids
        are joined by a digest of the tools, which the prompt contains."""
        if self.calibration is not None:
            usage = answer.original_usage if answer.cached else answer.usage
            self.calibration.update(
                estimate_tokens(messages, self.name, tools), usage.prompt_tokens
            )
        if not tools or not answer.tokens.get("ids"):
            return answer
        digest = cache_key({"tools": [shallow_asdict(tool) for tool in tools]})[:16]
        return replace(answer, tokens={**answer.tokens, "tools": digest})

    def refusal(self, what: str, status: int | None = None) -> ModelRefusedError:
        """Return the error for a refusal that a retry cannot change. ``status`` is the response's;
        some statuses concern one request only."""
        key = f"; check {self.key_source}" if status in (401, 403) and self.key_source else ""
        text = self.redact(f"{self.name!r} at {self.endpoint} refused: {what}{key}")
        return ModelRefusedError(text, affects_all_requests=status not in SINGLE_REQUEST_STATUSES)
