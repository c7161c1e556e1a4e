"""Estimates with confidence intervals from clustered samples: several episodes of one task are not
independent. Shares lie in 0..1 here.

A cluster is the samples of one task. Formulas and their conditions: docs/statistics.md.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from intercode.results.statistics.distributions import normal_cdf, normal_quantile, t_quantile

LEVEL = 0.95
_UPPER = (1 + LEVEL) / 2
RESAMPLES = 2000
SINGLE_TASK, NO_SPREAD = "one task only", "no spread seen"
"""Values of ``Estimate.method`` that say why there is no interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the interval that contains the true value in ``LEVEL`` of all experiments.

    ``low`` and ``high`` are None if the spread is unknown. ``samples`` were counted, in
    ``clusters`` (tasks). ``method`` names how the interval was computed.
    """

    value: float
    low: float | None
    high: float | None
    samples: int
    clusters: int
    method: str

    def scaled(self, factor: float) -> Estimate:
        """Return the same estimate in another unit, such as percent."""
        low, high = (None if b is None else factor * b for b in (self.low, self.high))
        return replace(self, value=factor * self.value, low=low, high=high)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The contribution of one task to a share: ``hits`` of ``size`` samples."""

    hits: float
    size: int


def wilson_interval(share: float, size: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval for a share of ``size`` independent samples (Wilson 1927, JASA
    22).

    ``size`` may be an effective number, and need not be whole.
    """
    return _wilson_bounds(share, size, normal_quantile((1 + level) / 2))


def estimate_proportion(clusters: Sequence[Cluster]) -> Estimate | None:
    """Return a share of all samples, with an interval that treats clusters as the independent
    units.

    If every cluster has one sample: Wilson's score interval. Else Wilson's with the effective
    number of samples p(1-p)/SE² (Korn & Graubard 1998, Survey Methodology 24), SE being the
    cluster-robust standard error of a ratio (Cochran 1977, Sampling Techniques, 6.4) and Student's
    t on clusters - 1 degrees of freedom in place of the normal quantile. The effective number is at
    most that of the samples. If all clusters are alike: Wilson's with one sample per cluster. None
    without samples.
    """
    counted = [c for c in clusters if c.size]
    n, total = len(counted), sum(c.size for c in counted)
    if not total:
        return None
    share = sum(c.hits for c in counted) / total
    if total == n:
        return Estimate(share, *wilson_interval(share, n), n, n, "Wilson")
    variance = ratio_variance(counted)
    if variance is None:
        return Estimate(share, None, None, total, n, SINGLE_TASK)
    if not variance:
        return Estimate(share, *wilson_interval(share, n), total, n, "Wilson, one per task")
    effective = min(share * (1 - share) / variance, total)
    bounds = _wilson_bounds(share, effective, t_quantile(_UPPER, n - 1))
    return Estimate(share, *bounds, total, n, "Wilson, clustered by task")


def ratio_variance(clusters: Sequence[Cluster]) -> float | None:
    """Return the variance of Σhits/Σsize over clusters: n/(n-1) Σ(hits - r·size)² / (Σsize)².

    None for fewer than two clusters. (Cochran 1977, 6.4: the linearized variance of a ratio.)
    """
    n, total = len(clusters), sum(c.size for c in clusters)
    if n < 2 or not total:
        return None
    ratio = sum(c.hits for c in clusters) / total
    return n / (n - 1) * sum((c.hits - ratio * c.size) ** 2 for c in clusters) / total**2


def estimate_mean(values: Sequence[Sequence[float]]) -> Estimate | None:
    """Return the mean over all samples, with Student's t interval that treats clusters as the
    units.

    Its standard error is that of a ratio (see ``ratio_variance``); with clusters of one size it is
    that of the clusters' means. None without samples. One cluster has no interval, nor have
    clusters that are all alike: their spread is unknown then.
    """
    counted = [Cluster(math.fsum(v), len(v)) for v in values if v]
    if not counted:
        return None
    n, total = len(counted), sum(c.size for c in counted)
    value, variance = math.fsum(c.hits for c in counted) / total, ratio_variance(counted)
    if not variance:
        return Estimate(value, None, None, total, n, SINGLE_TASK if n == 1 else NO_SPREAD)
    margin = t_quantile(_UPPER, n - 1) * math.sqrt(variance)
    return Estimate(value, value - margin, value + margin, total, n, "t over tasks")


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean of independent values: s/√n. None for fewer than two."""
    n = len(values)
    if n < 2:
        return None
    centre = fmean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (n - 1) / n)


