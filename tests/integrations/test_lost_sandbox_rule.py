"""A lost sandbox is left out of training where the interface can say so, else its rewards sum to 0.

docs/training.md states the rule for each interface.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import (
    EnvironmentStateError,
    InfrastructureError,
    SandboxKilledError,
)
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.environments.bash.env import BashEnv
from intercode.environments.python.env import PythonEnv
from intercode.integrations.trl import BashEnvironment

pytestmark = pytest.mark.sandbox
LOSE = "lose the sandbox"


def _lose(env: Any) -> None:
    """Let the action LOSE lose the sandbox of an environment."""
    execute = env.execute

    def execute_or_lose(action: str) -> Any:
        if action == LOSE:
            env.abort()
            action = "true"
        return execute(action)

    env.execute = execute_or_lose


def _losing_env(**settings: Any) -> BashEnv:
    env = BashEnv(**settings)
    _lose(env)
    return env


@pytest.mark.parametrize("reward_mode", ["final", "per-turn", "delta"])
def test_an_agent_that_ends_its_sandbox_has_earned_nothing(
    reward_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an infrastructure error: every adapter gets the rewards of a terminated episode."""
    with BashEnv(reward_mode=reward_mode) as env:  # type: ignore[arg-type]
        env.reset(options={"task": "starter/bash/export-dirs"})
        first = env.execute("mkdir -p /srv/quaywheel/exports/2024/05")
        assert first.reward > 0 or reward_mode == "final"

        def ended(_: object, action: str, __: float) -> Any:
            raise SandboxKilledError(f"the sandbox ended during {action!r}")

        monkeypatch.setattr(SandboxWorkspace, "run", ended)
        last = env.execute("true")
        assert last.terminated and last.sandbox_lost
        assert first.reward + last.reward == 0.0


def test_a_single_environment_raises() -> None:
    with _losing_env(reward_mode="delta") as env:
        env.reset(options={"task": "starter/bash/export-dirs"})
        assert env.step("mkdir -p /srv/quaywheel/exports/2024/05")[1] > 0
        with pytest.raises(InfrastructureError):
            env.step(LOSE)
        with pytest.raises(EnvironmentStateError):
            env.step("true")
        env.reset(options={"task": 0})
        assert env.step("echo on")[0] == "on\n"


def test_an_episode_of_a_pool_raises_and_is_over() -> None:
    async def work() -> None:
        async with intercode.Pool("bash", 1, reward_mode="delta") as pool:
            async with pool.episode(0) as episode:
                _lose(episode.env)
                await episode.step("true")
                with pytest.raises(InfrastructureError):
                    await episode.step(LOSE)
                assert episode.done
            async with pool.episode(0) as episode:
                assert (await episode.step("echo on")).observation == "on\n"

    asyncio.run(work())


@pytest.mark.parametrize("reward_mode", ["final", "per-turn", "delta"])
def test_rewards_of_a_vector_environment_sum_to_zero(reward_mode: str) -> None:
    envs = intercode.make_vec("bash", 2, tasks=[0, 0], reward_mode=reward_mode)
    _lose(envs.envs[0])
    try:
        envs.reset()
        first = envs.step(["true", "true"])
        last = envs.step([LOSE, "true"])
        assert first[1][0] + last[1][0] == 0.0
        assert last[3].tolist() == [True, False] and "Error" in last[4]["error"][0]
    finally:
        envs.close()


@pytest.mark.parametrize("reward_mode", ["final", "per-turn", "delta"])
def test_rewards_of_skyrl_sum_to_zero(reward_mode: str) -> None:
    pytest.importorskip("skyrl_gym", reason="pip install 'intercode-gym[skyrl]'")
    from intercode.integrations.skyrl import InterCodeTextEnv

    env = InterCodeTextEnv({"reward_mode": reward_mode}, {"task": 0})
    _lose(env._env)
    env.init([])
    first, last = (env.step(f"```bash\n{code}\n```") for code in ("true", LOSE))
    assert first["reward"] + last["reward"] == 0.0
    assert last["done"] and "Error" in last["metadata"]["error"]
    metrics = env.get_metrics()
    assert (metrics["lost"], metrics["score"], metrics["success"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("reward_mode", ["final", "per-turn", "delta"])
def test_trl_leaves_the_episode_out(reward_mode: str) -> None:
    facade = BashEnvironment(reward_mode=reward_mode)
    facade.reset(task=0)
    _lose(facade._env)
    facade.bash("true")
    with pytest.raises(InfrastructureError):
        facade.bash(LOSE)
    assert facade.get_reward() is None


@contextmanager
def _server(make: Callable[[], Any]) -> Iterator[str]:
    """Serve environments from a thread of this process."""
    uvicorn = pytest.importorskip("uvicorn")
    from intercode.integrations.openenv.server import build_app

    server = uvicorn.Server(uvicorn.Config(build_app(make, "bash"), log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


def test_openenv_leaves_the_episode_out() -> None:
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    from openenv.core.generic_client import GenericEnvClient

    with (
        _server(lambda: _losing_env(reward_mode="delta")) as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        client.reset(task=0)
        with pytest.raises(RuntimeError, match="episode is lost"):
            client.step({"code": LOSE})
        for request in ({"code": "true"}, {"code": "", "metadata": {"request": "score"}}):
            with pytest.raises(RuntimeError, match=r"reset begins another|episode is lost"):
                client.step(request)
        client.reset(task=0)
        assert client.step({"code": "echo on"}).observation["text"] == "on\n"


def test_inspect_gives_the_sample_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")
    from inspect_ai import eval as inspect_eval

    from intercode.integrations.inspect import python

    def execute(env: PythonEnv, action: str) -> Any:
        env.abort()
        return BashEnv.execute(env, action)  # type: ignore[arg-type]

    monkeypatch.setattr(PythonEnv, "execute", execute)
    [log] = inspect_eval(
        python(agent="gold"),
        model="mockllm/model",
        log_dir=str(tmp_path),
        display="none",
        limit=1,
        fail_on_error=False,
    )
    (sample,) = log.samples or ()
    assert sample.error is not None and not sample.scores
