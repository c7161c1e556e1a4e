"""Grades labelled trajectories: plays their actions again and scores the state that they reach."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from intercode.core.errors import (
    DataError,
    InterCodeError,
    SandboxUnavailableError,
    UnknownNameError,
    UsageError,
)
from intercode.core.types import SUCCESS_THRESHOLD, Dataset, Score
from intercode.datasets import is_dataset_file
from intercode.datasets.load_cache import load_cached
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode_lab.labels.records import AMBIGUOUS, CORRECT, Label

VERIFIED = "verified"
"""The name of a subset whose golds somebody has judged."""
_SEED = 0
"""The seed of every episode, so that a generated task is the same in all of them."""


@dataclass(frozen=True, slots=True)
class GradedLabel:
    """A label and what the grader says about its actions.

    ``reward`` is None if the label could not be graded, and ``fault`` then says why. ``verified``
    says whether the task is in the verified subset (None: the dataset has none). ``output`` is what
    the last action printed now.
    """

    label: Label
    dataset: str
    verified: bool | None
    reward: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    output: str = ""
    fault: str = ""

    @property
    def paid(self) -> bool:
        """Whether the grader calls the trajectory a success."""
        return self.reward is not None and self.reward >= SUCCESS_THRESHOLD

    @property
    def counted(self) -> bool:
        """Whether the label is in the rates: it could be graded, and is not ambiguous."""
        return self.reward is not None and self.label.value != AMBIGUOUS

    @property
    def agrees(self) -> bool:
        """Whether grader and label agree."""
        return self.paid == (self.label.value == CORRECT)

    @property
    def output_differs(self) -> bool:
        """Whether the last action printed something else than for the person who judged. Blanks at
        the ends do not count: they depend on the profile."""
        recorded = self.label.output
        if self.reward is None or recorded is None:
            return False
        return recorded.strip() != self.output.strip()


@dataclass(frozen=True, slots=True)
class GradingOptions:
    """By what labels are graded. ``dataset`` replaces the one that a label or its task names;
    ``settings`` are those of the environment, such as ``profile``, ``reward`` and ``timeout``."""

    dataset: str | None = None
    parallel: int = 2
    settings: Mapping[str, Any] = field(default_factory=dict)


def grade_labels(
    labels: Sequence[Label],
    options: GradingOptions,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[GradedLabel]:
    """Play the actions of every label in the environment of its task, and score where they end.

    A label that cannot be graded has a ``fault``: its task is not in the dataset or asks something
    else there, or its gold or the sandbox failed. Raises UsageError for a dataset, a profile or a
    reward that does not exist.
    """
    if options.parallel < 1:
        raise UsageError(f"parallel is {options.parallel}; it must be at least 1")
    locations = _Locations(options.dataset)
    found = [locations.find(label) for label in labels]
    graded: list[GradedLabel] = []
    with EnvironmentPool[InterCodeEnv]() as envs, ThreadPoolExecutor(options.parallel) as threads:
        for result in threads.map(partial(_grade_or_fault, envs, options), labels, found):
            graded.append(result)
            progress(len(graded), len(labels))
    return graded


@dataclass(frozen=True, slots=True)
class _Location:
    """Where a label is played; ``fault`` says why it cannot be."""

    dataset: Dataset
    verified: bool | None
    fault: str = ""


class _Locations:
    """Finds the dataset in which a label is played.

    That is the chosen one, or else the verified subset if the task is in it, because only that has
    what was added when its golds were judged.
    """

    def __init__(self, chosen: str | None) -> None:
        self._chosen = chosen
        self._datasets: dict[str, Dataset] = {}
        self._missing: set[str] = set()  # verified subsets that do not exist or are not installed
        self._queries: dict[str, dict[str, str]] = {}

    def find(self, label: Label) -> _Location:
        """Return where a label is played. Raises UsageError if its dataset does not exist."""
        name = self._chosen or label.dataset or _dataset_of(label.task)
        subset = self._verified_subset(name)
        verified = subset and label.task in self._queries[subset]
        played = subset if subset and verified and not self._chosen else name
        dataset = self._load(played, label)
        queries = self._queries[played]
        fault = ""
        if label.task not in queries:
            fault = f"{dataset.name} has no task {label.task!r}"
        elif queries[label.task] != label.query:
            fault = f"{dataset.name} asks something else in this task: the label is void"
        return _Location(dataset, bool(verified) if subset else None, fault)

    def _load(self, name: str, label: Label) -> Dataset:
        try:
            return self._known(name)
        except UnknownNameError as e:
            raise UsageError(
                f"{label.location}: the task {label.task!r} belongs to no known dataset ({e}); "
                "name it with --dataset, or in the field `dataset` of the label"
            ) from e

    def _verified_subset(self, name: str) -> str | None:
        """Return the name of the dataset's verified subset, or None if it has none."""
        if is_dataset_file(name) or "/" in name:
            return None
        subset = f"{name.partition('@')[0].partition(':')[0]}:{VERIFIED}"
        if subset not in self._missing:
            try:
                self._known(subset)
            except UsageError:
                self._missing.add(subset)
        return None if subset in self._missing else subset

    def _known(self, name: str) -> Dataset:
        if name not in self._datasets:
            dataset = self._datasets[name] = load_cached(name, "bash")
            self._queries[name] = {task.id: task.query for task in dataset.tasks}
        return self._datasets[name]


_FAMILY_TASK = re.compile(r"families/(?P<family>[^/]+/[^/]+)/(?P<level>\d+)/(?P<seed>\d+)\Z")


def _dataset_of(task: str) -> str:
    """Return the dataset that the id of a task names."""
    drawn = _FAMILY_TASK.match(task)
    if drawn is None:
        return task.partition("/")[0]
    seed = drawn["seed"]
    return f"families:{drawn['family']}[difficulty={drawn['level']}]@seed={seed}..{seed}"


def _grade_or_fault(
    envs: EnvironmentPool[InterCodeEnv], options: GradingOptions, label: Label, location: _Location
) -> GradedLabel:
    dataset = location.dataset
    unplayed = GradedLabel(label, dataset.name, location.verified, fault=location.fault)
    if location.fault:
        return unplayed
    try:
        make = partial(ENVIRONMENTS.load(dataset.environment), dataset, **options.settings)
        with envs.borrow(make, id(dataset)) as env:
            score, output = play_label(env, label)
    except InterCodeError as e:
        affects_all = isinstance(e, UsageError) and not isinstance(e, DataError)
        if affects_all or isinstance(e, SandboxUnavailableError):
            raise
        return GradedLabel(
            label, location.dataset.name, location.verified, fault=f"{type(e).__name__}: {e}"
        )
    return GradedLabel(
        label, location.dataset.name, location.verified, score.value, score.parts, output
    )


def play_label(env: InterCodeEnv, label: Label, seed: int = _SEED) -> tuple[Score, str]:
    """Play the actions of a label in a new episode. Return the score of the state that they reach,
    and what the last action printed. ``seed``: that of a task that varies."""
    env.reset(seed=seed, options={"task": label.task})
    score, output = None, ""
    for action in label.actions:
        result = env.execute(action)
        score, output = result.score, result.observation
        if result.terminated:
            break
    return score or env.score(), output
