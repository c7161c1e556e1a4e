"""Exact tests against SciPy, and detectable differences."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from intercode.results.statistics.significance import (
    SIGN_FLIP_SAMPLES,
    detectable_difference,
    holm_adjusted,
    mcnemar_p,
    sign_flip_test,
    tasks_needed,
)

DOCS = Path(__file__).parents[3] / "docs"


def test_mcnemar_is_the_binomial_test_of_the_pairs_that_differ() -> None:
    draw = random.Random(1)
    pairs = [(draw.randrange(60), draw.randrange(60)) for _ in range(300)]
    for first, second in [*pairs, (0, 1), (0, 6), (7, 7), (400, 500)]:
        if first + second:
            expected = stats.binomtest(first, first + second).pvalue
            assert mcnemar_p(first, second) == pytest.approx(expected, rel=1e-9), (first, second)
    assert mcnemar_p(0, 0) == 1.0


def test_sign_flip_with_one_epoch_is_mcnemar() -> None:
    draw = random.Random(2)
    for _ in range(50):
        first, second, same = (draw.randrange(40) for _ in range(3))
        moved = [Fraction(1)] * first + [Fraction(-1)] * second + [Fraction(0)] * same
        draw.shuffle(moved)
        assert sign_flip_test(moved).p == mcnemar_p(first, second)


def _scipy_p(moved: list[Fraction]) -> float:
    """Return the two-sided p-value over all signs, by SciPy's paired permutation test against
    zeros."""
    values = np.array([float(d) for d in moved])
    found = stats.permutation_test(
        (values, np.zeros_like(values)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    return float(found.pvalue)


def test_sign_flip_against_all_signs() -> None:
    draw = random.Random(3)
    for _ in range(40):
        epochs = draw.choice((2, 3, 4, 5))
        tasks = draw.randrange(2, 11)
        moved = [Fraction(draw.randint(-epochs, epochs), epochs) for _ in range(tasks)]
        found = sign_flip_test(moved)
        if any(moved):
            assert found.method == "exact sign-flip test"
            assert found.p == pytest.approx(_scipy_p(moved), abs=1e-9), moved


def test_sign_flip_with_unequal_epochs_is_still_exact() -> None:
    moved = [Fraction(1, 2), Fraction(2, 3), Fraction(-1, 5), Fraction(3, 4), Fraction(1, 6)]
    found = sign_flip_test(moved)
    assert found.method == "exact sign-flip test"
    assert found.p == pytest.approx(_scipy_p(moved), abs=1e-9)


def test_a_sampled_sign_flip_is_near_the_exact_one_and_the_same_again() -> None:
    draw = random.Random(4)
    for _ in range(5):
        moved = [Fraction(draw.randint(-4, 5), 4) for _ in range(80)]
        exact = sign_flip_test(moved).p
        floats = [float(d) for d in moved]
        sampled = sign_flip_test(floats, seed=7)
        assert str(SIGN_FLIP_SAMPLES) in sampled.method
        assert sampled.p == sign_flip_test(floats, seed=7).p
        error = (exact * (1 - exact) / SIGN_FLIP_SAMPLES) ** 0.5
        assert abs(sampled.p - exact) < 5 * error + 2 / SIGN_FLIP_SAMPLES


def test_a_sampled_p_is_never_zero() -> None:
    assert sign_flip_test([1.5] * 60).p == 1 / (SIGN_FLIP_SAMPLES + 1)


def test_nothing_differs() -> None:
    assert sign_flip_test([Fraction(0), 0.0]).p == 1.0
    assert sign_flip_test([]).p == 1.0


def test_a_thousand_tasks_are_exact() -> None:
    draw = random.Random(5)
    moved = [Fraction(draw.randint(-4, 4), 4) for _ in range(1034)]
    found = sign_flip_test(moved)
    assert found.method == "exact sign-flip test"
    values = [float(d) for d in moved]
    # approximately normal with this many values
    z = sum(values) / sum(v * v for v in values) ** 0.5
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(z)), rel=0.05)


def test_holm_against_manual_values() -> None:
    assert holm_adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_adjusted([0.5, 0.9]) == [1.0, 1.0]
    assert holm_adjusted([]) == []


def test_the_detectable_difference_follows_the_formula_and_has_a_lower_bound() -> None:
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert detectable_difference(0.02, 1000) == pytest.approx(z * 0.02, rel=1e-9)
    # Six pairs, all the same way, are the fewest that give p < 0.05.
    assert mcnemar_p(0, 5) > 0.05 > mcnemar_p(0, 6)
    for tasks in (6, 12, 40, 60, 5000):
        least = detectable_difference(0.0, tasks)
        assert least is not None
        assert stats.binom.sf(5, tasks, least) == pytest.approx(0.8, rel=1e-9)
        assert detectable_difference(0.0, tasks, epochs=4) == pytest.approx(least / 4)
    assert detectable_difference(0.0, 5) is None
    assert detectable_difference(0.0, 0) is None


def test_tasks_needed_undoes_detectable() -> None:
    for flips, difference in ((0.3, 0.05), (0.35, 0.1), (0.1, 0.02), (0.1, 0.1), (0.9, 0.9)):
        tasks = tasks_needed(flips, difference)
        assert tasks is not None
        spread = (flips - difference**2) ** 0.5
        least = detectable_difference(spread / tasks**0.5, tasks)
        fewer = detectable_difference(spread / (tasks - 1) ** 0.5, tasks - 1)
        assert least is not None and least <= difference
        assert fewer is None or fewer > difference
    assert tasks_needed(0.1, 0.2) is None


def test_the_table_of_the_manual_has_the_tasks_that_are_needed() -> None:
    lines = (DOCS / "statistics.md").read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| tasks that flip |"))
    heading, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines[start : start + 4]
    )
    for flips, *cells in rows:
        for points, cell in zip(heading[1:], cells, strict=True):
            needed = tasks_needed(float(flips.split()[0]) / 100, float(points.split()[0]) / 100)
            assert cell == ("-" if needed is None else str(needed)), (flips, points)
