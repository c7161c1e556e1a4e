"""A run that was stopped, whatever stopped it, is finished by the same command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from intercode import trajectories

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    """A file of eight small tasks."""
    path = tmp_path / "sums.jsonl"
    rows = [{"query": f"print {n} squared", "gold": f"echo $(({n}*{n}))"} for n in range(8)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


SLOW = """
import time
from intercode.agents.gold import GoldAgent

class Slow(GoldAgent):
    def act(self, feedback):
        time.sleep(0.3)
        return super().act(feedback)
"""


def start(folder: Path, dataset: str) -> subprocess.Popen[bytes]:
    (folder / "slow_agent.py").write_text(SLOW)
    heed = (
        "import signal; signal.signal(2, signal.default_int_handler); "  # also in a background job
    )
    code = heed + "import sys; from intercode.cli import main; sys.exit(main())"
    words = ["eval", dataset, "--agent", "slow_agent:Slow", "--parallel", "2", "--out", "run"]
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def wait_for_lines(file: Path, count: int) -> None:
    for _ in range(300):
        if file.exists() and file.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{file} did not get {count} lines")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_is_finished_by_the_same_command(
    dataset: str, tmp_path: Path, number: int
) -> None:
    file = tmp_path / "run" / trajectories.TRAJECTORIES_FILE
    first = start(tmp_path, dataset)
    wait_for_lines(file, 2)
    os.kill(first.pid, number)
    _, errors = first.communicate(timeout=20)
    assert first.returncode == (-9 if number == signal.SIGKILL else 130), errors
    before = [t.task for t in trajectories.read(file)]
    assert 2 <= len(before) < 8
    second = start(tmp_path, dataset)
    output, errors = second.communicate(timeout=60)
    assert second.returncode == 0, errors
    after = [t.task for t in trajectories.read(file)]
    assert after[: len(before)] == before
    assert sorted(after) == [f"sums/{n}" for n in range(8)]
    assert b"run/trajectories.jsonl" in output


def test_two_processes_do_not_share_a_directory(dataset: str, tmp_path: Path) -> None:
    first = start(tmp_path, dataset)
    try:
        wait_for_lines(tmp_path / "run" / trajectories.TRAJECTORIES_FILE, 1)
        second = start(tmp_path, dataset)
        _, errors = second.communicate(timeout=20)
        assert second.returncode == 2
        assert b"another process is working in run" in errors
    finally:
        first.kill()
        first.communicate()
