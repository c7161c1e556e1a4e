"""``intercode play`` with input from a script."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from intercode.cli import main
from intercode.core import trajectories

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


def test_a_human_solves_tasks_and_they_are_recorded(
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
    first, second = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
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
    (only,) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    assert only.end == "agent_stopped" and only.score < 1


def test_tasks_that_were_played_are_not_offered_again(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = str(tmp_path / "out")
    play(monkeypatch, "echo hi\nsubmit\n", dataset, "--out", out)
    assert "1 of 1 solved. 1 not finished." in capsys.readouterr().out
    play(monkeypatch, "", dataset, "--out", out)
    printed = capsys.readouterr().out
    assert "[mine/1]" in printed and "[mine/0]" not in printed


def test_the_last_turn_is_shown(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = (dataset, "--max-turns", "1", "--tasks", "0", "--out", str(tmp_path / "out"))
    play(monkeypatch, "echo one | tr one two\n", *words)
    printed = capsys.readouterr().out
    assert "(at most 1 actions)" in printed
    assert "two\n(no turns left)\nnot solved" in printed


def test_undo_and_show_work_without_a_terminal(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    text = "x=1\nx=2\nundo\nundo 9\nshow\necho $x hi\nscore\nundo 1\n score\nsubmit\n"
    play(monkeypatch, text, dataset, "--tasks", "0", "--out", str(out))
    printed = capsys.readouterr().out
    assert "(taken back: x=2)" in printed and "(cannot take that back: nothing to" in printed
    (made,) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    # the blank before `score` makes it code
    assert [s.action for s in made.steps] == ["score", "submit"]
    assert [u["action"] for u in made.run["undone"]] == ["x=2", "x=1", "echo $x hi"]
    assert {s.actor for s in made.steps} == {"human"} and made.run["scores_seen"] == 1


def test_a_human_supervises_an_agent_from_a_script(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, script = tmp_path / "out", tmp_path / "replies.json"
    script.write_text(json.dumps([f"Well.\n```bash\n{a}\n```" for a in ("echo no", "true", "x")]))
    words = ("--agent", "single-turn", "--model", f"scripted:{script}", "--out", str(out))
    play(monkeypatch, "help\nedit\necho hi\n", dataset, "--tasks", "0", *words)
    printed = capsys.readouterr().out
    assert "single-turn proposes:\n  echo no\n[Enter: run it] /$ help" in printed
    assert "[Enter: run it] /$ edit\n(type it anew)\n/$ echo hi" in printed
    assert "run what the agent proposes" in printed
    (made,) = trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    (step,) = made.steps
    assert (step.actor, step.action, made.success) == ("human", "echo hi", True)
    assert "echo no" in step.message and made.run["agent"] == "single-turn+human"
    assert main(["report", str(out)]) == 0 and "single-turn+human" in capsys.readouterr().out
    assert main(["replay", str(out)]) == 0


def test_resume_refuses_other_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["play", "--resume", "--max-turns", "3"]) == 2
    assert "leave out --max-turns" in capsys.readouterr().err
    assert main(["play", "--resume", "starter"]) == 2
    assert "there is no unfinished session of starter" in capsys.readouterr().err
    assert main(["play"]) == 2
    assert "no dataset is given" in capsys.readouterr().err


def test_output_of_a_sandbox_passes_colours_and_nothing_else_to_the_terminal(
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (
        r"printf '\033]52;c;ZXZpbA==\007 \033[31mred\033[0m \033[2J \233H \r gone'" + "\n"
        r"d=$(printf '/tmp/\033]0;title\007'); mkdir -p \"$d\"; cd \"$d\"" + "\nshow\nquit\n"
    )
    play(monkeypatch, text, dataset, "--out", str(tmp_path / "out"))
    printed = capsys.readouterr().out
    assert r"\x1b]52;c;ZXZpbA==\x07" in printed and "\x1b[31mred\x1b[0m" in printed
    assert r"\x1b[2J" in printed and r"\x1b]0;title\x07" in printed
    assert not set("\x07\r\x9b") & set(printed)
    assert all(part[0] == "[" for part in printed.split("\x1b")[1:])
    assert printed.count("\x1b[31m") == 2 and "\x1b[2J" not in printed
