"""Limits on tokens, cost and time. What a request can cost is reserved before it is sent."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from intercode.core.errors import BudgetError, ConfigError
from intercode.core.types import Usage
from intercode.models.prices import Price
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock

DEFAULT_RESERVED_TOKENS = 16_384
"""Answer tokens reserved for a model that has no ``max_tokens`` of its own."""

MIN_ANSWER_TOKENS = 16
"""A request is not sent if its answer may have fewer tokens than this."""


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """Upper bounds on what may be spent; None means no limit.

    ``tokens`` counts prompt and answer tokens, ``cost`` is in US dollars, and ``seconds`` is wall
    time since the budget was created. Raises ConfigError for a limit below 0.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "cost", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ConfigError(f"the limit {name} = {value!r} must be at least 0 and finite")

    @property
    def metered(self) -> bool:
        """Whether tokens or cost are limited."""
        return self.tokens is not None or self.cost is not None


@dataclass(eq=False)
class Reservation:
    """The ``prompt`` and ``completion`` tokens that are reserved for one request. ``lowered`` is
    true if the budget granted fewer answer tokens than were asked for."""

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
    """Tracks spending against ``limits``, for one episode or, with ``whole_run``, for a whole run.

    A budget may be used by many threads. ``spent`` is what an earlier part of a resumed run or
    episode has spent.
    """

    def __init__(
        self,
        limits: SpendingLimits,
        whole_run: bool = False,
        spent: Usage = Usage(),  # noqa: B008  (frozen)
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.limits, self.whole_run = limits, whole_run
        self._clock = clock
        self._started = clock.now() - spent.seconds
        self._tokens = (spent.prompt_tokens or 0) + (spent.completion_tokens or 0)
        self._cost = spent.cost or 0.0
        self._reserved: list[Reservation] = []
        self._lost: list[Reservation] = []
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        return f"Budget({self.limits}, whole={self.whole_run}, spent={self._tokens} tokens)"

    @property
    def tokens(self) -> int:
        """Tokens spent so far, including those counted for lost answers."""
        return self._tokens

    @property
    def cost(self) -> float:
        """US dollars spent so far."""
        return self._cost

    @property
    def lost(self) -> Usage:
        """What is counted for lost answers, one request each; only with a limit on usage."""
        with self._changed:
            prompt, completion = (
                sum(getattr(r, n) for r in self._lost) for n in ("prompt", "completion")
            )
            cost = sum(r.cost for r in self._lost)
            return Usage(prompt, completion, len(self._lost), cost=cost) if self._lost else Usage()

    @property
    def deadline(self) -> float | None:
        """The time at which the limit on seconds is reached, by the budget's clock; None without
        one."""
        return None if self.limits.seconds is None else self._started + self.limits.seconds

    def reserve(
        self, prompt: int, completion: int, price: Price | None = None, *, wait: bool = True
    ) -> Reservation | None:
        """Reserve what a request with ``prompt`` tokens can cost.

        The answer may have up to ``completion`` tokens, or fewer if less is left. If other
        reservations hold what this one needs, the call waits for them, or returns None when
        ``wait`` is false. Raises BudgetError if too little is left.
        """
        with self._changed:
            while True:
                granted = self._granted_tokens(prompt, completion, price)
                if granted is not None:
                    if granted < min(MIN_ANSWER_TOKENS, completion):
                        raise self._error(f"a request of about {prompt} tokens would exceed it")
                    reservation = Reservation(prompt, granted, price, lowered=granted < completion)
                    self._reserved.append(reservation)
                    return reservation
                if not wait:
                    return None
                self._changed.wait(1.0)

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Replace a reservation with the actual usage. Only the first call for a reservation
        counts."""
        with self._changed:
            if reservation not in self._reserved:
                return
            self._reserved.remove(reservation)
            self._tokens += (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
            self._cost += usage.cost or 0.0
            self._changed.notify_all()

    def mark_lost(self, reservation: Reservation) -> None:
        """Record that the answer to a request was lost in transit.

        Whether the endpoint charges for a lost answer is unknown. A run's budget counts the whole
        reservation as spent, so that another attempt needs a new one (see ``reserve_again``). An
        episode's budget does not, because its result must not depend on the network.
        """
        if not (self.whole_run and self.limits.metered):
            return
        with self._changed:
            if reservation in self._reserved:
                self._reserved.remove(reservation)
                self._tokens += reservation.tokens
                self._cost += reservation.cost
                self._lost.append(reservation)
                self._changed.notify_all()

    def reserve_again(self, reservation: Reservation) -> Reservation | None:
        """Return a reservation for another attempt at a request: the same, or if its answer was
        lost, what ``reserve`` returns for it without waiting."""
        self.check()
        with self._changed:
            if reservation in self._reserved:
                return reservation
            wanted, price = reservation.completion, reservation.price
            again = self.reserve(reservation.prompt, wanted, price, wait=False)
            if again is not None:
                again.lowered = again.lowered or reservation.lowered
            return again

    def check(self) -> None:
        """Raise BudgetError if the time limit has been reached."""
        if self.deadline is not None and self._clock.now() >= self.deadline:
            raise self._error(f"{self.limits.seconds:g} s have passed")

    def _granted_tokens(self, prompt: int, completion: int, price: Price | None) -> int | None:
        """Return how many answer tokens can be granted, below 0 if not even the prompt fits; None
        if other reservations must settle first."""
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
        return None if self._reserved else granted

    def _error(self, reason: str) -> BudgetError:
        spent = [f"{self._tokens} of {self.limits.tokens} tokens"] * (
            self.limits.tokens is not None
        ) + [f"${self._cost:.4f} of ${self.limits.cost}"] * (self.limits.cost is not None)
        lost = f", those of {len(self._lost)} lost answers included" if self._lost else ""
        whose = "run's" if self.whole_run else "episode's"
        total = f" ({' and '.join(spent)} spent{lost})" if spent else ""
        return BudgetError(f"the {whose} limit is reached{total}: {reason}", self.whole_run)
