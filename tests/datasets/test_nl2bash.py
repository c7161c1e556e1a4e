"""NL2Bash in the authors' layouts, its subsets, and the error for missing data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.core.types import Dataset, LayerSpec
from intercode.datasets import load
from intercode.datasets.bash import nl2bash

SIZES = {"fs_1": 60, "fs_2": 53, "fs_3": 60, "fs_4": 27}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a small checkout in the authors' layout, with tasks and scripts."""
    tasks, scripts = tmp_path / "data" / "nl2bash", tmp_path / "docker" / "bash_scripts"
    tasks.mkdir(parents=True)
    scripts.mkdir(parents=True)
    for name in nl2bash.FILE_SYSTEMS:
        rows = [{"query": f"{name} {n}", "gold": [f"echo {n}", "pwd"]} for n in range(2)]
        (tasks / f"nl2bash_{name}.json").write_text(json.dumps(rows))
        (scripts / f"setup_nl2b_{name}.sh").write_text("mkdir /made\n")
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    return tmp_path


def test_the_whole(data: Path) -> None:
    dataset = load("nl2bash")
    ids = [f"nl2bash/{name}/{n}" for name, size in SIZES.items() for n in range(size)]
    assert [t.id for t in dataset.tasks] == ids
    assert (dataset.environment, dataset.image) == ("bash", "recipe:nl2bash")
    assert dataset.comparable
    assert all(t.id.split("/")[1] == t.group and t.query and t.gold for t in dataset.tasks)


@pytest.mark.parametrize("name", list(SIZES))
def test_subsets(data: Path, name: str) -> None:
    dataset = load(f"nl2bash:{name}")
    assert (dataset.name, len(dataset)) == (f"nl2bash:{name}", SIZES[name])
    rows = json.loads((data / "nl2bash" / f"nl2bash_{name}.json").read_text())
    assert [(t.query, t.gold) for t in dataset.tasks] == [(r["query"], r["gold"]) for r in rows]
    if name == "fs_4":
        assert dataset.tasks[0].files == ()
    else:
        kind, path = dataset.tasks[0].files[0].kind, dataset.tasks[0].files[0].path
        assert path.exists()
        assert kind == ("tar" if path.suffix == ".tar" else "script")


def test_the_hash_is_stable_and_differs_between_subsets(data: Path) -> None:
    hashes = [load(f"nl2bash:{name}").hash for name in SIZES]
    assert len({*hashes, load("nl2bash").hash}) == 5
    assert load("nl2bash").hash == "d44f6824609a1e0c"


def test_scripts_where_there_is_no_tar(made: Path) -> None:
    dataset = load("nl2bash")
    script = made / "docker" / "bash_scripts" / "setup_nl2b_fs_2.sh"
    assert dataset.tasks[2].files == (LayerSpec("script", script, shift_dates=True),)
    assert dataset.tasks[2].gold == "echo 0;pwd"
    assert dataset.tasks[-1].files == ()
    tar = made / "data" / "nl2bash" / "fs_2.tar"
    tar.write_bytes(b"")
    assert load("nl2bash:fs_2").tasks[0].files == (LayerSpec("tar", tar, shift_dates=True),)
    script.unlink()
    tar.unlink()
    with pytest.raises(UsageError, match="list --fetch nl2bash"):
        load("nl2bash:fs_2")


def test_the_cache_serves_where_nothing_is_set(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INTERCODE_DATA")
    with pytest.raises(UsageError, match="intercode list --fetch nl2bash"):
        load("nl2bash")
    (made / "cache" / "data").symlink_to(made)
    assert len(load("nl2bash")) == 8


def test_verified(made: Path) -> None:
    ids = [f"nl2bash/{name}/{n}" for name in nl2bash.FILE_SYSTEMS for n in range(2)]
    listing = {
        "include": {ids[5]: {"also": ["echo other"]}, ids[0]: {}},
        "exclude": {i: "a reason" for i in ids if i not in (ids[0], ids[5])},
    }
    path = made / "verified.json"
    path.write_text(json.dumps(listing))
    dataset = nl2bash.load("verified", verified=path)
    assert [t.id for t in dataset.tasks] == [ids[0], ids[5]]
    assert dataset.tasks[1].golds == ("echo 1;pwd", "echo other")
    path.write_text(json.dumps({**listing, "hash": dataset.hash}))
    assert nl2bash.load("verified", verified=path) == dataset
    for change, message in [
        ({"hash": "0" * 16}, dataset.hash),
        ({"exclude": {}}, "neither included nor excluded"),
        ({"include": {"nl2bash/fs_9/0": {}}}, "not a task"),
        ({"exclude": dict.fromkeys(ids, "x")}, "both included and excluded"),
        ({"include": []}, "'include' must be an object"),
    ]:
        path.write_text(json.dumps({**listing, **change}))
        with pytest.raises(DataError, match=message):
            nl2bash.load("verified", verified=path)


def test_a_repair_replaces_parts_of_a_task_and_changes_the_hash(made: Path) -> None:
    ids = [f"nl2bash/{name}/{n}" for name in nl2bash.FILE_SYSTEMS for n in range(2)]
    path, hashes = made / "verified.json", set()

    def load_with(entry: dict[str, object]) -> Dataset:
        rows = {"include": {ids[3]: entry}, "exclude": {i: "a" for i in ids if i != ids[3]}}
        path.write_text(json.dumps(rows))
        return nl2bash.load("verified", verified=path)

    entry = {"repair": "prints nothing", "gold": "echo $N", "setup": "N=2", "cwd": "/tmp"}
    task = load_with(entry).tasks[0]
    assert (task.golds, task.setup, task.cwd) == (("echo $N",), "N=2", "/tmp")
    assert (task.query, task.data["repair"]) == ("fs_2 1", "prints nothing")
    for change in ({}, {"setup": "N=3"}, {"cwd": "/"}, {"compare": "order"}, {"gold": "echo"}):
        hashes.add(load_with({**entry, **change}).hash)
    assert len(hashes) == 5
    for broken, message in [
        ({"gold": "echo"}, "gold needs 'repair'"),
        ({"stup": "N=2"}, "'stup' must be one of also, tests, gold, setup"),
        ({**entry, "setup": 2}, "'setup' must be one of .* with a text: 2"),
    ]:
        with pytest.raises(DataError, match=message):
            load_with(broken)


def test_wrong_names_and_paths(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'fs_1'.*fs_1, fs_2, fs_3, fs_4"):
        load("nl2bash:fs1")
    with pytest.raises(UnknownNameError, match="did you mean 'nl2bash'"):
        load("nl2bsh")
    with pytest.raises(UsageError, match="no revision '1234567'"):
        load("nl2bash:fs_1@1234567")
    assert load("nl2bash:fs_1@c3e46d8").name == "nl2bash:fs_1@c3e46d8"
    tasks = made / "data" / "nl2bash" / "nl2bash_fs_3.json"
    tasks.write_text('[\n{"query": "q" "gold"}]')
    with pytest.raises(DataError, match=r"nl2bash_fs_3.json, line 2"):
        load("nl2bash")
    monkeypatch.setenv("INTERCODE_DATA", str(made / "absent"))
    with pytest.raises(UsageError, match="not a directory"):
        load("nl2bash")
