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
from intercode.models.budget import UNSET, Budget, Reservation
from intercode.models.call import CUT, Allowance, OutOfTimeError
from intercode.models.endpoint import Endpoint
from intercode.models.prices import Price
from intercode.models.token_count import Calibration, estimate

FIRST_MARGIN, MARGIN = 1.2, 1.05
"""How much more than estimated is set aside for a prompt, before and after the endpoint has told
its own count of one."""


@dataclass
class _Held:
    """What one request holds of each budget."""

    each: list[tuple[Budget, Reservation]]
    estimated: int

    @property
    def completion(self) -> int:
        """Tokens that the answer may have."""
        return min((r.completion for _, r in self.each), default=UNSET)

    @property
    def cut_by_run(self) -> bool:
        """Whether it is the run's budget that has lowered the answer's limit the most."""
        most = self.completion
        return any(b.whole and r.lowered and r.completion == most for b, r in self.each)

    def settle(self, usage: Usage) -> None:
        for budget, reservation in self.each:
            budget.settle(reservation, usage)

    def release(self) -> None:
        """Give back what was not settled."""
        self.settle(Usage())

    def lose(self) -> None:
        for budget, reservation in self.each:
            budget.lose(reservation)

    def again(self) -> None:
        for budget, _ in self.each:
            budget.again()


class Limited:
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

    def facts(self) -> dict[str, Any]:
        """The model's own; limits are the run's."""
        return facts_of(self.model)

    def sampled(self, sample: int) -> Limited:
        """The same for another sample of a task, with the same budgets."""
        inner = self.model.sampled(sample) if isinstance(self.model, Endpoint) else self.model
        return Limited(inner, self.budgets)

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """As Model. Raises BudgetError before a request that could go beyond a limit."""
        model = self.model
        if isinstance(model, Endpoint) and (known := model.recall(messages, tools)) is not None:
            return self._recalled(messages, tools, known)
        while (held := self._reserve(messages, tools, wait=True)) is None:
            pass  # others hold what this one needs, and were waited for
        with self._spending(held):
            if isinstance(model, Endpoint):
                answer = model.complete(messages, tools=tools, allowed=self._allowed(held))
            else:
                answer = model.complete(messages, tools=tools)
            self._learn(held, answer)
        return self._checked(held, answer)

    async def acomplete(
        self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()
    ) -> Completion:
        """As ``complete``, for asynchronous callers."""
        model = self.model
        if not isinstance(model, Endpoint):
            return await asyncio.to_thread(self.complete, messages, tools=tools)
        if (known := await asyncio.to_thread(model.recall, messages, tools)) is not None:
            return self._recalled(messages, tools, known)
        while (held := self._reserve(messages, tools, wait=False)) is None:
            await asyncio.sleep(0.02)  # others hold what this one needs
        with self._spending(held):
            answer = await model.acomplete(messages, tools=tools, allowed=self._allowed(held))
            self._learn(held, answer)
        return self._checked(held, answer)

    @contextmanager
    def _spending(self, held: _Held) -> Iterator[None]:
        """Give back what a request held; tell errors that a limit caused as such."""
        try:
            yield
        except OutOfTimeError as e:
            raise self._late(e) from e
        except ModelRefusedError as e:
            raise self._refused(held, e) from e
        finally:
            held.release()

    def _reserve(
        self, messages: Sequence[Message], tools: Sequence[Tool], *, wait: bool
    ) -> _Held | None:
        estimated = estimate(messages, self.name, tools)
        known = self.calibration.ratio != 1.0
        prompt = math.ceil(estimated * self.calibration.ratio * (MARGIN if known else FIRST_MARGIN))
        generation = getattr(self.model, "generation", None)
        wanted = (generation.longest if generation is not None else None) or UNSET
        held = _Held([], estimated)
        for budget in self.budgets:
            try:
                reservation = budget.reserve(prompt, wanted, self.price, wait=wait)
            except BudgetError:
                held.release()
                raise
            if reservation is None:
                held.release()
                return None
            held.each.append((budget, reservation))
            wanted = min(wanted, reservation.completion)
        return held

    def _allowed(self, held: _Held) -> Allowance:
        metered = any(b.limits.metered for b in self.budgets)
        deadlines = [b.deadline for b in self.budgets if b.deadline is not None]
        longest = held.completion if metered else None
        return Allowance(longest, min(deadlines, default=None), held.lose, held.again)

    def _learn(self, held: _Held, answer: Completion) -> None:
        """The real usage takes the place of what was set aside; what the endpoint does not tell is
        estimated."""
        usage = answer.usage
        self.calibration.learn(held.estimated, usage.prompt_tokens)
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        if prompt is None:
            prompt = math.ceil(held.estimated * self.calibration.ratio)
        if completion is None:
            completion = estimate(answer.text + answer.reasoning, self.name)
        cost = usage.cost
        if cost is None and self.price is not None:
            cost = self.price.most(prompt, completion)
        held.settle(Usage(prompt, completion, cost=cost))

    def _recalled(
        self, messages: Sequence[Message], tools: Sequence[Tool], known: Completion
    ) -> Completion:
        estimated = estimate(messages, self.name, tools)
        self.calibration.learn(estimated, known.saved.prompt_tokens)
        return known

    def _checked(self, held: _Held, answer: Completion) -> Completion:
        """An answer that only the run's limit has cut short is none."""
        if held.cut_by_run and answer.finish_reason in CUT:
            raise BudgetError("the run's limit cut an answer short", whole=True)
        return answer

    def _refused(self, held: _Held, error: ModelRefusedError) -> InterCodeError:
        """Some endpoints refuse a limit on the answer that is too low for them, and lowering it was
        the budgets' doing."""
        lowered = [b for b, r in held.each if r.lowered]
        if not lowered:
            return ModelRefusedError(str(error), error.whole)
        why = f"what is left, {held.completion} tokens for an answer, was refused: {error}"
        return BudgetError(why, whole=any(b.whole for b in lowered))

    def _late(self, error: OutOfTimeError) -> BudgetError:
        """An answer that did not come before a budget's time was up is the budget's end."""
        late = [b for b in self.budgets if b.deadline is not None]
        first = min(late, key=lambda b: b.deadline or 0.0)
        whose = "run's" if first.whole else "episode's"
        return BudgetError(f"the {whose} time is up: {error}", first.whole)


def limited(model: Model, *budgets: Budget) -> Limited:
    """``model`` within budgets: those of the episode, of the run, or both.

    Before a request, the tokens of the prompt (estimated) and of the longest answer are set aside
    in every budget; where less is left, the answer's limit is lowered to that, and where nothing
    is, BudgetError is raised and nothing is sent. Afterwards the endpoint's own count takes their
    place. Where the model has no ``max_tokens``, 16384 are set aside and sent. Raises ConfigError
    for a limit on cost where the price is unknown.
    """
    return Limited(model, budgets)


def facts_of(model: Any) -> dict[str, Any]:
    """What is recorded of a model: its own ``facts()``, or its name where it has none."""
    facts = getattr(model, "facts", None)
    told = facts() if callable(facts) else None
    return told if isinstance(told, dict) else {"name": str(getattr(model, "name", model))}
