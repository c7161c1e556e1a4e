"""`intercode new` writes a package that runs at once, and `list` shows all names."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.cli.new import write_task_package
from intercode.core.errors import UsageError
from intercode.evaluation import check_dataset

FILES = {
    "README.md",
    "files/names.txt",
    "reward.py",
    "task.toml",
    "tasks.jsonl",
    "test_my_task.py",
}


def files(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_new_package_runs_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-task"]) == 0
    assert "intercode check ./my-task" in capsys.readouterr().out
    home = tmp_path / "my-task"
    assert files(home) == {*FILES, "Dockerfile"}
    assert "@" not in "".join((home / name).read_text() for name in files(home))
    assert len((home / "README.md").read_text().splitlines()) == 5
    runpy.run_path(str(home / "test_my_task.py"))["test_my_task"]()  # the test of the package
    assert main(["eval", "./my-task", "--agent", "gold", "--out", "out"]) == 0
    run = json.loads(Path("out/run.json").read_text())
    assert json.dumps(run).count("my-task/reward.py:reward@") >= 1
    assert "100.0" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_check_of_a_package_that_is_not_sound_fails_its_test(tmp_path: Path) -> None:
    write_task_package(tmp_path / "my-task")
    rows = tmp_path / "my-task" / "tasks.jsonl"
    rows.write_text(rows.read_text().replace('"sort -u names.txt > sorted.txt"', '"true"'))
    with pytest.raises(AssertionError, match="1 of 2 tasks are not sound: my-task/sorted: "):
        check_dataset(tmp_path / "my-task")


@pytest.mark.network
@pytest.mark.slow
def test_a_new_plugin_can_be_installed(tmp_path: Path) -> None:
    from support.wheels import venv_with

    pytest.importorskip("uv", reason="pip install uv")
    write_task_package(tmp_path / "my-task", plugin=True)
    build = [sys.executable, "-m", "uv", "build", "-q", "--wheel", "-o", str(tmp_path)]
    subprocess.run([*build, str(tmp_path / "my-task")], check=True, timeout=300)
    python = venv_with(tmp_path / "venv", *tmp_path.glob("*.whl"))
    words = [str(python), "-m", "intercode", "check", "my-task", "--json"]
    done = subprocess.run(words, cwd=tmp_path / "venv", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tasks"] == 2


@pytest.mark.parametrize("name", ["My-Task", "my_task", "-x", "a--b", "3d", "ä"])
def test_invalid_names(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--", str(tmp_path / name)]) == 2
    assert f"'{name}' is not a valid name for a task" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_plugin_shadows_no_module_of_pythons(tmp_path: Path) -> None:
    for name in ("json", "import"):
        with pytest.raises(UsageError, match="a module of Python itself"):
            write_task_package(tmp_path / name, plugin=True)
    assert "pyproject.toml" in write_task_package(tmp_path / "json-logs", plugin=True)


def test_what_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine")
    assert main(["new", str(tmp_path / "mine")]) == 2
    write_task_package(tmp_path / "my-task")
    (tmp_path / "my-task" / "task.toml").write_text("mine")
    assert main(["new", str(tmp_path / "my-task")]) == 2
    assert capsys.readouterr().err.count("exists and is not empty") == 2
    assert (tmp_path / "my-task" / "task.toml").read_text() == "mine"
