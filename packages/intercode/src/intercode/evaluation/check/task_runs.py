"""Runs code on tasks for ``check``, and returns the output, the final state and the score."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, Protocol

from intercode.core.errors import GoldError, UsageError
from intercode.core.types import Dataset, Score, State, Task
from intercode.environments import check_setting_names, make
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.gold_cache import CachesGolds
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.environments.base.rewards import RewardFunction, RewardFunctionError, score_states
from intercode_sandbox.lines import split_lines

_MAX_LINE = 40  # maximum characters of a differing line in a message
_SEED = 0
"""The seed of every episode, so that a generated task is the same in all of them."""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """The result of running code on a task.

    ``started`` is in seconds since the epoch. A run that timed out has no state and no score.
    ``compares_output``: whether two runs must print the same.
    """

    started: float
    output: str
    exit_status: int | None
    timed_out: bool
    state: State | None = None
    score: Score | None = None
    golds: tuple[State, ...] = ()
    """The state that each gold left in a sandbox of its own."""
    compares_output: bool = True

    @property
    def fingerprint(self) -> str:
        """A digest of everything that must be the same in every run."""
        output = self.output if self.compares_output else ""
        text = repr([output, self.exit_status, *_compared_state(self.state)])
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def difference(self, other: TaskRun) -> str:
        """Describe the differences from another run, each with the first line or path that differs.

        Returns an empty string if there are none.
        """
        parts = []
        if self.compares_output and self.output != other.output:
            parts.append(f"output{_first_differing_line(self.output, other.output)}")
        if self.exit_status != other.exit_status:
            parts.append(f"exit status ({self.exit_status}, then {other.exit_status})")
        if _compared_state(self.state) != _compared_state(other.state):
            parts.append(f"what it left behind{_first_differing_path(self.state, other.state)}")
        if self.score is not None and other.score is not None:
            values = self.score.value, other.score.value
            parts += [f"reward ({values[0]:g}, then {values[1]:g})"] if len(set(values)) > 1 else []
        return f"{' and '.join(parts)} differed between two runs" if parts else ""


def _first_differing_line(one: str, other: str) -> str:
    pairs = zip_longest(split_lines(one), split_lines(other), fillvalue="")
    difference = next(((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b), None)
    if difference is None:
        return ""
    n, a, b = difference
    return f" (line {n}: {a[:_MAX_LINE]!r}, then {b[:_MAX_LINE]!r})"


def _first_differing_path(one: State | None, other: State | None) -> str:
    if one is None or other is None:
        return ""
    if one.probe_output != other.probe_output:
        line = _first_differing_line(one.probe_output, other.probe_output)
        return f", in the output of its probe{line}"
    paths = sorted(one.files.keys() | other.files.keys())
    differing = [path for path in paths if one.files.get(path) != other.files.get(path)]
    return (
        f" ({', '.join(differing[:3])}{', ...' if len(differing) > 3 else ''})" if differing else ""
    )


def _checked_score(
    reward: RewardFunction, name: str, task: Task, agent: State, gold: State
) -> Score:
    """Call a reward function. Raises GoldError if it fails or does not return a Score."""
    try:
        return score_states(reward, name, task, agent, gold)
    except UsageError as e:
        raise GoldError(str(e)) from e
    except RewardFunctionError as e:
        raise GoldError(f"{task.id}: {e}") from e.__cause__


def _compared_state(state: State | None) -> tuple[object, ...]:
    """Return the parts of a final state that must be the same in every run.

    If the task has a probe, these are the output of the probe and the working directory.
    """
    if state is None:
        return ()
    if state.probe_output:
        return state.probe_output, state.cwd
    files, sums = sorted(state.files.items()), sorted(state.checksums.items())
    verdicts = tuple((result.test, result.passed) for result in state.tests)
    return files, state.status, sums, state.cwd, *(state.rows or ()), *verdicts


class CodeRunner(Protocol):
    """Runs code in fresh episodes of one environment."""

    @property
    def env(self) -> InterCodeEnv:
        """The environment."""
        ...

    def run(self, index: int, code: str, /) -> TaskRun:
        """Run code as the first action of the task at a position."""
        ...


class TaskRunner:
    """Runs code in new episodes of one environment, and records the states that are scored.

    ``caches_golds``: whether episodes with these settings read the gold cache.
    """

    def __init__(self, dataset: Dataset, settings: Mapping[str, Any]) -> None:
        self._agent_state: State | None = None
        self._golds: list[State] = []
        plain: InterCodeEnv = make(dataset.environment, dataset, **settings)
        reward: RewardFunction = plain.reward_function

        def recording_reward(task: Task, agent: State, gold: State) -> Score:
            self._agent_state = agent
            self._golds.append(gold)
            return _checked_score(reward, recording_reward.__qualname__, task, agent, gold)

        recording_reward.__qualname__ = plain.reward_name  # the name in the metadata
        self.env: InterCodeEnv = make(
            dataset.environment, dataset, **{**settings, "reward": recording_reward}
        )
        self.env.scores_every_gold = True
        self.caches_golds = isinstance(self.env, CachesGolds) and self.env.use_gold_cache
        if isinstance(self.env, CachesGolds):
            self.env.use_gold_cache = False  # golds must run here: this result fills the cache

    def reset(self, index: int, seed: int = _SEED) -> None:
        """Begin an episode of the task at a position. ``seed``: that of a task that varies."""
        self.env.reset(seed=seed, options={"task": index})

    def score_after_reset(self, index: int, golds: Sequence[State] = ()) -> Score:
        """Return the score of a task right after a reset. ``golds``: as in ``run_here``."""
        self.reset(index)
        return self.score_here(golds)[0]

    def run(self, index: int, *actions: str, golds: Sequence[State] = ()) -> TaskRun:
        """Run actions from the beginning of a task and score them, as ``run_here`` does."""
        self.reset(index)
        return self.run_here(*actions, golds=golds)

    def run_here(self, *actions: str, golds: Sequence[State] = ()) -> TaskRun:
        """Run code as the next actions of the episode and score it.

        The exit status is that of the first action that failed. In an environment that scores an
        answer, the output of the code is submitted as the answer, unless the code has submitted
        one. ``golds``: the states that the golds of this task left in an earlier run, if they need
        not run again. A profile that does not run golds apart from the agent runs them anyway,
        because there they depend on earlier scores.
        """
        started, output, ended = time.time(), "", False
        status: int | None = 0
        for action in actions:
            result = self.env.execute(action)
            output, ended = output + result.observation, result.terminated
            status = status or result.exit_code
            if result.timed_out:
                return TaskRun(started, output, status, True)
            if ended:
                break
        if self.env.expects_answer and not ended:
            self.env.finish(output.strip())
        score, state, reached = self.score_here(golds)
        return TaskRun(
            started, output, status, False, state, score, reached, self.env.scores_output
        )

    def score_here(
        self, golds: Sequence[State] = ()
    ) -> tuple[Score, State | None, tuple[State, ...]]:
        """Score the present state. Return the score, the state, and those that the golds left.
        ``golds``: as in ``run_here``."""
        self._golds.clear()
        self.env.known_golds = golds if self.env.profile_class.runs_golds_separately else ()
        try:
            score = self.env.score()
        finally:
            self.env.known_golds = ()
        if (error := score.action_error) is not None:
            raise GoldError(f"an exception ended the episode: {error.type}: {error.message}")
        return score, self._agent_state, tuple(self._golds)

    def end_episode(self) -> None:
        """End the episode and free its sandbox."""
        self.env.end_episode()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def cache_golds(self, index: int, golds: Sequence[State]) -> bool:
        """Store the results of a task's golds in the gold cache; see ``CachesGolds``."""
        self.reset(index)
        return isinstance(self.env, CachesGolds) and self.env.cache_golds(golds)


@contextmanager
def task_runners(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int
) -> Iterator[Callable[..., list[Any]]]:
    """Yield a function that runs work for many tasks in parallel threads.

    It is called with ``work`` and a sequence of numbers, and returns the list of the results of
    ``work(runner, i)``. Each of at most ``parallel`` runners works on one number at a time. Raises
    UnknownNameError for a setting that the environment does not have.
    """
    check_setting_names(dataset.environment, settings)

    def run_one(work: Callable[[TaskRunner, int], Any], i: int) -> Any:
        with runners.borrow(partial(TaskRunner, dataset, settings)) as runner:
            return work(runner, i)

    with EnvironmentPool[TaskRunner]() as runners, ThreadPoolExecutor(parallel) as threads:
        yield lambda work, ids: list(threads.map(partial(run_one, work), ids))
