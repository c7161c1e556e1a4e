"""Python tasks in a user's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core.errors import DataError
from intercode.core.types import Task
from intercode.datasets import load

GOLD = "def helper(x):\n    return x\ndef twice(x):\n    return 2 * helper(x)\n"


def task(tmp_path: Path, **row: object) -> Task:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"query": "Write twice(x).", "gold": GOLD, **row}) + "\n")
    dataset = load(str(path))
    assert dataset.environment == "python"
    return dataset.tasks[0]


def test_asserts_determine_the_called_function(tmp_path: Path) -> None:
    made = task(tmp_path, tests=["assert twice(2) == two"], setup="two = 4", notes="n", more=1)
    assert made.data == {
        "entry": "twice",
        "tests": ("assert twice(2) == two",),
        "setup": "two = 4",
        "mode": "assert",
        "notes": "n",
        "more": 1,
    }
    assert made.setup is None  # `setup` is code for a shell
    assert task(tmp_path, tests=["assert f(1)"], entry="f", gold=None).data["entry"] == "f"


def test_pairs_are_calls_or_programs(tmp_path: Path) -> None:
    pairs = [{"input": [1], "output": 2}]
    assert task(tmp_path, tests=pairs, entry="twice").data["mode"] == "call"
    assert task(tmp_path, tests=[{"input": "1", "output": "2"}]).data["mode"] == "stdin"


def test_a_table_has_a_test_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text('query,gold,tests\nq,"def f(x): return x","assert f(1) == 1\n\nassert f(2)"\n')
    (made,) = load(str(path)).tasks
    assert made.data["tests"] == ("assert f(1) == 1", "assert f(2)")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"tests": []}, "a list with at least one test"),
        ({"tests": 3}, "a list with at least one test, not 3"),
        ({"tests": ["assert other(1)"]}, "line 1: no test calls what the gold defines"),
        ({"tests": ["assert (1"]}, "line 1: not valid Python"),
        ({"tests": ["assert f(1)"], "gold": None}, "needs 'entry', the name that the tests call"),
        ({"tests": ["assert twice(1)", {"input": 1, "output": 2}]}, "must all be texts, or all"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, row: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        task(tmp_path, **row)
