"""Limits on tokens, cost and time, kept by setting aside before each request what it can cost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from intercode.core.errors import BudgetError, ConfigError
from intercode.core.types import Usage
from intercode.models.prices import Price

DEFAULT_RESERVED_TOKENS = 16_384
"""Tokens of an answer that are set aside where the model has no ``max_tokens`` of its own."""

MIN_ANSWER_TOKENS = 16
"""An answer that may have fewer tokens than this is not asked for."""


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """The most that may be spent; None is no limit.

    ``tokens`` counts prompts and answers, ``cost`` US dollars, ``seconds`` the time since the
    budget was made, whatever it was spent on. Raises ConfigError for a limit below 0.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "cost", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ConfigError(f"the limit {name} = {value!r} has to be 0 or more, and finite")

    @property
    def metered(self) -> bool:
        """Whether tokens or dollars are limited."""
        return self.tokens is not None or self.cost is not None


@dataclass(eq=False)
class Reservation:
    """What is set aside for one request: ``prompt`` tokens and an answer of ``completion``."""

    prompt: int
    completion: int
    price: Price | None
    lowered: bool = False

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion

    @property
    def cost(self) -> float:
        return self.price.max_cost(self.prompt, self.completion) if self.price else 0.0


class Budget:
    """What is left of ``limits``, for one episode or, with ``whole``, for all of a run's.

    Safe with many threads. ``spent`` is what was spent before, by an earlier part of the run.
    """

    def __init__(
        self,
        limits: SpendingLimits,
        whole_run: bool = False,
        spent: Usage = Usage(),  # noqa: B008  (frozen)
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits, self.whole_run = limits, whole_run
        self._clock = clock
        self._started = clock() - (spent.seconds if whole_run else 0.0)
        self._tokens = (spent.prompt_tokens or 0) + (spent.completion_tokens or 0)
        self._cost = spent.cost or 0.0
        self._reserved: list[Reservation] = []
        self._lost: list[Reservation] = []
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        return f"Budget({self.limits}, whole={self.whole_run}, spent={self._tokens} tokens)"

    @property
    def tokens(self) -> int:
        """Tokens that are spent, those of lost answers included where they are counted."""
        return self._tokens

    @property
    def cost(self) -> float:
        """Dollars that are spent."""
        return self._cost

    @property
    def deadline(self) -> float | None:
        """When the time is up, by the budget's clock."""
        return None if self.limits.seconds is None else self._started + self.limits.seconds

    def reserve(
        self, prompt: int, completion: int, price: Price | None = None, *, wait: bool = True
    ) -> Reservation | None:
        """Set aside what a request of ``prompt`` tokens can cost.

        The answer may have as many as ``completion`` tokens, or fewer where no more is left. While
        other requests hold what this one wants it waits for them, or returns None without ``wait``.
        Raises BudgetError where nothing can be left for it.
        """
        with self._changed:
            while True:
                granted = self._granted_tokens(prompt, completion, price)
                if granted is not None:
                    held = Reservation(prompt, granted, price, lowered=granted < completion)
                    self._reserved.append(held)
                    return held
                if not wait:
                    return None
                self._changed.wait(1.0)

    def settle(self, held: Reservation, usage: Usage) -> None:
        """Put what was really spent in the place of what was set aside; only the first time."""
        with self._changed:
            if held not in self._reserved:
                return
            self._reserved.remove(held)
            self._tokens += (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
            self._cost += usage.cost or 0.0
            self._changed.notify_all()

    def mark_lost(self, held: Reservation) -> None:
        """An answer was lost on its way.

        Whether the endpoint charges for it cannot be known. The run's budget counts it as if all
        that was set aside had been spent; an episode's does not, because its result must not depend
        on the network.
        """
        if self.whole_run and self.limits.metered:
            with self._changed:
                self._tokens += held.tokens
                self._cost += held.cost
                self._lost.append(held)

    def check_retry(self) -> None:
        """Before the same is asked again. Raises BudgetError where nothing is left for that."""
        self.check()
        with self._changed:
            if self._lost and not self._fits():
                raise self._error("another attempt would go beyond it")

    def check(self) -> None:
        """Raises BudgetError where the time is up."""
        if self.deadline is not None and self._clock() >= self.deadline:
            raise self._error(f"{self.limits.seconds:g} s are over")

    def _fits(self) -> bool:
        """Whether all that is set aside can still be spent."""
        tokens = self._tokens + sum(r.tokens for r in self._reserved)
        cost = self._cost + sum(r.cost for r in self._reserved)
        limits = self.limits
        return (limits.tokens is None or tokens <= limits.tokens) and (
            limits.cost is None or cost <= limits.cost + 1e-9
        )

    def _granted_tokens(self, prompt: int, completion: int, price: Price | None) -> int | None:
        """Tokens of an answer, None where others have to settle first."""
        self.check()
        granted = completion
        if self.limits.tokens is not None:
            free = self.limits.tokens - self._tokens - sum(r.tokens for r in self._reserved)
            granted = min(granted, free - prompt)
        if self.limits.cost is not None and price is not None:
            dollars = self.limits.cost - self._cost - sum(r.cost for r in self._reserved)
            granted = min(granted, price.affordable_completion_tokens(dollars, prompt))
        if granted >= completion:
            return completion
        if self._reserved:
            return None
        if granted < min(MIN_ANSWER_TOKENS, completion):
            raise self._error(f"a request of about {prompt} tokens would go beyond it")
        return granted

    def _error(self, why: str) -> BudgetError:
        spent = [f"{self._tokens} of {self.limits.tokens} tokens"] * (
            self.limits.tokens is not None
        ) + [f"${self._cost:.4f} of ${self.limits.cost}"] * (self.limits.cost is not None)
        lost = f", those of {len(self._lost)} lost answers included" if self._lost else ""
        whose = "run's" if self.whole_run else "episode's"
        told = f" ({' and '.join(spent)} spent{lost})" if spent else ""
        return BudgetError(f"the {whose} limit is reached{told}: {why}", self.whole_run)
