"""Regrading recorded episodes: their actions run once more, without a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import intercode
from intercode.cli import main
from intercode.core import logs, trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import UsageError
from intercode.core.types import Score, State, Step, Task, Trajectory
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay import log_replay
from intercode.evaluation.replay.recorded_environments import ReplayOptions
from intercode.evaluation.replay.regrade import DIFFERENCES_FILE, play_again, regrade

pytestmark = pytest.mark.sandbox
Read = Callable[[Path], list[Trajectory]]


def half(task: Task, agent: State, gold: State) -> Score:
    """A user's own reward."""
    same = agent.output == gold.output
    return Score(0.5 if same else 0.0, {"same": float(same)})


@pytest.fixture
def run(tmp_path: Path, squares: str) -> Path:
    config = EvalConfig(squares, "gold", limit=3, parallel=1, out=tmp_path / "run")
    return evaluate(config, quiet=True)


def test_the_same_profile_gives_the_same_run(run: Path, tmp_path: Path, episodes_of: Read) -> None:
    found = regrade(run, ReplayOptions(profile="standard"), tmp_path / "out")
    assert found.differences == () and found.flips == []
    old, new = episodes_of(run), episodes_of(tmp_path / "out")
    assert [t.steps for t in new] == [t.steps for t in old]
    facts = trajectories.read_run_metadata(tmp_path / "out")
    made_from = facts["regraded_from"]
    assert (made_from["run"], made_from["profile"]) == ("run", "standard")
    assert len(made_from["sha256"]) == 64
    assert facts["agent"] == "gold" and facts["profile"] == "standard"
    (proof,) = log_replay.replay_logs([tmp_path / "out"], log_replay.ReplayOptions())
    assert proof.episodes == 3 and proof.native_mismatches == []


def test_steps_that_are_played_again_keep_no_details_of_their_score() -> None:
    steps = (
        Step("pwd", "", score=Score(0.5)),
        Step("", "Write code.", executed=False, valid=False, exit_code=None, score=Score(0.5)),
    )
    with intercode.make("bash") as env:
        task = env.dataset.tasks[0]
        played = play_again(env, Trajectory(task.id, 0, task.query, steps))
        assert env.score().details
    assert [s.score is not None for s in played.values()] == [True, True]
    assert list(played.values()) == [s.as_recorded() for s in played.values()]


def test_another_reward_changes_rewards_and_lists_them(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    out = tmp_path / "out"
    words = ["replay", str(run), "--reward", "test_regrade:half", "--out", str(out)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "Episodes whose success changed" in printed
    facts = trajectories.read_run_metadata(out)
    assert facts["reward"] == "test_regrade:half"
    rows = [json.loads(line) for line in (out / DIFFERENCES_FILE).read_text().splitlines()]
    assert {(r["recorded_reward"], r["reward"]) for r in rows} == {(1.0, 0.5)}
    assert len(rows) == 3 and not any(r["observation"] for r in rows)
    assert [
        t.score for t in trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE)
    ] == [0.5] * 3


@pytest.mark.paper
def test_another_profile_lists_the_steps_with_other_results(
    tmp_path: Path, squares: str, episodes_of: Read
) -> None:
    """A variable is kept in the standard profile's shell, but not in the original one's."""
    played = evaluate(
        EvalConfig(squares, "gold", limit=1, parallel=1, out=tmp_path / "r"), quiet=True
    )
    (episode,) = episodes_of(played)
    first, *rest = episode.steps
    log = played / trajectories.TRAJECTORIES_FILE
    log.unlink()
    again = [
        first.__class__("x=7", "", exit_code=0),
        first.__class__("echo $x", "7\n", score=Score(0.0)),
        *rest,
    ]
    trajectories.append_trajectory(log, episode.replace(steps=tuple(again)))
    found = regrade(played, ReplayOptions(profile="original"), tmp_path / "out")
    assert next((d.step, d.observation) for d in found.differences) == (2, True)
    (now,) = episodes_of(tmp_path / "out")
    assert now.steps[1].observation == "\n" and now.run["profile"] == "original"


def test_a_run_that_is_there_is_never_written_over(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains a run already"):
        regrade(run, ReplayOptions(profile="standard"), run)
    empty = tmp_path / "empty"
    trajectories.write_run_metadata(empty, {"environment": "bash"})
    with pytest.raises(UsageError, match="no episode that was played"):
        regrade(empty, ReplayOptions(profile="standard"), tmp_path / "out")
    assert main(["replay", str(run), "--score", "standard"]) == 2


@pytest.mark.paper
def test_the_published_human_sessions_under_the_standard_profile(
    recorded_dir: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    log = recorded_dir / "sql" / "ic_sql_multiturn_human_10_turns.json"
    found = regrade(log, ReplayOptions(profile="standard"), tmp_path / "out")
    new = logs.load_log(tmp_path / "out")
    assert [t.task for t in new] == [t.task for t in logs.load_log(log)]
    assert sum(t.success for t in new) == sum(t.success for t in found.before) == 13
    assert new[0].run["regraded_from"]["source"] == "authors"
    assert new[0].run["profile"] == "standard" and new[0].run["source"] == "run"


def test_an_episode_that_cannot_be_graded_is_an_error_and_the_others_continue(
    run: Path, tmp_path: Path, squares: str, episodes_of: Read
) -> None:
    rows = [json.loads(line) for line in Path(squares).read_text().splitlines()]
    rows[1]["gold"] = None
    Path(squares).write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = regrade(run, ReplayOptions(profile="standard"), tmp_path / "out")
    assert [t.end for t in episodes_of(tmp_path / "out")] == ["submitted", "error", "submitted"]
    (failed,) = found.failed
    assert failed.error is not None and "has no gold" in failed.error
    assert found.flips == []


def test_a_reward_function_with_a_fault_is_an_error_of_each_episode(
    run: Path, tmp_path: Path, episodes_of: Read
) -> None:
    options = ReplayOptions(profile="standard", env_options={"reward": "os.path:join"})
    found = regrade(run, options, tmp_path / "out")
    assert [t.end for t in episodes_of(tmp_path / "out")] == ["error"] * 3
    assert all("TypeError" in (t.error or "") for t in found.failed)
    assert all("in join" in t.run["traceback"] for t in episodes_of(tmp_path / "out"))


def test_tasks_are_found_by_their_ids_in_another_dataset(
    run: Path, tmp_path: Path, squares: str
) -> None:
    """A dataset with the same tasks at other positions."""
    rows = [json.loads(line) for line in Path(squares).read_text().splitlines()]
    named = [{**row, "id": f"sums/{n}"} for n, row in enumerate(rows)]
    Path(squares).write_text("".join(json.dumps(row) + "\n" for row in reversed(named)))
    found = regrade(run, ReplayOptions(profile="standard"), tmp_path / "out")
    assert found.failed == [] and found.differences == ()
    (report,) = log_replay.replay_logs([run], ReplayOptions())
    assert report.native_mismatches == []


def test_a_task_that_asks_something_else_is_not_graded(
    run: Path, tmp_path: Path, squares: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [json.loads(line) for line in Path(squares).read_text().splitlines()]
    rows[2]["query"] = "Something else"
    Path(squares).write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["replay", str(run), "--score", "standard", "--out", str(tmp_path / "out")]
    assert main(words) == 1
    assert "asks 'Something else'" in capsys.readouterr().out
    rows[2]["id"] = "another"
    Path(squares).write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = regrade(run, ReplayOptions(profile="standard"), tmp_path / "again")
    assert ["has no task" in str(t.error) for t in found.failed] == [True]
