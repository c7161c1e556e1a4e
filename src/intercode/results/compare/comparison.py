"""Two runs, task by task: paired differences with intervals, an exact test, and what flipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.compare.sides import Mismatch, Side, check_conditions, other_differences
from intercode.results.statistics import metrics
from intercode.results.statistics.figures import MEAN_FIGURES
from intercode.results.statistics.intervals import (
    Estimate,
    estimate_paired_difference,
    paired_standard_error,
)
from intercode.results.statistics.significance import (
    TestResult,
    detectable_difference,
    holm_adjusted,
    mcnemar_p,
    sign_flip_test,
)

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
