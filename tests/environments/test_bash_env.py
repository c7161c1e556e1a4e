"""The Bash environment: its contract in both profiles, and its settings."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import intercode
from intercode.core.errors import (
    EnvironmentStateError,
    GoldError,
    InterCodeError,
    SandboxError,
    UnknownNameError,
    UsageError,
)
from intercode.core.types import Dataset, Score, State, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.episode_context import EpisodeContext
from intercode.environments.bash.profiles import StandardBashProfile
from intercode.evaluation import check_env
from intercode.sessions import check_session
from intercode.sessions.bash.persistent import BashSession
from support.sandboxes import PATIENCE, open_test_sandbox
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox

TASKS = (
    Task("mine/print", "Print five.", gold="echo five", also=("echo FIVE",)),
    Task("mine/write", "Write x into /work/f.", gold="mkdir -p /work && echo x > /work/f"),
    Task("mine/there", "Say where you are.", gold="pwd; echo $x", cwd="/usr", setup="x=set"),
)
MINE = Dataset("mine", "bash", TASKS)


@pytest.fixture
def env() -> Iterator[InterCodeEnv]:
    with intercode.make("bash", dataset=MINE) as made:
        yield made


@pytest.mark.slow
def test_the_contract() -> None:
    check_env(intercode.make("bash", dataset=MINE))


def test_a_further_gold_runs_only_if_no_other_gives_the_score_one(
    env: InterCodeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    run_gold = StandardBashProfile._run_gold

    def record(self: StandardBashProfile, episode: EpisodeContext, gold: str) -> State:
        ran.append(gold)
        return run_gold(self, episode, gold)

    monkeypatch.setattr(StandardBashProfile, "_run_gold", record)
    env.reset(options={"task": "mine/print"})
    env.step("echo five")
    assert env.score().value == 1
    assert ran == ["echo five"]
    env.step("echo FIVE")
    assert env.score().value == 1
    assert ran == ["echo five", "echo FIVE"]
    env.reset(options={"task": "mine/print"})
    env.check_gold()
    assert ran[2:] == ["echo five", "echo FIVE"]


def test_the_contract_of_sessions() -> None:
    with open_test_sandbox() as sandbox:
        check_session(lambda: BashSession(sandbox))


def test_gymnasium_makes_it_and_its_checker_is_content() -> None:
    with gym.make("intercode/Bash-v1") as made:
        assert isinstance(made.unwrapped, InterCodeEnv)
        check_env(made.unwrapped)
    with gym.make("intercode/Bash-v1", dataset=MINE, render_mode="ansi") as made:
        made.reset(options={"task": "mine/print"})
        made.step("echo hello")
        made.step("submit")
        assert made.render() == "Print five.\n$ echo hello\nhello\n\n$ submit\nreward 0.0"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))])
def test_a_dataset_can_be_copied_and_sent(again: Any) -> None:
    """Gymnasium's ``spec.make`` copies the dataset; worker processes get it by pickle."""
    assert again(MINE) == MINE


def test_without_a_dataset_it_plays_the_starter_suite() -> None:
    with gym.make("intercode/Bash-v1") as made:
        _, info = made.reset(seed=0)
        assert info["task"].startswith("starter/")


@pytest.mark.parametrize("vector", ["sync", "async"])
def test_the_environment_works_in_a_vector(vector: str) -> None:
    makers = [lambda: gym.make("intercode/Bash-v1", dataset=MINE) for _ in range(2)]
    many: gym.vector.VectorEnv[Any, Any, Any]
    if vector == "sync":
        many = gym.vector.SyncVectorEnv(makers)
    else:
        many = gym.vector.AsyncVectorEnv(makers, shared_memory=False)
    try:
        many.reset(seed=1, options={"task": 0})
        observations, rewards, ended, *_ = many.step(["echo five", "echo FIVE"])
        assert list(observations) == ["five\n", "FIVE\n"]
        observations, rewards, ended, *_ = many.step(["submit", "submit"])
        assert list(rewards) == [1.0, 1.0] and all(ended)
    finally:
        many.close()


def test_one_shell_and_what_it_changed(env: InterCodeEnv) -> None:
    env.reset(options={"task": 1})
    env.step("cd /tmp; x=1")
    observation, _, _, _, info = env.step('echo "$x $PWD"; touch "a b"; exit 3')
    assert observation.startswith("1 /tmp\n")
    assert info == {
        "task": "mine/write",
        "valid": False,
        "exit_code": 3,
        "timed_out": False,
        "omitted_bytes": 0,
        "changes": ["/tmp/a b"],
    }


