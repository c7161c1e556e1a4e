"""Tasks of SQL that ask for a change: what the episode changed in its database is scored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import DataError
from intercode.core.types import Dataset, Task
from intercode.environments.sql import database_changes as changes_module
from intercode.environments.sql.database_changes import ROW, database_changes, is_write
from intercode.environments.sql.env import SqlEnv
from support.shop import shop_in

GOLDS = (
    "UPDATE sale SET price = price + 1 WHERE customer_id = 1",
    "ALTER TABLE shop ADD COLUMN floor int NOT NULL DEFAULT 2",
)

FURTHER = (
    "INSERT INTO customer VALUES (7, 'Eva', 'Chur'), (8, 'Leo', 'Thun')",
    "DELETE FROM sale WHERE day IS NULL",
    "SELECT name, city FROM customer",
)
"""Golds of tasks that do not say what is compared."""


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlEnv]:
    shop = shop_in(tmp_path_factory.mktemp("changes"))
    tasks = (
        Task(f"shop/{n}", f"change {n}", gold, database=shop, data=data)
        for n, (gold, data) in enumerate(
            [*((gold, {"compare": "database"}) for gold in GOLDS), *((g, {}) for g in FURTHER)]
        )
    )
    with intercode.make("sql", Dataset("shop", "sql", tuple(tasks))) as env:
        assert isinstance(env, SqlEnv)
        yield env


@pytest.mark.parametrize(
    ("task", "actions", "score"),
    [
        (0, [], 0.0),
        (0, ["SELECT * FROM sale"], 0.0),
        (0, [GOLDS[0]], 1.0),
        (
            0,
            [
                "UPDATE sale SET price = 10.5 WHERE id = 1",
                "UPDATE sale SET price = 21 WHERE id = 2",
                "SELECT 1",
            ],
            1.0,
        ),
        (0, ["UPDATE sale SET price = 10.5 WHERE id = 1"], 0.4),
        (0, ["UPDATE sale SET price = 10.4 WHERE id = 1"], 0.0),  # another wrong price
        (0, ["UPDATE sale SET price = price + 1"], 0.2),  # one row too many, overwritten
        (0, [GOLDS[0], "CREATE TABLE notes (a int, b int)"], 0.0),  # as much beside as asked for
        (0, [GOLDS[0], "DELETE FROM shop"], 0.0),
        (0, [GOLDS[0], "UPDATE sale SET price = price - 1 WHERE customer_id = 1"], 0.0),
        (0, ["START TRANSACTION", GOLDS[0], "ROLLBACK"], 0.0),
        (1, [GOLDS[1]], 1.0),
        (1, ["ALTER TABLE shop ADD COLUMN floor int", "UPDATE shop SET floor = 2"], 0.6),
        (1, ["CREATE TABLE floor (id int)"], 0.0),
        (2, [], 0.0),
        (2, [FURTHER[0]], 1.0),
        (2, ["INSERT INTO customer VALUES (7, 'Eva', 'Chur')"], 0.4),
        (2, ["INSERT INTO customer VALUES (7, 'Eva', 'Bern')"], 0.267),
        (2, ["INSERT INTO customer VALUES (9, 'Kim', 'Bern')"], 0.0),
        (3, [FURTHER[1]], 1.0),
        (3, ["DELETE FROM sale WHERE id = 2"], 0.0),
        (3, ["SELECT * FROM sale WHERE id = 3"], 0.0),
        (4, [FURTHER[2]], 1.0),
        (4, ["SELECT 1"], 0.0),
    ],
)
def test_changes_are_compared_row_by_row(
    env: SqlEnv, task: int, actions: list[str], score: float
) -> None:
    env.reset(options={"task": task})
    for action in actions:
        assert env.execute(action).valid, action
    assert env.score().value == pytest.approx(score, abs=0.001)


def test_a_brief_says_that_changes_are_judged(env: SqlEnv) -> None:
    briefs = [env.brief_of(task) for task in env.dataset.tasks]
    assert [brief.only_changes for brief in briefs] == [True] * 4 + [False]


@pytest.mark.parametrize(
    ("statement", "writes"),
    [
        ("/* a */ update t set a = 1", True),
        ("(SELECT 1)", False),
        ("WITH x AS (SELECT 1 AS a) SELECT * FROM x", False),
        ("WITH x AS (SELECT 1 AS a) DELETE FROM t WHERE a IN (SELECT a FROM x)", True),
        ("SELECT 'DELETE FROM t'", False),
        ("SHOW CREATE TABLE t", False),
        ("", False),
    ],
)
def test_statements_that_write(statement: str, writes: bool) -> None:
    assert is_write(statement) == writes


def test_two_golds_that_write_start_from_the_same_data(tmp_path: Path) -> None:
    golds = "DELETE FROM sale WHERE id = 1", ("DELETE FROM sale WHERE id = 2", "SELECT 1")
    task = Task("t", "q", golds[0], golds[1], database=shop_in(tmp_path))
    with intercode.make("sql", Dataset("shop", "sql", (task,))) as env:
        for action, value in ((golds[1][0], 1.0), (golds[1][1], 1.0), ("SELECT 2", 0.0)):
            env.reset()
            env.step(action)
            assert env.score().value == value, action


def test_an_unknown_comparison_is_an_error(tmp_path: Path) -> None:
    task = Task("t", "q", "SELECT 1", database=shop_in(tmp_path), data={"compare": "databse"})
    with pytest.raises(
        DataError, match=r"shop, t: 'compare' must be one of database, result, .*'databse'"
    ):
        intercode.make("sql", Dataset("shop", "sql", (task,)))


def test_what_an_answer_destroys_counts_against_it(env: SqlEnv) -> None:
    """A task whose gold reads: rows that are gone, and those of a dropped table."""
    env.reset(options={"task": 4})
    env.execute("SELECT name FROM customer WHERE id < 3")
    before = env.score().value
    env.execute("UPDATE customer SET city = 'Chur' WHERE id = 1")
    env.execute("SELECT name FROM customer WHERE id < 3")
    assert env.score().value == pytest.approx(before / 2)
    env.execute("DROP TABLE sale")
    env.execute("SELECT name FROM customer WHERE id < 3")
    assert env.score().value == pytest.approx(before / 5)
    env.execute("ALTER TABLE shop ADD COLUMN floor int DEFAULT 2")
    env.execute("SELECT name FROM customer WHERE id < 3")
    assert env.score().value == pytest.approx(before / 5), "no row of the shop is gone"


def test_scoring_leaves_the_session_as_it_is(env: SqlEnv) -> None:
    env.reset(options={"task": 0})
    env.execute(GOLDS[0])
    assert env.score().success
    assert env.execute("SELECT ROW_COUNT()").observation == "[(2,)]"
    assert env.score().success and env.score().details["gold_rows"] == 4


def test_all_that_an_answer_adds_is_read_in_one_time_limit(
    env: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session can define any number of views that are slow to read."""
    monkeypatch.setattr(changes_module, "_SECONDS", 0.3)
    env.reset(options={"task": 0})
    rows = ", ".join(f"sale s{n}" for n in range(20))
    for name in "abc":
        assert env.execute(f"CREATE VIEW {name} AS SELECT COUNT(*) AS n FROM {rows}").valid
    assert env.execute(GOLDS[0]).valid
    with closing(env.episode.require_workspace().open_pristine()) as pristine:
        found = database_changes(env.episode.require_workspace().session, pristine)
    unread = {c.table for c in found if c.kind == ROW and c.values == changes_module._UNREAD}
    assert unread >= {"a", "b", "c"} and env.score().value < 1.0
