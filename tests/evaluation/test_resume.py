"""A run that was stopped in any way is finished by the same command."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from intercode.core import trajectories
from support import traces

pytestmark = pytest.mark.sandbox


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    """A file of eight small tasks."""
    path = tmp_path / "sums.jsonl"
    rows = [{"query": f"print {n} squared", "gold": f"echo $(({n}*{n}))"} for n in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


SLOW = """
import os, signal, sys, time
from intercode.agents.baselines import GoldAgent

calls = int(os.environ.get("CALLS", "0"))

def end_at_the_moment(*_):
    global calls
    calls -= 1
    if calls <= 0:
        signal.raise_signal(signal.SIGKILL)

if calls:
    sys.addaudithook(end_at_the_moment)

def must_wait():
    try:
        with open("hold") as number, open("run/trajectories.jsonl", "rb") as file:
            return file.read().count(b"\\n") >= int(number.read())
    except FileNotFoundError:
        return False

class Slow(GoldAgent):
    def act(self, feedback):
        if not calls:
            time.sleep(0.3)
            while must_wait():
                time.sleep(0.05)
        return super().act(feedback)
"""


CALLS = 700
"""Fewer than a third of those for two epochs."""


def start(folder: Path, dataset: str, *more: str, calls: int = 0) -> subprocess.Popen[bytes]:
    """Start a run with a slow agent or, with ``calls``, one that ends itself at one of its calls,
    for example to open a file."""
    (folder / "slow_agent.py").write_text(SLOW)
    # a background job ignores SIGINT by default
    heed = "import signal; signal.signal(2, signal.default_int_handler); "
    code = heed + "import sys; from intercode.cli import main; sys.exit(main())"
    words = ["eval", dataset, "--agent", "slow_agent:Slow", "--parallel", "2", "--out", "run"]
    words += more
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, "CALLS": str(calls)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def hold(folder: Path, lines: int) -> None:
    """Let episodes wait once this number of lines is written, so that the run cannot end before the
    test stops it."""
    (folder / "new").write_text(str(lines))
    (folder / "new").rename(folder / "hold")


def wait_for_lines(file: Path, count: int) -> None:
    for _ in range(2400):
        if file.exists() and file.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{file} did not get {count} lines")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_is_finished_by_the_same_command(
    dataset: str, tmp_path: Path, number: int
) -> None:
    file = tmp_path / "run" / trajectories.TRAJECTORIES_FILE
    hold(tmp_path, 2)
    first = start(tmp_path, dataset)
    wait_for_lines(file, 2)
    family = traces.family(first.pid)
    assert family.sandboxes
    os.kill(first.pid, number)
    (tmp_path / "hold").unlink()
    _, errors = first.communicate(timeout=600)
    assert traces.eventually(lambda: not traces.living(family.sandboxes), 60) is not None
    assert first.returncode == (-9 if number == signal.SIGKILL else 130), errors
    before = [t.task for t in trajectories.read_trajectories(file)]
    assert 2 <= len(before) < 8
    second = start(tmp_path, dataset)
    output, errors = second.communicate(timeout=600)
    assert second.returncode == 0, errors
    after = [t.task for t in trajectories.read_trajectories(file)]
    assert after[: len(before)] == before
    assert sorted(after) == [f"sums/{n}" for n in range(8)]
    assert b"run/trajectories.jsonl" in output


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_kill_9_at_any_moment_the_run_is_the_same(
    dataset: str, tmp_path: Path, seed: int
) -> None:
    """With epochs and a branch: what is on disk is complete, and nothing is played twice."""
    file = tmp_path / "run" / trajectories.TRAJECTORIES_FILE
    moments = random.Random(seed)
    before: list[tuple[str, int]] = []
    words = ("--epochs", "2", "--set", "shuffle=true", "--parallel", "4")
    for _ in range(3):
        running = start(tmp_path, dataset, *words, calls=moments.randint(1, CALLS))
        _, errors = running.communicate(timeout=600)
        assert running.returncode == -signal.SIGKILL, errors
        found = list(trajectories.read_trajectories(file)) if file.exists() else []
        keys = [(t.task, t.epoch) for t in found if t.parent is None]
        assert keys[: len(before)] == before and len(set(keys)) == len(keys)
        before = keys
        if found and len(keys) == len(found):
            branch = found[0].replace(parent=found[0].id, branched_at=1, id="branch")
            trajectories.append_trajectory(file, branch)
    last = start(tmp_path, dataset, *words, calls=1_000_000)
    _, errors = last.communicate(timeout=600)
    assert last.returncode == 0, errors
    found = [t for t in trajectories.read_trajectories(file) if t.parent is None]
    assert [(t.task, t.epoch) for t in found][: len(before)] == before
    every = [(f"sums/{n}", epoch) for n in range(8) for epoch in range(2)]
    assert sorted((t.task, t.epoch) for t in found) == every
    assert all(t.success and t.steps[-1].action == "submit" for t in found)
    ends = (tmp_path / "run" / "history.jsonl").read_text()
    assert ends.count('"how": "finished"') == 1 and ends.count('"began"') == 1 + ends.count(
        '"how": "killed"'
    )


@pytest.mark.slow
def test_two_processes_do_not_share_a_directory(dataset: str, tmp_path: Path) -> None:
    first = start(tmp_path, dataset, "--epochs", "30")
    try:
        wait_for_lines(tmp_path / "run" / trajectories.TRAJECTORIES_FILE, 1)
        second = start(tmp_path, dataset, "--epochs", "30")
        _, errors = second.communicate(timeout=600)
        assert second.returncode == 2
        assert b"another process is working in run" in errors
    finally:
        first.kill()
        first.communicate()
