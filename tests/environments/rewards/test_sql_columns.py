"""Columns in another order, and further columns, in the SQL rewards."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from intercode.core.types import Rows, Score, State, Task
from intercode.environments.base.progress.partial import OTHER_FORM, WRONG_MAX
from intercode.environments.base.rewards import REWARDS
from intercode.environments.sql import columns
from intercode.environments.sql.columns import find_columns, fixes_column_order
from intercode.environments.sql.result_progress import ROWS_WEIGHT, VALUES_WEIGHT
from intercode.environments.sql.reward import lenient, standard

WORST_ORDER = WRONG_MAX * VALUES_WEIGHT
"""What the gold's rows earn in the opposite of the order that it asks for."""
TASK = Task("t", "Show the name and the age of each singer.", gold="g")
FIXED = Task("t", "Show name and age of each singer, in this order.", gold="g")


def _turn(rows: Rows) -> Rows:
    return tuple(row[::-1] for row in rows)


def _score(reward: Any, agent: Rows, gold: Rows, task: Task = TASK, ranks: Any = None) -> Score:
    score = reward(task, State(rows=agent), State(rows=gold, ranks=ranks))
    assert isinstance(score, Score)
    return score


PEOPLE: Rows = (("Ann", 30), ("Bob", 40), ("Cid", 30), (None, None))


def test_columns_may_come_in_another_order() -> None:
    score = _score(standard, _turn(PEOPLE), PEOPLE)
    assert (score.value, score.details["columns"]) == (1.0, (1, 0))
    assert _score(lenient, _turn(PEOPLE), PEOPLE).value == 1.0


def test_a_query_can_fix_the_order() -> None:
    for reward in (standard, lenient):
        assert _score(reward, _turn(PEOPLE), PEOPLE, FIXED).value == OTHER_FORM
        assert _score(reward, PEOPLE, PEOPLE, FIXED).value == 1.0


@pytest.mark.parametrize(
    "query",
    [
        "Show id, name and age, in this order.",
        "What are the longest and shortest names, respectively?",
        "Give the name followed by the age.",
        "The first column is the name.",
        "Show the name and then the age.",
        "List: 1. the name 2. the age",
        "List (1) the name, (2) the age",
    ],
)
def test_queries_that_fix_the_order(query: str) -> None:
    assert fixes_column_order(query)


@pytest.mark.parametrize(
    "query",
    [
        "Show name and age of singers, in order of age.",
        "List the players in the order of birth date.",
        "Sort them by age and then by name.",
        "What are the first and last name of students before 1. May?",
        "What is the order of the museum that opened first?",
    ],
)
def test_queries_that_do_not(query: str) -> None:
    assert not fixes_column_order(query)


def test_values_stay_in_their_rows() -> None:
    """Each column has the gold's values, but beside others."""
    gold: Rows = ((1, "a"), (2, "b"), (3, "c"))
    agent: Rows = (("a", 2), ("b", 1), ("c", 3))
    for reward in (standard, lenient):
        assert _score(reward, agent, gold).value < 1.0
    three = tuple((a, b, (a + b) % 2) for a in range(2) for b in range(2))
    other = tuple((c, a, b) for a in range(2) for b, c in ((0, 0), (1, 1)))
    for first in itertools.permutations(range(3)):
        turned = tuple(tuple(row[n] for n in first) for row in three)
        assert _score(standard, turned, three).value == 1.0
        assert _score(standard, turned, other).value < 1.0


def test_order_of_rows_counts_in_the_chosen_columns() -> None:
    gold: Rows = (("Ann", 1), ("Bob", 2), ("Cid", 3))
    backwards = _turn(gold)[::-1]
    for reward in (standard, lenient):
        assert _score(reward, _turn(gold), gold, ranks=(0, 1, 2)).value == 1.0
        assert _score(reward, backwards, gold, ranks=(0, 1, 2)).value == pytest.approx(WORST_ORDER)
    both: Rows = ((1, 2), (2, 1))
    assert _score(standard, _turn(both), both, ranks=(0, 1)).value == 1.0, "either is possible"


def test_a_part_of_the_rows_may_be_turned_too() -> None:
    half = WRONG_MAX * (ROWS_WEIGHT / 2 + VALUES_WEIGHT * 2 / 3)
    assert _score(standard, _turn(PEOPLE[:2]), PEOPLE).value == pytest.approx(half)
    assert _score(standard, PEOPLE[:2], PEOPLE).value == pytest.approx(half)


