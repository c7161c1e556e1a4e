"""The Python starter suite. `intercode check` verifies its golds in a sandbox, these tests here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from intercode.core.errors import DataError
from intercode.core.types import Task
from intercode.datasets import load
from intercode.datasets.python import starter
from intercode.datasets.starter.task_texts import parse_tasks


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        return load("starter", "python").tasks


def test_they_are_many_mixed_and_tested(tasks: tuple[Task, ...]) -> None:
    assert len(tasks) >= 40
    assert len({t.id for t in tasks}) == len({t.query for t in tasks}) == len(tasks)
    assert all(len(t.data["tests"]) >= 3 for t in tasks)
    assert set(Counter(t.hardness for t in tasks)) == {"easy", "medium", "hard"}
    tags = {tag for t in tasks for tag in t.tags}
    assert {
        "strings",
        "numbers",
        "recursion",
        "classes",
        "iterators",
        "dates",
        "parsing",
        "graphs",
        "files",
        "csv",
        "json",
    } <= tags


def test_a_query_names_what_is_to_be_defined_and_shows_no_test(tasks: tuple[Task, ...]) -> None:
    for task in tasks:
        assert f"{task.data['entry']}(" in task.query or task.data["entry"] in task.query, task.id
        assert not any(test in task.query for test in task.data["tests"]), task.id
        assert task.query.endswith("."), task.id


def test_the_golds_pass_and_nothing_passes_without_them(
    tasks: tuple[Task, ...], tmp_path: Path
) -> None:
    """Run all solutions in one interpreter with separate namespaces; print failed tests."""
    program = """
import json, os, sys
for gold, setup, tests in json.load(sys.stdin):
    for code in (gold, ""):
        space = {}
        exec(code, space)
        for test in [setup, *tests]:
            try:
                exec(test, space)
            except Exception as e:
                print(bool(code), type(e).__name__, test)
            else:
                print("passed", bool(code)) if test != setup else None
"""
    import json

    rows = [[t.gold, t.data["setup"], t.data["tests"]] for t in tasks]
    home = Path(tasks[0].files[0].path) / starter.HOME.lstrip("/")
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(rows),
        cwd=home,
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    error = done.stdout.splitlines()
    assert [line for line in error if line.startswith("True")] == []
    assert error.count("passed True") == sum(len(t.data["tests"]) for t in tasks)
    assert error.count("passed False") == 0


def test_the_files_lie_where_the_tasks_are_played(tasks: tuple[Task, ...]) -> None:
    home = Path(tasks[0].files[0].path) / "lab"
    names = {"readings.csv", "staff.json", "ferry.log", "ledger.csv", "hold"}
    assert {p.name for p in home.iterdir()} == names
    assert (home / "hold/astern").is_symlink()
    assert all(t.cwd == starter.HOME for t in tasks)
    for task in tasks:
        for name in names - {"hold"}:
            assert name not in task.query or "files" in task.tags, task.id


def test_a_task_in_another_form_is_named() -> None:
    good = (
        "== a-b\nhardness: easy\ntags: x, y\nWrite f(x).\n-- gold\ndef f(x):\n    return x\n"
        "-- tests\nassert f(1) == 1\n"
    )
    parse = partial(parse_tasks, name="x.txt", needed={"gold", "tests"})
    [task] = parse(good)
    row = starter.to_row(task)
    assert (task.where, row["id"]) == ("x.txt, a-b", "starter/python/a-b")
    assert (row["gold"], row["tags"]) == ("def f(x):\n    return x\n", ("x", "y"))
    with pytest.raises(DataError, match=r"x\.txt, a-b: expected hardness"):
        list(parse(good.replace("-- tests", "-- proofs")))
    with pytest.raises(DataError, match=r"'words' precedes"):
        list(parse("words\n" + good))
    with pytest.raises(DataError, match="no test calls what the gold defines: f"):
        [starter.to_row(task) for task in parse(good.replace("assert f(1)", "assert g(1)"))]
