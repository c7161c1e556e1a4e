"""Columns that an answer may show beside the gold's: what the gold sorts, groups or filters by."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.progress.partial import OTHER_FORM
from intercode.environments.sql.further_columns import statements_with_column
from support.shop import shop_in

GOLD = (
    "SELECT c.name FROM customer AS c JOIN sale AS s ON s.customer_id = c.id GROUP BY c.id, c.name"
)
GOLDS = {
    "most": f"{GOLD} ORDER BY COUNT(*) DESC, c.name",
    "some": f"{GOLD} HAVING COUNT(*) > 1",
    "bern": "SELECT name FROM customer WHERE city = 'Bern' AND id IN (1, 2)",
    "distinct": "SELECT DISTINCT city FROM customer ORDER BY city",
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InterCodeEnv]:
    shop = shop_in(tmp_path_factory.mktemp("further"))
    tasks = [
        Task(f"{name}{suffix}", "q", gold, database=shop, data=data)
        for name, gold in GOLDS.items()
        for suffix, data in (("", {"compare": "further-columns"}), ("/plain", {}))
    ]
    with intercode.make("sql", Dataset("shop", "sql", tuple(tasks))) as made:
        yield made


@pytest.mark.parametrize(
    ("task", "answer", "value"),
    [
        ("most", f"{GOLD.replace('c.name FROM', 'c.name, COUNT(*) FROM')} ORDER BY 2 DESC, 1", 1.0),
        (
            "most",
            f"{GOLD.replace('c.name FROM', 'COUNT(*) AS n, c.id, c.name FROM')} "
            "ORDER BY n DESC, c.name",
            1.0,
        ),
        (
            "most",
            f"{GOLD.replace('c.name FROM', 'c.name, SUM(price) FROM')} "
            "ORDER BY COUNT(*) DESC, c.name",
            OTHER_FORM,
        ),
        (
            "most",
            f"{GOLD.replace('c.name FROM', 'c.name, COUNT(*) + 1 FROM')} ORDER BY 2 DESC, 1",
            OTHER_FORM,
        ),
        ("some", f"{GOLD.replace('c.name FROM', 'c.name, COUNT(*) AS n FROM')} HAVING n > 1", 1.0),
        ("bern", "SELECT name, city, id FROM customer WHERE id = 1", 1.0),
        ("bern", "SELECT name, id + 1 FROM customer WHERE id = 1", OTHER_FORM),
    ],
)
def test_only_what_the_gold_uses_may_stand_beside(
    env: InterCodeEnv, task: str, answer: str, value: float
) -> None:
    for name, expected in ((task, value), (f"{task}/plain", OTHER_FORM)):
        env.reset(options={"task": name})
        assert env.step(answer)[4]["valid"]
        assert env.score().value == expected


def test_the_order_of_rows_counts_beside_further_columns(env: InterCodeEnv) -> None:
    env.reset(options={"task": "most"})
    env.step(f"{GOLD.replace('c.name FROM', 'c.name, COUNT(*) FROM')} ORDER BY 2, 1")
    assert env.score().value < OTHER_FORM


@pytest.mark.parametrize(
    ("gold", "columns"),
    [
        ("SELECT a FROM t ORDER BY b DESC, COUNT( * ) LIMIT 1", ["b", "COUNT( * )"]),
        (
            "SELECT a FROM t WHERE b LIKE 'x' AND t.c NOT IN (1) GROUP BY d HAVING SUM(e) >= 2",
            ["d", "SUM(e)", "b", "t.c"],
        ),
        ("SELECT a FROM t WHERE b = 1 UNION SELECT a FROM u", []),
        (GOLDS["distinct"], []),
        ("SELECT a FROM t", []),
        ("SELECT 1", []),
        ("UPDATE t SET a = 1 WHERE b = 2", []),
    ],
)
def test_expressions_of_a_gold(gold: str, columns: list[str]) -> None:
    found = [
        s.partition("SELECT a, ")[2].partition(" FROM")[0] for s in statements_with_column(gold)
    ]
    assert found == columns
