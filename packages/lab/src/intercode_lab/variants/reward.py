"""The reward ``variants``: pays a solution as far as it holds in variants of its task."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from intercode.core.types import Dataset, Score
from intercode.evaluation.check.task_runs import TaskRunner
from intercode_lab.variants.tasks import TaskVariants, VariantTasks, find_variants, variant_settings

COUNT = 3
"""How many variants of each task a solution is played in."""
_NOT_IN_VARIANTS = ("reward", "reward_mode", "render_mode", "max_turns", "policy", "hashes")
"""Settings that concern the agent's episode only."""


class VariantReward:
    """An ``EpisodeReward``: the score of the state, times the mean score that the same actions
    reach in 3 variants of the task.

    A score of 0 is not played there, and that of a task without variants is paid as it is.
    """

    def __init__(self, dataset: Dataset, settings: Mapping[str, Any]) -> None:
        chosen = {k: v for k, v in settings.items() if k not in _NOT_IN_VARIANTS}
        self._settings = variant_settings(chosen)
        self._source = _shared_source(dataset, self._settings)
        self._runner: TaskRunner | None = None
        self._last: tuple[object, float | None] = (None, None)

    def score(self, index: int, actions: Sequence[str], score: Score) -> Score:
        """Return the score of the actions that were executed on a task; see ``EpisodeReward``."""
        if score.value <= 0:
            return score
        key = index, tuple(actions)
        if key != self._last[0]:
            self._last = key, self._mean_score(index, actions)
        mean = self._last[1]
        if mean is None:
            return score
        return Score(score.value * mean, {**score.parts, "variants": mean}, score.details)

    def _mean_score(self, index: int, actions: Sequence[str]) -> float | None:
        """Return the mean score of actions in the variants of a task, None without variants."""
        if self._runner is None:
            self._runner = TaskRunner(self._source.variants.dataset, self._settings)
        env = self._runner.env
        try:
            seeds = self._source.find(self._runner, index).seeds
            values = []
            for seed in seeds:
                self._runner.reset(index, seed)
                for action in actions:
                    if env.execute(action).done:
                        break
                values.append(env.score().value)
        finally:
            env.end_episode()
        return sum(values) / len(values) if values else None

    def abort(self) -> None:
        """Interrupt ``score`` from another thread."""
        if self._runner is not None:
            self._runner.env.abort()

    def close(self) -> None:
        """Free the sandbox in which variants are played. May be called again."""
        if self._runner is not None:
            self._runner.env.close()
            self._runner = None


class _Source:
    """The variants of the tasks of a dataset, which the environments of a process share."""

    def __init__(self, dataset: Dataset) -> None:
        self.variants = VariantTasks(dataset)
        self._found: dict[int, TaskVariants] = {}
        self._locks: dict[int, threading.Lock] = defaultdict(threading.Lock)

    def find(self, runner: TaskRunner, index: int) -> TaskVariants:
        """Return the variants of a task. They are found once."""
        with self._locks[index]:
            if index not in self._found:
                self._found[index] = find_variants(self.variants, runner, index, COUNT)
            return self._found[index]


_sources: WeakValueDictionary[object, _Source] = WeakValueDictionary()
_sources_lock = threading.Lock()


def _shared_source(dataset: Dataset, settings: Mapping[str, Any]) -> _Source:
    key = dataset.environment, dataset.name, dataset.hash, repr(sorted(settings.items()))
    with _sources_lock:
        source = _sources.get(key)
        if source is None:
            source = _sources[key] = _Source(dataset)
        return source
