"""One episode as a run plays it: retried when the box or the endpoint failed, then an error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from intercode.agents.base import Agent
from intercode.core.errors import (
    BudgetError,
    InfrastructureError,
    InterCodeError,
    ModelRefusedError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.core.types import Trajectory, Usage, to_jsonable
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.budgets import EpisodeBudget, RunBudget
from intercode.evaluation.evaluate.plan import Plan, with_metadata
from intercode.evaluation.evaluate.run_state import Sample
from intercode.evaluation.rollout import rollout

RETRY_DELAYS = (0.5, 2.0)
"""Seconds to wait before each further attempt."""


class EpisodeRunner:
    """Plays one episode after another in an environment of its own, which ``make`` makes (by
    default on this machine).

    ``pause`` waits so many seconds and tells whether the run is over. An agent that asks a model is
    made anew for each episode, with the episode's own limits; any other serves them all.
    """

    def __init__(
        self,
        plan: Plan,
        spending: RunBudget,
        pause: Callable[[float], bool],
        make_env: Callable[[], InterCodeEnv] | None = None,
    ) -> None:
        self.plan, self._make_env = plan, make_env or plan.make_env
        self._budget = spending
        self._pause = pause
        self._env: InterCodeEnv | None = None
        self._agents: dict[int, Agent] = {}

    def run(self, sample: Sample) -> Trajectory | None:
        """The episode of one task, or None when the run is over.

        A failure of the infrastructure (a box that was lost, say) is retried, which the facts tell
        as ``attempts``, and then recorded with ``end='error'``; any other at once. What attempts
        without a result have spent is told as ``lost``; what an endpoint does not take in this
        conversation (``ModelRefusedError.whole`` is false) is recorded at once. Raises what no
        other episode would escape: ModelRefusedError otherwise, SandboxUnavailableError,
        UsageError, BudgetError at a limit of the run's.
        """
        lost = Usage()
        model = self.plan.model if self.plan.uses_model else None
        for attempt, wait in enumerate((*RETRY_DELAYS, None), 1):
            account = self._budget.start_episode(model, sample.epoch)
            try:
                played = self._attempt(sample, account)
                more = _lost_usage(lost) | ({"attempts": attempt} if attempt > 1 else {})
                return with_metadata(self.plan, played, **more)
            except (SandboxUnavailableError, UsageError):
                raise
            except ModelRefusedError as e:
                if e.affects_all_requests or self._budget.count_refusal():
                    raise
                self.close()
                return self._error_record(sample, e, attempt, lost + account.usage)
            except (InfrastructureError, OSError) as e:
                self.close()
                lost += account.usage
                if wait is None:
                    return self._error_record(sample, e, attempt, lost)
                if self._pause(wait):
                    return None
            except Exception as e:  # a gold, an agent or a reward function with a fault
                if isinstance(e, BudgetError) and e.run_limit:
                    raise
                self.close()
                return self._error_record(sample, e, 1, lost + account.usage)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        """Free the environment; the next episode makes a new one, and a new agent."""
        env, self._env = self._env, None
        self._agents.clear()
        if env is not None:
            with suppress(InterCodeError, OSError):  # it may be what failed
                env.close()

    def _attempt(self, sample: Sample, account: EpisodeBudget) -> Trajectory:
        if self._env is None:
            self._env = self._make_env()
        played = rollout(
            self._agent_for(sample.epoch, account), self._env, sample.index,
            seed=self.plan.episode_seed(sample), max_turns=self.plan.config.max_turns,
        )  # fmt: skip
        return played.replace(epoch=sample.epoch)

    def _agent_for(self, epoch: int, account: EpisodeBudget) -> Agent:
        if account.model is not None:
            return self.plan.make_agent(epoch, account.model)
        if epoch not in self._agents:
            self._agents[epoch] = self.plan.make_agent(epoch)
        return account.limit_agent(self._agents[epoch])

    def _error_record(
        self, sample: Sample, error: Exception, attempts: int, spent: Usage
    ) -> Trajectory:
        task = self.plan.dataset.tasks[sample.index]
        text = f"{type(error).__name__}: {error}"
        failed = Trajectory(
            task=task.id, index=sample.index, query=task.query, steps=(), end="error", error=text,
            group=task.group, hardness=task.hardness, epoch=sample.epoch,
        )  # fmt: skip
        return with_metadata(self.plan, failed, attempts=attempts, **_lost_usage(spent))


def _lost_usage(spent: Usage) -> dict[str, Any]:
    return {} if spent == Usage() else {"lost": to_jsonable(spent)}
