"""The examples work as they describe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.sandbox


def run(name: str, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "INTERCODE_MODEL"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_hello_world_is_short_and_solves_five_tasks(tmp_path: Path) -> None:
    assert len((EXAMPLES / "hello_world.py").read_text().splitlines()) <= 42
    assert run("hello_world.py", tmp_path).count("reward 1.00, submitted") == 5
    assert list(tmp_path.iterdir()) == []


def test_a_function_is_evaluated_in_one_call(tmp_path: Path) -> None:
    printed = run("evaluate_function.py", tmp_path)
    assert printed.startswith("starter:bash") and "list_files" in printed
    assert printed.count(" ls -la ") == 4
    assert len(list(tmp_path.glob("runs/*/trajectories.jsonl"))) == 1


def test_a_fork_has_a_server_of_its_own(tmp_path: Path) -> None:
    printed = run("table_server/table_env.py", tmp_path)
    assert printed == "[('Monday',)] 0.5\n[('Monday', 9.5), ('Monday', 2.0)] 0.0\n"


@pytest.mark.slow
def test_the_demo_proves_the_starter_tasks_and_repeats_nothing(tmp_path: Path) -> None:
    first = run("demo.py", tmp_path)
    assert "golds score 1 and doing nothing never does" in first
    files = sorted(tmp_path.glob("runs/demo-*/trajectories.jsonl"))
    assert [f.parent.name for f in files] == ["demo-gold", "demo-noop"]
    assert all(str(f.relative_to(tmp_path)) in first for f in files)
    before = [f.read_bytes() for f in files]
    view, *shown = [line for line in first.splitlines() if " runs/" in line and "  # " in line]
    assert "intercode view runs/demo-gold runs/demo-noop --open" in view and len(shown) == 2
    for line in (view.replace(" --open", " --html page.html"), *shown):  # --open would serve it
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0 and (done.stdout or (tmp_path / "page.html").exists()), line
    assert run("demo.py", tmp_path) == first
    assert [f.read_bytes() for f in files] == before
