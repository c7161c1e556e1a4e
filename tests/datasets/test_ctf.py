"""InterCode-CTF in the authors' layouts: subsets, layers without solutions, error messages."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.core.types import Task
from intercode.datasets import load
from intercode.datasets.ctf import ic_ctf
from intercode.datasets.pins import load_pins
from intercode_sandbox.images import resolve_layer

HASHES = {
    "ic-ctf": (100, "098752549e739ceb"),
    "ic-ctf:all": (100, "098752549e739ceb"),
    "ic-ctf:inspect": (78, "b8dbb6b2ce140b82"),
    "ic-ctf:cyber-zero": (91, "c2952398c39eca52"),
    "ic-ctf:offline": (74, "9d855df9d526e1b1"),
}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a small checkout in the authors' layout, with solutions."""
    folder = tmp_path / "data" / "ctf"
    rows = [{"task_id": n, "query": f"q{n}", "gold": f"flag{{{n}}}", "tags": ["A"]} for n in (0, 1)]
    rows[0]["query"] = "in lowercase"
    rows[0]["gold"] = "picoCTF{ABC0}"
    rows[1]["setup"] = "wget x"
    for name in (
        "0/a",
        "0/solution/README.md",
        "0/deep/solution/x",
        "0/deep/ltdis.sh",
        "1/.ignore",
    ):
        path = folder / "task_assets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(0o440)
    (folder / "task_assets" / "0" / "ltdis.sh").write_text("run me")
    (folder / "ic_ctf.json").write_text(json.dumps(rows))
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    return folder


@pytest.mark.parametrize("name", HASHES)
def test_subsets_have_stable_hashes(data: Path, name: str) -> None:
    dataset = load(name)
    assert (len(dataset), dataset.hash) == HASHES[name]
    assert (dataset.environment, dataset.image) == ("ctf", "recipe:ctf")
    numbers = [int(t.id.removeprefix("ic-ctf/")) for t in dataset.tasks]
    assert numbers == sorted(set(numbers))


def test_what_is_in_the_subsets(data: Path) -> None:
    numbers = {name: {int(t.id.partition("/")[2]) for t in load(name).tasks} for name in HASHES}
    assert not numbers["ic-ctf:inspect"] & (ic_ctf.NETWORK_TASKS | ic_ctf.NETWORK_SETUP_TASKS)
    assert numbers["ic-ctf"] - numbers["ic-ctf:cyber-zero"] == {28, 29, 55, 56, 66, 87, 88, 89, 95}
    assert numbers["ic-ctf:inspect"] - numbers["ic-ctf:offline"] == {55, 56, 59, 65, 70}
    assert numbers["ic-ctf:offline"] - numbers["ic-ctf:inspect"] == {14}
    with pytest.raises(UnknownNameError, match="did you mean 'inspect'"):
        load("ic-ctf:inspct")


def test_a_task(data: Path) -> None:
    tasks = {t.id: t for t in load("ic-ctf").tasks}
    task = tasks["ic-ctf/24"]
    assert task.cwd == "/ctf/24" and task.group == "General Skills"
    assert task.gold == f"submit {task.flag}" and str(task.flag).startswith("picoCTF{")
    assert "network" in tasks["ic-ctf/16"].tags and "network" not in task.tags
    assert tasks["ic-ctf/1"].setup is None and "wget" in tasks["ic-ctf/1"].data["network_setup"]
    for number in (82, 83, 84):
        capitals = tasks[f"ic-ctf/{number}"]
        assert "lowercase" in capitals.query
        (other,) = capitals.data["also_flags"]
        assert other != capitals.flag and other.lower() == str(capitals.flag).lower()
    (meant,) = tasks["ic-ctf/15"].data["also_flags"]
    assert "lost-sign" in tasks["ic-ctf/15"].tags
    assert meant != tasks["ic-ctf/15"].flag == meant.replace("\\/", "/")
    assert sum("also_flags" in t.data for t in tasks.values()) == 4


def test_no_solution_of_ours_holds_a_flag(data: Path) -> None:
    text = "\n".join(ic_ctf.load_solutions().values())
    for task in load("ic-ctf").tasks:
        inner = str(task.flag).partition("{")[2].rstrip("}")
        assert str(task.flag) not in text
        assert len(inner) < 8 or inner not in text
        if solution := task.data.get("solution"):
            assert solution.startswith("QUERY=")
            assert task.solution == solution
        else:
            assert task.solution == task.gold


def test_every_layer_is_a_tasks_own_and_without_solutions(made: Path) -> None:
    first, second = load("ic-ctf").tasks
    root = resolve_layer(first.files[0]).root
    found = {str(p.relative_to(root)): p.stat().st_mode & 0o777 for p in root.rglob("*")}
    assert found == {
        "ctf": 0o755,
        "ctf/0": 0o755,
        "ctf/0/a": 0o644,
        "ctf/0/deep": 0o755,
        "ctf/0/deep/ltdis.sh": 0o644,
        "ctf/0/ltdis.sh": 0o755,
    }
    other = resolve_layer(second.files[0]).root
    assert [str(p.relative_to(other)) for p in other.rglob("*")] == [
        "ctf",
        "ctf/1",
        "ctf/1/.ignore",
    ]
    assert first.data["also_flags"] == ("picoCTF{abc0}",)
    assert second.data["network_setup"] == "wget x" and second.setup is None


def test_the_pinned_files_are_those_of_the_data(data_dir: Path) -> None:
    pin = load_pins()["ic-ctf"]
    assert len(pin.files) == 97 and all("/solution" not in f.path for f in pin.files)
    absent = {"65", "66", "70"}
    for file in pin.files:
        path = data_dir / file.path.removeprefix("data/")
        if file.path.split("/")[3:4] and file.path.split("/")[3] in absent:
            assert file.git_blob_sha1 and not file.sha256
            continue
        content = path.read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)


def test_missing_data_are_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Path
) -> None:
    (made / "ic_ctf.json").write_text('[{"query": 3, "gold": "x"}]')
    with pytest.raises(DataError, match=r"row 0: expected an object with the texts"):
        load("ic-ctf")
    (made / "ic_ctf.json").write_text("{}")
    with pytest.raises(DataError, match="found dict"):
        load("ic-ctf")
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="intercode list --fetch ic-ctf"):
        load("ic-ctf")


def test_the_whole_is_a_dataset_of_tasks(made: Path) -> None:
    assert all(isinstance(t, Task) for t in load("ic-ctf:all").tasks)
