"""A model that sends only requests within its budgets."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from intercode.core.errors import BudgetError, ConfigError, InterCodeError, ModelRefusedError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool, reached_token_limit
from intercode.models.budget import DEFAULT_RESERVED_TOKENS, Budget, Reservation
from intercode.models.endpoint import (
    BUDGET_POLL,
    UNLIMITED,
    CallLimits,
    DeadlineExceededError,
    Endpoint,
)
from intercode.models.token_count import Calibration, estimate_tokens
from intercode.models.transport.concurrency import Traffic

INITIAL_MARGIN, CALIBRATED_MARGIN = 1.2, 1.05
"""Factors by which a prompt's reservation exceeds its estimate, before and after the endpoint has
reported its own count."""


@dataclass
class _Reservations:
    """The amounts that one request has reserved in each budget."""

    by_budget: list[tuple[Budget, Reservation]]
    estimated: int

    @property
    def completion(self) -> int:
        """The number of tokens that the answer may have."""
        return min((r.completion for _, r in self.by_budget), default=DEFAULT_RESERVED_TOKENS)

    @property
    def limited_by_run(self) -> bool:
        """Whether the run's budget set the lowest limit on the answer."""
        granted = self.completion
        return any(b.whole_run and r.lowered and r.completion == granted for b, r in self.by_budget)

    def settle(self, usage: Usage) -> None:
        for budget, reservation in self.by_budget:
            budget.settle(reservation, usage)

    def release(self) -> None:
        """Give back what was not settled."""
        self.settle(Usage())

    def mark_lost(self) -> None:
        for budget, reservation in self.by_budget:
            budget.mark_lost(reservation)

    def reserve_again(self) -> bool:
        """Reserve again what was lost. Return False if other requests hold it."""
        for number, (budget, reservation) in enumerate(self.by_budget):
            again = budget.reserve_again(reservation)
            if again is None:
                return False
            self.by_budget[number] = budget, again
        return True


