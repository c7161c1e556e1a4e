"""Episodes that an exception of an action has ended: recorded, counted, and not played again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.types import ExecResult, Trajectory
from intercode.environments.sql.profiles import SqlWorkspace, StandardSqlProfile
from intercode.evaluation.check.dataset import check
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.run import evaluate

AGENT = """
from intercode.agents import Agent
from intercode.core.types import AgentOutput

class Mine(Agent):
    def act(self, feedback):
        return AgentOutput("SELECT 1" if feedback is None else "submit")
"""
ERRORS_LEFT = 3


def fail(self: SqlWorkspace, action: str, timeout: float) -> ExecResult:
    raise ValueError("an exception\nof two lines")


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory with an agent, whose actions cause exceptions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SqlWorkspace, "run", fail)
    (tmp_path / "own.py").write_text(AGENT)
    return tmp_path


def read(out: Path) -> list[Trajectory]:
    return list(trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE))


def test_it_is_a_result_that_is_counted_and_not_played_again(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = EvalConfig("starter:sql", "own.py:Mine", limit=2, out=directory / "run")
    out = evaluate(config, quiet=True)
    episodes = read(out)
    assert [t.end for t in episodes] == ["action_error"] * 2
    error = episodes[0].run["action_error"]
    assert (error["type"], error["message"]) == ("ValueError", "an exception\nof two lines")
    assert "in fail" in error["traceback"] and str(directory) not in error["traceback"]
    assert episodes[0].steps[-1].score_value == 0.0 and not episodes[0].success
    assert all(t.run["dataset_hash"] and "attempts" not in t.run for t in episodes)
    evaluate(config, quiet=True)
    assert len(read(out)) == 2 and make_plan(config).pending_samples() == []
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "action errors" in shown and "(ValueError 2)" in shown
    assert main(["show", str(out), episodes[0].task, "--all"]) == 0
    assert "in fail" in capsys.readouterr().out


@pytest.mark.parametrize(("agent", "status"), [("gold", ERRORS_LEFT), ("own.py:Mine", 0)])
def test_a_run_of_golds_fails_and_every_run_says_it(
    capsys: pytest.CaptureFixture[str], agent: str, status: int
) -> None:
    words = ["eval", "starter:sql", "--agent", agent, "--limit", "1", "--out", "run"]
    assert main(words) == status
    shown = capsys.readouterr().err
    assert "action errors in 1 of the episodes" in shown and "ValueError: an exception" in shown


def test_check_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    report = check("starter:sql", limit=1)
    assert "ValueError" in next(f.detail for f in report.faults if f.kind == "fails")
    assert main(["check", "starter:sql"]) != 0


def test_an_exception_of_a_score_ends_the_episode_after_its_turn(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_state(*_: Any) -> Any:
        raise RecursionError("deep")

    monkeypatch.undo()
    monkeypatch.chdir(directory)
    monkeypatch.setattr(StandardSqlProfile, "agent_state", no_state)
    config = EvalConfig("starter:sql", "own.py:Mine", limit=1, out=directory / "run")
    (episode,) = read(evaluate(config, quiet=True))
    assert episode.end == "action_error" and episode.run["action_error"]["type"] == "RecursionError"


def test_a_run_says_that_the_reward_function_has_failed(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(directory)
    (directory / "mine.py").write_text("def half(task, agent, gold):\n    return 1 / 0\n")
    words = ["eval", "starter:sql", "--agent", "own.py:Mine", "--limit", "1", "--out", "run"]
    with pytest.warns(RuntimeWarning, match=r"half@\w+ raised ZeroDiv.*in mine\.py:2"):
        assert main([*words, "--set", "reward=mine.py:half"]) == 0
    shown = capsys.readouterr().err
    assert "raised ZeroDivisionError" in shown and "InterCode" not in shown
    (episode,) = read(directory / "run")
    assert "mine.py:half@" in episode.run["action_error"]["reward"]
    assert main(["report", "run"]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert "(ZeroDivisionError 1)" in report and "faults of InterCode" not in report
    assert main(["show", "run", episode.task]) == 0
    assert "return 1 / 0" in capsys.readouterr().out
