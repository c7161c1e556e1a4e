"""The SQL rewards as the authors compute them."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from math import isnan
from typing import Any

import pytest

from intercode.core.types import State, Task
from intercode.environments.base.rewards import REWARDS
from intercode.paper.sql.reward import original, original_iou
from support.kendall import scipy_tau

TASK = Task("t", "q", gold="g")


def _state(*values: Any, ranks: tuple[int, ...] | None = None) -> State:
    return State(rows=tuple(v if isinstance(v, tuple) else (v,) for v in values), ranks=ranks)


@pytest.mark.parametrize(
    ("agent", "gold", "with_tau", "without"),
    [
        ((), (), 1.0, 1.0),
        ((1,), (), 0.0, 0.0),
        ((), (1,), 0.0, 0.0),
        ((1,), (1,), 1.0, 1.0),
        ((1, 2), (1, 2), 1.0, 1.0),
        ((2, 1), (1, 2), -1.0, 1.0),
        ((1,), (1, 2, 3), 1 / 3, 1 / 3),  # one common row: τ is undefined
        ((1, 1, 2), (1, 2), 0.67, 2 / 3),
        ((7, 7), (7, 7), 1.0, 1.0),  # all equal: τ is undefined
        (("1",), (1,), 0.0, 0.0),  # rows are compared by their text in Python
        ((Decimal("1.0"),), (1.0,), 0.0, 0.0),
        ((1, 2, 3), (1, 3, 2), 0.33, 1.0),
    ],
)
def test_as_the_authors_compute_it(
    agent: tuple[Any, ...], gold: tuple[Any, ...], with_tau: float, without: float
) -> None:
    a, g = _state(*agent), _state(*gold)
    assert original(TASK, a, g).value == pytest.approx(with_tau, abs=1e-12)
    assert original_iou(TASK, a, g).value == pytest.approx(without, abs=1e-12)


@pytest.mark.slow
def test_equal_to_the_arithmetic_over_scipy() -> None:
    """Return the authors' score for random results, with SciPy's τ and NumPy's rounding."""
    dice = random.Random(6)
    for _ in range(2000):
        a = [(dice.randint(0, 6), "x") for _ in range(dice.randint(0, 12))]
        g = [(dice.randint(0, 6), "x") for _ in range(dice.randint(0, 12))]
        assert original(TASK, _state(*a), _state(*g)).value == _theirs(a, g), (a, g)


def _theirs(a: list[Any], g: list[Any]) -> float:
    left, right = [str(r) for r in a], [str(r) for r in g]
    common, union = Counter(left) & Counter(right), Counter(left) | Counter(right)
    if not union:
        return 1.0
    iou = common.total() / union.total()
    if not common:
        return iou
    x, y = _first(left, common), _first(right, common)
    tau = scipy_tau(x, y)
    return iou if isnan(tau) else float(round(tau * iou, 2))


def _first(rows: list[str], common: Counter[str]) -> list[str]:
    left, out = Counter(common), []
    for row in rows:
        if left[row]:
            left[row] -= 1
            out.append(row)
    return out


def test_no_result_scores_nothing() -> None:
    for reward in (original, original_iou):
        assert reward(TASK, State(rows=None), _state()).value == 0.0
        assert reward(TASK, _state(), State(rows=None)).value == 0.0


def test_columns_are_compared_in_their_order() -> None:
    people = (("Ann", 30), ("Bob", 40), ("Cid", 30), (None, None))
    turned = _state(*(row[::-1] for row in people))
    for reward in (original, original_iou):
        score = reward(TASK, turned, _state(*people))
        assert score.value == pytest.approx(1 / 7), "the NULLs"


def test_they_are_found_by_name() -> None:
    assert REWARDS.load("sql-original") is original
    assert REWARDS.load("sql-original-iou") is original_iou
