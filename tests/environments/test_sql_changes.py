"""Tasks of SQL that ask for a change: what the episode changed in its database is scored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import intercode
from intercode.core.types import Dataset, Task
from intercode.environments.sql.env import SqlEnv
from support.shop import shop_in

GOLDS = (
    "UPDATE sale SET price = price + 1 WHERE customer_id = 1",
    "ALTER TABLE shop ADD COLUMN floor int NOT NULL DEFAULT 2",
)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlEnv]:
    shop = shop_in(tmp_path_factory.mktemp("changes"))
    tasks = (
        Task(f"shop/{n}", f"change {n}", gold, database=shop, data={"compare": "database"})
        for n, gold in enumerate(GOLDS)
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
        (0, ["UPDATE sale SET price = 10.5 WHERE id = 1",
             "UPDATE sale SET price = 21 WHERE id = 2", "SELECT 1"], 1.0),
        (0, ["UPDATE sale SET price = 10.5 WHERE id = 1"], 0.5),
        (0, [GOLDS[0], "DELETE FROM shop"], 0.8),
        (0, [GOLDS[0], "UPDATE sale SET price = price - 1 WHERE customer_id = 1"], 0.0),
        (0, ["START TRANSACTION", GOLDS[0], "ROLLBACK"], 0.0),
        (1, [GOLDS[1]], 1.0),
        (1, ["ALTER TABLE shop ADD COLUMN floor int", "UPDATE shop SET floor = 2"], 0.5),
        (1, ["CREATE TABLE floor (id int)"], 0.0),
    ],
)  # fmt: skip
def test_changes_are_compared_row_by_row(
    env: SqlEnv, task: int, actions: list[str], score: float
) -> None:
    env.reset(options={"task": task})
    for action in actions:
        assert env.execute(action).valid, action
    assert env.score().value == pytest.approx(score)


def test_scoring_leaves_the_session_as_it_is(env: SqlEnv) -> None:
    env.reset(options={"task": 0})
    env.execute(GOLDS[0])
    assert env.score().success
    assert env.execute("SELECT ROW_COUNT()").observation == "[(2,)]"
    assert env.score().success and env.score().details["gold_rows"] == 4
