"""Parquet files, and columns with other names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.datasets import load

arrow = pytest.importorskip("pyarrow", reason="pip install 'intercode-gym[data]'")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> str:
    parquet.write_table(arrow.Table.from_pylist(rows), path, **options)
    return str(path)


def test_rows_become_tasks(tmp_path: Path) -> None:
    rows = [
        {"id": 7, "query": "list", "gold": "ls", "also": ["dir"], "level": 3, "cwd": None},
        {"id": 8, "query": "é", "gold": "pwd", "also": None, "level": None, "cwd": "/usr"},
    ]
    dataset = load(write(tmp_path / "mine.parquet", rows))
    first, second = dataset.tasks
    assert (first.id, first.golds, first.cwd, dict(first.data)) == (
        "7",
        ("ls", "dir"),
        "/",
        {"level": 3},
    )
    assert (second.id, second.query, second.cwd, dict(second.data)) == ("8", "é", "/usr", {})
    assert (dataset.environment, dataset.comparable) == ("bash", False)


def test_hidden_tests_and_many_batches(tmp_path: Path) -> None:
    rows = [
        {
            "query": f"Return {n}.",
            "gold": f"def f():\n    return {n}",
            "tests": [f"assert f() == {n}"],
        }
        for n in range(3000)
    ]
    dataset = load(write(tmp_path / "many.parquet", rows, row_group_size=700))
    assert (len(dataset), dataset.environment) == (3000, "python")
    assert dataset.tasks[2999].data["tests"] == ("assert f() == 2999",)
    pairs = [{"query": "echo", "gold": "", "tests": [{"input": "1", "output": "1"}]}]
    (task,) = load(write(tmp_path / "pairs.parquet", pairs)).tasks
    assert task.data["mode"] == "stdin"


def test_columns_of_other_names(tmp_path: Path) -> None:
    rows = [{"question": "list", "answer": "ls", "query": "not this", "n": 1}]
    spec = write(tmp_path / "t.parquet", rows) + "?query=question&gold=answer"
    dataset = load(spec)
    assert (dataset.tasks[0].query, dataset.tasks[0].gold) == ("list", "ls")
    assert dict(dataset.tasks[0].data) == {"n": 1}
    assert dataset.name == spec
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"my query": "q", "gold": "g"}))
    assert load(f"{path}?query=my+query").tasks[0].query == "q"


def test_faults_say_where_they_are(tmp_path: Path) -> None:
    spec = write(tmp_path / "t.parquet", [{"question": "list", "gold": "ls"}])
    with pytest.raises(DataError, match=r"t\.parquet, row 0: no 'query'; found question, gold"):
        load(spec)
    with pytest.raises(DataError, match="no column 'questoin' for 'query'; found question"):
        load(f"{spec}?query=questoin")
    with pytest.raises(UnknownNameError, match="did you mean 'query'"):
        load(f"{spec}?quer=question")
    for wrong in ("?", "?query=", "?query=question&query=gold"):
        with pytest.raises(UsageError, match=r"name=value|one value"):
            load(spec + wrong)
    with pytest.raises(DataError, match="no such file"):
        load(str(tmp_path / "absent.parquet"))
    broken = tmp_path / "broken.parquet"
    broken.write_bytes((tmp_path / "t.parquet").read_bytes()[:-5])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        load(str(broken))
