"""Replaying recorded Capture-the-Flag episodes: steps that need the network, printed flags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core import logs
from intercode.core.types import Step, Trajectory
from intercode.environments.base.replay.rules import replay_rules_for
from intercode.environments.ctf.replay_rules import (
    CtfReplayRules,
    RecordedWin,
    recorded_wins,
    uses_network,
)
from intercode.evaluation.replay import log_replay
from intercode.evaluation.replay.log_replay import StepComparison
from intercode.paper.replay.ctf import AuthorsCtfRules
from support import requirements

ACTIONS = {
    "curl https://a.b/c": True,
    "nc host 99": True,
    "echo x | nc host 99": True,
    "wget u": True,
    "git clone git@a:b": True,
    "pip3 install x": True,
    "exec 3<>/dev/tcp/a/1": True,
    "submit https://x": False,
    "skip": False,
    "ls": False,
    "grep -nc x f": False,
    "curl": False,
    "cat netcat.txt": False,
    "git log": False,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_that_use_a_network(action: str) -> None:
    assert uses_network(Step(action, "")) is ACTIONS[action]


def test_steps_after_a_download_are_not_stable() -> None:
    steps = tuple(Step(a, "") for a in ("ls", "wget http://x/y", "cat y", "submit z"))
    episode = Trajectory("ic-ctf/7", 7, "q", steps, run={"environment": "ctf"})
    rules = replay_rules_for(episode)
    assert isinstance(rules, CtfReplayRules)
    assert [rules.stable(episode, turn) for turn in range(4)] == [True, False, False, False]


def _check(
    task: str, action: str, recorded: str, replayed: str, stable: bool = True
) -> StepComparison:
    reward = 1.0 if action.startswith("submit f") else 0.0
    return StepComparison(task, 0, action, recorded, replayed, reward, reward, stable)


def test_wins_whose_flag_was_printed() -> None:
    checks = [
        _check("a", "cat x", "flag{1}\n", "flag{1}\n"),
        _check("a", "submit flag{1}", "flag{1}\n", "flag{1}\n"),
        _check("b", "cat x", "flag{2}", "other", stable=False),
        _check("b", "submit flag{2}", "", "", stable=False),
        _check("c", "guess", "half of it", ""),
        _check("c", "submit flag{3}", "", ""),
        _check("d", "cat x", "flag{4}", "flag{4}"),
        _check("d", "submit nothing", "", ""),
    ]
    assert recorded_wins(checks) == [RecordedWin("a", True, True), RecordedWin("b", False, False)]
    (note,) = CtfReplayRules().notes(checks)
    assert note.startswith("of 2 recorded wins") and note.endswith(
        "1 print it again; not so: b (network or files)."
    )
    assert CtfReplayRules().notes(checks[-2:]) == []


def test_causes() -> None:
    rules = AuthorsCtfRules()
    assert rules.cause(_check("a", "nc h 1", "x", "y", stable=False)) == "network"
    assert rules.cause(_check("a", "ls", "__pycache__\nx", "x")).startswith("what somebody")
    gone = "syntax error: unexpected end of file\n"
    assert rules.cause(_check("a", "echo '", gone, "")) == "version of bash or Python"
    assert rules.cause(_check("a", "x", "a", "b")) == "other"


def test_the_records_dataset_is_ours(recorded_dir: Path) -> None:
    episodes = logs.load_log(recorded_dir / "ctf" / "ic_ctf_multiturn_gpt-4_10_turns.json")
    assert {e.run["dataset"] for e in episodes} == {"ic-ctf"}
    assert {e.task for e in episodes} == {f"ic-ctf/{e.index}" for e in episodes}


@pytest.mark.sandbox
def test_an_episode_with_missing_files_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ctf" / "task_assets" / "0").mkdir(parents=True)
    (tmp_path / "ctf" / "task_assets" / "0" / "f").write_text("flag{x}")
    rows = [{"query": "q", "gold": "flag{x}"}, {"query": "r", "gold": "flag{y}"}]
    (tmp_path / "ctf" / "ic_ctf.json").write_text(json.dumps(rows))
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    turns = {
        "actions": ["cat f", "submit flag{no}", "submit FLAG{X}"],
        "observations": ["flag{x}", "Submitted flag is incorrect. Keep trying!", "flag{x}"],
        "rewards": [0, 0, 1],
        "valid_action": [True, True, True],
    }
    log = tmp_path / "ic_ctf_multiturn_gpt-4_10_turns.json"
    episode = {"environment": "ic_ctf", "dataset": "d", "query": "q", "summary": {"turns_max": 9}}
    both = {str(n): {**episode, "task_id": n, "turn_history": turns} for n in (0, 1)}
    log.write_text(json.dumps(both))
    (report,) = log_replay.replay_logs(
        [log], log_replay.ReplayOptions(profile="original", image="host")
    )
    first, second = report.steps[:3], report.steps[3:]
    assert all(s.same for s in first) and [s.replayed_reward for s in first] == [0.0, 0.0, 1.0]
    assert all(s.cause.startswith("cannot be played: the files of ic-ctf/1") for s in second)
    assert (report.recorded_success, report.replayed_success) == (2, 1)


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.namespace_only("replays the same episodes on every back end")
def test_the_authors_log_is_reproduced(
    recorded_dir: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project promises these bounds; benchmarks/results/audits.md has the measured figures."""
    image = requirements.image("ctf")
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    (report,) = log_replay.replay_logs(
        [recorded_dir / "ctf"], log_replay.ReplayOptions(profile="original", image=image)
    )
    stable = report.shares(stable_only=True)
    assert stable["steps"] >= 550
    assert stable["observations"] >= 0.85 and stable["rewards"] == 1.0
    printed = recorded_wins(report.steps)
    assert len(printed) == 29
    assert all(win.reproduced for win in printed if win.offline)
    assert {w.task.partition("/")[2] for w in printed if not w.reproduced} == {
        "7",
        "35",
        "41",
        "54",
        "65",
        "66",
        "87",
    }
