"""Rates of a grader: how often it agrees with labels, and how often it errs in each direction.

Two figures for each rate: the share of the labels, and that of the trajectories for which they
stand, by their weights. Formulas: ``estimate_weighted_share``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from intercode.results.statistics.intervals import (
    Estimate,
    clusters_by_task,
    estimate_proportion,
    wilson_interval,
)
from intercode_lab.labels.records import CORRECT
from intercode_lab.validity.grading import GradedLabel


@dataclass(frozen=True, slots=True)
class Rate:
    """A share: ``hits`` of ``of`` labels, with its interval, and by weight.

    ``share`` and ``weighted`` are None if there is nothing to divide by.
    """

    name: str
    hits: int
    of: int
    share: Estimate | None
    weighted: Estimate | None


@dataclass(frozen=True, slots=True)
class GroupRates:
    """The rates of some labels: ``name`` says which."""

    name: str
    rates: tuple[Rate, ...]

    def rate(self, name: str) -> Rate:
        """Return a rate by its name, one of RATES."""
        return next(rate for rate in self.rates if rate.name == name)


def _is_correct(graded: GradedLabel) -> bool:
    return graded.label.value == CORRECT


_Test = Callable[[GradedLabel], bool]
RATES: dict[str, tuple[_Test, _Test]] = {
    "accuracy": (lambda g: g.agrees, lambda _: True),
    "incorrect, of those graded 1": (lambda g: not _is_correct(g), lambda g: g.paid),
    "correct, of those graded below 1": (_is_correct, lambda g: not g.paid),
    "graded 1, of those incorrect": (lambda g: g.paid, lambda g: not _is_correct(g)),
    "graded below 1, of those correct": (lambda g: not g.paid, _is_correct),
}
"""What counts in each rate, and of which labels. The second and fourth count the false positives,
the third and fifth the false negatives."""


def group_rates(graded: Iterable[GradedLabel]) -> list[GroupRates]:
    """Return the rates on verified tasks, on the others, and on all, of the labels that count.

    A group without labels is left out, and so are the first two if the datasets have no verified
    subset.
    """
    counted = [g for g in graded if g.counted]
    groups = {
        "verified": [g for g in counted if g.verified],
        "not verified": [g for g in counted if g.verified is False],
        "all": counted,
    }
    if any(groups[name] == counted for name in ("verified", "not verified")):
        del groups["all"]
    return [GroupRates(name, _rates(labels)) for name, labels in groups.items() if labels]


def _rates(labels: Sequence[GradedLabel]) -> tuple[Rate, ...]:
    rates = []
    for name, (counts, belongs) in RATES.items():
        members = [g for g in labels if belongs(g)]
        share = estimate_proportion(clusters_by_task([(g.label.task, counts(g)) for g in members]))
        weighted = estimate_weighted_share(
            [(g.label.task, counts(g), g.label.weight) for g in members]
        )
        rates.append(Rate(name, sum(map(counts, members)), len(members), share, weighted))
    return tuple(rates)


def estimate_weighted_share(samples: Sequence[tuple[str, bool, float]]) -> Estimate | None:
    """Return the share of weight that counts, from (task, whether it counts, weight).

    The interval is Wilson's with the effective number of samples p(1-p)/SE², where SE is the
    standard error of the ratio of weighted sums, with tasks as the independent units. The effective
    number is at most (Σw)²/Σw² (Kish 1965, Survey Sampling) if all samples are alike, and otherwise
    at most their number. None without weight.
    """
    hits: dict[str, float] = defaultdict(float)
    sizes: dict[str, float] = defaultdict(float)
    for task, hit, weight in samples:
        if weight > 0:
            hits[task] += weight * hit
            sizes[task] += weight
    total = sum(sizes.values())
    if not total:
        return None
    share = sum(hits.values()) / total
    squares = sum((hits[task] - share * sizes[task]) ** 2 for task in sizes)
    n, count = len(sizes), sum(weight > 0 for _, _, weight in samples)
    kish = total**2 / sum(weight**2 for weight in sizes.values())
    effective = kish
    if squares and n > 1:
        variance = n / (n - 1) * squares / total**2
        effective = min(share * (1 - share) / variance, count)
    low, high = wilson_interval(share, effective)
    return Estimate(share, low, high, count, n, "Wilson, weighted")
