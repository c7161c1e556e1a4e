"""Probes: scripts that run on a copy of a state, or on some of its paths in a pristine sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import intercode
from intercode.core.errors import GoldError
from intercode.core.types import Dataset, Score, State, Task
from intercode.environments.base import probe
from intercode.environments.bash.env import BashEnv

pytestmark = pytest.mark.sandbox

SETUP = """mkdir /work; cd /work; echo 1 > kept; echo 2 > gone; ln -s kept link
mkdir dir; echo 3 > dir/x"""
TREE = """cd /work && find . -printf '%p %y %m %l\\n' | LC_ALL=C sort; cat kept dir/* 2>/dev/null
ls /else 2>/dev/null; echo end"""


@contextmanager
def playing(script: str, gold: str = "true", **more: Any) -> Iterator[BashEnv]:
    """Yield an environment in an episode of one task with a probe."""
    task = Task("t", "q", gold, setup=SETUP, cwd="/", probe=script, **more)
    with intercode.make("bash", Dataset("made", "bash", (task,), reward="probe")) as env:
        env.reset()
        yield env


def seen(env: BashEnv) -> str:
    return env._profile_impl.agent_state(env.context, None, None).probe_output


CHANGE = """cd /work; rm gone link; mkdir link; echo 4 > link/in; rm -r dir; echo 5 > dir
mkfifo pipe; chmod 600 kept; ln -s /etc/passwd 'a b'; mkdir /else; echo 6 > /else/y; sleep 500 &"""


def test_the_pristine_sandbox_gets_the_probe_paths_and_no_others() -> None:
    with playing(TREE, probe_paths=("/work",)) as env:
        env.step(CHANGE)
        text = seen(env)
        assert env.step("cat /work/dir; ls /else")[0] == "5\ny\n"  # the episode itself is unchanged
        assert seen(env) == text
    lines = text.splitlines()
    assert "./a b l 777 /etc/passwd" in lines and "./pipe p 644 " in lines
    assert "./link d 755 " in lines and "./link/in f 644 " in lines
    assert "./dir f 644 " in lines and "./kept f 600 " in lines
    assert "./gone" not in text and lines[-2:] == ["1", "end"]
    with playing(TREE) as env:  # without probe_paths the probe sees everything
        env.step(CHANGE)
        assert seen(env).splitlines() == [*lines[:-1], "y", "end"]


def test_programs_replaced_elsewhere_do_not_influence_a_probe() -> None:
    cheat = "cd; mkdir bin; printf '#!/bin/sh\\necho right\\n' > bin/judge; chmod +x bin/judge"
    script = "/root/bin/judge 2> /dev/null || cat /work/kept"
    with playing(script, "echo right > /work/kept", probe_paths=("/work/kept",)) as env:
        env.step(cheat)
        assert seen(env) == "1\n" and env.score().value == 0.0
        env.step("echo right > /work/kept; rm /work/gone")
        assert seen(env) == "right\n" and env.score().value == 1.0
    with playing(script, "echo right > /work/kept") as env:
        env.step(cheat)
        assert env.score().value == 1.0  # probe_paths prevents this


def test_another_reward_gets_the_output_of_the_probe() -> None:
    states: list[State] = []

    def judge(task: Task, agent: State, gold: State) -> Score:
        states[:] = [agent, gold]
        return Score(0.25)

    task = Task("t", "q", "echo g > /tmp/x", probe="cat /tmp/x 2> /dev/null; true")
    dataset = Dataset("made", "bash", (task,))
    with intercode.make("bash", dataset, reward=judge) as env:
        env.reset()
        assert env.step("submit")[1] == 0.25
    assert [state.probe_output for state in states] == ["", "g\n"]


def test_a_probe_that_fails_on_a_gold_is_an_error_of_the_dataset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with playing("echo oh no; exit 3") as env, pytest.raises(GoldError, match="oh no"):
        env.score()
    monkeypatch.setattr(probe, "PROBE_TIMEOUT", 3.0)
    script = "echo begun; [ -e /tmp/slow ] && sleep 60; echo done"
    with playing(script, "rm -f /tmp/slow") as env:
        env.step("touch /tmp/slow")
        assert seen(env).startswith("begun\n") and "done" not in seen(env)
        assert (
            env.score().value == 0.5
        )  # the output before the time limit counts for an agent's state
    with (
        playing(script, "touch /tmp/slow") as env,
        pytest.raises(GoldError, match="within 3 s"),
    ):
        env.score()


def test_the_reward_compares_lines() -> None:
    from intercode.environments.base.rewards import probe_similarity

    task = Task("t", "q")
    score = probe_similarity(task, State(probe_output="a\nb\nb\n"), State(probe_output="b\na\nc\n"))
    assert score.value == 0.5 and score.details == {"missed": ["c"], "extra": ["b"]}
    assert probe_similarity(task, State(), State()).value == 1.0


def test_files_beyond_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "MAX_COPIED_BYTES", 20_000)
    with playing("cd /work; ls", probe_paths=("/work",)) as env:
        env.step("cd /work; rm -r *; head -c 30000 /dev/zero > big; echo 1 > a; echo 2 > c")
        assert seen(env) == "a\nc\n"
        env.step("head -c 18000 /dev/zero > b")
        assert seen(env) == "a\nb\n"
