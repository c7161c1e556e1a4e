"""Golds in Python are checked by playing them: ours, and a few of MBPP's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from intercode import datasets
from intercode.core.types import Dataset
from intercode.datasets.python import apps
from intercode.evaluation.check.dataset import check

pytestmark = pytest.mark.sandbox
SET_UP = ("mbpp/367", "mbpp/601", "mbpp/927")
"""Tasks whose tests need classes that the solution defines; two of them have set-up code."""


@pytest.mark.slow
def test_every_starter_task_is_sound() -> None:
    report = check("starter:python")
    assert (report.tasks, report.faults, report.notes) == (45, (), ())


def test_golds_of_mbpp_are_sound(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    chosen = {t.id: t for t in datasets.load("mbpp").tasks}
    some = tuple(chosen[i] for i in ("mbpp/2", "mbpp/6", "mbpp/85", *SET_UP))
    report = check(Dataset("some", "python", some, image="host"), timeout=20.0)
    assert (report.tasks, report.faults, report.notes) == (6, (), ())


def test_apps_is_played_in_both_of_its_ways(tmp_path: Path) -> None:
    """Rows of our own: a program, a function, and a method of ``Solution`` that needs the
    benchmark's imports. At a prompt the program finds no input, hence the note."""
    rows = [
        (
            "import sys\nprint(sum(map(int, sys.stdin.read().split())) / 3)\n",
            {"inputs": ["1 2 4\n"], "outputs": ["2.33333333\n"]},
        ),
        (
            "def swap(a, b):\n    return (b, a)\n",
            {"fn_name": "swap", "inputs": [[1, "x"]], "outputs": [["x", 1]]},
        ),
        (
            "class Solution:\n    def count(self, a: str) -> List[int]:\n"
            "        return sorted(Counter(a).values())\n",
            {"fn_name": "count", "inputs": [["aab"]], "outputs": [[[1, 2]]]},
        ),
    ]
    path = tmp_path / "rows.jsonl"
    with path.open("w") as f:
        for n, (gold, tests) in enumerate(rows):
            row = {"problem_id": n, "question": f"Do {n}.", "solutions": json.dumps([gold])}
            f.write(json.dumps({**row, "input_output": json.dumps(tests)}) + "\n")
    report = check(replace(apps.load(path=path), image="host"))
    assert (report.tasks, report.faults) == (3, ())


def test_a_gold_that_fails_a_test_is_named() -> None:
    task = datasets.load("starter", "python").tasks[0]
    tests = (*task.data["tests"][:1], f"assert {task.data['entry']}(1, 2, 3, 4, 5) == 1")
    wrong = replace(task, id="wrong", data={**task.data, "tests": tests})
    report = check(Dataset("wrong", "python", (wrong,)))
    (fault,) = report.faults
    assert fault.kind == "gold-below-1"
    assert fault.detail.startswith(
        f"the gold scored 0.500 (tests 0.5); {tests[1]} fails: TypeError"
    )
