"""Our τ against SciPy's: on random lists, and on results of recorded episodes."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from pathlib import Path

import pytest

from intercode.core import logs
from intercode.environments.base.row_comparison import count_inversions
from intercode.environments.sql.recorded_results import parse_rows
from intercode.paper.sql.reward import tau_b
from support.kendall import scipy_tau


def _assert_equal(x: list[str], y: list[str]) -> None:
    ours, theirs = tau_b(x, y), scipy_tau(x, y)
    assert ours == theirs or (math.isnan(ours) and math.isnan(theirs)), (x, y)


@pytest.mark.slow
def test_thousands_of_random_lists() -> None:
    dice = random.Random(4)
    for _ in range(3000):
        size, kinds = dice.randint(0, 30), dice.randint(1, 30)
        x = [str((dice.randint(0, kinds), "a")) for _ in range(size)]
        y = sorted(x) if dice.random() < 0.2 else dice.sample(x, size)
        if dice.random() < 0.3:
            y = [str(dice.randint(0, kinds)) for _ in range(size)]
        _assert_equal(x, y)


def test_long_lists() -> None:
    dice = random.Random(5)
    x = [str((n % 700,)) for n in range(3000)]
    _assert_equal(x, dice.sample(x, len(x)))


@pytest.mark.slow
def test_results_of_recorded_episodes(recorded_dir: Path) -> None:
    """Return two results of one episode, reduced to their common rows, as the authors' scorer gets
    them."""
    compared = 0
    folder = recorded_dir / "sql"
    for episode in (t for file in folder.glob("*.json") for t in logs.load_log(file)):
        found = [rows for s in episode.steps if (rows := parse_rows(s.observation))]
        for a, b in pairwise(found):
            common = set(a) & set(b)
            x, y = ([r for r in rows if r in common] for rows in (a, b))
            if len(x) == len(y) > 1:
                compared += 1
                _assert_equal(x, y)
    assert compared > 800


def test_lists_of_two_lengths() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        tau_b(["a", "b"], ["a"])


def test_inversions() -> None:
    assert count_inversions([1, 2, 2, 3]) == 0
    assert count_inversions([3, 2, 2, 1]) == 5
    assert count_inversions([]) == 0
