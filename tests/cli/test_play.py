"""A person at a terminal, here a script."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from intercode import trajectories
from intercode.cli import main

pytestmark = pytest.mark.sandbox


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    path = tmp_path / "mine.json"
    rows = [{"query": "say hi", "gold": "echo hi"}, {"query": "make a file", "gold": "touch /f"}]
    path.write_text(json.dumps(rows))
    return str(path)


def play(monkeypatch: pytest.MonkeyPatch, text: str, *words: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["play", *words]) == 0


def test_a_person_solves_tasks_and_has_them_recorded(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    text = "cd /tmp\nscore\necho \\\nhi\nsubmit\nhelp\ncat > /f <<E\nE\nsubmit\n"
    play(monkeypatch, text, dataset, "--out", str(out))
    printed = capsys.readouterr().out
    assert "[mine/0] say hi" in printed and "/tmp$ " in printed
    assert "solved: reward 1 (" in printed and "2 of 2 solved." in printed
    first, second = trajectories.read(out / trajectories.TRAJECTORIES_FILE)
    assert [s.action for s in first.steps] == ["cd /tmp", "echo \\\nhi", "submit"]
    assert second.steps[0].action == "cat > /f <<E\nE"
    assert first.success and second.success and first.run["agent"] == "human"


def test_what_was_skipped_untried_or_quit_is_not_recorded(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    play(monkeypatch, "skip\nls\nquit\n", dataset, "--out", str(out))
    assert not out.exists()
    play(monkeypatch, "ls\nskip\n", dataset, "--out", str(out))
    (only,) = trajectories.read(out / trajectories.TRAJECTORIES_FILE)
    assert only.end == "agent_stopped" and only.reward < 1


def test_tasks_that_were_played_are_not_offered_again(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = str(tmp_path / "out")
    play(monkeypatch, "echo hi\nsubmit\n", dataset, "--out", out)
    capsys.readouterr()
    play(monkeypatch, "", dataset, "--out", out)
    printed = capsys.readouterr().out
    assert "[mine/1]" in printed and "[mine/0]" not in printed


def test_the_last_turn_is_shown(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (dataset, "--max-turns", "1", "--task", "0", "--out", str(tmp_path / "out"))
    play(monkeypatch, "echo one | tr one two\n", *words)
    printed = capsys.readouterr().out
    assert "(at most 1 actions)" in printed
    assert "two\n(no turns left)\nnot solved" in printed
