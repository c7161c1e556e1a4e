"""Intervals: against SciPy where it has them, and against the true value by simulation."""

from __future__ import annotations

import random
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from intercode.results.statistics.intervals import (
    Cluster,
    Estimate,
    bootstrap_interval,
    clusters_by_task,
    estimate_bootstrap_mean,
    estimate_mean,
    estimate_paired_difference,
    estimate_proportion,
    ratio_variance,
    values_by_task,
    wilson_interval,
)


def _bounds(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None and estimate.low is not None and estimate.high is not None
    return estimate.low, estimate.high


def test_wilson_against_scipy() -> None:
    draw = random.Random(1)
    for _ in range(300):
        n = draw.randrange(1, 2000)
        k = draw.choice((0, n, draw.randrange(n + 1)))
        level = draw.choice((0.9, 0.95, 0.99))
        expected = stats.binomtest(k, n).proportion_ci(level, method="wilson")
        assert wilson_interval(k / n, n, level) == pytest.approx(tuple(expected), abs=1e-9), (k, n)


def test_one_sample_a_cluster_is_wilson() -> None:
    found = estimate_proportion([Cluster(1, 1)] * 7 + [Cluster(0, 1)] * 3 + [Cluster(0, 0)])
    assert found is not None and found.method == "Wilson"
    assert (found.value, found.samples, found.clusters) == (0.7, 10, 10)
    assert _bounds(found) == wilson_interval(0.7, 10)


def test_a_mean_is_the_t_interval_over_clusters_of_one_size() -> None:
    draw = random.Random(2)
    for _ in range(100):
        n, epochs = draw.randrange(2, 60), draw.randrange(1, 6)
        values = [[draw.gauss(3, 2) for _ in range(epochs)] for _ in range(n)]
        found = estimate_mean(values)
        means = [fmean(v) for v in values]
        expected = stats.ttest_1samp(means, 0).confidence_interval(0.95)
        assert _bounds(found) == pytest.approx(tuple(expected), rel=1e-9, abs=1e-9)
        assert found is not None and (found.samples, found.clusters) == (n * epochs, n)


def test_the_variance_of_a_ratio_against_manual_values() -> None:
    clusters = [Cluster(1, 2), Cluster(3, 3), Cluster(0, 1)]
    ratio = 4 / 6
    expected = 3 / 2 * ((1 - 2 * ratio) ** 2 + (3 - 3 * ratio) ** 2 + ratio**2) / 36
    assert ratio_variance(clusters) == pytest.approx(expected, rel=1e-12)
    assert ratio_variance(clusters[:1]) is None


def test_epochs_that_always_agree_count_as_one() -> None:
    """Four equal epochs are not four independent results: the interval is close to that of the
    tasks."""
    once = _bounds(estimate_proportion([Cluster(1, 1)] * 30 + [Cluster(0, 1)] * 20))
    found = _bounds(estimate_proportion([Cluster(4, 4)] * 30 + [Cluster(0, 4)] * 20))
    assert found == pytest.approx(once, abs=0.01)
    naive = wilson_interval(0.6, 200)
    assert found[1] - found[0] > 1.8 * (naive[1] - naive[0])


def test_all_or_none_has_an_interval_for_the_number_of_tasks() -> None:
    low, high = _bounds(estimate_proportion([Cluster(4, 4)] * 20))
    assert (low, high) == wilson_interval(1.0, 20)
    assert _bounds(estimate_proportion([Cluster(0, 4)] * 20)) == pytest.approx((0.0, 1 - low))


def test_too_few_values_have_no_interval() -> None:
    assert estimate_proportion([]) is None and estimate_proportion([Cluster(0, 0)]) is None
    assert (
        estimate_mean([]) is None
        and estimate_mean([[]]) is None
        and estimate_bootstrap_mean([], samples=0) is None
    )
    for one in (
        estimate_proportion([Cluster(2, 4)]),
        estimate_mean([[1.0, 2.0]]),
        estimate_bootstrap_mean([0.5], samples=4),
    ):
        assert one is not None and one.low is None and one.high is None
        assert one.method == "one task only"


def test_equal_means_have_no_interval() -> None:
    for one in (
        estimate_mean([[2.0, 2.0], [2.0]]),
        estimate_paired_difference([0.5] * 4),
        estimate_paired_difference([0.5] * 4, samples=8),
    ):
        assert one is not None and one.low is None and one.high is None
        assert one.method == "no spread seen"


def test_bootstrap_against_scipy() -> None:
    """The percentile interval is equal within the sampling error, for several kinds of values."""
    draw = random.Random(3)
    for case in range(12):
        n = draw.randrange(10, 80)
        values = [
            draw.choice((0.0, 0.25, 0.5, 1.0)) if case % 2 else draw.expovariate(1)
            for _ in range(n)
        ]
        found = bootstrap_interval(values, resamples=4000, seed=case, expanded=False)
        theirs = stats.bootstrap(
            (np.array(values),),
            np.mean,
            n_resamples=4000,
            method="percentile",
            rng=np.random.default_rng(case),
            vectorized=True,
            axis=-1,
        ).confidence_interval
        # A 2.5 % quantile of 4000 draws of a normal has a standard error of 0.042 spreads.
        near = 5 * 2**0.5 * 0.042 * np.std(values) / n**0.5
        assert found == pytest.approx((theirs.low, theirs.high), abs=near)


def test_the_expanded_bootstrap_has_the_width_of_t() -> None:
    draw = random.Random(4)
    values = [draw.gauss(0, 1) for _ in range(12)]
    low, high = bootstrap_interval(values, resamples=6000)
    error = np.std(values, ddof=1) / 12**0.5
    reach = stats.t.ppf(0.975, 11) * error
    assert high - low == pytest.approx(2 * reach, rel=0.06)
    narrow = bootstrap_interval(values, resamples=6000, expanded=False)
    assert narrow[1] - narrow[0] < 0.92 * (high - low)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [0.0, 0.5, 1.0, 0.25, 1.0]
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert estimate_bootstrap_mean(values, samples=20) == estimate_bootstrap_mean(
        values, samples=20
    )


def test_paired_with_one_epoch_is_bonett_and_price() -> None:
    moved = [1.0] * 12 + [-1.0] * 5 + [0.0] * 43
    found = estimate_paired_difference(moved, bound=1.0)
    p12, p21, n = 13 / 62, 6 / 62, 62  # the article's formula adds 1 to each count and 2 to n
    reach = stats.norm.ppf(0.975) * ((p12 + p21 - (p12 - p21) ** 2) / n) ** 0.5
    assert _bounds(found) == pytest.approx((p12 - p21 - reach, p12 - p21 + reach), rel=1e-9)
    assert found.value == pytest.approx(7 / 60)
    percent = estimate_paired_difference([100 * d for d in moved], bound=100.0)
    assert _bounds(percent) == pytest.approx(tuple(100 * b for b in _bounds(found)))


def test_paired_with_epochs_is_the_paired_t_interval() -> None:
    draw = random.Random(5)
    for _ in range(50):
        n = draw.randrange(3, 40)
        first = [draw.randint(0, 4) / 4 for _ in range(n)]
        second = [draw.randint(0, 4) / 4 for _ in range(n)]
        moved = [b - a for a, b in zip(first, second, strict=True)]
        if {abs(d) for d in moved} <= {0.0, 1.0} or min(moved) == max(moved):
            continue
        expected = stats.ttest_rel(second, first).confidence_interval(0.95)
        clipped = (max(-1.0, expected.low), min(1.0, expected.high))
        assert _bounds(estimate_paired_difference(moved, bound=1.0)) == pytest.approx(
            clipped, abs=1e-9
        )


def test_no_difference_at_all_is_not_certainty() -> None:
    low, high = _bounds(estimate_paired_difference([0.0] * 20, bound=1.0))
    assert low == pytest.approx(-high) and 0.05 < high < 0.2
    assert _bounds(estimate_paired_difference([1.0] * 20, bound=1.0))[1] == 1.0


def test_grouping_keeps_tasks_together() -> None:
    assert values_by_task([("a", 1.0), ("b", 2.0), ("a", 3.0)]) == [[1.0, 3.0], [2.0]]
    assert clusters_by_task([("a", True), ("b", False), ("a", False)]) == [
        Cluster(1, 2),
        Cluster(0, 1),
    ]


# Coverage by simulation. With 800 rounds the standard error of a share of 95 % is 0.8 points: a
# true 95 % falls below 91.5 % or a true 80 % rises above 88 % with a chance below 1 in 100,000. The
# seed is fixed, so that the outcome is too.
@pytest.mark.parametrize(
    ("tasks", "chance", "epochs", "rho"),
    [(20, 0.5, 1, 0.3), (60, 0.1, 1, 0.3), (60, 0.5, 4, 0.4), (60, 0.9, 4, 0.4), (40, 0.3, 4, 0.0)],
)
def test_coverage(tasks: int, chance: float, epochs: int, rho: float) -> None:
    draw = random.Random(f"coverage {tasks} {chance} {epochs} {rho}")
    size = (1 - rho) / rho if rho else 0.0
    held = naive = 0
    rounds = 800
    for _ in range(rounds):
        each = [
            draw.betavariate(chance * size, (1 - chance) * size) if rho else chance
            for _ in range(tasks)
        ]
        solved = [sum(draw.random() < p for _ in range(epochs)) for p in each]
        low, high = _bounds(estimate_proportion([Cluster(s, epochs) for s in solved]))
        held += low <= chance <= high
        low, high = wilson_interval(sum(solved) / (tasks * epochs), tasks * epochs)
        naive += low <= chance <= high
    assert held / rounds > 0.915
    if epochs > 1 and rho:  # clustering must correct these
        assert naive / rounds < 0.88


def test_coverage_of_paired_differences() -> None:
    draw = random.Random("paired")
    held = {1: 0, 3: 0}
    rounds, tasks = 600, 50
    for epochs in held:
        for _ in range(rounds):
            chances = [draw.betavariate(0.8, 0.8) for _ in range(tasks)]
            second = [p + 0.1 * (1 - p) for p in chances]  # 0.05 better on average
            moved = [
                sum((draw.random() < b) - (draw.random() < a) for _ in range(epochs)) / epochs
                for a, b in zip(chances, second, strict=True)
            ]
            low, high = _bounds(estimate_paired_difference(moved, bound=1.0))
            held[epochs] += low <= 0.05 <= high
    assert min(held.values()) / rounds > 0.91
