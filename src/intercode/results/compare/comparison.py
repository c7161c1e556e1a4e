"""Two runs, task by task: paired differences with intervals, an exact test, and what flipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.compare.sides import Side, Unlike, check, told
from intercode.results.statistics import metrics
from intercode.results.statistics.figures import MEANS
from intercode.results.statistics.intervals import Estimate, paired, paired_error
from intercode.results.statistics.significance import Tested, detectable, holm, mcnemar, sign_flip

POWER = 0.8
LEVEL = 0.95

_Measure = Callable[[Trajectory], float | None]


@dataclass(frozen=True, slots=True)
class Measured:
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
class LeftOut:
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
    left_out: tuple[LeftOut, ...]
    measured: tuple[Measured, ...]
    test: Tested
    detectable: float | None
    flips: tuple[Flip, ...]
    passed: tuple[Unlike, ...]
    also: tuple[Unlike, ...]
    adjusted: float | None = None

    @property
    def epochs(self) -> int:
        """The largest number of episodes of one task on either side."""
        return max(self.first.epochs, self.second.epochs)


def compare_all(sides: Sequence[Side], even_if: Sequence[str] = ()) -> list[Comparison]:
    """The first side against each other one, with p-values adjusted for their number.

    Raises UsageError as ``compare_sides.check`` does.
    """
    found = [compare(sides[0], other, even_if) for other in sides[1:]]
    if len(found) < 2:
        return found
    together = holm([c.test.p for c in found])
    return [replace(c, adjusted=p) for c, p in zip(found, together, strict=True)]


def compare(first: Side, second: Side, even_if: Sequence[str] = ()) -> Comparison:
    """Two sides by the tasks that both have played.

    Raises UsageError where a condition differs that ``even_if`` does not name, or no task is in
    both.
    """
    passed = check(first, second, even_if)
    tasks = tuple(task for task in first.tasks if task in second.tasks)
    if not tasks:
        raise UsageError(f"{first.path} and {second.path} have no task in common")
    pairs = [(first.tasks[task], second.tasks[task]) for task in tasks]
    moved = [_solved(b) - _solved(a) for a, b in pairs]
    single = all(len(a) == len(b) == 1 for a, b in pairs)
    gained, lost = sum(d > 0 for d in moved), sum(d < 0 for d in moved)
    test = Tested(mcnemar(lost, gained), "exact McNemar test") if single else sign_flip(moved)
    measured = [m for m in _measures(pairs) if m is not None]
    return Comparison(
        first, second, tasks, tuple(_left_out(first, second)), tuple(measured), test,
        _detectable(moved), tuple(_flips(tasks, pairs)), tuple(passed), tuple(told(first, second)),
    )  # fmt: skip


def _measures(
    pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]],
) -> list[Measured | None]:
    def percent(of: _Measure) -> _Measure:
        return lambda t: None if (value := of(t)) is None else 100 * value

    means: list[tuple[str, str, _Measure]] = [
        ("success", "%", lambda t: 100.0 * t.success),
        ("error % true", "%", percent(metrics.true_error_share)),
        *MEANS,
    ]
    return [_measured(name, unit, pairs, of) for name, unit, of in means]


def _measured(
    name: str,
    unit: str,
    pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]],
    of: _Measure,
) -> Measured | None:
    """A figure over the tasks for which both sides know it; None where there is no such task."""
    values = [(_mean(a, of), _mean(b, of)) for a, b in pairs]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    if not known:
        return None
    samples = sum(len(a) + len(b) for a, b in pairs)
    reach = 100.0 if name == "success" else None
    difference = paired([b - a for a, b in known], reach=reach, samples=samples)
    return Measured(name, unit, fmean(a for a, _ in known), fmean(b for _, b in known), difference)


def _mean(episodes: Sequence[Trajectory], of: _Measure) -> float | None:
    known = [value for t in episodes if (value := of(t)) is not None]
    return fmean(known) if known else None


def _solved(episodes: Sequence[Trajectory]) -> Fraction:
    return Fraction(sum(t.success for t in episodes), len(episodes))


def _detectable(moved: Sequence[Fraction]) -> float | None:
    """In percent points, from the spread of the differences seen."""
    error = paired_error(list(map(float, moved)), reach=1.0)
    found = detectable(error, len(moved), level=LEVEL, power=POWER)
    return None if found is None else 100 * found


def _flips(
    tasks: Sequence[str], pairs: Sequence[tuple[list[Trajectory], list[Trajectory]]]
) -> list[Flip]:
    """Those that the second side solves more often first, the greatest difference first."""
    out = []
    for task, (a, b) in zip(tasks, pairs, strict=True):
        before, after = float(_solved(a)), float(_solved(b))
        several = max(len(a), len(b)) > 1
        flaky = (0 < before < 1 or 0 < after < 1) if several else None
        if before != after:
            out.append(Flip(task, before, after, flaky))
    return sorted(out, key=lambda flip: flip.first - flip.second)


def _left_out(first: Side, second: Side) -> list[LeftOut]:
    out = []
    for here, there in ((first, second), (second, first)):
        for task in here.tasks:
            if task in there.failed:
                out.append(LeftOut(task, f"ended in an error in {there.letter}"))
            elif task not in there.tasks:
                out.append(LeftOut(task, f"missing in {there.letter}"))
    both = first.failed & second.failed
    out += [LeftOut(task, "ended in an error in both") for task in sorted(both)]
    return out
