"""An exception in the path of an action is the agent's, unless the machine is shown to be at fault.

Otherwise an agent could cause exceptions to have its failed episodes played again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import intercode
from intercode.core.errors import (
    DatabaseLostError,
    DataError,
    EnvironmentStateError,
    GoldError,
    InfrastructureError,
    SandboxError,
    SandboxKilledError,
    SandboxLostError,
    SandboxUnavailableError,
    TaskSetupError,
    UsageError,
)
from intercode.core.types import Score, State, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.sql.env import SqlEnv
from intercode.integrations.harbor.env import HarborEnv
from support.harbor import TOML, write_steps_task, write_task

OF_THE_AGENT = (
    ValueError("bad"),
    RecursionError("deep"),
    MemoryError(),
    KeyError("a"),
    OSError(5, "no"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"),
    DataError("bad"),
    TaskSetupError("bad"),
    SandboxError("refused"),
    InfrastructureError("odd"),
    DatabaseLostError("gone"),
)
OF_THE_MACHINE = (SandboxLostError("gone"), SandboxUnavailableError("none"))


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


@pytest.fixture
def env() -> Iterator[SqlEnv]:
    with SqlEnv("starter", reward_mode="per-turn") as env:
        env.reset(options={"task": 0})
        yield env


def earn(env: InterCodeEnv) -> float:
    """Play the gold, for a reward that a failure then takes back."""
    reward = env.execute(env.task.golds[0]).reward
    assert reward == 1.0
    return reward


@pytest.mark.parametrize("error", OF_THE_AGENT, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    "at", ["episode.workspace.run", "changed_paths", "_profile_impl.agent_state"]
)
def test_an_exception_of_an_action_ends_the_episode_with_the_score_0(
    env: Any, at: str, error: Exception
) -> None:
    earned = earn(env)
    *parts, name = at.split(".")
    owner = reduce(getattr, parts, env)
    setattr(owner, name, raising(error))
    result = env.execute("SELECT 1")
    assert result.terminated and not result.sandbox_lost and earned + result.reward == 0.0
    assert result.info["action_error"]["type"] == type(error).__name__
    score = env.score()
    assert score.value == 0.0 and "in fail" in score.action_error.traceback
    with pytest.raises(EnvironmentStateError):
        env.execute("SELECT 1")
    del owner.__dict__[name]
    env.reset(options={"task": 0})
    assert env.execute(env.task.golds[0]).reward == 1.0 and env.score().action_error is None


@pytest.mark.parametrize("error", OF_THE_AGENT, ids=lambda e: type(e).__name__)
def test_an_exception_of_a_submission_is_a_score(env: Any, error: Exception) -> None:
    env._profile_impl.agent_state = raising(error)
    result = env.finish("x")
    assert result.terminated and result.reward == 0.0 and result.action_error is not None
    env.reset(options={"task": 0})
    env._profile_impl.reply_to_answer = raising(error)
    assert env.finish("x").action_error is not None


def test_an_exception_of_a_reward_function_is_a_score() -> None:
    def reward(task: Task, agent: State, gold: State) -> Score:
        raise ZeroDivisionError("a fault of the reward")

    with SqlEnv("starter", reward=reward) as env:
        env.reset(options={"task": 0})
        with pytest.warns(RuntimeWarning, match="reward raised ZeroDivisionError: a fault"):
            error = env.score().action_error
    assert error is not None and error.type == "ZeroDivisionError" and "reward" in error.reward
    assert f"in {Path(__file__).name}:" in str(error) and "in reward" in error.traceback


@pytest.mark.parametrize("error", [GoldError("no"), SandboxUnavailableError("none")])
def test_what_is_never_of_an_agent_is_raised_by_a_reward_too(error: Exception) -> None:
    with SqlEnv("starter", reward=lambda task, agent, gold: raising(error)()) as env:
        env.reset(options={"task": 0})
        with pytest.raises(type(error)):
            env.score()


def test_an_error_of_usage_that_an_agent_causes_in_a_reward_is_a_score() -> None:
    with SqlEnv("starter", reward=lambda task, agent, gold: raising(DataError("bad"))()) as env:
        env.reset(options={"task": 0})
        with pytest.warns(RuntimeWarning, match="DataError: bad"):
            assert env.score().value == 0.0


@pytest.mark.parametrize("error", OF_THE_MACHINE, ids=lambda e: type(e).__name__)
def test_what_is_shown_to_be_the_machines_is_raised(env: Any, error: Exception) -> None:
    env.episode.workspace.run = raising(error)
    with pytest.raises(type(error)):
        env.execute("SELECT 1")
    with pytest.raises(EnvironmentStateError):
        env.execute("SELECT 1")


@pytest.mark.parametrize("error", [SandboxError("refused"), OSError(28, "full")], ids=str)
def test_it_is_the_machines_if_what_no_agent_reaches_fails_too(env: Any, error: Exception) -> None:
    env.episode.workspace.run = raising(error)
    env.check_machine = raising(OSError(28, "full"))
    with pytest.raises(InfrastructureError):
        env.execute("SELECT 1")


def test_it_is_the_machines_if_the_agents_own_sandbox_says_so(env: Any) -> None:
    env.episode.workspace.run = raising(SandboxError("no answer"))
    env.episode.workspace.session.changes = raising(SandboxLostError("the supervisor has ended"))
    with pytest.raises(SandboxError, match="no answer"):
        env.execute("SELECT 1")
    env.reset(options={"task": 0})
    env.episode.workspace.session.changes = raising(SandboxKilledError("out of memory"))
    assert env.execute("SELECT 1").sandbox_lost


def test_errors_of_the_gold_and_of_the_caller_are_raised(env: Any) -> None:
    for error in (GoldError("no gold"), SandboxError("no sandbox for the gold"), ValueError("odd")):
        env.reset(options={"task": 0})
        env._profile_impl.gold_states = raising(error)
        with pytest.raises(type(error)):
            env.execute("SELECT 1")
        with pytest.raises(type(error)):
            env.score()
    env.episode.workspace.run = raising(ValueError())
    env.abort()
    with pytest.raises(EnvironmentStateError):
        env.execute("SELECT 1")


def test_an_aborted_episode_is_an_error(env: Any) -> None:
    def abort_and_fail(*_: object) -> Any:
        env.abort()
        raise DatabaseLostError("aborted")

    env.episode.workspace.run = abort_and_fail
    with pytest.raises(DatabaseLostError):
        env.execute("SELECT 1")


# ------------------------------------------------------------------ any text
CHARACTERS = st.one_of(
    st.characters(), st.characters(categories=["Cs"]), st.sampled_from("\0\r\n\x1b\\'\"`;$()<>")
)
BEGINNINGS = st.sampled_from(["submit ", "SELECT '", "echo '", "print('", "call "])
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=60),
    st.builds(str.__mul__, st.text(CHARACTERS, min_size=1, max_size=4), st.integers(1, 9999)),
    st.builds("{}{}".format, BEGINNINGS, st.text(CHARACTERS, max_size=30)),
)
ODD = ("SELECT '\ud800'", "echo \udcff\ud800", "\0", "\ud800", "submit \ud800\0", "x" * 3_000_000)


def play_any_text(env: InterCodeEnv, texts: list[str]) -> None:
    env.reset(seed=1, options={"task": 0})
    for text in texts:
        if env.execute(text).done:
            break
    else:
        env.finish(texts[-1])
    assert 0.0 <= env.score().value <= 1.0


SETTINGS = settings(
    max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("bash", {}, marks=pytest.mark.sandbox),
        pytest.param("python", {}, marks=pytest.mark.sandbox),
        pytest.param("ctf", {}, marks=pytest.mark.sandbox),
        pytest.param("code", {}, marks=pytest.mark.sandbox),
        ("sql", {}),
        pytest.param("sql", {"engine": "mysql"}, marks=pytest.mark.mysql),
    ],
    ids=["bash", "python", "ctf", "code", "sql", "mysql"],
)
def test_any_text_is_a_turn_or_ends_the_episode_with_a_score(
    name: str, options: dict[str, Any]
) -> None:
    env = intercode.make(name, dataset="starter", timeout=5.0, **options)

    @SETTINGS
    @example(list(ODD))
    @given(st.lists(TEXTS, min_size=1, max_size=3))
    def play(texts: list[str]) -> None:
        play_any_text(env, texts)

    with env:
        play()


def _harbor_task(folder: Path, kind: str) -> Path:
    if kind == "steps":
        return write_steps_task(folder)
    if kind == "separate":
        toml = TOML.replace("[verifier]", '[verifier]\nenvironment_mode = "separate"')
        return write_task(folder, **{"task.toml": f'artifacts = ["/app/out.txt"]\n{toml}'})
    copied = "#!/bin/bash\ncp /app/out.txt /logs/verifier/reward.{}\n"
    return write_task(folder, **{} if kind == "shared" else {"tests__test.sh": copied.format(kind)})


@pytest.mark.sandbox
@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["shared", "separate", "steps"])
def test_any_text_in_harbors_tasks_is_a_turn_or_ends_the_episode_with_a_score(
    kind: str, tmp_path: Path
) -> None:
    env = HarborEnv(f"harbor:{_harbor_task(tmp_path / 'task', kind)}", timeout=5.0)

    @settings(SETTINGS, max_examples=6)
    @example(list(ODD))
    @given(st.lists(TEXTS, min_size=1, max_size=2))
    def play(texts: list[str]) -> None:
        play_any_text(env, texts)

    with env:
        play()


REWARDS = st.one_of(
    st.binary(max_size=40),
    st.floats().map(lambda number: str(number).encode()),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.text(max_size=6), inside),
        max_leaves=4,
    ).map(lambda value: json.dumps(value).encode()),
)
ODD_REWARDS = (
    b"",
    b"nan",
    b"-1e999",
    b"7.0",
    b"\xff",
    b"[" * 100_000,
    b"9" * 5_000,
    b'{"reward": null}',
    b'{"a": 1, "reward": "x"}',
    b"1\0",
)


@pytest.mark.sandbox
@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["txt", "json"])
def test_any_reward_that_an_agent_brings_a_verifier_to_write_is_a_score(
    kind: str, tmp_path: Path
) -> None:
    """The verifier takes over a file of the agent."""
    env = HarborEnv(f"harbor:{_harbor_task(tmp_path / 'task', kind)}")

    def play(content: bytes) -> None:
        env.reset()
        env.scored_sandbox.write("/app/out.txt", content)
        score = env.score()
        assert isfinite(score.value) and isfinite(env.finish().reward)

    with env:
        for content in ODD_REWARDS:
            play(content)
        settings(SETTINGS, max_examples=10)(given(REWARDS)(play))()


@pytest.mark.parametrize(
    ("method", "returned", "why"),
    [
        ("agent_state", "a text", "agent_state returned 'a text', not a State"),
        ("gold_states", [], "gold_states gave no state of a gold"),
        ("gold_states", State(), "gold_states returns a list of states"),
    ],
)
def test_what_a_profile_must_not_return_is_raised(
    env: Any, method: str, returned: object, why: str
) -> None:
    setattr(env._profile_impl, method, lambda *_: returned)
    with pytest.raises((GoldError, UsageError), match=why):
        env.score()
