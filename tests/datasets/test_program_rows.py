"""Rows with hidden tests in any language, in a user's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import DataError
from intercode.datasets import load

ROW: dict[str, Any] = {"query": "Sum.", "gold": "…", "language": "c"}
PROGRAM = {**ROW, "tests": [{"input": "1 2\n", "output": "3\n"}], "example": "0 0\n"}
CALL = {**ROW, "language": "javascript", "entry": "add", "tests": [{"input": [1, 2], "output": 3}]}


def written(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_rows_become_tasks_of_code(tmp_path: Path) -> None:
    dataset = load(written(tmp_path / "mine.jsonl", PROGRAM, CALL))
    assert dataset.environment == "code"
    program, call = dataset.tasks
    assert program.data["tests"] == ({"input": "1 2\n", "output": "3\n"},)
    assert (program.data["example"], program.data["language"]) == ("0 0\n", "c")
    assert (call.data["entry"], call.id) == ("add", "mine/1")
    assert dataset.hash != load(written(tmp_path / "other.jsonl", PROGRAM)).hash


def test_without_a_language_tests_are_python_s(tmp_path: Path) -> None:
    row = {"query": "Add.", "gold": "def f(x):\n    return x\n", "tests": ["assert f(1) == 1"]}
    assert load(written(tmp_path / "mine.jsonl", row)).environment == "python"
    row = {"query": "List.", "gold": "ls", "language": "en"}  # a key of the user's own
    assert load(written(tmp_path / "mine.jsonl", row)).environment == "bash"


def test_who_plays_the_rows_may_say_that_they_are_code_s(tmp_path: Path) -> None:
    row = {k: v for k, v in PROGRAM.items() if k != "language"}
    spec = written(tmp_path / "mine.jsonl", row)
    assert load(spec).environment == load(spec, "python").environment == "python"
    dataset = load(spec, "code")
    assert dataset.environment == "code" and "mode" not in dataset.tasks[0].data
    (tmp_path / "task.toml").write_text('environment = "code"\ntasks = "mine.jsonl"\n')
    assert load(str(tmp_path)).tasks[0].data == dataset.tasks[0].data
    plain = written(tmp_path / "plain.jsonl", {"query": "List.", "gold": "ls"})
    assert load(plain, "code").environment == "bash"


def test_calls_in_python_rows_need_the_name_of_the_function(tmp_path: Path) -> None:
    row = {
        "query": "Add.",
        "gold": "def add(a, b): return a + b",
        "tests": [{"input": [3, 4], "output": 7}],
    }
    named = load(written(tmp_path / "named.jsonl", {**row, "entry": "add"}))
    assert named.environment == "python" and named.tasks[0].data["mode"] == "call"
    with pytest.raises(DataError, match="if the tests call a function, give its name as 'entry'"):
        load(written(tmp_path / "mine.jsonl", row))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tests": []}, "'tests' must be a list with at least one test"),
        ({"tests": "x"}, "'tests' must be a list"),
        ({"absent_in_tests": "a/b"}, "'absent_in_tests' must be a list of texts, not 'a/b'"),
        ({"tests": [{"input": "x"}]}, "a test has exactly 'input' and 'output'"),
        ({"tests": [{"input": 1, "output": "x"}]}, "a program's 'input' and 'output' are texts"),
        ({"entry": "f"}, "'input' lists the arguments of a call, not '1 2"),
        ({"language": "evil.py:X"}, "the language 'evil.py:X' refers to code that would run"),
        ({"language": 3}, "'language' must be a text, not 3"),
        ({"example": 3}, "'example' must be a text, not 3"),
    ],
)
def test_a_row_that_is_wrong_is_named(tmp_path: Path, change: Any, message: str) -> None:
    path = written(tmp_path / "mine.jsonl", PROGRAM, {**PROGRAM, **change})
    with pytest.raises(DataError, match=rf"mine\.jsonl, line 2: {message}"):
        load(path)
