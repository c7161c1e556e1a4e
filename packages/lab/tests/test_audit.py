"""`audit` lists golds that disagree, weak answers, ambiguous queries and split answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import DatabaseSpec, Dataset, Score, Step, Task, Trajectory
from intercode_lab.audit.dataset import audit
from intercode_lab.audit.findings import AuditReport, report_as_json

DUMP = """\
CREATE DATABASE `zoo`;
USE `zoo`;
CREATE TABLE `cat` (`id` int NOT NULL, `name` varchar(20), `age` int, PRIMARY KEY (`id`));
INSERT INTO `cat` VALUES (1,'Tom',3),(2,'Kit',3),(3,'Ivy',5);
CREATE TABLE `dog` (`id` int NOT NULL, `age` int, PRIMARY KEY (`id`));
"""
SCHEMA = {"cat": ["id", "name", "age"], "dog": ["id", "age"]}


def sql_tasks(folder: Path, *pairs: tuple[str, str], also: tuple[str, ...] = ()) -> Dataset:
    """Return a dataset on two small tables with a task for each query and gold."""
    (folder / "zoo.sql").write_text(DUMP)
    spec = DatabaseSpec("mysql-dump", folder / "zoo.sql", "zoo")
    tasks = tuple(
        Task(f"t/{n}", query, gold, also, database=spec, data={"schema": SCHEMA})
        for n, (query, gold) in enumerate(pairs)
    )
    return Dataset("small", "sql", tasks, comparable=False)


def findings(report: AuditReport) -> list[tuple[str, str]]:
    return [(f.task, f.kind) for f in report.findings]


def test_an_unknown_environment_option_is_named(tmp_path: Path) -> None:
    tasks = sql_tasks(tmp_path, ("How many cats are there?", "SELECT COUNT(*) FROM cat"))
    with pytest.raises(UnknownNameError, match="'engin'; did you mean 'engine'"):
        audit(tasks, env_options={"engin": "embedded"})


def test_the_rules_on_sql_tasks(tmp_path: Path) -> None:
    dataset = sql_tasks(
        tmp_path,
        ("How many cats are there?", "SELECT COUNT(*) FROM cat"),
        ("How many cats are older than 9?", "SELECT COUNT(*) FROM cat WHERE age > 9"),
        ("Which cats are older than 9?", "SELECT name FROM cat WHERE age > 9"),
        ("What are the ages of the cats?", "SELECT age FROM cat"),
        ("What are the different ages of the cats?", "SELECT age FROM cat"),
        ("Which cat is youngest?", "SELECT name FROM cat ORDER BY age LIMIT 1"),
        ("How old is Tom?", "SELECT age FROM cat WHERE name = 'tom'"),
        ("How old is the first cat?", "SELECT age FROM cat WHERE name = 'Tom'"),
        ("How many  CATS are there?", "SELECT COUNT(id) FROM cat"),
        ("What is wrong?", "SELECT nothing FROM cat"),
    )
    report = audit(dataset)
    assert findings(report) == [
        ("t/1", "zero-answer"),
        ("t/2", "empty-answer"),
        ("t/3", "duplicate-rows"),
        ("t/5", "tie-at-limit"),
        ("t/7", "unnamed-value"),
        ("t/8", "same-query"),
        ("t/9", "gold-fails"),
    ]
    assert report.complete and report.golds_run == 10
    assert report_as_json(report)["counts"]["zero-answer"] == 1


def test_a_further_gold_without_duplicate_rows_settles_the_query(tmp_path: Path) -> None:
    pair = ("What are the ages of the cats?", "SELECT age FROM cat")
    assert findings(audit(sql_tasks(tmp_path, pair, also=("SELECT DISTINCT age FROM cat",)))) == [
        ("t/0", "golds-other-form")
    ]


def test_golds_that_differ(tmp_path: Path) -> None:
    query = "Name the cats."
    equal = ("SELECT name FROM cat ORDER BY name DESC", "SELECT name FROM cat ORDER BY id DESC")
    assert findings(audit(sql_tasks(tmp_path, (query, "SELECT name FROM cat"), also=equal))) == [
        (
            "t/0",
            "golds-other-form",
        )  # both further golds agree with the first, but not in their order
    ]
    other = sql_tasks(tmp_path, (query, "SELECT name FROM cat"), also=("SELECT id FROM cat",))
    (found,) = audit(other).findings
    assert found.kind == "golds-differ" and "gold 2 scores 0.00 against gold 1" in found.detail
    assert "3 rows, [('Tom',), ('Kit',)]" in found.detail
    same = sql_tasks(tmp_path, (query, "SELECT name FROM cat"), also=("SELECT name FROM cat;",))
    assert audit(same).findings == ()


@pytest.mark.sandbox
def test_the_rules_on_bash_tasks() -> None:
    golds = ("echo 3", "true", "echo 0", "printf '0 a\\n0 b\\n'", "echo 10", "touch /tmp/x")
    tasks = tuple(Task(f"t/{n}", f"query {n}", gold) for n, gold in enumerate(golds))
    differing = Task("t/6", "query 6", "echo a.txt", ("echo 1:a.txt", "echo a.txt"))
    slow = Task("t/7", "query 7", "sleep 60")
    cleaned = Task("t/8", "query 8", "rm /tmp/old", setup="touch /tmp/old")
    dataset = Dataset("small", "bash", (*tasks, differing, slow, cleaned), comparable=False)
    done: list[tuple[int, int]] = []
    report = audit(dataset, settings={"timeout": 4.0}, progress=lambda *counts: done.append(counts))
    assert findings(report) == [
        ("t/1", "empty-answer"),
        ("t/2", "zero-answer"),
        ("t/3", "zero-answer"),
        ("t/6", "golds-other-form"),
        ("t/7", "gold-fails"),
    ]
    assert "'a.txt', and '1:a.txt'" in report.findings[3].detail
    assert sorted(done) == [(n, 9) for n in range(1, 10)]


@pytest.mark.sandbox
def test_tests_that_expect_one_value() -> None:
    def task(n: int, *tests: str) -> Task:
        data = {"tests": tests, "entry": "f", "mode": "assert"}
        return Task(f"t/{n}", f"query {n}", "def f(x): return x", data=data)

    tasks = (
        task(0, "assert f(1) == 2", "assert f(2) == 2"),
        task(1, "assert f(1)", "assert not f(2)"),
        task(2, "assert f(1) == 2"),
        task(3, "assert f([1]) == (1, 2)", "assert f(3) == (1,2)"),
        task(4, "assert close(f(1), 2)", "assert f(2) == g(3)"),
    )
    report = audit(Dataset("small", "python", tasks, comparable=False))
    assert findings(report) == [("t/0", "one-answer"), ("t/3", "one-answer")]
    assert report.golds_run == 0


def write_episodes(directory: Path, *episodes: tuple[str, tuple[Step, ...]]) -> Path:
    run: dict[str, Any] = {"profile": "standard", "reward": "sql-standard", "comparable": False}
    trajectories.write_run_metadata(directory, run)
    for query, steps in episodes:
        trajectory = Trajectory("t/0", 0, query, steps, end="submitted", run=run)
        trajectories.append_trajectory(directory / trajectories.TRAJECTORIES_FILE, trajectory)
    return directory


def test_equal_answers_with_different_scores(tmp_path: Path) -> None:
    query, gold = "Name the cats.", "SELECT name FROM cat"
    answered = Step("SELECT name FROM cat", "[('Tom',)]")
    submitted = Step("submit", "", score=Score(1.0))
    runs = write_episodes(
        tmp_path / "run",
        (query, (answered, submitted)),
        (query, (Step("SELECT DISTINCT name FROM cat", "[('Tom',)]", score=Score(0.5)),)),
        (query, (Step("SELECT 1", "[(1,)]", score=Score(0.0)),)),
        ("Another query", (Step("SELECT name FROM cat", "[('Tom',)]", score=Score(0.1)),)),
    )
    report = audit(sql_tasks(tmp_path, (query, gold)), runs=[runs])
    (found,) = report.findings
    assert (found.kind, report.episodes) == ("split-answers", 3)
    assert found.detail == (
        "\"[('Tom',)]\" scored 1 after 'SELECT name FROM cat'"
        " and 0.5 after 'SELECT DISTINCT name FROM cat'"
    )
    with pytest.raises(UsageError, match="no such file"):
        audit(sql_tasks(tmp_path, (query, gold)), runs=[tmp_path / "none"])


@pytest.mark.sandbox
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sums.jsonl"
    rows = [{"query": f"print {n}", "gold": f"echo {n}"} for n in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["check", str(path), "--audit"]) == 0
    assert "sums/0  zero-answer" in capsys.readouterr().out
    assert main(["check", str(path), "--audit", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"zero-answer": 1} and document["complete"]
    assert main(["check", str(path), "--audit", "--runs", str(tmp_path / "none")]) == 2
    assert "no such file or directory" in capsys.readouterr().err
