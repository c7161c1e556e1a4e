"""The variants of the tasks of a dataset that are sound, found by playing the golds in them.

A variant is a task that is instantiated with a seed from 1. The seed 0 stands for the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from intercode.core.errors import (
    GoldError,
    InfrastructureError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.core.types import SUCCESS_THRESHOLD, Dataset, Score, State, Task
from intercode.environments.base.variants.makers import VARIANT_MAKERS
from intercode.evaluation.check.findings import findings_in_output
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners

ORIGINAL = 0
"""The seed of the original state of a task."""
FURTHER_SEEDS = 6
"""How many further seeds are tried in place of those whose variants are not sound."""
_SAME_RESULT = "the gold does the same as in the original state"


@dataclass(frozen=True, slots=True)
class ReplacedSeed:
    """A seed whose variant is not sound, and why."""

    seed: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaskVariants:
    """The seeds of the sound variants of one task.

    ``alike``: the gold does the same in all of them as in the original state. ``replaced``: seeds
    that were tried and left out. ``reason``: why there are no variants, else empty.
    """

    task: str
    index: int
    seeds: tuple[int, ...] = ()
    alike: bool = False
    replaced: tuple[ReplacedSeed, ...] = ()
    reason: str = ""


class VariantTasks:
    """A dataset whose tasks vary with the seed of the episode.

    ``dataset`` plays the variants that ``add`` has made. Other seeds play the original.
    """

    def __init__(self, dataset: Dataset) -> None:
        varies = all(task.vary is not None for task in dataset.tasks)
        if not varies and dataset.environment not in VARIANT_MAKERS:
            known = ", ".join(sorted(VARIANT_MAKERS))
            raise UsageError(
                f"tasks of the environment {dataset.environment!r} have no variants; "
                f"environments that have them: {known}"
            )
        self._made: dict[tuple[str, int], Task] = {}
        tasks = tuple(
            replace(task, instantiate=self._instantiate) if task.instantiate is None else task
            for task in dataset.tasks
        )
        self.dataset = replace(dataset, tasks=tasks)
        self._make = None if varies else VARIANT_MAKERS.load(dataset.environment)

    def _instantiate(self, task: Task, seed: int) -> Task:
        return self._made.get((task.id, seed), task)

    def add(self, runner: TaskRunner, index: int, seed: int) -> bool:
        """Make the variant of a task. Return false if the task has no variants."""
        task = self.dataset.tasks[index]
        if (task.id, seed) in self._made:
            return True
        variant = self._variant(runner, index, seed)
        if variant is None:
            return False
        self._made[task.id, seed] = variant
        return True

    def _variant(self, runner: TaskRunner, index: int, seed: int) -> Task | None:
        task = self.dataset.tasks[index]
        if task.vary is not None:
            return task.vary(task, seed)
        assert self._make is not None
        runner.reset(index, ORIGINAL)
        variant: Task | None = self._make(runner.env, seed)
        return variant


@dataclass(frozen=True, slots=True)
class _GoldRun:
    """What the golds of a task do in one state: the score of doing nothing, the run of the main
    gold, and which golds agree with each other."""

    start: Score
    run: TaskRun
    agreeing: frozenset[tuple[int, int]]
    result: object

    @property
    def fault(self) -> str:
        """Why nothing can be judged in this state, or an empty string."""
        if self.run.score is None:
            return "the gold does not end in time"
        if self.run.score.value < SUCCESS_THRESHOLD:
            return f"the gold scores {self.run.score.value:.3f}"
        return ""


def find_variants(
    variants: VariantTasks, runner: TaskRunner, index: int, count: int
) -> TaskVariants:
    """Return the first ``count`` seeds from 1 whose variants of a task are sound.

    In a sound variant the gold scores 1 without a new error message, doing nothing does not unless
    it does in the original state, golds that agree in the original state agree there too, and the
    gold does something else than in the original state. If there are not enough of these, variants
    in which the gold does the same fill up. Raises SandboxUnavailableError if no sandbox works.
    """
    task = variants.dataset.tasks[index]
    try:
        original = _run_golds(runner, index, ORIGINAL)
    except SandboxUnavailableError:  # nothing can be played at all
        raise
    except (GoldError, InfrastructureError) as e:
        return TaskVariants(task.id, index, reason=f"the original state cannot be scored: {e}")
    if original.fault:
        return TaskVariants(task.id, index, reason=f"{original.fault} in the original state")
    seeds: list[int] = []
    same: list[int] = []
    replaced: list[ReplacedSeed] = []
    for seed in range(1, count + FURTHER_SEEDS + 1):
        if not variants.add(runner, index, seed):
            return TaskVariants(task.id, index, reason="the task is about no files of its own")
        reason = _fault_of_variant(runner, index, seed, original)
        if not reason:
            seeds.append(seed)
        elif reason == _SAME_RESULT:
            same.append(seed)
        else:
            replaced.append(ReplacedSeed(seed, reason))
        if len(seeds) == count or (not seeds and len(same) == count):
            break
    chosen = sorted([*seeds, *same[: count - len(seeds)]])
    replaced += [ReplacedSeed(seed, _SAME_RESULT) for seed in same if seed not in chosen]
    replaced.sort(key=lambda r: r.seed)
    reason = "" if chosen else f"no variant is sound: {replaced[0].reason}"
    return TaskVariants(task.id, index, tuple(chosen), not seeds, tuple(replaced), reason)


def _fault_of_variant(runner: TaskRunner, index: int, seed: int, original: _GoldRun) -> str:
    """Return why a variant is not sound, or an empty string."""
    try:
        here = _run_golds(runner, index, seed)
    except SandboxUnavailableError:  # nothing can be played at all
        raise
    except (GoldError, InfrastructureError) as e:
        return f"{type(e).__name__}: {e}"
    if here.fault:
        return here.fault
    if here.start.success and not original.start.success:
        return "doing nothing scores 1"
    if lost := original.agreeing - here.agreeing:
        first, second = min(lost)
        return f"golds {first + 1} and {second + 1} disagree"
    known = {f.kind for f in findings_in_output("", original.run.output)}
    for finding in findings_in_output("", here.run.output):
        if finding.kind not in known:
            return f"the gold prints: {finding.detail}"
    return _SAME_RESULT if here.result == original.result else ""


def _run_golds(runner: TaskRunner, index: int, seed: int) -> _GoldRun:
    """Play doing nothing and then the main gold in one episode."""
    runner.reset(index, seed)
    task = runner.env.task
    start, before, _ = runner.score_here()
    run = runner.run_here(task.solution or "")
    reward = runner.env.reward_function
    pairs = [(a, b) for a in range(len(run.golds)) for b in range(len(run.golds)) if a != b]
    agreeing = frozenset(
        (a, b) for a, b in pairs if reward(task, run.golds[a], run.golds[b]).success
    )
    return _GoldRun(start, run, agreeing, _result(run, before))


def _result(run: TaskRun, before: State | None) -> object:
    """Return what a gold printed and changed, without what the set-up had changed before it."""
    if run.state is None or before is None:
        return None
    changed = {p: e for p, e in run.state.files.items() if before.files.get(p) != e}
    gone = sorted(before.files.keys() - run.state.files.keys())
    return run.output, run.state.cwd, run.state.rows, sorted(changed.items()), gone


def variant_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with which variants are played: those given, with the profile
    ``standard``."""
    return {**settings, "profile": "standard"}


def check_variants(
    dataset: Dataset, settings: Mapping[str, Any], count: int, parallel: int
) -> list[TaskVariants]:
    """Find the sound variants of every task of a dataset. Raises UsageError for ``count`` below 1
    and for an environment without variants."""
    require_count(count)
    variants = VariantTasks(dataset)
    with task_runners(variants.dataset, variant_settings(settings), parallel) as run_all:
        return run_all(
            lambda runner, index: find_variants(variants, runner, index, count),
            range(len(dataset)),
        )


def require_count(count: int) -> None:
    """Raise UsageError unless a number of variants is at least 1."""
    if count < 1:
        raise UsageError(f"variants is {count}; it must be at least 1")