@pytest.mark.parametrize("gold", ["echo five", "echo FIVE"])
def test_any_gold_scores_one(env: InterCodeEnv, gold: str) -> None:
    env.reset(options={"task": "mine/print"})
    assert env.score().value == 0.0
    env.step(gold)
    assert env.score().success


def test_setup_and_directory_hold_for_agent_and_gold(env: InterCodeEnv) -> None:
    env.reset(options={"task": "mine/there"})
    assert env.step("pwd; echo $x")[0] == "/usr\nset\n"
    assert env.submit()[1] == 1.0


def test_an_answer_is_scored_instead_of_the_output(env: InterCodeEnv) -> None:
    env.reset(options={"task": 0})
    env.step("echo something else")
    assert env.step("submit five")[1] == 1.0


def test_a_time_out_is_an_observation() -> None:
    with intercode.make("bash", dataset=MINE, timeout=PATIENCE) as env:
        env.reset(options={"task": 0})
        with limit_at("a"):
            observation, _, terminated, truncated, info = env.step("echo a; sleep 600")
        assert observation == "a\n[killed: over the time limit of 120 s]\n"
        assert not terminated and not truncated
        assert (info["valid"], info["exit_code"], info["timed_out"]) == (False, None, True)


def halves(task: Task, agent: State, gold: State) -> Score:
    """A user's own reward."""
    return Score(0.5 + (0.5 if agent.output == gold.output else 0.0), {"same": 1.0})


@pytest.mark.parametrize("reward", [halves, f"{__name__}:halves"])
def test_a_reward_of_ones_own(reward: Any) -> None:
    with intercode.make("bash", dataset=MINE, reward=reward) as env:
        env.reset(options={"task": 0})
        assert env.score() == Score(0.5, {"same": 1.0})
        env.step("echo five")
        assert env.score().value == 1.0
        assert env.result_metadata()["reward"] == ("halves" if callable(reward) else reward)


def test_a_dataset_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    rows = [{"query": "Print a.", "gold": "echo a"}, {"query": "Print b.", "gold": "echo b"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with intercode.make("bash", dataset=str(file)) as env:
        assert env.reset(options={"task": 1})[0] == "Print b."
        env.step("echo b")
        assert env.submit()[1] == 1.0


def test_a_task_without_gold_is_an_error(tmp_path: Path) -> None:
    with intercode.make("bash", dataset=Dataset("d", "bash", (Task("d/0", "q"),))) as env:
        env.reset()
        with pytest.raises(GoldError, match="d/0"):
            env.score()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"profile": "standrad"}, UnknownNameError, "did you mean 'standard'"),
        ({"network": "hots"}, UnknownNameError, "did you mean 'host'"),
        ({"render_mode": "human"}, UnknownNameError, "ansi"),
        ({"reward": "bash-standart"}, UnknownNameError, "did you mean 'bash-standard'"),
        ({"dataset": "startr"}, UnknownNameError, "did you mean 'starter'"),
        ({"max_turns": 0}, UsageError, "max_turns is a number of at least 1, .* not 0"),
        ({"timeout": -1}, UsageError, "timeout has to be more than 0 seconds, .* not -1"),
        ({"max_turn": 5}, UnknownNameError, "setting of bash 'max_turn'; did you mean 'max_turns'"),
        ({"dataset": Dataset("none", "bash", ())}, UsageError, "holds no task"),
    ],
)
def test_bad_settings(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        intercode.make("bash", **settings)


def test_an_unknown_environment_gets_the_near_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'bash'"):
        intercode.make("bahs")


def test_an_unknown_option_is_refused(env: InterCodeEnv) -> None:
    with pytest.raises(UsageError, match="task"):
        env.reset(options={"taks": 1})


def test_a_failing_setup_is_an_error() -> None:
    tasks = (Task("d/0", "q", gold="true", setup="exit 7"),)
    env = intercode.make("bash", dataset=Dataset("d", "bash", tasks))
    with env, pytest.raises(InterCodeError, match="d/0 failed with exit status 7"):
        env.reset()


def lose_the_sandbox(env: InterCodeEnv) -> None:
    env.reset(options={"task": 0})
    os.kill(env.scored_sandbox.supervisor_pid, signal.SIGKILL)  # type: ignore[attr-defined]
    with pytest.raises(SandboxError):
        env.step("true")


def test_a_lost_sandbox_ends_the_episode_unscored() -> None:
    env = intercode.make("bash", dataset=MINE)
    lose_the_sandbox(env)
    with pytest.raises(EnvironmentStateError):
        env.step("true")


def test_reset_after_a_lost_sandbox_starts_a_new_episode() -> None:
    env = intercode.make("bash", dataset=MINE)
    lose_the_sandbox(env)
    env.reset(options={"task": 0})
    assert env.step("echo five")[0] == "five\n"
