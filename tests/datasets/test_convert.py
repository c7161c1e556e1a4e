"""Small releases of other benchmarks are converted to files whose golds run."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.core.types import Dataset, Task
from intercode.datasets import load
from intercode.datasets.convert import convert
from intercode.datasets.sql.spider import hardness
from intercode.datasets.sql.wikisql import column_names
from intercode.evaluation.check.dataset import check

SCHEMA = [
    {
        "db_id": "pets",
        "table_names_original": ["Cat", "Dog"],
        "column_names_original": [[-1, "*"], [0, "Name"], [1, "Id"], [1, "Age"]],
    }
]
COLUMN = [0, [0, [0, 1, False], None]]


def _sql(**clauses: Any) -> dict[str, Any]:
    """Return a tree in Spider's form: ``SELECT Name FROM Cat`` with further clauses."""
    return {
        "select": [False, [COLUMN]],
        "from": {"table_units": [["table_unit", 0]], "conds": []},
        "where": [],
        "groupBy": [],
        "orderBy": [],
        "having": [],
        "limit": None,
        "intersect": None,
        "union": None,
        "except": None,
        **clauses,
    }


WHERE = [False, 2, COLUMN[1], "'x'", None]
LIKE = [False, 9, COLUMN[1], "'x%'", None]
COUNT = [3, [0, [0, 0, False], None]]


@pytest.mark.parametrize(
    ("clauses", "grade"),
    [
        ({}, "easy"),
        ({"where": [WHERE]}, "easy"),
        ({"where": [LIKE]}, "medium"),
        ({"where": [WHERE, "or", WHERE]}, "medium"),
        ({"select": [False, [COLUMN, COUNT]], "groupBy": [[0, 1, False]]}, "medium"),
        ({"where": [WHERE, "or", LIKE]}, "hard"),
        ({"where": [[False, 8, COLUMN[1], _sql(), None]]}, "hard"),
        ({"intersect": _sql()}, "hard"),
        ({"where": [WHERE], "intersect": _sql(), "limit": 1}, "extra"),
        (
            {
                "select": [False, [COLUMN, COUNT]],
                "groupBy": [[0, 1, False]],
                "limit": 1,
                "orderBy": ["desc", [[0, [3, 0, False], None]]],
                "where": [WHERE],
            },
            "extra",
        ),
    ],
)
def test_hardness(clauses: dict[str, Any], grade: str) -> None:
    assert hardness(_sql(**clauses)) == grade


def _database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE Cat (Name TEXT); INSERT INTO Cat VALUES ('Tom'), ('Kit');"
        "CREATE TABLE Dog (Id INT, Age INT);"
    )
    connection.close()


def _spider(root: Path, **change: Any) -> Path:
    row = {
        "db_id": "pets",
        "query": "SELECT Name FROM Cat",
        "question": "Which cats?",
        "sql": _sql(),
    }
    _database(root / "database" / "pets" / "pets.sqlite")
    (root / "tables.json").write_text(json.dumps(SCHEMA))
    (root / "dev.json").write_text(json.dumps([row]))
    (root / "train_spider.json").write_text(json.dumps([row, {**row, **change}]))
    return root


def _answer(task: Task) -> list[Any]:
    assert task.database is not None and task.database.kind == "sqlite"
    connection = sqlite3.connect(task.database.path)
    try:
        return connection.execute(str(task.gold)).fetchall()
    finally:
        connection.close()


