"""Loading rows in SWE-bench's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.datasets import load
from intercode.datasets.data_files import use_data_root
from intercode.integrations.swe_bench.rows import changed_paths
from support.swe_bench import read_rows, write_instances


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_instances(tmp_path_factory.mktemp("swe"))


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_of_rows(rows: Path) -> None:
    dataset = load(f"swe-bench:{rows}")
    assert (dataset.name, dataset.environment, dataset.image) == (
        f"swe-bench:{rows}",
        "swe-bench",
        "",
    )
    first, second = dataset.tasks
    assert (first.id, first.group, first.cwd) == ("acme__pkg-1", "acme/pkg", "/testbed")
    assert first.query == "double(1) is 3 in acme__pkg-1."
    assert first.data["fail_to_pass"][1] == "tests/test_pkg.py::TestDouble::test_double[two]"
    assert (len(first.data["pass_to_pass"]), len(second.data["fail_to_pass"])) == (1, 3)
    assert first.data["image"] == ("docker.io/swebench/sweb.eval.x86_64.acme_1776_pkg-1:latest")
    assert changed_paths(first.data["patch"]) == ("pkg.py",)
    assert (first.solution or "").startswith("git apply ")
    assert "git apply" not in first.query and "hints" not in str(first.data)


def test_a_published_subset_is_a_file_among_the_data(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "swe-bench").mkdir()
    with use_data_root(tmp_path):
        with pytest.raises(UsageError, match="save the test split of SWE-bench/SWE-bench_Verified"):
            load("swe-bench:verified")
        write(tmp_path / "swe-bench/SWE-bench_Verified.jsonl", *read_rows(rows))
        assert load("swe-bench:verified").hash == load(f"swe-bench:{rows}").hash
        assert len(load("swe-bench")) == 2
    with pytest.raises(UnknownNameError, match="did you mean 'verified'"):
        load("swe-bench:verifed")


def test_parquet_with_lists(rows: Path, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = [
        {**row, **{k: json.loads(row[k]) for k in ("FAIL_TO_PASS", "PASS_TO_PASS")}}
        for row in read_rows(rows)
    ]
    parquet.write_table(arrow.Table.from_pylist(lists), tmp_path / "rows.parquet")
    assert load(f"swe-bench:{tmp_path}/rows.parquet").hash == load(f"swe-bench:{rows}").hash


def test_images(rows: Path, tmp_path: Path) -> None:
    row = read_rows(rows)[0]
    digest = f"registry.example/x@sha256:{'0' * 64}"
    path = write(tmp_path / "rows.jsonl", {**row, "image_name": digest})
    assert load(f"swe-bench:{path}").tasks[0].data["image"] == digest
    (task,) = load(f"swe-bench:{path}?image=localhost:5000/{{instance}}").tasks
    assert task.data["image"] == "localhost:5000/acme_1776_pkg-1"
    (tmp_path / "images.toml").write_text('acme__pkg-1 = "dir:/srv/one"\n')
    (task,) = load(f"swe-bench:{path}?images={tmp_path}/images.toml").tasks
    assert task.data["image"] == "dir:/srv/one"
    with pytest.raises(DataError, match="no image for 'acme__pkg-2'"):
        load(f"swe-bench:{rows}?images={tmp_path}/images.toml")
    with pytest.raises(UsageError, match=r"write \{instance\}"):
        load(f"swe-bench:{rows}?image=x")
    with pytest.raises(UnknownNameError, match="known: image, images, skip") as caught:
        load(f"swe-bench:{rows}?imges=x")
    assert "did you mean 'images'" in str(caught.value)
    with pytest.raises(UsageError, match="skip is 'all'; it can be unplayable only"):
        load(f"swe-bench:{rows}?skip=all")
    with pytest.raises(DataError, match="refers to files of this machine"):
        load(f"swe-bench:{write(tmp_path / 'bad.jsonl', {**row, 'image': 'dir:/root'})}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"patch": ""}, "'patch' must be a text"),
        ({"FAIL_TO_PASS": "[]"}, "FAIL_TO_PASS is empty"),
        ({"FAIL_TO_PASS": "{"}, "no list in JSON"),
        ({"PASS_TO_PASS": "[1]"}, "must be a list of ids"),
        ({"PASS_TO_PASS": '["test_x (a.B)"]'}, "no id of pytest"),
        ({"PASS_TO_PASS": '["../x.py::a"]'}, "no id of pytest"),
        ({"repo": "django/django"}, "do not run with pytest"),
    ],
)
def test_broken_rows_are_errors(
    rows: Path, tmp_path: Path, change: dict[str, str], message: str
) -> None:
    one, two = read_rows(rows)
    path = write(tmp_path / "rows.jsonl", {**one, **change}, two)
    with pytest.raises(DataError, match=message):
        load(f"swe-bench:{path}")
    dataset = load(f"swe-bench:{path}?skip=unplayable")
    assert [task.id for task in dataset.tasks] == ["acme__pkg-2"]
    assert "1 rows are left out" in dataset.notes
