"""APPS in both layouts, with rows written for the test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.datasets import load
from intercode.datasets.python import apps

SUM = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n"
STDIN = {
    "problem_id": 17,
    "question": "Print the sum of the numbers.",
    "solutions": json.dumps([SUM, "print(0)\n"]),
    "input_output": json.dumps({"inputs": ["1 2\n", ["3", "4"]], "outputs": ["3\n", ["7"]]}),
    "difficulty": "interview",
    "url": "",
    "starter_code": "",
}
CALLED = {
    "problem_id": 18,
    "question": "Join two texts.",
    "solutions": json.dumps(["def joined(a, b):\n    return a + b\n"]),
    "input_output": json.dumps({"fn_name": "joined", "inputs": [["a", "b"]], "outputs": [["ab"]]}),
    "difficulty": "introductory",
    "starter_code": "def joined(a, b):\n\t",
}
BARE = {**STDIN, "problem_id": 19, "solutions": ""}
UNTESTED = {**STDIN, "problem_id": 20, "input_output": ""}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    (tmp_path / "apps").mkdir()
    return tmp_path / "apps"


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_published_form(home: Path) -> None:
    lines(home / "test.jsonl", STDIN, CALLED, BARE, UNTESTED)
    dataset = load("apps")
    assert (dataset.environment, [t.id for t in dataset.tasks]) == (
        "python",
        ["apps/17", "apps/18"],
    )
    assert dataset.notes.startswith("2 problems")
    program, function = dataset.tasks
    assert program.gold == SUM
    assert program.data["mode"] == "stdin"
    assert program.data["tests"] == (
        {"input": "1 2\n", "output": "3\n"},
        {"input": "3\n4", "output": "7"},
    )
    assert (function.data["mode"], function.data["entry"]) == ("call", "joined")
    assert function.data["tests"] == ({"input": ["a", "b"], "output": ["ab"]},)
    assert "Begin with:\ndef joined(a, b):" in function.data["notes"]


def test_by_difficulty(home: Path) -> None:
    lines(home / "test.jsonl", STDIN, CALLED)
    assert [t.id for t in load("apps:introductory").tasks] == ["apps/18"]
    with pytest.raises(UnknownNameError, match="did you mean 'interview'"):
        load("apps:intervew")
    with pytest.raises(DataError, match="holds no problem"):
        load("apps:competition")


def test_the_intercode_authors_form(home: Path) -> None:
    row = {
        "query": STDIN["question"],
        "gold": "print(3)",
        "input_output": {"inputs": ["1 2"], "outputs": ["3"]},
        "meta": {"difficulty": "competition", "url": "x"},
    }
    (home / "ic_apps.json").write_text(json.dumps([row]))
    (task,) = load("apps:competition").tasks
    assert (task.id, task.gold, task.hardness) == ("apps/0", "print(3)", "competition")


def test_a_file_by_its_path(tmp_path: Path) -> None:
    path = lines(tmp_path / "mine.jsonl", CALLED)
    assert [t.id for t in apps.load(path=path).tasks] == ["apps/18"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": " "}, "line 1: no 'question'"),
        ({"input_output": "{"}, "line 1: 'input_output', line 1, column 2: broken JSON"),
        ({"input_output": json.dumps({"inputs": ["1"], "outputs": []})}, "of the same length"),
        (
            {"input_output": json.dumps({"fn_name": "f", "inputs": ["1"], "outputs": [1]})},
            "must be a list of arguments",
        ),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, change: dict[str, str], words: str) -> None:
    path = lines(tmp_path / "mine.jsonl", {**STDIN, **change})
    with pytest.raises(DataError, match=words):
        apps.load(path=path)


def test_a_missing_file_is_an_error_with_its_location(home: Path) -> None:
    with pytest.raises(UsageError, match=r"put it there as apps/test\.jsonl"):
        load("apps")


def test_the_prelude_is_code_that_runs() -> None:
    space: dict[str, object] = {}
    exec(apps.PRELUDE, space)
    assert {"heappush", "defaultdict", "gcd", "List", "sys"} <= space.keys()