def test_spider(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release, out = _spider(tmp_path / "up" / "spider_data"), tmp_path / "out"
    assert main(["new", str(out), "--convert", "spider", "--from", str(release.parent)]) == 0
    files = [Path(line) for line in capsys.readouterr().out.split()]
    assert [f.name for f in files] == ["spider-dev.jsonl", "spider-train_spider.jsonl"]
    dataset: Dataset = load(str(files[1]))
    assert dataset.environment == "sql" and len(dataset) == 2
    task = dataset.tasks[0]
    assert (task.id, task.hardness, task.group) == ("spider-train_spider/0", "easy", "pets")
    assert task.data["schema"] == {"Cat": ["Name"], "Dog": ["Id", "Age"]}
    assert _answer(task) == [("Tom",), ("Kit",)]


def test_bird(tmp_path: Path) -> None:
    root = tmp_path / "dev"
    _database(root / "dev_databases" / "pets" / "pets.sqlite")
    row = {
        "db_id": "pets",
        "question": "Which cats?",
        "SQL": "SELECT Name FROM Cat",
        "evidence": " cats purr ",
        "difficulty": "simple",
    }
    (root / "dev.json").write_text(json.dumps([row]))
    (root / "dev_tables.json").write_text(json.dumps(SCHEMA))
    (file,) = convert("bird", tmp_path, tmp_path / "out")
    (task,) = load(str(file)).tasks
    assert task.id == "bird-dev/0" and task.hardness == "simple"
    assert task.data["evidence"] == "cats purr" and "Dog" in task.data["schema"]
    assert _answer(task) == [("Tom",), ("Kit",)]


TABLE = {
    "id": "1-22-3",
    "header": ["Year", "Club Team", "club team", "Votes"],
    "types": ["real", "text", "text", "text"],
    "rows": [[1999, "Butler CC (KS)", "a", "9"], [2010, "Duke", "b", "12"]],
}


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ({"sel": 0, "agg": 0, "conds": [[1, 0, "butler cc (ks)"]]}, [(1999.0,)]),
        ({"sel": 0, "agg": 1, "conds": []}, [(2010.0,)]),
        ({"sel": 3, "agg": 1, "conds": [[0, 1, 1990]]}, [("12",)]),
        ({"sel": 2, "agg": 3, "conds": [[0, 2, "2005"]]}, [(1,)]),
        ({"sel": 1, "agg": 0, "conds": [[2, 0, "b"], [0, 0, 2010]]}, [("Duke",)]),
    ],
)
def test_wikisql(tmp_path: Path, sql: dict[str, Any], answer: list[Any]) -> None:
    row = {"phase": 1, "table_id": "1-22-3", "question": "Who?", "sql": sql}
    (tmp_path / "dev.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "dev.tables.jsonl").write_text(json.dumps(TABLE) + "\n")
    (file,) = convert("wikisql", tmp_path, tmp_path / "out")
    (task,) = load(str(file)).tasks
    assert task.query == "Who? (Use table table_1_22_3)"
    assert task.data["schema"] == {"table_1_22_3": ["Year", "Club_Team", "club_team_2", "Votes"]}
    assert _answer(task) == answer


def test_the_converted_files_are_played_on_plain_sqlite(tmp_path: Path) -> None:
    (file, _) = convert("spider", _spider(tmp_path / "up"), tmp_path / "out")
    report = check(str(file), env_options={"engine": "sqlite"})
    assert report.sound and report.metadata["env_options"] == {"engine": "sqlite"}


def test_headers_that_are_alike_or_empty() -> None:
    assert column_names(["A", "a", "", "a", "a 2"]) == ["A", "a_2", "column", "a_3", "a_2_2"]


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="spider"):
        convert("spidr", tmp_path, tmp_path)
    with pytest.raises(UsageError, match=r"none of dev.json"):
        convert("spider", tmp_path, tmp_path)
    with pytest.raises(UsageError, match="not a directory"):
        convert("bird", tmp_path / "absent", tmp_path)
    release = _spider(tmp_path / "s", db_id="zoo")
    with pytest.raises(DataError, match=r"train_spider.json, row 1: 'zoo' is not in tables.json"):
        convert("spider", release, tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        convert("spider", _spider(tmp_path / "r"), tmp_path / "file")


def test_a_task_file_names_its_database_well(tmp_path: Path) -> None:
    row = {
        "query": "q",
        "gold": "SELECT 1",
        "database": {"kind": "sqlite", "path": "x", "name": "x"},
    }
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    with pytest.raises(DataError, match=r"line 1: 'database' names 'x', and there is no"):
        load(str(tmp_path / "a.jsonl"))
    (tmp_path / "b.jsonl").write_text(json.dumps({**row, "database": {"kind": "oracle"}}))
    with pytest.raises(DataError, match="kind \\(mysql-dump or sqlite\\)"):
        load(str(tmp_path / "b.jsonl"))
