"""InterCode-ALFA in its authors' layout: both golds, difficulties, set-up of a file system."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import intercode
from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.core.types import LayerSpec
from intercode.datasets import load
from intercode.datasets.bash import intercode_alfa
from intercode.datasets.pins import load_pins

ROW = {"query": "q", "gold": "ls", "gold2": "ls -l", "difficulty": 2}


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a small checkout in the layout of the pinned files."""
    for file in load_pins()["intercode-alfa"].files:
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        same = {**ROW, "gold2": "ls", "difficulty": 0}
        path.write_text(json.dumps([ROW, same]) if path.suffix == ".json" else "mkdir /made\n")
    docker = tmp_path / "src/icalfa/assets/docker"
    (docker / "nl2bash1.Dockerfile").write_text('FROM x\nENV FILES="/a /b"\nWORKDIR /\n')
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    return docker.parent


def test_tasks_have_both_golds(assets: Path) -> None:
    dataset = load("intercode-alfa")
    names = [f"intercode-alfa/{fs}/{n}" for fs in intercode_alfa.FILE_SYSTEMS for n in range(2)]
    assert [task.id for task in dataset.tasks] == names
    assert (dataset.environment, dataset.image) == ("bash", "recipe:nl2bash")
    first, second = dataset.tasks[:2]
    assert (first.golds, first.hardness) == (("ls", "ls -l"), "hard")
    assert (second.golds, second.hardness, second.data) == (("ls",), "easy", {})
    script = assets / "docker" / "setup_nl2b_fs_1.sh"
    copy, made = first.files
    assert made == LayerSpec("script", script, shift_dates=True)
    assert (copy.kind, copy.path, copy.destination) == ("dir", script.parent, "/")
    assert first.setup == 'export FILES="/a /b"'
    assert load("intercode-alfa:fs_5").tasks[0].setup is None
    assert load("intercode-alfa:fs_4").tasks[0].files == ()


@pytest.mark.sandbox
def test_the_set_up_script_lies_in_the_root_directory_alone(assets: Path) -> None:
    """As in the authors' image, whose tasks read it."""
    dataset = replace(load("intercode-alfa:fs_1"), image="host")
    with intercode.make("bash", dataset=dataset) as env:
        env.reset(options={"task": 0})
        observation, *_ = env.step("stat -c '%a %n' /*nl2b*; ls /; cat /setup_nl2b_fs_1.sh")
    assert observation.splitlines()[0] == "755 /setup_nl2b_fs_1.sh"
    assert observation.endswith("mkdir /made\n") and "Dockerfile" not in observation


def test_the_errors_say_what_is_missing(assets: Path) -> None:
    with pytest.raises(UnknownNameError, match="fs_1, fs_2, fs_3, fs_4, fs_5"):
        load("intercode-alfa:fs_6")
    rows = assets / "datasets" / "nl2bash_fs_3.json"
    for change, message in [({"gold2": None}, "'gold2'"), ({"difficulty": 3}, "'difficulty'")]:
        rows.write_text(json.dumps([{**ROW, **change}]))
        with pytest.raises(DataError, match=f"row 0: {message}"):
            load("intercode-alfa:fs_3")
    (assets / "docker" / "setup_nl2b_fs_2.sh").unlink()
    with pytest.raises(UsageError, match="list --fetch intercode-alfa"):
        load("intercode-alfa:fs_2")
    (assets / "datasets" / "nl2bash_fs_1.json").unlink()
    with pytest.raises(UsageError, match="list --fetch intercode-alfa"):
        load("intercode-alfa")


def test_the_pins_are_whole() -> None:
    pin = load_pins()["intercode-alfa"]
    assert pin.base_url.endswith(f"westenfelder/InterCode-ALFA/{pin.commit}")
    assert len(pin.commit) == 40 and len({f.path for f in pin.files}) == len(pin.files) == 14
    assert all(len(f.sha256) == 64 and f.size for f in pin.files)
