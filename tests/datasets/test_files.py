"""Datasets from files, and the errors for broken ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core.errors import DataError
from intercode.core.types import Dataset, Task
from intercode.datasets import load

ROWS = [{"query": "list", "gold": "ls"}, {"query": "two", "gold": ["cd /", "ls"], "extra": 7}]


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_rows_become_tasks(tmp_path: Path, kind: str) -> None:
    text = json.dumps(ROWS) if kind == "json" else "\n\n".join(map(json.dumps, ROWS)) + "\n"
    spec = write(tmp_path / f"mine.{kind}", text)
    dataset = load(spec)
    assert [t.id for t in dataset.tasks] == ["mine/0", "mine/1"]
    assert [t.gold for t in dataset.tasks] == ["ls", "cd /;ls"]
    assert dict(dataset.tasks[1].data) == {"extra": 7}
    assert (dataset.name, dataset.environment, dataset.comparable) == (spec, "bash", False)


@pytest.mark.parametrize(("suffix", "mark"), [("csv", ","), ("tsv", "\t")])
def test_tables(tmp_path: Path, suffix: str, mark: str) -> None:
    text = f"id{mark}query{mark}gold{mark}cwd\na{mark}q{mark}\"echo 'x, y'\"{mark}\n"
    dataset = load(write(tmp_path / f"t.{suffix}", text))
    assert (dataset.tasks[0].id, dataset.tasks[0].gold) == ("a", "echo 'x, y'")
    assert dataset.tasks[0].cwd == "/"


def test_all_fields(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "make.sh").write_text("mkdir /x")
    row = {
        "id": 5,
        "query": "q",
        "gold": "g",
        "also": ["h"],
        "tags": ["t"],
        "setup": "s",
        "cwd": "/x",
        "group": "one",
        "hardness": "hard",
        "files": ["tree", "make.sh"],
    }
    task = load(write(tmp_path / "d.jsonl", json.dumps(row))).tasks[0]
    assert (task.id, task.golds, task.tags, task.setup) == ("5", ("g", "h"), ("t",), "s")
    assert (task.cwd, task.group, task.hardness) == ("/x", "one", "hard")
    assert [(f.kind, f.path) for f in task.files] == [
        ("dir", tmp_path / "tree"),
        ("script", tmp_path / "make.sh"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '[\n{"query": "q",\n]', "a.json, line 3"),
        ("a.json", '{"query": "q"}', "expected a list"),
        ("a.json", "[]", "no task"),
        ("a.json", '[{"query": "q", "gold": "g"}, {"query": "q"}]', "row 1: no 'gold'"),
        ("a.json", '[{"query": 3, "gold": "g"}]', "'query' must be a text, not 3"),
        ("a.json", '[{"query": "q", "gold": {}}]', "'gold' must be"),
        (
            "a.json",
            '[{"query": "q", "gold": "g", "cwd": "w"}]',
            "is an absolute path in the sandbox, such as '/w'",
        ),
        ("a.json", '[{"query": "q", "gold": "g", "files": "gone.tar"}]', "gone.tar"),
        ("a.jsonl", '{"query": "q", "gold": "g"}\n\n{"query": }\n', "a.jsonl, line 3"),
        ("a.jsonl", '{"id": "x", "query": "q", "gold": "g"}\n' * 2, "two rows have the id 'x'"),
        ("a.csv", "query,gold\nq\n", "a.csv, line 2"),
        ("a.csv", "query,gold\nq,g,h\n", "a.csv, line 2"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load(write(tmp_path / name, text))
    assert message in str(caught.value)


def test_a_misspelt_column_is_a_warning(tmp_path: Path) -> None:
    rows = [{"query": "q", "gold": "ls", "hardnes": "easy", "source": "mine", "tags": []}]
    (file := tmp_path / "my.json").write_text(json.dumps(rows))
    (warning,) = load(str(file)).warnings
    assert "'hardnes'" in warning and "'hardness'" in warning


def test_absent_and_binary(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        load(str(tmp_path / "absent.csv"))
    (tmp_path / "b.json").write_bytes(b"[\xff]")
    with pytest.raises(DataError, match=r"not UTF-8 text \(byte 1\)"):
        load(str(tmp_path / "b.json"))


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_row(tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"query": "", "gold": "", "files": name}))
    with pytest.raises(DataError, match="line 1: 'files' names"):
        load(str(tmp_path / "rows.jsonl"))


@pytest.mark.parametrize("how", ["absolute", "parent", "link", "link inside a path"])
@pytest.mark.parametrize("key", ["files", "probe", "database"])
def test_rows_name_only_files_of_their_directory(tmp_path: Path, key: str, how: str) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "x.sh").write_text("echo secret")
    home = tmp_path / "set"
    home.mkdir()
    names = {
        "absolute": str(private / "x.sh"),
        "parent": "../private/x.sh",
        "link": "x.sh",
        "link inside a path": "folder/x.sh",
    }
    if how == "link":
        (home / "x.sh").symlink_to(private / "x.sh")
    if how == "link inside a path":
        (home / "folder").symlink_to(private)
    values = {
        "files": [names[how]],
        "probe": names[how],
        "database": {"kind": "sqlite", "path": names[how], "name": "d"},
    }
    row = {"query": "q", "gold": "g", key: values[key]}
    with pytest.raises(DataError, match=f"line 1: '{key}' names '{names[how]}', which leads out"):
        load(write(home / "d.jsonl", json.dumps(row)))


def test_rows_name_no_directory_of_the_machine(tmp_path: Path) -> None:
    row = {"query": "q", "gold": "g", "files": ["/etc"]}
    with pytest.raises(DataError, match="leads out of"):
        load(write(tmp_path / "d.jsonl", json.dumps(row)))


def test_rows_may_name_files_of_their_directory_in_any_way(tmp_path: Path) -> None:
    (tmp_path / "real" / "tree").mkdir(parents=True)
    (tmp_path / "real" / "other").symlink_to("tree")
    (tmp_path / "linked").symlink_to("real")
    names = ["tree", "other", "tree/../tree", str(tmp_path / "linked" / "tree")]
    row = {"query": "q", "gold": "g", "files": names}
    task = load(write(tmp_path / "linked" / "d.jsonl", json.dumps(row))).tasks[0]
    assert [spec.path.resolve() for spec in task.files] == [tmp_path / "real" / "tree"] * 4


@pytest.mark.parametrize(("suffix", "mark"), [("csv", ","), ("tsv", "\t")])
def test_a_field_of_a_table_may_be_long(tmp_path: Path, suffix: str, mark: str) -> None:
    long = "x" * 300_000
    text = f'query{mark}gold\nq{mark}"echo {long}"\n'
    assert load(write(tmp_path / f"t.{suffix}", text)).tasks[0].gold == f"echo {long}"


def test_null_is_no_value(tmp_path: Path) -> None:
    keys = ("id", "setup", "cwd", "group", "also", "tags", "files", "database", "tests", "probe")
    row = dict.fromkeys(keys) | {"query": "q", "gold": "g"}
    task = load(write(tmp_path / "d.jsonl", json.dumps(row))).tasks[0]
    assert (task.id, task.golds, task.tags, task.cwd) == ("d/0", ("g",), (), "/")
    no_gold = load(write(tmp_path / "e.jsonl", '{"query": "q", "gold": null}')).tasks[0]
    assert no_gold.golds == ()  # a task without a gold can be played, and not scored
    with pytest.raises(DataError, match=r"f\.jsonl, line 1: 'query' is null"):
        load(write(tmp_path / "f.jsonl", '{"query": null, "gold": "g"}'))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"query": "a\\ud800", "gold": "g"}', r"line 1: 'query' has half of .* character 2"),
        ('{"query": "q", "gold": ["a", "\\udfff"]}', "line 1: 'gold' has half of"),
        ('{"query": "q", "gold": "g", "notes": "\\ud9ab"}', "line 1: 'notes' has half of"),
        ('{"query": "q", "gold": "g", "\\ud800": 1}', "line 1: the name of a key has half of"),
        ('{"query": "q", "gold": "g", "x": [{"y": "\\udc00 "}]}', "line 1: 'x' has half of"),
    ],
)
def test_half_of_a_surrogate_pair_is_an_error_of_the_row(
    tmp_path: Path, row: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load(write(tmp_path / "s.jsonl", row))
    whole = '{"query": "\\ud83d\\ude00", "gold": "g"}'
    assert load(write(tmp_path / "w.jsonl", whole)).tasks[0].query == "\N{GRINNING FACE}"


def test_half_of_a_surrogate_pair_is_an_error_of_a_dataset_made_in_python() -> None:
    tasks = Task("a", "q", "g"), Task("b", "q\ud800", "g")
    with pytest.raises(DataError, match=r"mine, task 1 \('b'\): a text has half of"):
        _ = Dataset("mine", "bash", tasks).hash
