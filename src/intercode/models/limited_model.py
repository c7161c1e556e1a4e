"""A model that asks only what its budgets allow."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from intercode.core.errors import BudgetError, ConfigError, InterCodeError, ModelRefusedError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.budget import DEFAULT_RESERVED_TOKENS, Budget, Reservation
from intercode.models.endpoint import (
    LENGTH_FINISH_REASONS,
    CallLimits,
    DeadlineExceededError,
    Endpoint,
)
from intercode.models.prices import Price
from intercode.models.token_count import Calibration, estimate_tokens

INITIAL_MARGIN, CALIBRATED_MARGIN = 1.2, 1.05
"""How much more than estimated is set aside for a prompt, before and after the endpoint has told
its own count of one."""


@dataclass
class _Reservations:
    """What one request holds of each budget."""

    by_budget: list[tuple[Budget, Reservation]]
    estimated: int

    @property
    def completion(self) -> int:
        """Tokens that the answer may have."""
        return min((r.completion for _, r in self.by_budget), default=DEFAULT_RESERVED_TOKENS)

    @property
    def limited_by_run(self) -> bool:
        """Whether it is the run's budget that has lowered the answer's limit the most."""
        most = self.completion
        return any(b.whole_run and r.lowered and r.completion == most for b, r in self.by_budget)

    def settle(self, usage: Usage) -> None:
        for budget, reservation in self.by_budget:
            budget.settle(reservation, usage)

    def release(self) -> None:
        """Give back what was not settled."""
        self.settle(Usage())

    def mark_lost(self) -> None:
        for budget, reservation in self.by_budget:
            budget.mark_lost(reservation)

    def check_retry(self) -> None:
        for budget, _ in self.by_budget:
            budget.check_retry()


class LimitedModel:
    """A model within budgets; see ``limited``."""

    def __init__(self, model: Model, budgets: Sequence[Budget]) -> None:
        self.name = model.name
        self.model = model
        self.budgets = tuple(budgets)
        self.price: Price | None = getattr(model, "price", None)
        self.calibration = Calibration()
        if callable(own := getattr(model, "count_tokens", None)):
            self.count_tokens = own
        if self.price is None and any(b.limits.cost is not None for b in budgets):
            raise ConfigError(
                f"no price is known for {model.name!r}, so a limit on cost cannot be kept: give "
                "one (options prices and price, INTERCODE_PRICES; see docs/models.md), or limit "
                "tokens"
            )

    def __repr__(self) -> str:
        return f"Limited({self.model!r})"

    def metadata(self) -> dict[str, Any]:
        """The model's own; limits are the run's."""
        return model_metadata(self.model)

    def for_sample(self, sample: int) -> LimitedModel:
        """The same for another sample of a task, with the same budgets."""
        inner = self.model.for_sample(sample) if isinstance(self.model, Endpoint) else self.model
        return LimitedModel(inner, self.budgets)

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """As Model. Raises BudgetError before a request that could go beyond a limit."""
        model = self.model
        if isinstance(model, Endpoint) and (known := model.get_cached(messages, tools)) is not None:
            return self._calibrate_cached(messages, tools, known)
        while (held := self._reserve(messages, tools, wait=True)) is None:
            pass  # others hold what this one needs, and were waited for
        with self._releasing(held):
            if isinstance(model, Endpoint):
                answer = model.complete(messages, tools=tools, limits=self._call_limits(held))
            else:
                answer = model.complete(messages, tools=tools)
            self._settle(held, answer)
        return self._reject_truncated(held, answer)

    async def acomplete(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()
    ) -> Completion:
        """As ``complete``, for asynchronous callers."""
        model = self.model
        if not isinstance(model, Endpoint):
            return await asyncio.to_thread(self.complete, messages, tools=tools)
        if (known := await asyncio.to_thread(model.get_cached, messages, tools)) is not None:
            return self._calibrate_cached(messages, tools, known)
        while (held := self._reserve(messages, tools, wait=False)) is None:
            await asyncio.sleep(0.02)  # others hold what this one needs
        with self._releasing(held):
            answer = await model.acomplete(messages, tools=tools, limits=self._call_limits(held))
            self._settle(held, answer)
        return self._reject_truncated(held, answer)

    @contextmanager
    def _releasing(self, held: _Reservations) -> Iterator[None]:
        """Give back what a request held; tell errors that a limit caused as such."""
        try:
            yield
        except DeadlineExceededError as e:
            raise self._deadline_error(e) from e
        except ModelRefusedError as e:
            raise self._refusal_error(held, e) from e
        finally:
            held.release()

    def _reserve(
        self, messages: Sequence[Message], tools: Sequence[Tool], *, wait: bool
    ) -> _Reservations | None:
        estimated = estimate_tokens(messages, self.name, tools)
        known = self.calibration.ratio != 1.0
        prompt = math.ceil(
            estimated * self.calibration.ratio * (CALIBRATED_MARGIN if known else INITIAL_MARGIN)
        )
        generation = getattr(self.model, "generation", None)
        wanted = (generation.max_answer_tokens if generation is not None else None) or DEFAULT_RESERVED_TOKENS
        held = _Reservations([], estimated)
        for budget in self.budgets:
            try:
                reservation = budget.reserve(prompt, wanted, self.price, wait=wait)
            except BudgetError:
                held.release()
                raise
            if reservation is None:
                held.release()
                return None
            held.by_budget.append((budget, reservation))
            wanted = min(wanted, reservation.completion)
        return held

    def _call_limits(self, held: _Reservations) -> CallLimits:
        metered = any(b.limits.metered for b in self.budgets)
        deadlines = [b.deadline for b in self.budgets if b.deadline is not None]
        longest = held.completion if metered else None
        return CallLimits(longest, min(deadlines, default=None), held.mark_lost, held.check_retry)

    def _settle(self, held: _Reservations, answer: Completion) -> None:
        """The real usage takes the place of what was set aside; what the endpoint does not tell is
        estimated."""
        usage = answer.usage
        self.calibration.update(held.estimated, usage.prompt_tokens)
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        if prompt is None:
            prompt = math.ceil(held.estimated * self.calibration.ratio)
        if completion is None:
            completion = estimate_tokens(answer.text + answer.reasoning, self.name)
        cost = usage.cost
        if cost is None and self.price is not None:
            cost = self.price.max_cost(prompt, completion)
        held.settle(Usage(prompt, completion, cost=cost))

    def _calibrate_cached(
        self, messages: Sequence[Message], tools: Sequence[Tool], known: Completion
    ) -> Completion:
        estimated = estimate_tokens(messages, self.name, tools)
        self.calibration.update(estimated, known.original_usage.prompt_tokens)
        return known

    def _reject_truncated(self, held: _Reservations, answer: Completion) -> Completion:
        """An answer that only the run's limit has cut short is none."""
        if held.limited_by_run and answer.finish_reason in LENGTH_FINISH_REASONS:
            raise BudgetError("the run's limit cut an answer short", run_limit=True)
        return answer

    def _refusal_error(self, held: _Reservations, error: ModelRefusedError) -> InterCodeError:
        """Some endpoints refuse a limit on the answer that is too low for them, and lowering it was
        the budgets' doing."""
        lowered = [b for b, r in held.by_budget if r.lowered]
        if not lowered:
            return ModelRefusedError(str(error), error.affects_all_requests)
        why = f"what is left, {held.completion} tokens for an answer, was refused: {error}"
        return BudgetError(why, run_limit=any(b.whole_run for b in lowered))

    def _deadline_error(self, error: DeadlineExceededError) -> BudgetError:
        """An answer that did not come before a budget's time was up is the budget's end."""
        late = [b for b in self.budgets if b.deadline is not None]
        first = min(late, key=lambda b: b.deadline or 0.0)
        whose = "run's" if first.whole_run else "episode's"
        return BudgetError(f"the {whose} time is up: {error}", first.whole_run)


def limit_model(model: Model, *budgets: Budget) -> LimitedModel:
    """``model`` within budgets: those of the episode, of the run, or both.

    Before a request, the tokens of the prompt (estimated) and of the longest answer are set aside
    in every budget; where less is left, the answer's limit is lowered to that, and where nothing
    is, BudgetError is raised and nothing is sent. Afterwards the endpoint's own count takes their
    place. Where the model has no ``max_tokens``, 16384 are set aside and sent. Raises ConfigError
    for a limit on cost where the price is unknown.
    """
    return LimitedModel(model, budgets)


def model_metadata(model: Any) -> dict[str, Any]:
    """What is recorded of a model: its own ``metadata()``, or its name where it has none."""
    metadata = getattr(model, "metadata", None)
    recorded = metadata() if callable(metadata) else None
    if isinstance(recorded, dict):
        return recorded
    return {"name": str(getattr(model, "name", model))}
