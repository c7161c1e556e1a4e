"""Plays one episode of a run: retries failures of the infrastructure, records other errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from intercode.agents.base import Agent
from intercode.core.errors import (
    BudgetError,
    GoldError,
    InfrastructureError,
    ModelRefusedError,
    ModelUnavailableError,
    SandboxUnavailableError,
    TaskError,
    UsageError,
)
from intercode.core.types import Trajectory, Usage, to_jsonable
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.evaluation.evaluate.budgets import EpisodeBudget, RunBudget
from intercode.evaluation.evaluate.plan import Plan, with_metadata
from intercode.evaluation.evaluate.run_state import Sample
from intercode.evaluation.rollout import rollout
from intercode.evaluation.saving import EpisodeSaver
from intercode.evaluation.tracebacks import traceback_metadata
from intercode.evaluation.tracking.base import EpisodeTracker

RETRY_DELAYS = (0.5, 2.0)
"""Seconds to wait before the second and the third attempt."""


class EpisodeRunner:
    """Plays one episode after another, each in an environment of ``envs``, made by ``make_env``.

    ``pause`` waits for a number of seconds and returns whether the run is over. ``broken_tasks``,
    which the runners of a run share, has the error of each task whose gold or image failed, by the
    position of the task: it is not played again. ``on_unsaved`` is called with why an episode in
    progress could not be saved. An agent that uses a model is made for each episode, with the
    limits of the episode. Any other agent plays all.
    """

    def __init__(
        self,
        plan: Plan,
        budget: RunBudget,
        pause: Callable[[float], bool],
        make_env: Callable[[], BranchingEnvironment],
        envs: EnvironmentPool[BranchingEnvironment],
        broken_tasks: dict[int, GoldError | TaskError] | None = None,
        on_unsaved: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.plan, self._make_env, self._envs = plan, make_env, envs
        self._budget = budget
        self._pause, self._on_unsaved = pause, on_unsaved
        self._broken_tasks = {} if broken_tasks is None else broken_tasks
        self._agents: dict[int, Agent] = {}

    def run(self, sample: Sample, tracker: EpisodeTracker | None = None) -> Trajectory | None:
        """Play an episode and return its record, or None if the run is over.

        ``tracker`` is told of its turns, requests and actions.

        A failure of the infrastructure, such as a lost sandbox, is retried; ``run["attempts"]``
        counts the attempts. If they all fail, the record has ``end='error'``. Any other failure is
        recorded at once, also a request that the endpoint refuses for its content.
        ``run["lost"]`` is the usage of the attempts without a result.

        Raises what would fail every other episode as well: ModelRefusedError with
        ``affects_all_requests``, ModelUnavailableError if no request of this process was answered,
        SandboxUnavailableError, UsageError, and BudgetError for a limit of the run.
        """
        lost = Usage()
        model = self.plan.model if self.plan.uses_model else None
        saver = self.plan.open_saver(sample)
        for attempt, wait in enumerate((*RETRY_DELAYS, None), 1):
            saved = None if saver is None else saver.saved
            budget = self._budget.start_episode(model, sample, tracker, saved)
            try:
                trajectory = self._attempt(sample, budget, tracker, saver)
                more = _lost_usage(lost) | ({"attempts": attempt} if attempt > 1 else {})
                return with_metadata(self.plan, trajectory, **trajectory.run, **more)
            except (SandboxUnavailableError, UsageError):
                raise
            except ModelRefusedError as e:
                if e.affects_all_requests or self._budget.count_refusal():
                    raise
                return self._error_record(sample, e, attempt, lost + budget.usage)
            except (InfrastructureError, OSError) as e:
                lost += budget.usage
                if (
                    isinstance(e, ModelUnavailableError)
                    and self._budget.is_unanswered
                    and (e.attempts > 1 or wait is None)  # the endpoint had several chances
                ):
                    raise _unanswered_error(e, self.plan) from e
                if saver is not None:  # the next attempt begins anew, in any process
                    saver.discard()
                    self._budget.note_saved(sample, Usage())
                if wait is None:
                    return self._error_record(sample, e, attempt, lost)
                if self._pause(wait):
                    return None
            except BaseException as e:  # a fault in a task, an agent or a reward
                if isinstance(e, KeyboardInterrupt) or (isinstance(e, BudgetError) and e.run_limit):
                    raise
                if isinstance(e, GoldError | TaskError):
                    self._broken_tasks[sample.index] = e
                return self._error_record(sample, e, 1, lost + budget.usage)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _attempt(
        self,
        sample: Sample,
        budget: EpisodeBudget,
        tracker: EpisodeTracker | None,
        saver: EpisodeSaver | None,
    ) -> Trajectory:
        if (known := self._broken_tasks.get(sample.index)) is not None:
            raise type(known)(str(known))
        if saver is not None:
            saver.answers = budget.answers
            saver.on_save = lambda: self._budget.note_saved(sample, budget.usage)
            saver.on_failure = self._on_unsaved
        try:
            with self._envs.borrow(self._make_env) as env:
                trajectory = rollout(
                    self._agent_for(sample.epoch, budget),
                    env,
                    sample.index,
                    seed=self.plan.episode_seed(sample),
                    max_turns=self.plan.config.max_turns,
                    check_gold=True,
                    tracker=tracker,
                    is_limited=budget.is_limited,
                    check=budget.check if budget.model is None else None,
                    saver=saver,
                )
        except BaseException:
            self._agents.clear()  # the next episode makes a new agent
            raise
        return trajectory.replace(epoch=sample.epoch)

    def forget(self, sample: Sample) -> None:
        """Remove what was saved of an episode whose record is written."""
        self._budget.note_saved(sample, Usage())
        self.plan.remove_saved(sample)

    def _agent_for(self, epoch: int, budget: EpisodeBudget) -> Agent:
        if budget.model is not None:
            return self.plan.make_agent(epoch, budget.model)
        if epoch not in self._agents:
            self._agents[epoch] = self.plan.make_agent(epoch)
        return self._agents[epoch]

    def _error_record(
        self, sample: Sample, error: BaseException, attempts: int, usage: Usage
    ) -> Trajectory:
        task = self.plan.dataset.tasks[sample.index]
        text = f"{type(error).__name__}: {error}"
        failed = Trajectory(
            task=task.id,
            index=sample.index,
            query=task.query,
            steps=(),
            end="error",
            error=text,
            group=task.group,
            hardness=task.hardness,
            epoch=sample.epoch,
        )
        more = {**_lost_usage(usage), **traceback_metadata(error)}
        return with_metadata(self.plan, failed, attempts=attempts, **more)


def _unanswered_error(error: ModelUnavailableError, plan: Plan) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"the run has stopped, because none of its requests was answered: {error}. Check that the "
        "endpoint runs and that --base-url, or the provider in --model, is its address; the same "
        f"command with --out {plan.out} then plays the rest",
        error.attempts,
    )


def _lost_usage(usage: Usage) -> dict[str, Any]:
    return {} if usage == Usage() else {"lost": to_jsonable(usage)}
