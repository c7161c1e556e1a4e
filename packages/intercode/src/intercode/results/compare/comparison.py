"""Compares two runs task by task: paired differences with intervals, an exact test, and flipped
tasks. Runs that were obtained under different conditions are refused unless that is allowed."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.report.result_sets import (
    ResultSet,
    ignored_notes,
    load_result_sets,
    unfinished_notes,
)
from intercode.results.short_text import join_first, shorten_distinct
from intercode.results.statistics import metrics
from intercode.results.statistics.figures import BEST_REWARD, MEAN_FIGURES
from intercode.results.statistics.intervals import (
    Estimate,
    estimate_paired_difference,
    paired_standard_error,
)
from intercode.results.statistics.metrics import is_failed
from intercode.results.statistics.samples import all_samples, by_task, max_epochs
from intercode.results.statistics.significance import (
    SignificanceTest,
    detectable_difference,
    holm_adjusted,
    paired_success_test,
)
from intercode_sandbox.registry import unknown_name_error

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "subset": ("dataset",),
    "hash": ("dataset_hash",),
    "profile": ("profile",),
    "scoring": ("scoring",),
    "reward": ("reward",),
    "image": ("image_digest", "image"),
    "arch": ("arch",),
    "tier": ("tier", "sandbox"),
    "network": ("network",),
    "limits": ("limits",),
    "policy": ("policy",),
    "determinism": ("determinism",),
}
"""Properties that two results must share to be compared. The keys are the names that
``allow_mismatch`` takes; the values are keys of run metadata, of which the first that is recorded
counts."""

REPORTED_METADATA = (
    "agent",
    "model",
    "endpoint",
    "max_turns",
    "timeout",
    "schema_given",
    "agent_options",
    "model_options",
    "generation",
    "prompts",
    "env_options",
    "seed",
    "version",
)
"""Metadata that may differ; differences are reported."""

NOT_RECORDED = "not recorded"
_ABSENCE_MEANS_NONE = ("policy", "determinism", "limits", "schema_given")
"""Metadata that is left out of a record if there is none."""
_MAX_LENGTH = 60


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its episodes, failed ones included, the letter that names it, and
    a note on each of its runs that is not finished and each file that is no log."""

    letter: str
    path: Path
    result_set: ResultSet
    notes: tuple[str, ...] = ()

    @cached_property
    def tasks(self) -> dict[str, list[Trajectory]]:
        """The episodes that count, by task (see samples.py). Those that ended in an error of the
        infrastructure count as not solved."""
        return by_task(all_samples(self.result_set.episodes))

    @property
    def samples(self) -> list[Trajectory]:
        """The episodes that count."""
        return [t for same in self.tasks.values() for t in same]

    @property
    def epochs(self) -> int:
        """The largest number of episodes of one task."""
        return max_epochs(self.samples)

    @property
    def label(self) -> str:
        """Agent and model."""
        return f"{self.result_set.agent}, {self.result_set.model}"

    def recorded_value(self, names: Sequence[str], tasks: Collection[str]) -> str:
        """Return the values of the first of these metadata keys that episodes of some tasks record,
        as text; several values are joined."""
        for name in names:
            values = {
                (str(t.run.get("environment")), _value_text(t.run.get(name)))
                for t in self.result_set.episodes
                if t.task in tasks
            }
            if {value for _, value in values} != {NOT_RECORDED}:
                by_environment: dict[str, set[str]] = {}
                for own, value in values:
                    by_environment.setdefault(own, set()).add(value)
                first, *others = by_environment.values()
                if all(other == first for other in others):
                    return " + ".join(sorted(first))
                return " + ".join(sorted(f"{own}: {value}" for own, value in values))
        return NOT_RECORDED


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something in which two sides differ."""

    name: str
    first: str
    second: str

    def __str__(self) -> str:
        if self.name == "prompts":  # recorded as digests
            return self.name
        first, second = shorten_distinct(_differing_entries(self.first, self.second), _MAX_LENGTH)
        return f"{self.name}: {first} | {second}"


_WHOLE_DIRECTORY = (
    "`intercode compare DIR` compares the agents of an experiment's directory over all its datasets"
)


def open_sides(paths: Sequence[Path]) -> list[Side]:
    """Return the sides of a comparison: that of each path (see ``open_side``), or for one path
    those of each agent and model in this directory, in the order in which they were first played.
    Raises UsageError unless there are two."""
    found = [(path, load_result_sets([path])) for path in paths]
    if len(paths) == 1:
        groups: dict[tuple[str, str], list[ResultSet]] = {}
        for result_set in found[0][1]:
            groups.setdefault((result_set.agent, result_set.model), []).append(result_set)
        found = [(paths[0], group) for group in sorted(groups.values(), key=_first_start)]
    if len(found) < 2:
        raise UsageError(f"there is only one run: name another one, or {_WHOLE_DIRECTORY}")
    letters = string.ascii_uppercase
    if len(found) > len(letters):
        raise UsageError(f"{len(found)} runs are more than the letters that name them")
    return [_make_side(letter, *one) for letter, one in zip(letters, found, strict=False)]


def _first_start(result_sets: Sequence[ResultSet]) -> str:
    return min((t.started for e in result_sets for t in e.episodes if t.started), default="")


def open_side(letter: str, path: Path) -> Side:
    """Return the one run at a path: a run directory, a file, a directory of published logs that
    make one row of a report, or a directory of runs of one agent and model on different tasks,
    which are taken together.

    Raises UsageError if there are others, naming them, or no episode.
    """
    return _make_side(letter, path, load_result_sets([path]))


def _make_side(letter: str, path: Path, result_sets: Sequence[ResultSet]) -> Side:
    logs = ((e.log, e.episodes) for e in result_sets)
    notes = (*unfinished_notes(logs), *ignored_notes([path]))
    if len(result_sets) > 1 and _make_one_side(result_sets):
        whole = replace(
            result_sets[0],
            environment=" + ".join(sorted({e.environment for e in result_sets})),
            dataset=" + ".join(sorted({e.dataset for e in result_sets})),
            conditions=" + ".join(sorted({e.conditions for e in result_sets})),
            episodes=tuple(t for e in result_sets for t in e.episodes),
        )
        return Side(letter, path, whole, notes)
    if len(result_sets) > 1:
        named = join_first([f"{e.log} ({e.agent}, {e.model})" for e in result_sets], 6)
        raise UsageError(
            f"{path} holds {len(result_sets)} runs: {named}. Name two of them, or the directory of "
            "an experiment alone. Runs and logs of one agent and model on different tasks make one "
            "side if they have a directory of their own."
        )
    if not result_sets:
        raise UsageError(f"{path} holds no episode: nothing to compare")
    return Side(letter, path, result_sets[0], notes)


def _make_one_side(result_sets: Sequence[ResultSet]) -> bool:
    """Return whether result sets are of one agent and model, and no task is in two of them."""
    tasks = [t for e in result_sets for t in {t.task for t in e.episodes}]
    return len({(e.agent, e.model) for e in result_sets}) == 1 and len(tasks) == len(set(tasks))


def check_conditions(first: Side, second: Side, allow_mismatch: Sequence[str]) -> list[Mismatch]:
    """Return the conditions that differ, all of which ``allow_mismatch`` names.

    Raises UsageError for another difference, with the option that allows it, and if no environment
    is in both; UnknownNameError for a name in ``allow_mismatch`` that is not a condition.
    """
    for name in allow_mismatch:
        if name not in CONDITIONS:
            raise unknown_name_error("condition", name, list(CONDITIONS))
    own, other = first.result_set.environment, second.result_set.environment
    if set(own.split(" + ")).isdisjoint(other.split(" + ")):
        raise UsageError(
            f"{first.path} is {own} and {second.path} is {other}: they have no task in common; "
            f"{_WHOLE_DIRECTORY}"
        )
    differing = _differences(first, second, CONDITIONS)
    refused = [d for d in differing if d.name not in allow_mismatch]
    if refused:
        words = "; ".join(map(str, refused))
        option = ",".join(d.name for d in differing)
        raise UsageError(
            f"{first.letter} and {second.letter} cannot be compared, they differ in {words}. "
            f"To compare them anyway: --allow-mismatch {option}"
        )
    return differing


def _differences(first: Side, second: Side, names: Mapping[str, Sequence[str]]) -> list[Mismatch]:
    """Return what two sides differ in, in the tasks that both have if there are any. A value that
    only one side records is a difference, unless it is the endpoint, which an agent without a model
    lacks; an unrecorded policy or determinism means none. Two names of a dataset with one hash are
    none."""
    out = []
    tasks = _common_tasks(first, second) or {*first.tasks, *second.tasks}
    hashes = {side.recorded_value(CONDITIONS["hash"], tasks) for side in (first, second)}
    for name, keys in names.items():
        if name == "subset" and len(hashes) == 1 and NOT_RECORDED not in hashes:
            continue  # "starter" and "starter:bash" are one dataset
        a, b = first.recorded_value(keys, tasks), second.recorded_value(keys, tasks)
        if name in _ABSENCE_MEANS_NONE:
            a, b = (value.replace(NOT_RECORDED, "none") for value in (a, b))
        if a != b and not (name == "endpoint" and NOT_RECORDED in (a, b)):
            out.append(Mismatch(name, a, b))
    return out


def _common_tasks(first: Side, second: Side) -> dict[str, None]:
    """Return the tasks of one environment that both sides have, in the first one's order."""

    def environment(side: Side, task: str) -> Any:
        return side.tasks[task][0].run.get("environment")

    return {
        task: None
        for task in first.tasks
        if task in second.tasks and environment(first, task) == environment(second, task)
    }