class LimitedModel(Model):
    """A model within budgets; see ``limit_model``. ``on_error`` is called with the error of every
    failed attempt at a request."""

    def __init__(
        self,
        model: Model,
        budgets: Sequence[Budget],
        on_error: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name, self.on_error = model.name, on_error
        self.model = model
        self.budgets = tuple(budgets)
        self.endpoint, self.price = model.endpoint, model.price
        self.calibration = Calibration()
        if self.price is None and any(b.limits.cost is not None for b in budgets):
            raise ConfigError(
                f"no price is known for {model.name!r}, so a limit on cost cannot be enforced: "
                "give the model option price={'input': X, 'output': Y}, in dollars per million "
                "tokens, or a file of prices as the option prices or as "
                "~/.config/intercode/prices.toml, or limit tokens"
            )

    def __repr__(self) -> str:
        return f"LimitedModel({self.model!r})"

    @property
    def max_answer_tokens(self) -> int | None:
        return self.model.max_answer_tokens

    @property
    def token_ratio(self) -> float:
        return self.calibration.ratio

    def count_tokens(self, content: str | Sequence[Message] | Mapping[str, Any]) -> int | None:
        return self.model.count_tokens(content)

    def metadata(self) -> dict[str, Any]:
        """Return the model's own metadata; the limits belong to the run."""
        return self.model.metadata()

    def traffic(self) -> Traffic | None:
        return self.model.traffic()

    def close(self) -> None:
        self.model.close()

    def for_sample(self, sample: int) -> LimitedModel:
        """Return a view of this model for another sample of a task, with the same budgets."""
        return LimitedModel(self.model.for_sample(sample), self.budgets, self.on_error)

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """Request an answer; see ``Model``. Raises BudgetError instead of exceeding a limit."""
        return self._complete_by(self.model, messages, tools)

    def _complete_by(
        self, model: Model, messages: Sequence[Message], tools: Sequence[Tool]
    ) -> Completion:
        """Request an answer of a view of the model."""
        if (
            isinstance(model, Endpoint)
            and (cached := model.get_cached(messages, tools)) is not None
        ):
            return self._calibrate_cached(messages, tools, cached)
        while (reserved := self._reserve(messages, tools, wait=True)) is None:
            pass  # other requests held what this one needs; reserve() has waited for them
        with self._releasing(reserved):
            if isinstance(model, Endpoint):
                answer = model.complete(messages, tools=tools, limits=self._call_limits(reserved))
            else:
                answer = model.complete(messages, tools=tools)
            self._settle(reserved, answer)
        return self._reject_truncated(reserved, answer)

    def count_again(
        self, messages: Sequence[Message], tools: Sequence[Tool], answer: Completion
    ) -> None:
        """Count the answer that an earlier process has got to a request. Raises BudgetError."""
        if answer.cached:
            self._calibrate_cached(messages, tools, answer)
            return
        while (reserved := self._reserve(messages, tools, wait=True)) is None:
            pass
        self._settle(reserved, answer)

    async def acomplete(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()
    ) -> Completion:
        """Request an answer from asynchronous code; see ``complete``."""
        model = self.model
        if not isinstance(model, Endpoint):
            return await asyncio.to_thread(self.complete, messages, tools=tools)
        if (cached := await asyncio.to_thread(model.get_cached, messages, tools)) is not None:
            return self._calibrate_cached(messages, tools, cached)
        while (reserved := self._reserve(messages, tools, wait=False)) is None:
            await model.retry.clock.wait(BUDGET_POLL)  # other requests hold what this one needs
        with self._releasing(reserved):
            answer = await model.acomplete(
                messages, tools=tools, limits=self._call_limits(reserved)
            )
            self._settle(reserved, answer)
        return self._reject_truncated(reserved, answer)

    @contextmanager
    def _releasing(self, reserved: _Reservations) -> Iterator[None]:
        """Release the reservations afterwards, and turn errors that a limit caused into
        BudgetError."""
        try:
            yield
        except DeadlineExceededError as e:
            raise self._deadline_error(e) from e
        except ModelRefusedError as e:
            raise self._refusal_error(reserved, e) from e
        finally:
            reserved.release()

    def _reserve(
        self, messages: Sequence[Message], tools: Sequence[Tool], *, wait: bool
    ) -> _Reservations | None:
        estimated = estimate_tokens(messages, self.name, tools)
        calibrated = self.calibration.ratio != 1.0
        prompt = math.ceil(
            estimated
            * self.calibration.ratio
            * (CALIBRATED_MARGIN if calibrated else INITIAL_MARGIN)
        )
        completion = self.max_answer_tokens or DEFAULT_RESERVED_TOKENS
        reserved = _Reservations([], estimated)
        for budget in self.budgets:
            try:
                reservation = budget.reserve(prompt, completion, self.price, wait=wait)
            except BudgetError:
                reserved.release()
                raise
            if reservation is None:
                reserved.release()
                return None
            reserved.by_budget.append((budget, reservation))
            completion = min(completion, reservation.completion)
        return reserved

    def _call_limits(self, reserved: _Reservations) -> CallLimits:
        metered = any(b.limits.metered for b in self.budgets)
        deadlines = [b.deadline for b in self.budgets if b.deadline is not None]
        return CallLimits(
            (lambda: reserved.completion) if metered else UNLIMITED.max_tokens,
            min(deadlines, default=None),
            on_lost_response=reserved.mark_lost,
            on_error=self.on_error,
            before_retry=reserved.reserve_again,
        )

    def _settle(self, reserved: _Reservations, answer: Completion) -> None:
        """Replace the reservations with the actual usage, estimating what the endpoint did not
        report."""
        usage = answer.usage
        self.calibration.update(reserved.estimated, usage.prompt_tokens)
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        if prompt is None:
            prompt = math.ceil(reserved.estimated * self.calibration.ratio)
        if completion is None:
            completion = estimate_tokens(answer.text + answer.reasoning, self.name)
        cost = usage.cost
        if cost is None and self.price is not None:
            cost = self.price.max_cost(prompt, completion)
        reserved.settle(Usage(prompt, completion, cost=cost))

    def _calibrate_cached(
        self, messages: Sequence[Message], tools: Sequence[Tool], cached: Completion
    ) -> Completion:
        estimated = estimate_tokens(messages, self.name, tools)
        self.calibration.update(estimated, cached.original_usage.prompt_tokens)
        return cached

    def _reject_truncated(self, reserved: _Reservations, answer: Completion) -> Completion:
        """Raise BudgetError for an answer that only the run's limit cut short."""
        if reserved.limited_by_run and reached_token_limit(answer):
            raise BudgetError("the run's limit cut an answer short", run_limit=True)
        return answer

    def _refusal_error(self, reserved: _Reservations, error: ModelRefusedError) -> InterCodeError:
        """Return the error for a refusal: BudgetError if a budget had lowered the answer's limit,
        because some endpoints refuse low limits."""
        lowered = [b for b, r in reserved.by_budget if r.lowered]
        if not lowered:
            return ModelRefusedError(str(error), error.affects_all_requests)
        reason = f"what is left, {reserved.completion} tokens for an answer, was refused: {error}"
        return BudgetError(reason, run_limit=any(b.whole_run for b in lowered))

    def _deadline_error(self, error: DeadlineExceededError) -> BudgetError:
        timed = [b for b in self.budgets if b.deadline is not None]
        first = min(timed, key=lambda b: b.deadline or 0.0)
        whose = "run's" if first.whole_run else "episode's"
        return BudgetError(f"the {whose} time is up: {error}", first.whole_run)


def limit_model(model: Model, *budgets: Budget) -> LimitedModel:
    """Return ``model`` limited by budgets: the episode's, the run's, or both.

    Before a request, the estimated tokens of the prompt and those of the longest possible answer
    are reserved in every budget. If less is left, the answer's limit is lowered to that; if nothing
    is, BudgetError is raised and nothing is sent. Afterwards the endpoint's own count replaces the
    reservation. For a model without ``max_tokens``, 16384 are reserved. The limit is sent if the
    model's protocol has one (``Endpoint.limit_answer``). Raises ConfigError for a limit on cost if
    the price is unknown.
    """
    return LimitedModel(model, budgets)