def test_further_columns_only_in_the_lenient_reward() -> None:
    wider = tuple((n, *row[::-1]) for n, row in enumerate(PEOPLE))
    assert _score(standard, wider, PEOPLE).value == OTHER_FORM
    score = _score(lenient, wider, PEOPLE)
    assert (score.value, score.details["columns"]) == (1.0, (2, 1))
    assert _score(lenient, PEOPLE, wider).value < WRONG_MAX, "a missing column"
    assert _score(lenient, wider, PEOPLE, FIXED).value == OTHER_FORM
    assert _score(lenient, wider[:-1], PEOPLE).value < WRONG_MAX, "a missing row"


def test_a_column_is_chosen_once() -> None:
    gold: Rows = ((1, 1), (2, 2))
    assert _score(lenient, ((1, "x"), (2, "y")), gold).value < 0.2
    assert _score(lenient, ((1, "x", 1), (2, "y", 2)), gold).value == 1.0
    assert _score(lenient, ((1, "x", 2), (2, "y", 1)), gold).value < 0.5


def test_null_is_no_text_and_no_number() -> None:
    gold: Rows = ((None, 1), ("None", 0))
    assert _score(standard, ((1, None), (0, "None")), gold).value == 1.0
    assert _score(standard, ((1, "None"), (0, None)), gold).value < 0.5
    assert _score(lenient, ((0, None, 1), (0, "None", None)), gold).value < 0.5


def test_an_answer_of_many_guesses_is_not_accepted() -> None:
    assert _score(lenient, ((4, 5, 6, 7),), ((7,),)).value == 1.0
    assert _score(lenient, ((3, 4, 5, 6, 7),), ((7,),)).value < 0.1
    pairs: Rows = ((1, 2, 3, 4, 5), (1, 1, 1, 1, 1))
    assert _score(lenient, pairs, ((5,), (1,))).value == 1.0


def test_columns_with_equal_values_do_not_multiply_the_work() -> None:
    """A naive search tries 40! orders."""
    rows: Rows = tuple((1,) * 39 + (n,) for n in range(50))
    assert _score(standard, _turn(rows), rows).value == 1.0
    other = tuple((1,) * 39 + (n % 49,) for n in range(50))
    assert _score(standard, _turn(rows), other).value < 1.0


def _work(agent: Rows, gold: Rows, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many columns the search compares."""
    compared = 0
    number = columns._number

    def count(*arguments: Any) -> list[int]:
        nonlocal compared
        compared += 1
        return number(*arguments)

    monkeypatch.setattr(columns, "_number", count)
    list(find_columns(agent, gold, extra=True))
    return compared // 2


def test_a_search_that_would_explode_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """All columns have the same values, and any two are independent of each other: only the last
    ones show that the choice was wrong."""
    monkeypatch.setattr(columns, "MAX_CELLS", 20_000)
    dice = random.Random(3)
    half = [0, 1] * 8
    tables = [tuple(zip(*(dice.sample(half, 16) for _ in range(30)), strict=True)) for _ in "ab"]
    assert _work(*tables, monkeypatch) <= 20_000 // (2 * 16)
    parity = [tuple(n >> k & 1 for k in range(10)) for n in range(1024) if n.bit_count() % 2]
    even = [tuple(n >> k & 1 for k in range(10)) for n in range(1024) if not n.bit_count() % 2]
    assert _work(tuple(parity), tuple(even), monkeypatch) <= 20_000 // (2 * 512)
    assert _score(standard, tuple(parity), tuple(even)).value < 0.5


def test_very_many_columns_are_compared_in_order() -> None:
    row = tuple(range(4000))
    assert _score(standard, (row,), (row,)).value == 1.0
    assert _score(lenient, (row[::-1],), (row,)).value == OTHER_FORM


def test_results_of_random_tables_are_those_of_all_orders() -> None:
    dice = random.Random(11)
    for _ in range(300):
        width, wide = dice.randint(1, 3), dice.randint(1, 4)
        gold = tuple(tuple(dice.choice([0, 1, None]) for _ in range(width)) for _ in range(4))
        agent = tuple(tuple(dice.choice([0, 1, None]) for _ in range(wide)) for _ in range(4))
        if dice.random() < 0.7:
            drawn = [dice.randrange(width) for _ in range(wide)]
            agent = tuple(tuple(row[n] for n in drawn) for row in gold)
        key = str
        possible = any(
            sorted((tuple(row[n] for n in order) for row in agent), key=key)
            == sorted(gold, key=key)
            for order in itertools.permutations(range(wide), width)
        )
        assert bool(list(find_columns(agent, gold, extra=True))) == possible
        assert (_score(lenient, agent, gold).value == 1.0) == possible


def test_the_lenient_reward_is_found_by_name() -> None:
    assert REWARDS.load("spider-lenient") is lenient
