"""ReAct and Plan & Solve with recorded answers, from start to end, also when they are killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from intercode.core import logs, trajectories
from intercode.core.config import EvalConfig, make_config
from intercode.core.types import Trajectory, to_jsonable
from intercode.evaluation.evaluate.run import evaluate
from intercode.evaluation.replay import log_replay
from support import requirements
from support.recorded_endpoint import RecordedEndpoint

REACT = "sql/ic_sql_react_10_turns.json"
KILLS = 5


@pytest.fixture(autouse=True)
def data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))


def first(log: Path, count: int, path: Path) -> Path:
    """Return a log with the first episodes of another one."""
    whole = json.loads(log.read_text())
    inner = whole.get("logs", whole)
    few = dict(list(inner.items())[:count])
    path.mkdir()
    (path / log.name).write_text(json.dumps({**whole, "logs": few} if "logs" in whole else few))
    return path / log.name


def config(log: Path, base_url: str, out: Path, **more: Any) -> EvalConfig:
    """Return the settings that play the tasks of a log as the authors did."""
    episodes = logs.load_log(log)
    agent = str(episodes[0].run["agent"])
    settings = {
        "dataset": str(episodes[0].run["dataset"]),
        "agent": agent,
        "model": "recorded",
        "base_url": base_url,
        "parallel": 2,
        "profile": "original",
        "max_turns": 10 if agent == "react" else None,
        "out": out,
        "agent_options": {"feedback": "original"},
        "tasks": tuple(str(t.index) for t in episodes),
    }
    return make_config({**settings, **more})


@pytest.mark.parametrize(
    ("name", "reward", "least"),
    [(REACT, "sql-original-iou", 20), ("sql/ic_sql_plan_solve.json", "sql-original", 15)],
)
def test_sql_strategies_reach_the_success_of_their_logs(
    name: str, reward: str, least: int, recorded_dir: Path, tmp_path: Path
) -> None:
    log = first(recorded_dir / name, 50, tmp_path / "log")
    with RecordedEndpoint(log) as server:
        out = evaluate(config(log, server.base_url, tmp_path / "run", reward=reward), quiet=True)
    played = {t.task: t for t in logs.load_log(out)}
    recorded = {t.task: t for t in logs.load_log(log)}
    assert played.keys() == recorded.keys() and not any(t.error for t in played.values())
    (report,) = log_replay.replay_logs([log], log_replay.ReplayOptions(profile="original"))
    other = {s.task for s in report.steps if not (s.same_reward and s.same_observation)}
    other |= {s.task for s in report.steps if s.parts.get("tau", 1.0) != 1.0}
    differing = {n for n, t in played.items() if t.success != recorded[n].success}
    assert differing <= other
    assert sum(t.success for t in played.values()) >= least
    turns = {n: [s for s in t.steps if _reported(s)] for n, t in recorded.items()}
    assert all(
        _code(theirs.action).startswith(ours.action)  # only the first of several statements is run
        for n, t in played.items()
        for ours, theirs in zip(t.steps, turns[n], strict=True)
    )


def _reported(step: Any) -> bool:
    return not step.thought.startswith("EXCEEDED MAX TURNS")


def _code(action: str) -> str:
    return action.removeprefix("execute[").removesuffix("]")


@pytest.mark.sandbox
@pytest.mark.rootfs
@pytest.mark.nl2bash
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["bash/ic_bash_react_10_turns_fs_3.json", "bash/ic_bash_plan_solve_fs_4.json"]
)
def test_bash_strategies_reach_the_success_of_their_logs(
    name: str, recorded_dir: Path, tmp_path: Path
) -> None:
    image = requirements.image("nl2bash")
    log = recorded_dir / name
    with RecordedEndpoint(log) as server:
        boxed = {"image": image, "network": "host", "out": tmp_path / "run"}
        out = evaluate(config(log, server.base_url, **boxed), quiet=True)
    played = {t.task: t for t in logs.load_log(out)}
    recorded = {t.task: t for t in logs.load_log(log)}
    assert played.keys() == recorded.keys() and not any(t.error for t in played.values())
    options = log_replay.ReplayOptions(profile="original", image=image, network="host", parallel=2)
    (report,) = log_replay.replay_logs([log], options)
    other = {s.task for s in report.steps if not (s.same_reward and s.same_observation)}
    assert {n for n, t in played.items() if t.success != recorded[n].success} <= other


def essence(path: Path) -> dict[str, Any]:
    """Return what must be equal in two runs: everything except ids and times. Fails if a task is
    there twice."""
    episodes = list(trajectories.read_trajectories(path / "trajectories.jsonl"))
    assert len({t.task for t in episodes}) == len(episodes)
    return {t.task: _essence(t) for t in episodes}


def _essence(episode: Trajectory) -> Any:
    told = to_jsonable(episode.replace(id="", seconds=None, started=None, run={}))
    for step in told["steps"]:
        step["seconds"] = step["usage"]["seconds"] = 0
    return told


@pytest.mark.slow("long")
def test_a_run_that_was_killed_five_times_equals_one_that_was_not(
    recorded_dir: Path, tmp_path: Path
) -> None:
    log = recorded_dir / REACT
    chance = random.Random(10)
    broken = tmp_path / "broken"
    file = broken / "trajectories.jsonl"
    with RecordedEndpoint(log) as server:
        argv = [
            sys.executable,
            "-m",
            "intercode",
            "eval",
            "spider",
            "--agent",
            "react",
            "--model",
            "recorded",
            "--base-url",
            server.base_url,
            "--profile",
            "original",
            "--max-turns",
            "10",
            "--parallel",
            "2",
            "--limit",
            "120",
            "--out",
            str(broken),
            "--set",
            "agent_options.feedback=original",
        ]
        for _ in range(KILLS):
            process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            # the other episode is anywhere at that moment
            server.at_request(chance.randrange(40, 80), process.kill)
            _, said = process.communicate()
            assert process.returncode == -signal.SIGKILL, said
        assert 5 * KILLS <= _lines(file) < 120
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        whole = config(log, server.base_url, tmp_path / "whole", tasks=None, limit=120)
        assert essence(broken) == essence(evaluate(whole, quiet=True))


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
