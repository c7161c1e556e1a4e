"""SkyRL-gym's registry creates and drives our environments."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from intercode import datasets
from intercode.core.errors import UsageError
from intercode.environments.base.workspaces import SandboxWorkspace
from support.descriptions import describe
from support.sandboxes import eventually

skyrl_gym = pytest.importorskip("skyrl_gym", reason="pip install 'intercode-gym[skyrl]'")

pytestmark = pytest.mark.sandbox
ENTRY = "intercode.integrations.skyrl:InterCodeTextEnv"


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    skyrl_gym.register("intercode", entry_point=ENTRY)
    yield
    skyrl_gym.envs.registration.deregister("intercode")


def _make(task: int | str | None, config: dict[str, Any] | None = None, **row: Any) -> Any:
    return skyrl_gym.make("intercode", env_config=config or {}, extras={"task": task, **row})


@pytest.mark.parametrize(
    ("environment", "tag"), [("bash", "bash"), ("sql", "sql"), ("python", "python")]
)
def test_an_episode(environment: str, tag: str) -> None:
    task = datasets.load("starter", environment).tasks[0]
    env = _make(task.id, {"environment": environment})
    prompt, info = env.init([{"role": "system", "content": "Write code."}])
    text = f"{task.query}\n{describe(environment).judged}"
    assert prompt[-1] == {"role": "user", "content": text} and info["task"] == task.id
    first = env.step(f"I will.\n```{tag}\n{task.solution}\n```")
    assert not first["done"] and first["reward"] == 0.0
    assert first["observations"][0]["role"] == "user"
    last = env.step("```\nsubmit\n```")
    assert (last["done"], last["reward"], last["observations"]) == (True, 1.0, [])
    assert env.get_metrics() == {"score": 1.0, "success": 1.0, "turns": 2.0, "lost": 0.0}
    with pytest.raises(UsageError, match="over"):
        env.step("```\nls\n```")


def test_the_query_is_sent_once() -> None:
    query = datasets.load("starter").tasks[2].query
    env = _make(2)
    prompt, _ = env.init([{"role": "user", "content": f"Do this: {query}"}])
    assert len(prompt) == 1
    env.close()


def test_the_turn_limit_scores_the_current_state() -> None:
    task = datasets.load("starter").tasks[0]
    env = _make(0, max_turns=2)
    env.init([])
    assert env.step("nothing but words here, as it is.")["observations"][0]["content"].startswith(
        "No code"
    )
    last = env.step(f"```bash\n{task.gold}\n```")
    assert last["done"] and last["reward"] == 1.0


def test_a_last_answer_without_code_is_scored() -> None:
    env = _make(0, max_turns=2)
    env.init([])
    env.step(f"```bash\n{datasets.load('starter').tasks[0].gold}\n```")
    last = env.step("I have done it, as you can see.")
    assert last["done"] and last["reward"] == 1.0


def test_code_is_read_in_the_language_of_the_task() -> None:
    env = _make(0, {"environment": "code"})
    [message], _ = env.init([])
    assert "JavaScript" in message["content"]  # the notes of the task
    [answer] = env.step("I look first:\n```javascript\n1 + 1\n```")["observations"]
    assert not answer["content"].startswith("No code")
    env.close()


def test_rewards_of_every_turn() -> None:
    task = datasets.load("starter").tasks[0]
    env = _make(0, {"reward_mode": "delta"})
    env.init([])
    rewards = [
        env.step(f"```bash\n{code}\n```")["reward"] for code in ("true", task.gold, "submit")
    ]
    assert sum(rewards) == pytest.approx(1.0) and rewards[1] > 0


def _kill(env: Any) -> None:
    sandbox = env._env.scored_sandbox
    members = sandbox._list_processes()
    sandbox.close()
    eventually(lambda: not any(m.is_alive() for m in members), "the sandbox has ended")


def test_a_lost_sandbox_has_reward_zero_and_is_counted() -> None:
    env = _make(0)
    env.init([])
    _kill(env)
    last = env.step("```bash\nls\n```")
    assert (last["done"], last["reward"], last["observations"]) == (True, 0.0, [])
    assert "Error" in last["metadata"]["error"]
    assert env.get_metrics() == {"score": 0.0, "success": 0.0, "turns": 1.0, "lost": 1.0}


def test_a_sandbox_lost_before_the_score_at_the_turn_limit_ends_only_its_episode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env = _make(0, max_turns=1)
    env.init([])
    run = SandboxWorkspace.run

    def run_and_lose(workspace: SandboxWorkspace, code: str, timeout: float) -> Any:
        result = run(workspace, code, timeout)
        _kill(env)
        return result

    monkeypatch.setattr(SandboxWorkspace, "run", run_and_lose)
    last = env.step("```bash\nls\n```")
    assert (last["done"], last["reward"]) == (True, 0.0) and "Error" in last["metadata"]["error"]
    assert env.get_metrics()["lost"] == 1.0


def test_a_row_without_a_task_is_refused() -> None:
    with pytest.raises(UsageError, match="column 'task'"):
        skyrl_gym.make("intercode", env_config={}, extras={"id": 3})


@pytest.mark.parametrize(
    ("config", "row", "message"),
    [
        ({}, {"max_turns": "some"}, "max_turns is a number of at least 1, not 'some'"),
        ({}, {"max_turns": None}, "max_turns is a number of at least 1, not None"),
        ({"max_turns": float("inf")}, {}, "max_turns is a number of at least 1, not inf"),
        ({}, {"max_turns": 0}, "max_turns is a number of at least 1, .* not 0"),
        ({}, {"prefix": [3]}, "a prefix is a list of actions"),
    ],
)
def test_a_wrong_setting_is_named(
    config: dict[str, Any], row: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        _make(0, config, **row).init([])


def test_a_configuration_that_is_no_mapping_is_named() -> None:
    with pytest.raises(UsageError, match="env_config is a mapping, not 3"):
        skyrl_gym.make("intercode", env_config=3, extras={"task": 0})
    with pytest.raises(UsageError, match="extras is a mapping, not None"):
        skyrl_gym.make("intercode", env_config={}, extras=None)


def test_prompts_without_text_and_wrong_ones() -> None:
    env = _make(0)
    query = env.init([])[0][0]["content"].splitlines()[0]
    for prompt in (None, [{"role": "user", "content": None}], [{"role": "user"}]):
        assert query in env.init(prompt)[0][-1]["content"]
    for wrong in ("do it", [3]):
        with pytest.raises(UsageError, match="a prompt is a list of messages"):
            env.init(wrong)
    env.close()


def test_an_answer_that_is_no_text_ends_no_episode() -> None:
    env = _make(0, max_turns=2)
    env.init([])
    for wrong in (None, 3, b"```bash\nls\n```", ["ls"], {"content": "ls"}):
        with pytest.raises(UsageError, match=f"an answer is a str, not {type(wrong).__name__}"):
            env.step(wrong)
    assert env.step("```bash\necho a\n```")["observations"][0]["content"] == "a"
    env.close()


def test_environments_that_are_never_closed_are_freed() -> None:
    env = _make(0)
    env.init([])
    members = env._env.sandbox._list_processes()
    assert any(m.is_alive() for m in members)
    del env
    gc.collect()
    eventually(lambda: not any(m.is_alive() for m in members), "the sandbox has ended")


def test_a_group_begins_after_a_prefix() -> None:
    """Three environments, one playing of the prefix: a random number in it is the same in all."""
    config = {"dataset": "starter", "reward_mode": "delta"}
    group = [_make(0, config, prefix=["echo $RANDOM > /tmp/f; cat /tmp/f"]) for _ in range(3)]
    try:
        prompts = [env.init([])[0] for env in group]
        assert prompts[0] == prompts[1] == prompts[2]
        assert [env.turns for env in group] == [1, 1, 1]
        number = prompts[0][-1]["content"].splitlines()[-1]
        results = [env.step("```bash\ncat /tmp/f\n```") for env in group]
        assert [r["observations"][0]["content"].strip() for r in results] == [number] * 3
    finally:
        for env in group:
            env.close()
