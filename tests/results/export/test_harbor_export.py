"""Our tasks as Harbor's directories: written, read again, and validated by playing them."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from intercode import datasets
from intercode.cli import main
from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Task, TreeEntry
from intercode.datasets.harbor.task_toml import read_config
from intercode.environments.harbor.env import HarborEnv
from intercode.results.export.harbor.tasks import write_tasks
from support.harbor import write_task


def some(environment: str, count: int) -> Dataset:
    found = datasets.load("starter", environment)
    step = len(found) // count
    return replace(found, tasks=found.tasks[::step][:count])


def played(folder: Path) -> list[tuple[float, float]]:
    """Return for each task the reward of doing nothing, and its solution."""
    found = []
    with HarborEnv(f"harbor:{folder}") as env:
        for task in env.dataset.tasks:
            env.reset(options={"task": task.id})
            before = env.score().value
            env.step(task.solution or "")
            found.append((before, env.score().value))
    return found


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize(("environment", "count"), [("ctf", 4), ("python", 3)])
def test_starter_tasks_are_sound_as_harbors(tmp_path: Path, environment: str, count: int) -> None:
    written = write_tasks(some(environment, count), tmp_path, base="host")
    assert (written.records, len(written.omitted)) == (count, 0)
    assert played(tmp_path) == [(0.0, 1.0)] * count


def test_tests_and_flags_are_in_tests_only(tmp_path: Path) -> None:
    write_tasks(some("ctf", 2), tmp_path, base="host")
    for folder in tmp_path.iterdir():
        assert {p.name for p in folder.iterdir()} == {
            "environment", "instruction.md", "solution", "task.toml", "tests",
        }  # fmt: skip
        (sum_,) = (folder / "tests" / "flags.sha256").read_text().split()
        assert len(sum_) == 64
        assert read_config(folder / "task.toml").internet is False


@pytest.mark.sandbox
def test_a_probe_is_compared_with_the_golds(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"query": "Write 3 to /srv/n.", "gold": "mkdir -p /srv; echo 3 > /srv/n", '
        '"probe": "cat /srv/n; ls /srv"}\n'
    )
    assert main(["harbor", str(rows), "--out", str(tmp_path / "out"), "--base", "host"]) == 0
    (folder,) = (tmp_path / "out").iterdir()
    assert (folder / "tests" / "expected.txt").read_text() == "3\nn\n"
    assert played(tmp_path / "out") == [(0.0, 1.0)]


def test_harbors_own_tasks_are_unchanged(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "one")
    write_tasks(datasets.load(f"harbor:{folder}"), tmp_path / "out")
    found = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    out = tmp_path / "out" / "one"
    assert found == {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    with pytest.raises(UsageError, match="exists already"):
        write_tasks(datasets.load(f"harbor:{folder}"), tmp_path / "out")


def test_dockerfiles_name_what_an_image_is_made_of(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    initial = TreeEntry("file", "/in/x y", 0o600, None, b"z")
    tasks = (
        Task("a", "q", "submit f", flag="f", cwd="/ctf", setup="touch x", tags=("t",)),
        Task("b", "q", "submit f", flag="f", initial_files=(initial,)),
    )
    write_tasks(Dataset("own", "ctf", tasks, image="recipe:ctf"), tmp_path / "out")
    first, second = ((tmp_path / "out" / n / "environment").resolve() for n in "ab")
    text = (first / "Dockerfile").read_text()
    assert text.startswith("FROM debian:bookworm\nRUN apt-get update")
    assert "sleuthkit" in text and text.endswith("WORKDIR /ctf\n")
    assert (first / "setup.sh").read_text() == "touch x\n"
    with tarfile.open(second / "contents.tar") as archive:
        (member,) = archive
        assert (member.name, member.mode, member.size) == ("in/x y", 0o600, 1)
    assert "ADD contents.tar /" in (second / "Dockerfile").read_text()
    config = read_config(tmp_path / "out" / "a" / "task.toml")
    assert (config.difficulty, config.category, config.tags) == ("medium", "ctf", ("t",))


def test_tasks_without_a_verifier_are_reported(tmp_path: Path) -> None:
    bash = Dataset("own", "bash", (Task("a", "q", "ls"),))
    with pytest.raises(UsageError, match=r"1 tasks: one sandbox.* cannot score a bash task"):
        write_tasks(bash, tmp_path)
    flags = Dataset("own", "ctf", (Task("a", "q", flag="f"),), image="dir:/x")
    with pytest.raises(UsageError, match=r"give a base .*--base"):
        write_tasks(flags, tmp_path)
    mode = {"tests": ({"input": "1", "output": "1"},), "mode": "call"}
    with pytest.raises(UsageError, match="form 'call'"):
        write_tasks(Dataset("own", "python", (Task("a", "q", data=mode),)), tmp_path)
    assert list(tmp_path.iterdir()) == []
