"""`check` on SQL tasks: the general checks, and results that many wrong statements share."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode import datasets
from intercode.cli import main
from intercode.core.types import DatabaseSpec, Dataset, Task
from intercode.evaluation.check.dataset import check
from intercode.evaluation.check.findings import CheckReport

DUMP = """\
CREATE DATABASE `zoo`;
USE `zoo`;
CREATE TABLE `cat` (`id` int NOT NULL, `name` varchar(20), `age` int, PRIMARY KEY (`id`));
INSERT INTO `cat` VALUES (1,'Tom',3),(2,'Kit',3),(3,'Ivy',5),(4,'Bo',NULL);
CREATE TABLE `dog` (`id` int NOT NULL, `age` int, PRIMARY KEY (`id`));
"""
SCHEMA = {"cat": ["id", "name", "age"], "dog": ["id", "age"]}
ENGINES = ["embedded", pytest.param("mysql", marks=pytest.mark.mysql)]


def made(folder: Path, *golds: str, **more: Any) -> Dataset:
    """Return a dataset on two small tables, one of them empty, with a task for each gold."""
    (folder / "zoo.sql").write_text(DUMP)
    spec = DatabaseSpec("mysql-dump", folder / "zoo.sql", "zoo")
    tasks = (
        Task(f"t/{n}", f"query {n}", gold, database=spec, data={"schema": SCHEMA}, **more)
        for n, gold in enumerate(golds)
    )
    return Dataset("made", "sql", tuple(tasks), comparable=False)


def kinds(report: CheckReport, number: int = 0) -> set[str]:
    return {f.kind for f in (*report.faults, *report.notes) if f.task == f"t/{number}"}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ("SELECT COUNT(*) FROM cat", set()),
        ("SELECT name FROM cat ORDER BY id LIMIT 2", set()),
        ("SELECT name FROM cat ORDER BY age DESC LIMIT 1", set()),
        ("SELECT name FROM cat", {"open-order"}),
        ("SELECT name FROM cat WHERE age = 3 ORDER BY age LIMIT 1", {"tie-at-limit"}),
        ("SELECT name FROM cat LIMIT 1", {"tie-at-limit"}),
        (
            "SELECT 1 FROM cat WHERE id = (SELECT id FROM cat GROUP BY id ORDER BY SUM(1) LIMIT 1)",
            {"tie-at-limit"},
        ),
        ("SELECT name FROM cat WHERE id = (SELECT id FROM cat ORDER BY id LIMIT 1)", set()),
        # the tied rows give the same result
        ("SELECT age FROM cat WHERE age = 3 ORDER BY age LIMIT 1", set()),
        ("SELECT name FROM cat WHERE age > 90", {"vacuous"}),
        ("SELECT COUNT(*) FROM cat WHERE age > 90", {"vacuous"}),
        ("SELECT MAX(age) FROM dog", {"empty-table"}),
        ("SELECT cat.name FROM cat JOIN dog ON cat.id = dog.id", {"empty-table"}),
        ("SELECT nothing FROM cat", {"fails"}),
        ("SELECT name, COUNT(*) FROM cat GROUP BY age", {"fails"}),
    ],
)
def test_the_fault_of_a_gold(tmp_path: Path, engine: str, gold: str, expected: set[str]) -> None:
    report = check(made(tmp_path, gold), env_options={"engine": engine})
    assert kinds(report) == expected
    assert report.metadata["env_options"] == {"engine": engine}


def test_equal_queries_on_different_databases_are_not_a_fault(tmp_path: Path) -> None:
    one = made(tmp_path, *["SELECT COUNT(*) FROM cat"] * 2)
    assert kinds(check(one), 1) == {"same-gold"}
    other = tmp_path / "other.sql"
    other.write_text(DUMP)
    apart = replace(one.tasks[1], database=DatabaseSpec("mysql-dump", other, "zoo"))
    assert kinds(check(replace(one, tasks=(one.tasks[0], apart))), 1) == set()


def test_further_golds_are_played(tmp_path: Path) -> None:
    golds = ("SELECT age + 1 FROM cat WHERE id = 1",)
    report = check(made(tmp_path, "SELECT age FROM cat WHERE id = 1", also=golds))
    assert report.sound  # either gold counts as correct
    assert kinds(check(made(tmp_path, "SELECT 1", also=("SELECT nope FROM cat",)))) == {"fails"}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_starter_tasks_are_sound(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "starter:sql", "--json", "--set", f"engine={engine}"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sound"] and told["tasks"] == len(datasets.load("starter:sql")) >= 30
    assert {n["kind"] for n in told["notes"]} == {"open-order"}


def test_a_part_of_a_dataset_is_checked_under_the_hash_of_the_whole() -> None:
    found = check("starter:sql", limit=1)
    assert found.tasks == 1
    assert found.metadata["dataset_hash"] == datasets.load("starter:sql").hash