def bootstrap_interval(
    values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0, expanded: bool = True
) -> tuple[float, float]:
    """Return a percentile interval for the mean of one value per cluster, resampling whole
    clusters.

    ``expanded`` moves the percentiles outwards to Φ(±√(n/(n-1)) t), without which the interval is
    too short for few clusters (Hesterberg 2015, The American Statistician 69, section 5.2). The
    same seed gives the same interval. ``values`` must not be empty.
    """
    draw = random.Random(seed).choices
    n, all_of = len(values), list(values)
    means = sorted(sum(draw(all_of, k=n)) / n for _ in range(resamples))
    tail = (1 - LEVEL) / 2
    if expanded and n > 1:
        tail = normal_cdf(-math.sqrt(n / (n - 1)) * t_quantile(1 - tail, n - 1))
    return _percentile(means, tail), _percentile(means, 1 - tail)


def estimate_bootstrap_mean(values: Sequence[float], *, samples: int) -> Estimate | None:
    """Return the mean of one value in 0..1 per cluster with its bootstrap interval.

    If all values are equal, all resamples are equal; the interval is then Wilson's with one sample
    per cluster. None without values; one cluster has no interval.
    """
    if not values:
        return None
    n, value = len(values), fmean(values)
    if n == 1:
        return Estimate(value, None, None, samples, n, SINGLE_TASK)
    if min(values) == max(values):
        return Estimate(value, *wilson_interval(value, n), samples, n, "Wilson, one per task")
    return Estimate(value, *bootstrap_interval(values), samples, n, "bootstrap over tasks")


def estimate_paired_difference(
    differences: Sequence[float], *, bound: float | None = None, samples: int | None = None
) -> Estimate:
    """Return the mean of differences, one per task, with an interval. ``bound`` is the largest
    possible difference of shares (1, or 100 in percent); ``samples`` is the number of episodes in
    them.

    If each difference is 0 or ±bound, as with one episode per task, or all are equal: the adjusted
    Wald interval of Bonett & Price (2012, J. Educ. Behav. Stat. 37), which adds one difference of
    each extreme. Else Student's t over tasks, and no interval if the spread is unknown.
    ``differences`` must not be empty.
    """
    n, value = len(differences), fmean(differences)
    total = n if samples is None else samples
    if bound is not None and _is_three_valued(differences, bound):
        extended = [*differences, bound, -bound]
        margin = normal_quantile(_UPPER) * paired_standard_error(differences, bound=bound)
        low, high = max(-bound, fmean(extended) - margin), min(bound, fmean(extended) + margin)
        return Estimate(value, min(low, value), max(high, value), total, n, "paired, Bonett-Price")
    error = standard_error(differences)
    if not error:
        return Estimate(value, None, None, total, n, SINGLE_TASK if n == 1 else NO_SPREAD)
    margin = t_quantile(_UPPER, n - 1) * error
    low, high = value - margin, value + margin
    if bound is not None:
        low, high = max(-bound, low), min(bound, high)
    return Estimate(value, low, high, total, n, "paired, t over tasks")


def paired_standard_error(differences: Sequence[float], *, bound: float) -> float:
    """Return the standard error of the mean of differences of shares, as
    ``estimate_paired_difference`` uses it."""
    if not _is_three_valued(differences, bound):
        return standard_error(differences) or 0.0
    extended = [*differences, bound, -bound]
    centre = fmean(extended)
    return math.sqrt(max(0.0, fmean(d * d for d in extended) - centre * centre) / len(extended))


def _is_three_valued(differences: Sequence[float], bound: float) -> bool:
    steps = {abs(d) for d in differences}
    return steps <= {0.0, bound} or min(differences) == max(differences)


def value_and_bounds(
    estimate: Estimate | None,
) -> tuple[float | None, float | None, float | None]:
    """Return an estimate's value and interval, None for each that is unknown."""
    return (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)


def values_by_task(pairs: Sequence[tuple[str, float]]) -> list[list[float]]:
    """Return values by the task that they belong to, in the order of the first of each."""
    out: dict[str, list[float]] = {}
    for task, value in pairs:
        out.setdefault(task, []).append(value)
    return list(out.values())


def clusters_by_task(pairs: Sequence[tuple[str, bool]]) -> list[Cluster]:
    """Return one cluster of yes and no per task."""
    grouped = values_by_task([(task, float(hit)) for task, hit in pairs])
    return [Cluster(sum(values), len(values)) for values in grouped]


def _wilson_bounds(share: float, size: float, z: float) -> tuple[float, float]:
    """Return Wilson's interval at any quantile."""
    shrink = 1 + z * z / size
    centre = (share + z * z / (2 * size)) / shrink
    margin = z * math.sqrt(share * (1 - share) / size + z * z / (4 * size * size)) / shrink
    low = 0.0 if share == 0 else max(0.0, centre - margin)
    return low, 1.0 if share == 1 else min(1.0, centre + margin)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, linear between neighbours."""
    position = share * (len(ordered) - 1)
    lower = math.floor(position)
    upper = min(lower + 1, len(ordered) - 1)
    return ordered[lower] + (position - lower) * (ordered[upper] - ordered[lower])
