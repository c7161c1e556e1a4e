"""The variants of the tasks of a dataset that are sound, found by playing the golds in them.

A variant is a task that is instantiated with a seed from 1. The seed 0 stands for the original.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from intercode.core.errors import (
    GoldError,
    InfrastructureError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.core.types import SUCCESS_THRESHOLD, Dataset, Score, State, Task
from intercode.evaluation.check.dataset import AUDIT_RULES
from intercode.evaluation.check.findings import FAULT_KINDS, findings_in_output
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner, task_runners
from intercode_lab.variants.makers import VARIANT_MAKERS

ORIGINAL = 0
"""The seed of the original state of a task."""
FURTHER_SEEDS = 6
"""How many further seeds are tried in place of those whose variants are not sound."""
_NOTHING_VARIES = "the task is about no files or rows of its own"
_FINDS_LESS = "others find out more near solutions"
_SAME_RESULT = "the gold does the same as in the original state"


@dataclass(frozen=True, slots=True)
class ReplacedSeed:
    """A seed whose variant is not used, and why. ``golds``: the numbers, from 1, of two golds that
    agree in the original state and not in this variant, or none."""

    seed: int
    reason: str
    golds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskVariants:
    """The seeds of the sound variants of one task.

    ``alike``: the gold does the same in all of them as in the original state. ``replaced``: seeds
    that were tried and left out. ``missed``: near solutions that solve all of them. ``reason``: why
    there are no variants, else empty.
    """

    task: str
    index: int
    seeds: tuple[int, ...] = ()
    alike: bool = False
    replaced: tuple[ReplacedSeed, ...] = ()
    missed: tuple[str, ...] = ()
    reason: str = ""


class VariantTasks:
    """A dataset whose tasks vary with the seed of the episode.

    ``dataset`` plays the variants that ``add`` has made. Other seeds play the original.
    """

    def __init__(self, dataset: Dataset) -> None:
        varies = bool(dataset.tasks) and all(task.vary is not None for task in dataset.tasks)
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
        self._make = None if varies else VARIANT_MAKERS.load(dataset.environment).make

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
    gold, which golds agree with each other, and the faults that the audit of the environment finds
    in the result, by kind."""

    start: Score
    run: TaskRun
    agreeing: frozenset[tuple[int, int]]
    result: object
    faults: Mapping[str, str]

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
    """Return ``count`` seeds whose variants of a task are sound.

    In a sound variant the gold scores 1 without a new error message or fault of its result, doing
    nothing does not unless it does in the original state, golds that agree in the original state
    agree there too, and the gold does something else than in the original state. If there are not
    enough of these, variants in which the gold does the same fill up. The first seeds from 1 are
    chosen, but later ones if near solutions solve the first. Raises SandboxUnavailableError if no
    sandbox works.
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
    candidates: list[_Candidate] = []
    replaced: list[ReplacedSeed] = []
    near = _near_solutions(runner, task)
    for seed in range(1, count + FURTHER_SEEDS + 1):
        if not variants.add(runner, index, seed):
            return TaskVariants(task.id, index, reason=_NOTHING_VARIES)
        here = _run_variant(runner, index, seed, original)
        if isinstance(here, ReplacedSeed):
            replaced.append(here)
            continue
        passing = frozenset(code for code in near if _solves(runner, index, seed, code))
        candidates.append(_Candidate(seed, here.result == original.result, passing))
        chosen, missed = _choose(candidates, count, near)
        alike = all(c.alike for c in chosen)
        if len(chosen) == count and not missed and (alike or not any(c.alike for c in chosen)):
            break
    if not candidates:
        return TaskVariants(
            task.id,
            index,
            replaced=tuple(replaced),
            reason=f"no variant is sound: {replaced[0].reason}",
        )
    left = [c for c in candidates if c not in chosen]
    replaced += [ReplacedSeed(c.seed, _SAME_RESULT if c.alike else _FINDS_LESS) for c in left]
    return TaskVariants(
        task.id,
        index,
        tuple(sorted(c.seed for c in chosen)),
        alike,
        tuple(sorted(replaced, key=lambda r: r.seed)),
        missed,
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sound variant: whether the gold does the same in it as in the original state, and which
    near solutions solve it."""

    seed: int
    alike: bool
    passing: frozenset[str]


def _choose(
    candidates: Sequence[_Candidate], count: int, near: Sequence[str]
) -> tuple[list[_Candidate], tuple[str, ...]]:
    """Return the variants that find out the most near solutions, and those that they all miss.

    Variants in which the gold does the same only fill up.
    """
    rest, missed, chosen = list(candidates), frozenset(near), list[_Candidate]()
    while rest and len(chosen) < count:
        best = min(rest, key=lambda c: (c.alike, len(missed & c.passing), c.seed))
        rest.remove(best)
        chosen.append(best)
        missed &= best.passing
    return chosen, tuple(code for code in near if code in missed)


def _near_solutions(runner: TaskRunner, task: Task) -> tuple[str, ...]:
    name = runner.env.name
    return tuple(VARIANT_MAKERS.load(name).near_solutions(task)) if name in VARIANT_MAKERS else ()


def _solves(runner: TaskRunner, index: int, seed: int, code: str) -> bool:
    runner.reset(index, seed)
    score = runner.run_here(code).score
    return score is not None and score.success


def _run_variant(
    runner: TaskRunner, index: int, seed: int, original: _GoldRun
) -> _GoldRun | ReplacedSeed:
    """Return what the golds do in a variant, or why it is not sound."""
    try:
        here = _run_golds(runner, index, seed)
    except SandboxUnavailableError:  # nothing can be played at all
        raise
    except (GoldError, InfrastructureError) as e:
        return ReplacedSeed(seed, f"{type(e).__name__}: {e}")
    if lost := original.agreeing - here.agreeing:
        first, second = (n + 1 for n in min(lost))
        return ReplacedSeed(seed, f"golds {first} and {second} disagree", (first, second))
    reason = next(_faults(here, original), "")
    return ReplacedSeed(seed, reason) if reason else here


def _faults(here: _GoldRun, original: _GoldRun) -> Iterator[str]:
    """Yield what is wrong in a variant and not in the original state."""
    if here.fault:
        yield here.fault
    if here.start.success and not original.start.success:
        yield "doing nothing scores 1"
    for kind, detail in here.faults.items():
        if kind not in original.faults:
            yield f"the result of the gold: {kind} ({detail})"
    known = {f.kind for f in findings_in_output("", original.run.output)}
    for finding in findings_in_output("", here.run.output):
        if finding.kind not in known:
            yield f"the gold prints: {finding.detail}"


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
    result = _result(run, before)
    return _GoldRun(start, run, agreeing, result, _audit_faults(runner, index, seed, run))


def _audit_faults(runner: TaskRunner, index: int, seed: int, run: TaskRun) -> dict[str, str]:
    """Return what the audit rule of the environment finds in the result of a gold, by kind."""
    if run.state is None or runner.env.name not in AUDIT_RULES:
        return {}
    rule = AUDIT_RULES.load(runner.env.name)
    findings = rule(_SeededRunner(runner, seed), index, run)
    return {f.kind: f.detail for f in findings if f.kind in FAULT_KINDS}


class _SeededRunner:
    """Runs code in episodes of one seed, for an audit rule."""

    def __init__(self, runner: TaskRunner, seed: int) -> None:
        self._runner, self._seed = runner, seed
        self.env = runner.env

    def run(self, index: int, code: str) -> TaskRun:
        self._runner.reset(index, self._seed)
        return self._runner.run_here(code)


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
