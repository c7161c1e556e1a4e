"""Tasks of families in SkyRL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from intercode.agents.parsing import CHANGES_NOTE

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


def test_the_prompt_says_where_only_changes_are_judged() -> None:
    env = _make(0, {"dataset": "families:bash/old-files@seed=0"})
    [message], _ = env.init([])
    assert message["content"].endswith(f"\n{CHANGES_NOTE}")
    env.close()


def test_a_seed_without_a_task_forks_after_a_prefix() -> None:
    """The seed draws the task. Without one, each episode may have another task."""
    prefix, config = ["echo $RANDOM$RANDOM"], {"dataset": "families:bash/trail"}

    def prompt(seed: int | None) -> Any:
        env = _make(None, config, seed=seed, prefix=prefix)
        try:
            return env.init([])[0]
        finally:
            env.close()

    assert prompt(5) == prompt(5)
    assert prompt(5) != prompt(6) and prompt(None) != prompt(None)