def _value_text(value: Any) -> str:
    if value is None or value is False or value == {} or value == []:
        return NOT_RECORDED
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    return str(value)


def _differing_entries(first: str, second: str) -> list[str]:
    """Return two values without the entries that are equal in both, if both are tables in JSON."""
    try:
        a, b = json.loads(first), json.loads(second)
    except ValueError:
        return [first, second]
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return [first, second]
    keys = [k for k in {**a, **b} if k not in a or k not in b or a[k] != b[k]]
    return [json.dumps({k: side[k] for k in keys if k in side}) for side in (a, b)]


POWER = 0.8
LEVEL = 0.95

_FigureFunction = Callable[[Trajectory], float | None]


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """One figure on both sides, as means over tasks, and ``second - first`` with its interval."""

    name: str
    unit: str
    first: float
    second: float
    difference: Estimate


@dataclass(frozen=True, slots=True)
class Flip:
    """A task that the two sides solve at different rates. ``first`` and ``second`` are shares of
    its episodes in 0..1. ``flaky``: at least one side solves it sometimes, but not always; None if
    no side has several episodes."""

    task: str
    first: float
    second: float
    flaky: bool | None


@dataclass(frozen=True, slots=True)
class ExcludedTask:
    """A task that is not compared, and why."""

    task: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison. Only ``tasks``, which have episodes on both sides, count.

    ``test`` is that of the difference in success; ``adjusted_p`` is its p-value adjusted for
    several comparisons (Holm). ``detectable`` is the smallest true difference in success, in
    percent points, that these tasks detect with a power of 0.8. ``allowed_mismatches`` are
    conditions that differ and were allowed to; ``other_differences`` are the rest.
    """

    first: Side
    second: Side
    tasks: tuple[str, ...]
    excluded: tuple[ExcludedTask, ...]
    figures: tuple[PairedFigure, ...]
    test: SignificanceTest
    detectable: float | None
    flips: tuple[Flip, ...]
    allowed_mismatches: tuple[Mismatch, ...]
    other_differences: tuple[Mismatch, ...]
    adjusted_p: float | None = None

    @property
    def epochs(self) -> int:
        """The largest number of episodes of one task on either side."""
        return max(self.first.epochs, self.second.epochs)


def compare_all(sides: Sequence[Side], allow_mismatch: Sequence[str] = ()) -> list[Comparison]:
    """Compare the first side with each other one, with p-values adjusted for their number.

    Raises UsageError as ``check_conditions`` does.
    """
    comparisons = [compare(sides[0], other, allow_mismatch) for other in sides[1:]]
    if len(comparisons) < 2:
        return comparisons
    adjusted_ps = holm_adjusted([c.test.p for c in comparisons])
    return [replace(c, adjusted_p=p) for c, p in zip(comparisons, adjusted_ps, strict=True)]


def compare(first: Side, second: Side, allow_mismatch: Sequence[str] = ()) -> Comparison:
    """Compare two sides by the tasks that both have played.

    Raises UsageError if a condition differs that ``allow_mismatch`` does not name, or no task is in
    both.
    """
    allowed = check_conditions(first, second, allow_mismatch)
    tasks = tuple(_common_tasks(first, second))
    if not tasks:
        raise UsageError(
            f"{first.path} and {second.path} have no task in common; {_WHOLE_DIRECTORY}"
        )
    pairs = [(first.tasks[task], second.tasks[task]) for task in tasks]
    differences = [_success_share(b) - _success_share(a) for a, b in pairs]
    solved = [([*map(metrics.is_solved, a)], [*map(metrics.is_solved, b)]) for a, b in pairs]
    return Comparison(
        first,
        second,
        tasks,
        excluded=tuple(_excluded_tasks(first, second, tasks)),
        figures=tuple(_paired_figures(pairs)),
        test=paired_success_test(solved),
        detectable=_detectable_points(differences, max(first.epochs, second.epochs)),
        flips=tuple(_flips(tasks, pairs)),
        allowed_mismatches=tuple(allowed),
        other_differences=tuple(
            _differences(first, second, {name: (name,) for name in REPORTED_METADATA})
        ),
    )


def _paired_figures(
    pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]],
) -> list[PairedFigure]:
    def completed(of: _FigureFunction) -> _FigureFunction:
        return lambda t: None if is_failed(t) else of(t)

    means: list[tuple[str, str, _FigureFunction]] = [
        ("success", "%", lambda t: 100.0 * metrics.is_solved(t)),
        *((n, unit, of if n == BEST_REWARD else completed(of)) for n, unit, of in MEAN_FIGURES),
    ]
    figures = [_paired_figure(name, unit, pairs, of) for name, unit, of in means]
    return [figure for figure in figures if figure is not None]


def _paired_figure(
    name: str,
    unit: str,
    pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]],
    of: _FigureFunction,
) -> PairedFigure | None:
    """Return a figure over the tasks for which both sides know it; None if there is no such
    task."""
    values = [(_mean(a, of), _mean(b, of)) for a, b in pairs]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    if not known:
        return None
    samples = sum(len(a) + len(b) for a, b in pairs)
    bound = 100.0 if name == "success" else None
    difference = estimate_paired_difference([b - a for a, b in known], bound=bound, samples=samples)
    if name == BEST_REWARD and difference.low is not None and difference.high is not None:
        difference = replace(
            difference, low=max(difference.low, -1.0), high=min(difference.high, 1.0)
        )
    return PairedFigure(
        name, unit, fmean(a for a, _ in known), fmean(b for _, b in known), difference
    )


def _mean(episodes: Sequence[Trajectory], of: _FigureFunction) -> float | None:
    known = [value for t in episodes if (value := of(t)) is not None]
    return fmean(known) if known else None


def _success_share(episodes: Sequence[Trajectory]) -> Fraction:
    return Fraction(sum(map(metrics.is_solved, episodes)), len(episodes))


def _detectable_points(differences: Sequence[Fraction], epochs: int) -> float | None:
    """Return the detectable difference in percent points, from the spread of the observed
    differences."""
    error = paired_standard_error(list(map(float, differences)), bound=1.0)
    detectable = detectable_difference(
        error, len(differences), epochs=epochs, level=LEVEL, power=POWER
    )
    return None if detectable is None else 100 * detectable


def _flips(
    tasks: Sequence[str], pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]]
) -> list[Flip]:
    """Return the flipped tasks: first those that the second side solves more often, by
    difference."""
    out = []
    for task, (a, b) in zip(tasks, pairs, strict=True):
        before, after = float(_success_share(a)), float(_success_share(b))
        several = max(len(a), len(b)) > 1
        flaky = (0 < before < 1 or 0 < after < 1) if several else None
        if before != after:
            out.append(Flip(task, before, after, flaky))
    return sorted(out, key=lambda flip: flip.first - flip.second)


def _excluded_tasks(first: Side, second: Side, tasks: Sequence[str]) -> list[ExcludedTask]:
    compared = set(tasks)
    return [
        ExcludedTask(task, f"missing in {other.letter}")
        for own, other in ((first, second), (second, first))
        for task in own.tasks
        if task not in compared
    ]
