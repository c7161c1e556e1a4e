"""Partial credit of SQL: golds that change several rows, their steps, and what people do wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode.datasets import load
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.progress.partial import OTHER_FORM, WRONG_MAX
from intercode.environments.sql.change_progress import ChangeProgress, distance
from intercode.environments.sql.database_changes import ROW, Change, Changes
from support.progress import check_steps
from support.shop import shop_in


class Case(NamedTuple):
    """A gold, the statements that do it in steps, and its opposite."""

    gold: str
    steps: tuple[str, ...]
    reversed: str
    destructive: str


CASES = {
    "add": Case(
        "INSERT INTO shop VALUES (2, 'Lane'), (3, 'Road'), (4, 'Way')",
        tuple(
            f"INSERT INTO shop VALUES ({n}, '{s}')"
            for n, s in ((2, "Lane"), (3, "Road"), (4, "Way"))
        ),
        "DELETE FROM shop WHERE id = 1",
        "DROP TABLE sale",
    ),
    "raise": Case(
        "UPDATE sale SET price = price + 1, day = '2025-01-01'",
        tuple(
            f"UPDATE sale SET {what} WHERE id = {n}"
            for n in (1, 2, 3)
            for what in ("price = price + 1", "day = '2025-01-01'")
        ),
        "UPDATE sale SET price = price - 1, day = '2023-01-01'",
        "DELETE FROM sale",
    ),
    "remove": Case(
        "DELETE FROM sale",
        tuple(f"DELETE FROM sale WHERE id = {n}" for n in (1, 2, 3)),
        "INSERT INTO sale VALUES (4, 1, 2, NULL)",
        "DELETE FROM shop",
    ),
    "move": Case(
        "UPDATE sale SET id = id + 10",
        tuple(f"UPDATE sale SET id = id + 10 WHERE id = {n}" for n in (3, 2, 1)),
        "UPDATE sale SET id = id - 10",
        "DELETE FROM sale",
    ),
    "make": Case(
        "CREATE TABLE big AS SELECT customer_id, price FROM sale",
        (
            "CREATE TABLE big (customer_id int, price decimal(8,2))",
            "INSERT INTO big SELECT customer_id, price FROM sale WHERE id < 3",
            "INSERT INTO big SELECT customer_id, price FROM sale WHERE id = 3",
        ),
        "DROP TABLE sale",
        "DELETE FROM shop",
    ),
    "widen": Case(
        "ALTER TABLE customer ADD COLUMN a int DEFAULT 1, ADD COLUMN b int, DROP COLUMN city",
        (
            "ALTER TABLE customer ADD COLUMN a int DEFAULT 1",
            "ALTER TABLE customer ADD COLUMN b int",
            "ALTER TABLE customer DROP COLUMN city",
        ),
        "ALTER TABLE customer DROP COLUMN name",
        "DELETE FROM sale",
    ),
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InterCodeEnv]:
    shop = shop_in(tmp_path_factory.mktemp("progress"))
    tasks = [Task(f"shop/{name}", name, case.gold, database=shop) for name, case in CASES.items()]
    reads = Task("shop/read", "q", "SELECT id, name FROM customer ORDER BY id", database=shop)
    with intercode.make("sql", Dataset("shop", "sql", (*tasks, reads))) as made:
        yield made


def value_after(env: InterCodeEnv, name: str, *actions: str) -> float:
    env.reset(options={"task": f"shop/{name}"})
    for action in actions:
        assert env.step(action)[4]["valid"], action
    return env.score().value


@pytest.mark.parametrize("name", CASES)
def test_each_step_of_a_gold_earns_more(env: InterCodeEnv, name: str) -> None:
    steps = CASES[name].steps
    values = [value_after(env, name, *steps[:n]) for n in range(len(steps) + 1)]
    check_steps(values)


@pytest.mark.parametrize("name", CASES)
def test_half_is_worth_more_than_the_opposite_and_destruction(env: InterCodeEnv, name: str) -> None:
    case = CASES[name]
    half = value_after(env, name, *case.steps[: (len(case.steps) + 1) // 2])
    assert 0.0 < half <= WRONG_MAX
    assert value_after(env, name, case.reversed) == 0.0
    if case.destructive != case.gold:
        assert value_after(env, name, case.destructive) == 0.0
    assert value_after(env, name, case.gold) == 1.0
    if name not in ("raise", "remove", "move"):
        assert value_after(env, name, case.gold, "DELETE FROM sale") < half
    else:
        assert value_after(env, name, case.gold, "DROP TABLE shop") < half


def test_answers_are_in_the_order_of_their_worth(env: InterCodeEnv) -> None:
    answers = [
        ["SELECT id, name FROM customer"],
        ["SELECT id, name, city FROM customer"],
        ["SELECT id, name FROM customer WHERE id < 3"],
        ["SELECT id, name FROM customer WHERE id = 2"],
        ["SELECT COUNT(*) FROM sale WHERE price > 100"],
    ]
    values = [value_after(env, "read", *actions) for actions in answers]
    assert values[:2] == [1.0, OTHER_FORM] and values[-1] == value_after(env, "read") == 0.0
    assert all(better > worse for better, worse in pairwise(values)), values
    destroying = value_after(env, "read", "DELETE FROM sale", *answers[1])
    assert destroying == pytest.approx(OTHER_FORM / 4)
    turned = value_after(env, "read", "SELECT id, name FROM customer ORDER BY id DESC")
    assert 0 < turned < values[2]


def changes(now: list[tuple[object, ...]], then: list[tuple[object, ...]], keyed: bool) -> Changes:
    left, right = Counter(now), Counter(then)
    return tuple(
        Change("t", ROW, row[:1] if keyed else (), row, left[row] - right[row])
        for row in left | right
        if left[row] != right[row]
    )


@pytest.mark.parametrize("keyed", [True, False])
def test_a_gold_of_many_rows_gets_nearer_row_by_row(keyed: bool) -> None:
    """Random tables, with and without a primary key, and statements that add, change or remove."""
    for seed in range(500):
        dice = random.Random(seed)
        first = [
            (n if keyed else dice.randrange(4), dice.randrange(3), dice.choice("abc"))
            for n in range(dice.randint(3, 8))
        ]
        states, chosen = [list(first)], dice.sample(first, 3)
        kind = dice.choice(["add", "change", "remove"])
        for n, row in enumerate(chosen):
            state = list(states[-1])
            if kind != "add":
                state.remove(row)
            if kind != "remove":
                number = row[0] if kind == "change" or not keyed else 100 + n
                state.append((number, 9, row[2]))
            states.append(state)
        gold = changes(states[-1], first, keyed)
        far = [distance(changes(state, first, keyed), gold) for state in states]
        assert far[-1] == 0 and all(a > b for a, b in pairwise(far)), (seed, far)


def test_rows_that_were_overwritten_are_destroyed_and_wider_ones_are_not() -> None:
    old, new = ((1, "a"), (2, "b"), (3, "c")), ((1, "a", 0), (2, "x", 0), (3, "c", 0))
    progress = ChangeProgress(changes(list(new), list(old), keyed=True), ())
    assert progress.destroyed == 1 and progress.share == 0.0


def test_doing_nothing_earns_nothing() -> None:
    dataset = load("starter:sql")
    with intercode.make("sql", dataset=dataset) as made:
        for index in range(len(dataset.tasks)):
            made.reset(seed=0, options={"task": index})
            assert made.score().value == 0.0, made.task.id
