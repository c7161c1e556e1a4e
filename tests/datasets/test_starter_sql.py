"""The SQL starter suite. `intercode check` verifies its golds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from intercode.core.types import Task
from intercode.datasets import load
from intercode.datasets.sql.base import dump_schemas
from intercode.environments.sql.row_order import has_order_by


@pytest.fixture(scope="module")
def tasks() -> tuple[Task, ...]:
    return load("starter", "sql").tasks


def test_they_are_many_and_graded(tasks: tuple[Task, ...]) -> None:
    assert len(tasks) >= 30
    assert len({t.id for t in tasks}) == len({t.query for t in tasks}) == len(tasks)
    assert len({t.gold for t in tasks}) == len(tasks)
    assert all(re.fullmatch(r"starter/sql/[a-z0-9]+(-[a-z0-9]+)*", t.id) for t in tasks)
    hardness = Counter(t.hardness for t in tasks)
    assert set(hardness) == {"easy", "medium", "hard", "extra"} and min(hardness.values()) >= 5
    assert min(Counter(t.group for t in tasks).values()) >= 15


def test_they_play_on_databases_that_the_dump_makes(tasks: tuple[Task, ...]) -> None:
    paths = {t.database.path for t in tasks if t.database is not None}
    assert len(paths) == 1
    known = dump_schemas(paths.pop())
    assert set(known) == {t.group for t in tasks} == {"allotment", "ferry"}
    for task in tasks:
        words = set(re.findall(r"\w+", str(task.gold)))
        assert words & set(known[str(task.group)]), task.id


def test_queries_ask_for_an_order_where_the_gold_has_one(tasks: tuple[Task, ...]) -> None:
    query_text = r"first|order|largest|heaviest|newest|oldest|longest|earliest"
    for task in tasks:
        if has_order_by(str(task.gold)):
            assert re.search(query_text, task.query), task.id


def test_the_environment_asks_for_its_own_starter_tasks() -> None:
    assert load("starter", "sql").tasks == load("starter:sql").tasks
    assert not load("starter:sql").comparable


def test_the_dump_is_laid_out_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path))
    database = load("starter:sql").tasks[0].database
    assert database is not None and database.kind == "mysql-dump"
    assert database.path.is_relative_to(tmp_path) and database.path.stat().st_size > 10_000
