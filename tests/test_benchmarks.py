"""Tests of benchmarks: the methods that they time exist, and the labelled set can be joined."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from intercode import datasets
from intercode.core.types import Dataset, Task
from intercode_lab.labels.records import read_labels

_BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(_BENCHMARKS))


def test_the_timed_methods_exist() -> None:
    where = importlib.import_module("where")
    missing = [name for name, owner, method in where.PARTS if not hasattr(owner, method)]
    assert len(where.PARTS) > 5 and not missing


@pytest.mark.heavy
def test_every_benchmark_finds_what_it_imports() -> None:
    elsewhere = {
        "harbor_examples",
        "harbor_tests",
        "verifiers_tests",
    }  # have environments of their own
    names = sorted({path.stem for path in _BENCHMARKS.glob("*.py")} - elsewhere)
    code = f"import importlib\nfor name in {names}: importlib.import_module(name)"
    found = [str(_BENCHMARKS), str(_BENCHMARKS.parent / "tests")]
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(found)},
        check=True,
    )


def test_labels_of_two_people_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where two people differ, the joined label is ambiguous; other actions are refused."""
    label_set = importlib.import_module("label_set")
    tasks = [Task(id="t/0", query="count", gold="wc"), Task(id="t/1", query="list", gold="ls")]
    monkeypatch.setattr(datasets, "load", lambda _: Dataset("t", "bash", tuple(tasks)))
    monkeypatch.setattr(label_set, "SET", tmp_path / "set.jsonl")
    rows = [
        {
            "id": f"t00{n}",
            "task": task.id,
            "actions": ["pwd"],
            "digest": label_set.digest(task.id, task.query, ["pwd"]),
        }
        for n, task in enumerate(tasks)
    ]
    _write(label_set.SET, rows)
    people = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, second in zip(people, ("correct", "incorrect"), strict=True):
        _write(path, [{"id": "t000", "label": "correct"}, {"id": "t001", "label": second}])

    label_set.store(argparse.Namespace(first=people[0], second=people[1]))
    label_set.join(argparse.Namespace(logs=[], out=tmp_path / "out"))

    agreed = read_labels([tmp_path / "out" / "agreed.jsonl"])
    assert [label.value for label in agreed] == ["correct", "ambiguous"]
    assert [label.query for label in agreed] == ["count", "list"]
    _write(label_set.SET, [rows[0] | {"actions": ["ls"]}])
    with pytest.raises(SystemExit, match="t000"):
        label_set.join(argparse.Namespace(logs=[], out=tmp_path / "out"))


def test_two_versions_of_a_scoring_are_compared_by_best_rewards() -> None:
    versions = importlib.import_module("scoring_versions")
    before = versions.Graded("sql-2", {("a", 0): 1.0, ("b", 1): 0.5, ("c", 2): 0.0})
    now = versions.Graded("sql-3", {("a", 0): 1.0, ("b", 1): 0.4, ("c", 2): 1.0})
    line = versions.line(Path("log.json"), before, now)
    assert line == "| `log` | sql-2, sql-3 | 3 | 1, 2 | 0.50, 0.80 | 1 | 0 | 2 |"


def test_doing_nothing_is_played_in_suites_and_families() -> None:
    doing_nothing = importlib.import_module("doing_nothing")
    assert list(doing_nothing.rewards("starter:sql", 1)) == ["starter:sql"]
    (family,) = doing_nothing.rewards("families:sql/change-prices", 2).values()
    assert len(family) == 10 and all(value == 0 for _, value in family)


def test_kills_add_up_with_those_of_the_same_commit_episodes_and_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = importlib.import_module("bench_kills")
    done: list[tuple[str, int]] = []

    def killed(what: str, episodes: int) -> tuple[str, int, float, str]:
        done.append((what, episodes))
        return what, episodes, 0.1, "lost one"

    monkeypatch.setattr(kills, "killed", killed)
    record = tmp_path / "kills.jsonl"
    record.write_text('["owner", 9, null, "-"]\n')  # as an earlier version recorded it
    for commit, episodes, init, expected in (
        ("a", 5, "our own", 1),
        ("a", 5, "our own", 2),
        ("b", 5, "our own", 1),
        ("a", 6, "our own", 1),
        ("a", 5, "the machine's", 1),
    ):
        monkeypatch.setattr("measuring.commit", lambda commit=commit: commit)
        done.clear()
        assert kills.measure(episodes, 4, init, record) == 0
        assert done == [(what, episodes) for what in ("owner", "launcher", "PID 1", "supervisor")]
        rows = capsys.readouterr().out.splitlines()
        (owner,) = (row.split() for row in rows if row.startswith("owner"))
        assert owner[1:3] == [str(expected), str(episodes)]


@pytest.mark.sandbox
def test_a_campaign_of_the_fuzzer_continues_where_it_was_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = importlib.import_module("soak_fuzz")
    record, words = tmp_path / "fuzz.jsonl", ["soak_fuzz.py", "--workers=1", "--out"]
    for random_bytes, mutated, expected in ((3, 0, 1), (3, 2, 1), (3, 2, 0)):
        counts = [f"--random={random_bytes}", f"--mutated={mutated}"]
        monkeypatch.setattr(sys, "argv", [*words, str(record), *counts])
        assert campaign.main() == 0
        assert f" {expected} new runs" in capsys.readouterr().out
    results = [json.loads(line) for line in record.read_text().splitlines()]
    assert [result[1:4] for result in results] == [
        ["random", 1_000_000, 3],
        ["mutated", 1_500_000, 2],
    ]


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
