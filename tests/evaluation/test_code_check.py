"""Golds in JavaScript, C and Java are checked by playing them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from intercode import datasets
from intercode.cli import main
from intercode.core.types import Dataset
from intercode.evaluation.check.dataset import check
from support.languages import PERL_SUM, needs

pytestmark = pytest.mark.sandbox


@pytest.mark.slow("long")
def test_every_starter_task_is_sound() -> None:
    needs("node", "gcc", "javac")
    report = check("starter:code", timeout=30.0)
    assert (report.tasks, report.faults, report.notes) == (36, (), ())


def test_a_gold_that_fails_a_test_is_named() -> None:
    needs("gcc")
    task = next(t for t in datasets.load("starter", "code").tasks if t.id.endswith("/c/roman"))
    wrong = replace(
        task, data={**task.data, "tests": (*task.data["tests"], {"input": "I", "output": "2"})}
    )
    (fault,) = check(Dataset("wrong", "code", (wrong,)), timeout=30.0).faults
    detail = 'the gold scored 0.800 (tests 0.8); "I" fails: another answer'
    assert (fault.kind, fault.detail) == ("gold-below-1", detail)


def test_the_rows_of_the_page_are_sound(tmp_path: Path) -> None:
    """docs/languages.md shows two rows, each over several lines."""
    needs("gcc", "node")
    page = Path(__file__).parents[2] / "docs" / "languages.md"
    found = re.search(r"```json\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert found
    rows = [json.loads(row) for row in re.split(r"\n(?=\{)", found[1].strip())]
    path = tmp_path / "my.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = check(str(path), timeout=30.0)
    assert (report.tasks, report.faults) == (2, ())


def test_rows_without_a_language_use_the_given_one(tmp_path: Path) -> None:
    needs("perl")
    row = {"query": "Sum.", "gold": PERL_SUM.gold, "tests": PERL_SUM.data["tests"]}
    path = tmp_path / "sums.jsonl"
    path.write_text(json.dumps(row) + "\n")
    option = ["--set", "language=support.languages:PERL"]
    assert main(["eval", str(path), "--agent", "gold", *option, "--out", str(tmp_path / "o")]) == 0
    (episode,) = (tmp_path / "o" / "trajectories.jsonl").read_text().splitlines()
    assert json.loads(episode)["steps"][-1]["score"] == 1.0
    assert main(["check", str(path), *option]) == 0
