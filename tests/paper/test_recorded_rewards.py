"""Scripts for the authors' package: their loop, on their data, against their logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intercode.paper.envs import ACTION_EXEC, BashEnv, CTFEnv, IntercodeEnv, PythonEnv, SqlEnv
from support import requirements

LEAKED = ("poker_player",)
"""Databases to which their server had added a table in an earlier episode."""

FAILED = "Error executing query: "


def set_up_ctf(record: dict[str, Any]) -> list[str]:
    """Return what the authors' CTF scripts pass as ``preprocess``."""
    commands = [f"cd /ctf/{record['task_id']}"]
    return commands + ([record["setup"]] if "setup" in record else [])


def set_up_sql(record: dict[str, Any]) -> list[str]:
    return [f"use {record['db']}"]


def episodes(log: Path, count: int) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """Return the first episodes of a log that a model played to their end."""
    whole = json.loads(log.read_text("utf-8"))
    for episode in list(whole.values())[:count]:
        yield episode["task_id"], episode["turn_history"]


def test_sql_by_their_loop_gives_their_rewards(data_dir: Path, recorded_dir: Path) -> None:
    """Try Again, as in the authors' ``eval_n_turn``: a submission after each turn, then the next
    turn."""
    log = recorded_dir / "sql" / "ic_sql_multiturn_gpt-3.5_10_turns.json"
    path = data_dir / "sql" / "spider" / "ic_spider_dev.json"
    compared = 0
    with SqlEnv("docker-env-sql", data_path=str(path), preprocess=set_up_sql) as env:
        for index, history in episodes(log, 12):
            observation, _ = env.reset(index)
            assert observation is None  # the observation of `use`, as in the authors' code
            turns = zip(
                history["actions"], history["observations"], history["rewards"], strict=False
            )
            for action, seen, reward in turns:
                if not seen.startswith(("[", "Error", "None")):
                    continue
                observation, nothing, done, info = env.step(action)
                assert (nothing, done) == (0, False)
                assert isinstance(info[ACTION_EXEC], bool)
                _, value, done, _ = env.step("submit")
                assert done and value == reward
                if env.record["db"] not in LEAKED:
                    # the wording of the error may differ
                    failed = FAILED if seen.startswith(FAILED) else None
                    assert str(observation)[: len(failed) if failed else None] == (failed or seen)
                    compared += 1
    assert compared > 30


@pytest.mark.slow
@pytest.mark.sandbox
def test_python_by_their_loop_gives_their_rewards(data_dir: Path, recorded_dir: Path) -> None:
    log = recorded_dir / "python" / "ic_python_multiturn_gpt-3.5_7_turns.json"
    path = data_dir / "python" / "mbpp" / "ic_mbpp.json"
    compared = 0
    with PythonEnv("intercode-python", data_path=str(path), is_agent=True, image="host") as env:
        for index, history in episodes(log, 8):
            env.reset(index)
            for action, reward in zip(history["actions"], history["rewards"], strict=True):
                name = re.match(r"def (\w+)\(", action)
                if name is None:
                    continue
                observation, *_ = env.step(action)
                assert observation == {"output": "", "error": ""} or "error" in str(observation)
                _, value, _, info = env.step(f"submit {name[1]}")
                assert value == reward
                assert info["reward"] == value
                assert set(info["agent_obs"]) == set(env.record["tests"])
                assert all("error" in printed for printed in info["agent_obs"].values())
                compared += 1
    assert compared >= 8


@pytest.mark.sandbox
def test_ctf_accepts_flags_and_continues(data_dir: Path) -> None:
    path = data_dir / "ctf" / "ic_ctf.json"
    row = json.loads(path.read_text("utf-8"))[2]
    with CTFEnv("intercode-ctf", data_path=str(path), preprocess=set_up_ctf, image="host") as env:
        observation, info = env.reset(2)
        assert (observation, info[ACTION_EXEC], env.workdir) == ("", True, "/ctf/2")
        assert env.query == row["query"]
        assert env.step("submit picoCTF{no}") == (
            "",
            0.0,
            True,
            {
                "agent_obs": "picoCTF{no}",
                "reward": 0.0,
                ACTION_EXEC: True,
            },
        )
        assert env.step("pwd")[0] == "/ctf/2\n"
        assert env.step("submit " + row["gold"].upper())[1] == 1.0


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.rootfs
def test_bash_by_their_loop_gives_what_their_code_gave(data_dir: Path, reference_dir: Path) -> None:
    image = requirements.image("nl2bash")
    rows = json.loads((reference_dir / "bash" / "gpt-4_2.json").read_text("utf-8"))
    path = data_dir / "nl2bash" / "nl2bash_fs_2.json"
    env: IntercodeEnv
    with BashEnv("intercode-nl2bash", data_path=str(path), image=image) as env:
        at, compared = None, 0
        for row in rows[:24]:
            if row["task"] != at:
                at = row["task"]
                assert env.reset(at)[0] == env.query
            observation, *_, info = env.step(row["action"])
            _, reward, _, recorded = env.step("submit")
            if row["stable"]:
                assert (observation, info[ACTION_EXEC]) == (row["obs"], row["valid"])
                assert reward == pytest.approx(row["reward"])
                assert recorded["reward"] == row["parts"]
                assert sorted(map(list, recorded["diff_miss"])) == sorted(row["miss"])
                compared += 1
    assert compared >= 10
