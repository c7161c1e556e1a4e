"""Plays code in an environment and sees what it left behind, for `check`."""

from __future__ import annotations

import hashlib
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from intercode.core.errors import GoldError
from intercode.core.types import Dataset, Score, State, Task
from intercode.environments import make
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.gold_cache import CachesGolds
from intercode.environments.base.rewards import RewardFunction

_MAX_LINE = 40  # characters of a line that differs
_SEED = 0
"""Of every episode: a task that is drawn is then the same in all of them."""


@dataclass(frozen=True, slots=True)
class TaskRun:
    """What one run did. ``at``: when, in seconds since the epoch. A run that was stopped at the
    time-out has neither state nor score."""

    started: float
    output: str
    exit_status: int | None
    timed_out: bool
    state: State | None = None
    score: Score | None = None
    golds: tuple[State, ...] = ()
    """What each gold left behind in the box of its own that it was scored with."""

    @property
    def fingerprint(self) -> str:
        """A fingerprint of everything that must not change from run to run."""
        text = repr([self.output, self.exit_status, *_compared_state(self.state)])
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def difference(self, other: TaskRun) -> str:
        """What differs from another run, in words, with the first such place; empty where nothing
        does."""
        words = []
        if self.output != other.output:
            words.append(f"output{_first_differing_line(self.output, other.output)}")
        if self.exit_status != other.exit_status:
            words.append(f"exit status ({self.exit_status}, then {other.exit_status})")
        if _compared_state(self.state) != _compared_state(other.state):
            words.append(f"what it left behind{_first_differing_path(self.state, other.state)}")
        return f"{' and '.join(words)} differed between two runs" if words else ""


def _first_differing_line(one: str, other: str) -> str:
    pairs = zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
    found = next(((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b), None)
    if found is None:
        return ""
    n, a, b = found
    return f" (line {n}: {a[:_MAX_LINE]!r}, then {b[:_MAX_LINE]!r})"


def _first_differing_path(one: State | None, other: State | None) -> str:
    if one is None or other is None:
        return ""
    if one.probe_output != other.probe_output:
        return f", as its look tells{_first_differing_line(one.probe_output, other.probe_output)}"
    paths = sorted(one.files.keys() | other.files.keys())
    found = [path for path in paths if one.files.get(path) != other.files.get(path)]
    return f" ({', '.join(found[:3])}{', ...' if len(found) > 3 else ''})" if found else ""


def _checked_score(
    judge: RewardFunction, name: str, task: Task, agent: State, gold: State
) -> Score:
    """A score. Raises GoldError where the function, which may be a user's own, gives none."""
    try:
        score = judge(task, agent, gold)
    except Exception as e:
        what = f"{type(e).__name__}: {e}"
        raise GoldError(f"the reward {name} failed on {task.id}: {what}") from e
    if not isinstance(score, Score):
        kind = type(score).__name__
        raise GoldError(f"the reward {name} gave {kind} for {task.id}, not an intercode Score")
    return score


def _compared_state(state: State | None) -> tuple[object, ...]:
    """What counts of an end state: where the task has a look of its own, what that tells."""
    if state is None:
        return ()
    if state.probe_output:
        return state.probe_output, state.cwd
    files, sums = sorted(state.files.items()), sorted(state.checksums.items())
    return files, state.status, sums, state.cwd, *(() if state.rows is None else state.rows)


class TaskRunner:
    """An environment with an eye on the states that its reward function is given."""

    def __init__(self, dataset: Dataset, settings: Mapping[str, Any]) -> None:
        self._agent_state: State | None = None
        self._golds: list[State] = []
        usual: InterCodeEnv = make(dataset.environment, dataset, **settings)
        judge: RewardFunction = usual.reward_function

        def watched(task: Task, agent: State, gold: State) -> Score:
            self._agent_state = agent
            self._golds.append(gold)
            return _checked_score(judge, watched.__qualname__, task, agent, gold)

        watched.__qualname__ = usual.reward_name  # what facts() calls the reward
        self.env: InterCodeEnv = make(
            dataset.environment, dataset, **{**settings, "reward": watched}
        )
        if isinstance(self.env, CachesGolds):
            self.env.use_gold_cache = False  # what is to be proven is not to be looked up

    def reset(self, i: int) -> None:
        """Begin an episode of task ``i``."""
        self.env.reset(seed=_SEED, options={"task": i})

    def score_after_reset(self, i: int) -> Score:
        """The score of task ``i`` right after a reset."""
        self.reset(i)
        return self.env.score()

    def run(self, i: int, code: str) -> TaskRun:
        """Run code as the first action of task ``i``, and score it. Where answers are scored, what
        it printed is handed in, unless it has handed in one itself."""
        self.reset(i)
        at = time.time()
        output, _, done, _, info = self.env.step(code)
        if info["timed_out"]:
            return TaskRun(at, output, info["exit_code"], True)
        if self.env.expects_answer and not done:
            self.env.submit(output.strip())
        self._golds.clear()
        score = self.env.score()
        golds = tuple(self._golds)
        return TaskRun(at, output, info["exit_code"], False, self._agent_state, score, golds)

    def cache_golds(self, i: int, golds: Sequence[State], dated: bool, hour: int) -> bool:
        """Have the environment keep what the golds of task ``i`` leave; see ``CachesGolds``.

        ``hour``: the one, since the epoch, in whose dating of the files that was seen.
        """
        if not isinstance(self.env, CachesGolds):
            return False
        self.env.reset(options={"task": i})
        if dated and time.time() // 3600 != hour:
            return False
        return self.env.cache_golds(golds, dated)


@contextmanager
def task_runners(
    dataset: Dataset, settings: Mapping[str, Any], parallel: int
) -> Iterator[Callable[..., list[Any]]]:
    """A function that runs ``work(player, i)`` for many i, each thread with a player of its own."""
    all_of_them = [TaskRunner(dataset, settings) for _ in range(parallel)]
    free: queue.SimpleQueue[TaskRunner] = queue.SimpleQueue()
    for player in all_of_them:
        free.put(player)

    def one(work: Callable[[TaskRunner, int], Any], i: int) -> Any:
        player = free.get()
        try:
            return work(player, i)
        finally:
            free.put(player)

    try:
        with ThreadPoolExecutor(parallel) as threads:
            yield lambda work, ids: list(threads.map(lambda i: one(work, i), ids))
    finally:
        for player in all_of_them:
            player.env.close()
