"""The SQL reward as the paper defines it."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from intercode.core.types import Rows, State, Task
from intercode.environments.base.progress.partial import OTHER_FORM
from intercode.environments.base.rewards import REWARDS
from intercode.environments.sql.reward import standard

TASK = Task("t", "q", gold="g")


def _state(*values: Any, ranks: tuple[int, ...] | None = None) -> State:
    return State(rows=tuple(v if isinstance(v, tuple) else (v,) for v in values), ranks=ranks)


NONE = State(rows=None)


def test_no_result_scores_nothing() -> None:
    assert standard(TASK, NONE, _state()).value == 0.0
    assert standard(TASK, _state(), NONE).value == 0.0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (3, Decimal("3.00")),
        (3.0, 3),
        (True, 1),
        (0.1 + 0.2, Decimal("0.3")),
        (b"text", "text"),
        (bytearray(b"text"), "text"),
        (datetime.datetime(2024, 2, 29), datetime.date(2024, 2, 29)),
        (None, None),
        (1e20, 10**20),
    ],
)
def test_equal_for_all_types(a: Any, b: Any) -> None:
    assert standard(TASK, _state(a), _state(b)).value == 1.0


@pytest.mark.parametrize(
    ("a", "b"),
    [(None, ""), (None, "None"), (0, None), (1.001, 1), (0.3333, 1 / 3), (0.334, 1 / 3)],
)
def test_not_equal(a: Any, b: Any) -> None:
    assert standard(TASK, _state(a), _state(b)).value == 0.0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (3, "3"),
        ("A", "a"),
        (147.35, 147.34615384615384),
        (Decimal("147.3"), 147.34615384615384),
        (("Ann Lee",), ("Ann", "Lee")),
        (("Lee, Ann", 3), ("Ann", "Lee", 3)),
        ((1, "Ann", 30), ("Ann",)),
        (("2024-01-02",), (datetime.date(2024, 1, 2),)),
    ],
)
def test_a_right_row_in_another_form_is_worth_more_than_a_wrong_one(a: Any, b: Any) -> None:
    gold = _state(b)
    assert standard(TASK, _state(a), gold).value == OTHER_FORM
    wrong = _state(*gold.rows or (), tuple("x" for _ in (gold.rows or ())[0]))
    assert 0 < standard(TASK, wrong, gold).value < OTHER_FORM


def test_an_average_may_be_rounded_as_mysql_rounds_it() -> None:
    """AVG of whole numbers has four digits, AVG of texts has all."""
    decimal, double = Decimal("147.3462"), 147.34615384615384
    for a, b in ((decimal, double), (double, decimal)):
        assert standard(TASK, _state(a), _state(b)).value == 1.0
    assert standard(TASK, _state(("x", decimal)), _state((double, "x"))).value == 1.0
    assert standard(TASK, _state(Decimal("147.35")), _state(double)).value == OTHER_FORM
    assert standard(TASK, _state(147.3462), _state(double)).value == 0.0
    assert standard(TASK, _state(Decimal("147.3463")), _state(double)).value == 0.0


def test_order_counts_where_the_gold_asks_for_it() -> None:
    turned = _state(3, 2, 1)
    assert standard(TASK, turned, _state(1, 2, 3)).value == 1.0
    assert standard(TASK, turned, _state(1, 2, 3, ranks=(0, 1, 2))).value == pytest.approx(0.24)
    half = standard(TASK, _state(2, 1, 3), _state(1, 2, 3, ranks=(0, 1, 2)))
    assert half.parts["tau"] == pytest.approx(1 / 3)
    assert half.value == pytest.approx(0.8 * (0.7 * 2 / 3 + 0.3))


def test_rows_of_equal_rank_may_be_in_any_order() -> None:
    gold = _state("a", "b", "c", ranks=(0, 0, 1))
    assert standard(TASK, _state("b", "a", "c"), gold).value == 1.0
    assert standard(TASK, _state("b", "c", "a"), gold).parts["tau"] == 0.0
    assert standard(TASK, _state("b", "a"), _state("a", "b", ranks=(0, 0))).value == 1.0


def test_rows_that_are_there_twice() -> None:
    gold = _state("a", "b", "a", ranks=(0, 1, 2))
    assert standard(TASK, _state("a", "b", "a"), gold).value == 1.0
    assert standard(TASK, _state("a", "b"), gold).parts == {
        "iou": 2 / 3,
        "tau": 1.0,
        "values": 0.8,
    }
    assert standard(TASK, _state("a", "a", "b"), gold).value < 1.0


def test_identical_rows_score_as_equal_rows() -> None:
    """Such results are recognised without a comparison."""
    dice = random.Random(7)
    for _ in range(300):
        rows: Rows = tuple(
            tuple(dice.choice([1, 1.0, "a", None, Decimal("2.50")]) for _ in range(2))
            for _ in range(dice.randrange(6))
        )
        copy = (*rows,)
        numbers = [dice.randrange(4) for _ in rows]
        for ranks in (None, tuple(sorted(numbers)), tuple(numbers)):
            gold = State(rows=rows, ranks=ranks)
            same, equal = (standard(TASK, State(rows=r), gold) for r in (rows, copy))
            assert same == equal


def test_reward_stays_within_0_and_1() -> None:
    dice = random.Random(7)
    for _ in range(500):
        a: Rows = tuple((dice.randint(0, 4),) for _ in range(dice.randint(0, 8)))
        g: Rows = tuple((dice.randint(0, 4),) for _ in range(dice.randint(0, 8)))
        ranks = tuple(sorted(dice.randint(0, 3) for _ in g))
        assert 0.0 <= standard(TASK, State(rows=a), State(rows=g, ranks=ranks)).value <= 1.0
        assert standard(TASK, State(rows=g), State(rows=g, ranks=ranks)).value == 1.0


def test_it_is_found_by_name() -> None:
    assert REWARDS.load("sql-standard") is standard
