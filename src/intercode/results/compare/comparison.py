"""Two runs, task by task: paired differences with intervals, an exact test, and what flipped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.logs import find_logs, load_log
from intercode.core.registry import unknown_name_error
from intercode.core.types import Trajectory
from intercode.results.report.result_sets import ResultSet, collect_result_sets
from intercode.results.statistics import metrics
from intercode.results.statistics.figures import MEAN_FIGURES
from intercode.results.statistics.intervals import (
    Estimate,
    estimate_paired_difference,
    paired_standard_error,
)
from intercode.results.statistics.metrics import is_failed
from intercode.results.statistics.samples import by_task, independent_episodes, max_epochs
from intercode.results.statistics.significance import (
    TestResult,
    detectable_difference,
    holm_adjusted,
    mcnemar_p,
    sign_flip_test,
)

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
    "policy": ("policy",),
    "determinism": ("determinism",),
}
"""What two results must have in common to be compared, by the name that ``allow_mismatch`` takes, and the
facts that tell it, of which the first that is recorded counts."""

REPORTED_METADATA = ("agent", "model", "max_turns", "timeout", "schema_given", "agent_options", "model_options",
        "generation", "prompts", "env_options", "seed", "version")  # fmt: skip
"""Facts that may differ, and are told where they do."""

NOT_RECORDED = "not recorded"
_ABSENCE_MEANS_NONE = ("policy", "determinism", "schema_given")
"""Facts whose absence is recorded by leaving them out."""
_MAX_LENGTH = 60


@dataclass(frozen=True)
class Side:
    """One side: its episodes, failed ones included, and the letter that stands for it."""

    letter: str
    path: Path
    entry: ResultSet

    @cached_property
    def tasks(self) -> dict[str, list[Trajectory]]:
        """The episodes that count, by task (see samples.py)."""
        return by_task(independent_episodes(self.entry.episodes))

    @cached_property
    def failed(self) -> set[str]:
        """Tasks all of whose episodes ended in an error of the infrastructure."""
        return {t.task for t in self.entry.episodes if is_failed(t)} - self.tasks.keys()

    @property
    def epochs(self) -> int:
        """The largest number of episodes that a task has."""
        return max_epochs(t for same in self.tasks.values() for t in same)

    @property
    def label(self) -> str:
        """Agent and model."""
        return f"{self.entry.agent}, {self.entry.model}"

    def recorded_value(self, names: Sequence[str]) -> str:
        """What the episodes say under the first of these names that is recorded, as text; several
        values are joined."""
        for name in names:
            found = {_value_text(t.run.get(name)) for t in self.entry.episodes}
            if found != {NOT_RECORDED}:
                return " + ".join(sorted(found))
        return NOT_RECORDED


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something in which two sides differ."""

    name: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.name}: {_shorten(self.first)} | {_shorten(self.second)}"


def open_side(letter: str, path: Path) -> Side:
    """The one run that lies at a path: a run directory, a file, or a directory of published logs
    that make one row of a report.

    Raises UsageError where there are several, naming them, or no episode.
    """
    entries = collect_result_sets([(log, load_log(log)) for log in find_logs([path])])
    if len(entries) > 1:
        named = "; ".join(f"{e.log} ({e.agent}, {e.model})" for e in entries[:6])
        raise UsageError(
            f"{path} holds {len(entries)} runs, compare one of them: {named}. Published logs of "
            "one agent and model make one side where they have a directory of their own."
        )
    if not entries:
        raise UsageError(f"{path} holds no episode: nothing to compare")
    return Side(letter, path, entries[0])


def condition_mismatches(first: Side, second: Side) -> list[Mismatch]:
    """The conditions in which two sides differ. What only one of them records is a difference;
    no policy, and no determinism, are what is meant where none is recorded."""
    return _differences(first, second, CONDITIONS)


def other_differences(first: Side, second: Side) -> list[Mismatch]:
    """What else differs, with which comparing is meant to be possible."""
    return _differences(first, second, {name: (name,) for name in REPORTED_METADATA})


def check_conditions(
    first: Side, second: Side, allow_mismatch: Sequence[str] = ()
) -> list[Mismatch]:
    """The conditions that differ and are let pass, all named in ``allow_mismatch``.

    Raises UsageError for another difference, with the option that would let it pass, and for two
    environments; UnknownNameError for a name in ``allow_mismatch`` that is no condition.
    """
    for name in allow_mismatch:
        if name not in CONDITIONS:
            raise unknown_name_error("condition", name, list(CONDITIONS))
    where = (first.entry.environment, second.entry.environment)
    if where[0] != where[1]:
        raise UsageError(f"{first.path} is {where[0]} and {second.path} is {where[1]}: no task of "
                         "the one is one of the other")  # fmt: skip
    differing = condition_mismatches(first, second)
    refused = [d for d in differing if d.name not in allow_mismatch]
    if refused:
        words = "; ".join(map(str, refused))
        option = ",".join(d.name for d in differing)
        raise UsageError(
            f"{first.letter} and {second.letter} cannot be compared, they differ in {words}. "
            f"If that is meant: --allow-mismatch {option}"
        )
    return differing


def _differences(first: Side, second: Side, names: Mapping[str, Sequence[str]]) -> list[Mismatch]:
    out = []
    for name, facts in names.items():
        a, b = first.recorded_value(facts), second.recorded_value(facts)
        if name in _ABSENCE_MEANS_NONE:
            a, b = (value.replace(NOT_RECORDED, "none") for value in (a, b))
        if a != b:
            out.append(Mismatch(name, a, b))
    return out


def _value_text(value: Any) -> str:
    if value is None or value is False or value == {} or value == []:
        return NOT_RECORDED
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    return str(value)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 3]}..."


POWER = 0.8
LEVEL = 0.95

