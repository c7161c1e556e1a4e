"""The order that a gold requires, compared with the order in which SQLite returns rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from intercode.core.types import Rows
from intercode.environments.sql.row_order import (
    RunStatement,
    limit_cuts_tie,
    rank_rows,
    subqueries,
    without_limit,
)

DATA = (
    "CREATE TABLE t (id INT, name TEXT, age INT, city TEXT);"
    "INSERT INTO t VALUES (1, 'Ann', 30, 'Ulm'), (2, 'bob', 25, 'Ulm'), (3, 'Cid', 30, 'Rom');"
    "INSERT INTO t VALUES (4, 'ann', 41, NULL)"
)


@pytest.fixture
def run() -> Iterator[RunStatement]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(DATA)

    def ask(statement: str) -> Rows | None:
        try:
            return tuple(connection.execute(statement).fetchall())
        except sqlite3.Error:
            return None

    yield ask
    connection.close()


@pytest.mark.parametrize(
    ("gold", "ranks"),
    [
        ("SELECT name FROM t", None),
        ("SELECT name FROM t WHERE id IN (SELECT id FROM t ORDER BY age LIMIT 3)", None),
        ("SELECT 'a ORDER BY b' FROM t -- ORDER BY id", None),
        ("SELECT name FROM t ORDER BY age", (0, 1, 1, 2)),
        ("SELECT name FROM t AS x ORDER BY x.age DESC;", (0, 1, 1, 2)),
        ("SELECT name, age FROM t ORDER BY age", (0, 1, 1, 2)),
        ("SELECT t.name, t.age FROM t ORDER BY age", (0, 1, 1, 2)),
        ("SELECT name AS n FROM t ORDER BY n, id", (0, 1, 2, 3)),
        ("SELECT name, age FROM t ORDER BY 2", (0, 1, 1, 2)),
        ("SELECT name FROM t ORDER BY lower(name)", (0, 0, 1, 2)),
        ("SELECT * FROM t ORDER BY age, id", (0, 1, 2, 3)),
        ("SELECT * FROM t ORDER BY age", (0, 1, 1, 2)),
        ("SELECT age, COUNT(*) FROM t GROUP BY age ORDER BY COUNT(*) DESC", (0, 1, 1)),
        ("SELECT age FROM t GROUP BY age ORDER BY COUNT( * ) DESC", (0, 1, 1)),
        ("SELECT name FROM t ORDER BY age LIMIT 2", (0, 1)),
        ("SELECT name FROM t ORDER BY age LIMIT 1", (0,)),
        ("SELECT name FROM t WHERE id = 99 ORDER BY age", ()),
        ("SELECT DISTINCT age FROM t ORDER BY age", (0, 1, 2)),
        ("SELECT id FROM t WHERE id < 3 UNION SELECT id FROM t ORDER BY id", (0, 1, 2, 3)),
        ("SELECT name FROM t ORDER BY city IS NULL, `age` ASC", (0, 1, 1, 2)),
        ("WITH x AS (SELECT * FROM t ORDER BY id) SELECT name FROM x", None),
        ("WITH x AS (SELECT * FROM t) SELECT name FROM x ORDER BY age", (0, 1, 1, 2)),
        ("SELECT rank() OVER (ORDER BY age) FROM t", None),
    ],
)
def test_ranks(run: RunStatement, gold: str, ranks: tuple[int, ...] | None) -> None:
    rows = run(gold)
    assert rows is not None
    assert rank_rows(gold, rows, run) == ranks


def test_texts_that_differ_in_case_only_have_equal_rank(run: RunStatement) -> None:
    gold = "SELECT name FROM t ORDER BY name COLLATE NOCASE"
    rows = run(gold)
    assert rows is not None and [r[0].lower() for r in rows[:2]] == ["ann", "ann"]
    assert rank_rows(gold, rows, run) == (0, 0, 1, 2)


@pytest.mark.parametrize(
    "gold",
    ["SELECT DISTINCT name FROM t ORDER BY age", "SELECT age a FROM t ORDER BY a + 0"],
)
def test_rows_of_an_unknown_order_keep_their_order(run: RunStatement, gold: str) -> None:
    rows = run(gold)
    assert rows is not None
    assert rank_rows(gold, rows, run) == (0, 1, 2, 3)


def test_a_statement_that_fails_or_returns_other_rows_gives_no_ranks() -> None:
    rows: Rows = (("a",), ("b",), ("c",))
    gold = "SELECT name FROM t ORDER BY age"
    assert rank_rows(gold, rows, lambda _: None) == (0, 1, 2)
    assert rank_rows(gold, rows, lambda _: (("a", 1), ("c", 1), ("b", 1))) == (0, 1, 2)
    assert rank_rows(gold, rows, lambda _: (("a", 1), ("b", 1), ("c", 2))) == (0, 0, 1)


def test_subqueries_are_found_separately() -> None:
    code = "SELECT (a + (SELECT 1)) FROM (SELECT b FROM (SELECT ')' c) x) y WHERE d IN (1, 2)"
    assert subqueries(code) == ["SELECT 1", "SELECT b FROM (SELECT ')' c) x", "SELECT ')' c"]


def test_a_limit_is_taken_off_outside_alone(run: RunStatement) -> None:
    assert without_limit("SELECT a FROM (SELECT 1 a LIMIT 1) x") is None
    gold = "SELECT name FROM t WHERE id IN (SELECT id FROM t LIMIT 9) ORDER BY age LIMIT 2"
    assert str(without_limit(gold)).endswith("ORDER BY age")
    rows = run(gold)
    assert rows is not None and limit_cuts_tie(gold, rows, run)
    assert not limit_cuts_tie(gold.replace("LIMIT 2", "LIMIT 3"), run(gold[:-1] + "3") or (), run)
