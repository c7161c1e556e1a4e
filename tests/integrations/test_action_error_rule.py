"""An exception of an action ends the episode with the score 0 in every adapter: none leaves it out
or plays it again. ``test_lost_sandbox_rule.py`` has the rule for failures of the machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import (
    MissingCapabilityError,
    SandboxError,
    SandboxKilledError,
    SandboxLostError,
    UsageError,
)
from intercode.core.types import ExecResult
from intercode.environments.sql.env import SqlEnv
from intercode.environments.sql.profiles import SqlWorkspace
from intercode.integrations.failed_commands import status_of_failure

FAIL = "SELECT 'fail'"
MODES = pytest.mark.parametrize("reward_mode", ["final", "per-turn", "delta"])


@pytest.fixture(autouse=True)
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the action FAIL raise an exception that nothing expects."""
    execute = SqlWorkspace.run

    def execute_or_fail(self: SqlWorkspace, action: str, timeout: float) -> ExecResult:
        if action == FAIL:
            raise ValueError("unexpected")
        return execute(self, action, timeout)

    monkeypatch.setattr(SqlWorkspace, "run", execute_or_fail)


def gold_of(env: Any) -> str:
    return str(env.dataset.tasks[0].golds[0])


@MODES
def test_a_single_environment_and_a_vector_environment(reward_mode: str) -> None:
    with SqlEnv("starter", reward_mode=reward_mode) as env:  # type: ignore[arg-type]
        env.reset(options={"task": 0})
        first, last = env.step(gold_of(env)), env.step(FAIL)
        assert last[2] and not last[3] and first[1] + last[1] == 0.0
        assert last[4]["action_error"] == {"type": "ValueError", "message": "unexpected"}
    envs = intercode.make_vec("sql", 2, tasks=[0, 0], reward_mode=reward_mode)
    try:
        envs.reset()
        gold = gold_of(envs.envs[0])
        first, last = envs.step([gold, gold]), envs.step([FAIL, gold])
        assert first[1][0] + last[1][0] == 0.0 and "error" not in last[4]
        assert last[2].tolist() == [True, False] and last[3].tolist() == [False, False]
    finally:
        envs.close()


def test_a_pool() -> None:
    async def work() -> None:
        async with (
            intercode.Pool("sql", 1, reward_mode="delta") as pool,
            pool.episode(0) as episode,
        ):
            await episode.step(gold_of(pool))
            result = await episode.step(FAIL)
            assert result.terminated and result.action_error and episode.reward == 0.0
            assert (await episode.score()).value == 0.0

    asyncio.run(work())


@MODES
def test_trl(reward_mode: str) -> None:
    from intercode.integrations.trl import SqlEnvironment

    facade = SqlEnvironment(reward_mode=reward_mode)
    facade.reset(task=0)
    facade.sql(gold_of(facade._env))
    facade.sql(FAIL)
    assert facade.get_reward() == 0.0


@MODES
def test_skyrl(reward_mode: str) -> None:
    pytest.importorskip("skyrl_gym", reason="pip install 'intercode-gym[skyrl]'")
    from intercode.integrations.skyrl import InterCodeTextEnv

    env = InterCodeTextEnv({"environment": "sql", "reward_mode": reward_mode}, {"task": 0})
    env.init([])
    codes = gold_of(env._env), FAIL
    first, last = (env.step(f"```sql\n{code}\n```") for code in codes)
    assert last["done"] and first["reward"] + last["reward"] == 0.0
    assert "error" not in last["metadata"] and env.get_metrics()["score"] == 0.0


def test_openenv() -> None:
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    from openenv.core.generic_client import GenericEnvClient

    from integrations.test_lost_sandbox_rule import _server

    with (
        _server(lambda: SqlEnv("starter", reward_mode="delta")) as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        client.reset(task=0)
        result = client.step({"code": FAIL})
        info = result.observation["info"]
        assert result.done and info["terminated"] and result.reward == 0.0
        assert info["action_error"]["type"] == "ValueError"
        for odd in ("SELECT '\ud800'", "\0", "x" * 500_000):
            client.reset(task=0)
            client.step({"code": odd})


def test_inspect_scores_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")
    from inspect_ai import eval as inspect_eval

    from intercode.integrations.inspect import sql

    def fail(self: SqlWorkspace, action: str, timeout: float) -> ExecResult:
        raise ValueError("unexpected")

    monkeypatch.setattr(SqlWorkspace, "run", fail)
    [log] = inspect_eval(
        sql(agent="gold"),
        model="mockllm/model",
        log_dir=str(tmp_path),
        display="none",
        limit=1,
        fail_on_error=False,
    )
    (sample,) = log.samples or ()
    assert sample.error is None and sample.scores


def test_a_command_that_does_not_run_is_a_result_where_agents_have_a_whole_sandbox() -> None:
    errors = {
        UsageError("a NUL byte"): 126,
        OSError(2, "no"): 127,
        SandboxKilledError("memory"): 137,
        SandboxError("refused"): 137,
    }
    assert [status_of_failure(e) for e in errors] == list(errors.values())
    for error in (SandboxLostError("gone"), MissingCapabilityError("no users")):
        with pytest.raises(type(error)):
            status_of_failure(error)


@pytest.mark.sandbox
def test_mini_swe_agent() -> None:
    pytest.importorskip("minisweagent", reason="pip install 'intercode-gym[agents]'")
    from intercode.integrations.mini_swe_agent import MiniSweAgentEnvironment

    env = MiniSweAgentEnvironment()
    try:
        for command in ("echo \0", "x" * 5_000_000, "echo '\ud800'"):
            assert env.execute({"command": command}).keys() >= {"output", "returncode"}

        def end(*_: object, **__: object) -> Any:
            raise SandboxKilledError("the sandbox was ended by what ran in it")

        env.sandbox.run = end  # type: ignore[method-assign]
        assert env.execute({"command": "true"})["returncode"] == -1
    finally:
        env.cleanup()