_FigureFunction = Callable[[Trajectory], float | None]


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """One figure on both sides, means over tasks, and ``second - first`` with its interval."""

    name: str
    unit: str
    first: float
    second: float
    difference: Estimate


@dataclass(frozen=True, slots=True)
class Flip:
    """A task that the two sides solve unequally often. ``first`` and ``second`` are shares of its
    episodes in 0..1. ``flaky``: in one of them at least it is neither always nor never solved;
    None where no side has several episodes, so that nothing can tell."""

    task: str
    first: float
    second: float
    flaky: bool | None


@dataclass(frozen=True, slots=True)
class ExcludedTask:
    """A task in neither figure, and why."""

    task: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """What a comparison found. ``tasks`` have episodes on both sides, and only they count.

    ``test`` is of the difference in success; ``adjusted`` its p-value where several comparisons
    were made together (Holm). ``detectable``: the smallest true difference in success, in percent
    points, that these tasks find with a power of 0.8. ``passed``: conditions that differ and were
    let pass; ``also``: what else differs.
    """

    first: Side
    second: Side
    tasks: tuple[str, ...]
    excluded: tuple[ExcludedTask, ...]
    figures: tuple[PairedFigure, ...]
    test: TestResult
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
    """The first side against each other one, with p-values adjusted for their number.

    Raises UsageError as ``compare_sides.check`` does.
    """
    found = [compare(sides[0], other, allow_mismatch) for other in sides[1:]]
    if len(found) < 2:
        return found
    together = holm_adjusted([c.test.p for c in found])
    return [replace(c, adjusted_p=p) for c, p in zip(found, together, strict=True)]


def compare(first: Side, second: Side, allow_mismatch: Sequence[str] = ()) -> Comparison:
    """Two sides by the tasks that both have played.

    Raises UsageError where a condition differs that ``allow_mismatch`` does not name, or no task is in
    both.
    """
    passed = check_conditions(first, second, allow_mismatch)
    tasks = tuple(task for task in first.tasks if task in second.tasks)
    if not tasks:
        raise UsageError(f"{first.path} and {second.path} have no task in common")
    pairs = [(first.tasks[task], second.tasks[task]) for task in tasks]
    moved = [_success_share(b) - _success_share(a) for a, b in pairs]
    single = all(len(a) == len(b) == 1 for a, b in pairs)
    gained, lost = sum(d > 0 for d in moved), sum(d < 0 for d in moved)
    test = (
        TestResult(mcnemar_p(lost, gained), "exact McNemar test")
        if single
        else sign_flip_test(moved)
    )
    measured = [m for m in _paired_figures(pairs) if m is not None]
    return Comparison(
        first, second, tasks, tuple(_excluded_tasks(first, second)), tuple(measured), test,
        _detectable_points(moved), tuple(_flips(tasks, pairs)), tuple(passed), tuple(other_differences(first, second)),
    )  # fmt: skip


def _paired_figures(
    pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]],
) -> list[PairedFigure | None]:
    def percent(of: _FigureFunction) -> _FigureFunction:
        return lambda t: None if (value := of(t)) is None else 100 * value

    means: list[tuple[str, str, _FigureFunction]] = [
        ("success", "%", lambda t: 100.0 * t.success),
        ("error % true", "%", percent(metrics.true_error_share)),
        *MEAN_FIGURES,
    ]
    return [_paired_figure(name, unit, pairs, of) for name, unit, of in means]


def _paired_figure(
    name: str,
    unit: str,
    pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]],
    of: _FigureFunction,
) -> PairedFigure | None:
    """A figure over the tasks for which both sides know it; None where there is no such task."""
    values = [(_mean(a, of), _mean(b, of)) for a, b in pairs]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    if not known:
        return None
    samples = sum(len(a) + len(b) for a, b in pairs)
    reach = 100.0 if name == "success" else None
    difference = estimate_paired_difference([b - a for a, b in known], bound=reach, samples=samples)
    return PairedFigure(
        name, unit, fmean(a for a, _ in known), fmean(b for _, b in known), difference
    )


def _mean(episodes: Sequence[Trajectory], of: _FigureFunction) -> float | None:
    known = [value for t in episodes if (value := of(t)) is not None]
    return fmean(known) if known else None


def _success_share(episodes: Sequence[Trajectory]) -> Fraction:
    return Fraction(sum(t.success for t in episodes), len(episodes))


def _detectable_points(moved: Sequence[Fraction]) -> float | None:
    """In percent points, from the spread of the differences seen."""
    error = paired_standard_error(list(map(float, moved)), bound=1.0)
    found = detectable_difference(error, len(moved), level=LEVEL, power=POWER)
    return None if found is None else 100 * found


def _flips(
    tasks: Sequence[str], pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]]
) -> list[Flip]:
    """Those that the second side solves more often first, the greatest difference first."""
    out = []
    for task, (a, b) in zip(tasks, pairs, strict=True):
        before, after = float(_success_share(a)), float(_success_share(b))
        several = max(len(a), len(b)) > 1
        flaky = (0 < before < 1 or 0 < after < 1) if several else None
        if before != after:
            out.append(Flip(task, before, after, flaky))
    return sorted(out, key=lambda flip: flip.first - flip.second)


def _excluded_tasks(first: Side, second: Side) -> list[ExcludedTask]:
    out = []
    for here, there in ((first, second), (second, first)):
        for task in here.tasks:
            if task in there.failed:
                out.append(ExcludedTask(task, f"ended in an error in {there.letter}"))
            elif task not in there.tasks:
                out.append(ExcludedTask(task, f"missing in {there.letter}"))
    both = first.failed & second.failed
    out += [ExcludedTask(task, "ended in an error in both") for task in sorted(both)]
    return out
