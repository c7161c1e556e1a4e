"""What a run may spend and what it has spent, and the same for each of its episodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from intercode.agents.base import Agent, Feedback
from intercode.core.config import EvalConfig
from intercode.core.errors import BudgetError, UsageError
from intercode.core.types import AgentOutput, Usage
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.budget import Budget, SpendingLimits
from intercode.models.limited_model import limit_model

MAX_REFUSALS = 3
"""So many episodes may be refused for what they say before anything at all was answered."""


class RunBudget:
    """The money of one time of work on a run. May be used by many threads.

    ``before``: what earlier times spent and how long they took, which counts against the limits of
    the run. ``spent`` is what this time has, as endpoints told it. Raises BudgetError where nothing
    is left, UsageError where that cannot be told because what was spent is not known.
    """

    def __init__(self, config: EvalConfig, before: Usage) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._refused = 0
        self._answered = before.requests > 0
        self.usage = Usage()
        _check_remaining(config, before)
        limits = SpendingLimits(config.max_tokens, config.max_cost, config.max_seconds)
        self.budget = Budget(limits, whole_run=True, spent=before)

    def start_episode(self, model: Model | None, epoch: int = 0) -> EpisodeBudget:
        """What one attempt at an episode may spend, from now on."""
        return EpisodeBudget(self, model, epoch)

    def add(self, usage: Usage) -> None:
        """Count what was spent."""
        with self._lock:
            self.usage += usage
            self._answered = True

    def count_refusal(self) -> bool:
        """Count an episode whose conversation was refused, and tell whether that is the
        MOST_REFUSED-th before anything was answered: then it is no matter of the conversation."""
        with self._lock:
            self._refused += 1
            return not self._answered and self._refused >= MAX_REFUSALS

    def stop(self) -> None:
        """Nothing more is to be spent: the run is over, whatever episodes still think."""
        self._stopped.set()

    def check(self) -> None:
        """Raise BudgetError where the run is over or its time is up."""
        if self._stopped.is_set():
            raise BudgetError("the run has been stopped", run_limit=True)
        self.budget.check()


def check_limits(config: EvalConfig, model: Model) -> None:
    """Raise ConfigError where a limit cannot be kept, as the model's price is not known."""
    RunBudget(config, Usage()).start_episode(model)


class EpisodeBudget:
    """What one attempt at an episode spends. ``model``: the run's, within the limits and giving the
    answers of this sample."""

    def __init__(self, run: RunBudget, model: Model | None, epoch: int) -> None:
        self._run, self.usage = run, Usage()
        config = run.config
        self._budget = Budget(
            SpendingLimits(
                config.max_tokens_per_episode,
                config.max_cost_per_episode,
                config.max_seconds_per_episode,
            )
        )
        self.model: Model | None = None
        if model is not None:
            bounded = limit_model(model, self._budget, run.budget)
            sampled = bounded.for_sample(epoch) if epoch else bounded
            self.model = MeteredModel(sampled, run.check, self._add)

    def limit_agent(self, agent: Agent) -> Agent:
        """An agent that asks no model, within the limits on time."""
        timed: Any = TimeLimitedAgent(
            agent, self._check
        )  # what it does not say itself the agent does
        return timed  # type: ignore[no-any-return]

    def _add(self, usage: Usage) -> None:
        self.usage += usage
        self._run.add(usage)

    def _check(self) -> None:
        self._run.check()
        self._budget.check()


class MeteredModel:
    """A model that asks ``check`` before each request, and tells what each of its answers has
    cost. It is otherwise the one inside."""

    def __init__(
        self, inner: Model, check: Callable[[], None], tell: Callable[[Usage], None]
    ) -> None:
        self.inner, self._check, self._record, self.name = inner, check, tell, inner.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """See Model."""
        self._check()
        completion = self.inner.complete(messages, tools=tools)
        self._record(completion.usage)
        return completion


class TimeLimitedAgent:
    """An agent that is asked for no further move once ``check`` raises. It is otherwise the one
    inside."""

    name = "timed"

    def __init__(self, agent: Agent, check: Callable[[], None]) -> None:
        self._agent, self._check = agent, check

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        """As the agent, in time."""
        self._check()
        return self._agent.act(feedback)


def _check_remaining(config: EvalConfig, before: Usage) -> None:
    """Raise where the run's limits leave nothing to spend, or cannot be kept."""
    some = before.requests > 0
    used: dict[str, float | None] = {
        "max_tokens": total_tokens(before) if some else 0,
        "max_cost": before.cost if some else 0.0,
        "max_seconds": before.seconds,
    }
    for name, spent in used.items():
        limit = getattr(config, name)
        if limit is not None and spent is None:
            raise UsageError(
                f"{name} = {limit:g} cannot be kept: what this run has spent so far is not known, "
                "as the endpoint did not tell; leave the limit out to go on"
            )
        if limit is not None and spent is not None and spent >= limit:
            raise BudgetError(f"{name} = {limit:g} is reached: {spent:g} are spent", run_limit=True)


def total_tokens(usage: Usage) -> int | None:
    """All tokens of a usage, or None where they are not known."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return usage.prompt_tokens + usage.completion_tokens
