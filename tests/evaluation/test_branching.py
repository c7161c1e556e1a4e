"""Replay as verification, and branches of recorded episodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intercode.cli import main
from intercode.core import trajectories
from intercode.core.config import EvalConfig
from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay import log_replay
from intercode.evaluation.replay.branching import BranchOptions, branch
from intercode.models import ScriptedModel

pytestmark = pytest.mark.sandbox
OPTIONS = log_replay.ReplayOptions()
ANSWERS = ("cd /tmp; date > now; cat now; echo $RANDOM", "ls -l", "echo 4")


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deterministic run of three tasks, in which the third action solves the second task."""
    home = tmp_path_factory.mktemp("recorded")
    tasks = home / "sums.jsonl"
    rows = [{"query": f"print {n} squared", "gold": f"echo $(({n}*{n}))"} for n in (1, 2, 3)]
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = EvalConfig(
        str(tasks),
        "try-again",
        model="scripted",
        max_turns=3,
        out=home / "run",
        parallel=2,
        env_options={"deterministic": True},
    )
    model = ScriptedModel([f"```bash\n{answer}\n```" for answer in ANSWERS])
    return evaluate(config, model=model, quiet=True)


def read(out: Path) -> list[Trajectory]:
    return list(trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE))


@pytest.fixture
def forged(run_dir: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return the run with one value changed."""

    def forge(change: Callable[[dict[str, Any]], None]) -> Path:
        rows = [json.loads(line) for line in (run_dir / "trajectories.jsonl").open()]
        change(rows[1])
        out = tmp_path / "forged.jsonl"
        out.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return out

    return forge


def test_a_deterministic_run_is_proved_equal(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (report,) = log_replay.replay_logs([run_dir], OPTIONS)
    assert (report.episodes, len(report.steps), report.mismatches) == (3, 9, [])
    assert report.deterministic and all(len(s.recorded_hashes) == 2 for s in report.steps)
    facts = trajectories.read_run_metadata(run_dir)
    assert facts["determinism"]["seed"] == 0
    assert main(["replay", str(run_dir)]) == 0
    assert "3 episodes, 9 steps, 9 with hashes: every observation" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row["steps"][1].update(observation="total 0\n"), "step 2, in observation"),
        (lambda row: row["steps"][2].update(score=0.5), "step 3, in reward"),
        (lambda row: row["steps"][0]["hashes"].update(state="0" * 16), "step 1, in state"),
    ],
)
def test_the_first_difference_is_named(
    forged: Callable[..., Path], change: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = forged(change)
    assert main(["replay", str(log)]) == 1
    out = capsys.readouterr().out
    assert out.count("DIFFERS") == 1 and said in out
    assert "DIFFERS" in out.splitlines()[-1]
    assert ("every reward is equal" in out) == ("reward" not in said)
    left = 3 - int(said[5])
    assert f"1 of 3 episodes differ; {9 - left} of 9 steps were compared" in out
    later = "the step after it" if left == 1 else f"the {left} steps after it"
    stopped = f"{later} began in another state: only rewards were compared, and are equal"
    assert (stopped in out) == (left > 0)


def test_differences_by_one_cause_are_one_entry_after_the_likely_reason(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (run_dir / trajectories.TRAJECTORIES_FILE).read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    facts = trajectories.read_run_metadata(run_dir)
    for row in rows:
        row["run"] = {**facts, **row.get("run", {}), "determinism": None}
        row["steps"][0]["observation"] = "forged"
    log = tmp_path / "own.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["replay", str(log)]) == 1
    out = capsys.readouterr().out
    assert out.count("\ndiffers  ") == 1 and out.count("in the same, by the same cause: ") == 1
    assert out.index("not recorded as deterministic") < out.index("\ndiffers  ")


def test_turns_without_code_are_counted_separately(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = trajectories.read_run_metadata(run_dir)
    rows = [json.loads(line) for line in (run_dir / "trajectories.jsonl").open()]
    for row in rows:
        empty = {**row["steps"][1], "action": "", "executed": False, "hashes": {}, "score": None}
        row["run"] = {**facts, **row.get("run", {})}
        row["steps"].insert(2, empty)
    log = tmp_path / "own.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["replay", str(log)])
    assert "12 turns, 9 of them replayed (the others had no code)" in capsys.readouterr().out


def test_a_run_under_nohup_is_equal_in_another_shell(tmp_path: Path) -> None:
    """The state of the shell holds its traps, and a shell cannot reset what it inherits ignored."""
    words = [
        "eval",
        "starter:bash",
        "--agent",
        "gold",
        "--limit",
        "2",
        "--set",
        "deterministic=true",
    ]
    command = [sys.executable, "-m", "intercode", *words, "--out", str(tmp_path / "run")]
    ignoring = ["sh", "-c", "trap '' HUP INT PIPE USR1; umask 077; exec nohup \"$@\"", "sh"]
    done = subprocess.run([*ignoring, *command], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (report,) = log_replay.replay_logs([tmp_path / "run"], OPTIONS)
    assert report.episodes == 2 and len(report.steps) >= 4 and report.mismatches == []


def test_an_edit_is_a_branch_that_replays(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = read(run_dir)[0]
    out = tmp_path / "edited"
    words = ["replay", str(run_dir), "--episode", parent.id, "--edit", "2=touch more; ls"]
    assert main([*words, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1 steps in common, then as edited" in said and "+more" in said
    (made,) = read(out)
    assert (made.parent, made.branched_at, made.turns) == (parent.id, 1, 3)
    assert made.id not in ("", parent.id)
    assert made.steps[0].observation == parent.steps[0].observation
    assert [s.action for s in made.steps] == [ANSWERS[0], "touch more; ls", ANSWERS[2]]
    assert made.steps[1].observation == "more\nnow\n"
    assert made.steps[1].hashes["state"] != parent.steps[1].hashes["state"]
    assert trajectories.read_run_metadata(out)["branch_of"] == parent.id
    (report,) = log_replay.replay_logs([out], OPTIONS)
    assert len(report.steps) == 3 and report.mismatches == []


def test_an_agent_plays_on(run_dir: Path, tmp_path: Path) -> None:
    parent = next(t for t in read(run_dir) if t.task.endswith("/2"))
    assert not parent.success
    asked = BranchOptions(parent.task, after=1, edits={2: "rm /tmp/now"}, agent="gold")
    done = branch([run_dir], asked, OPTIONS, tmp_path / "gold")
    assert [s.action for s in done.trajectory.steps[1:]] == [
        "rm /tmp/now",
        "echo $((3*3))",
        "submit",
    ]
    assert done.trajectory.success and done.trajectory.end == "submitted" and done.shared_steps == 1
    assert all(check.same for check in done.prefix) and len(done.prefix) == 1
    with pytest.raises(UsageError, match="another run"):
        branch(
            [run_dir], BranchOptions(parent.task, after=1, agent="noop"), OPTIONS, tmp_path / "gold"
        )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (BranchOptions(after=0, agent="noop"), "3 episodes match: give --episode"),
        (BranchOptions("sums/0"), "give where to branch"),
        (BranchOptions("sums/0", after=2), "nothing to play after step 2"),
        (BranchOptions("sums/0", after=4, agent="noop"), "has the steps 0 to 3"),
        (BranchOptions("sums/0", edits={4: "x"}), "no step 4 to edit"),
        (BranchOptions("sums/0", after=2, edits={1: "x"}), "has to come after step 2"),
    ],
)
def test_wrong_branches_are_refused(run_dir: Path, asked: BranchOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        branch([run_dir], asked, OPTIONS)


def test_an_unknown_episode_is_named_with_the_near_one(run_dir: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'sums/1'"):
        branch([run_dir], BranchOptions("sum/1", edits={1: "x"}), OPTIONS)


def test_runs_with_and_without_determinism_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = tmp_path / "time.json"
    tasks.write_text('[{"query": "the time", "gold": "date +%s%N"}]')
    out = evaluate(EvalConfig(str(tasks), "gold", out=tmp_path / "run"), quiet=True)
    assert read(out)[0].steps[0].hashes == {}
    assert main(["replay", str(out)]) == 1
    said = capsys.readouterr().out
    assert "in observation" in said and "not recorded as deterministic" in said
