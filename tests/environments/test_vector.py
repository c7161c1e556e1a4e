"""Vector environments: InterCode's and Gymnasium's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import intercode
from intercode import datasets
from intercode.core.errors import SandboxLostError, UnknownNameError, UsageError
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.vector import VectorInterCode
from support import backend

pytestmark = pytest.mark.sandbox
MODES = list(AutoresetMode)
STARTER = datasets.load("starter")
GOLD = {task.id: task.gold or "" for task in STARTER.tasks}


@pytest.fixture
def made() -> Iterator[Callable[..., VectorInterCode]]:
    opened: list[VectorInterCode] = []

    def make(num_envs: int, **settings: Any) -> VectorInterCode:
        opened.append(intercode.make_vec("bash", num_envs, **settings))
        return opened[-1]

    yield make
    for envs in opened:
        envs.close()


def _one(task: int | str, actions: list[str], seed: int | None = None) -> list[tuple[Any, ...]]:
    """Return the results of a single environment."""
    with intercode.make("bash") as env:
        shown, info = env.reset(seed=seed, options={"task": task})
        answers: list[tuple[Any, ...]] = [(shown, info)]
        answers += [env.step(action) for action in actions]
    return answers


@pytest.mark.slow
def test_parallel_steps_give_the_results_of_single_steps(
    made: Callable[..., VectorInterCode],
) -> None:
    count = backend.some(64)
    tasks = [i % len(STARTER) for i in range(count)]
    envs = made(count, tasks=tasks, autoreset_mode="Disabled")
    queries, infos = envs.reset(seed=3)
    golds = [GOLD[infos["task"][i]] for i in range(count)]
    ran, *_, infos_now = envs.step(golds)
    done = envs.step(["submit"] * count)
    for i, task in enumerate(tasks):
        alone = _one(task, [golds[i], "submit"], seed=3 + i)
        assert queries[i] == alone[0][0]
        assert infos["task"][i] == alone[0][1]["task"]
        assert ran[i] == alone[1][0]
        assert {
            k: v[i] for k, v in infos_now.items() if k[0] != "_" and infos_now[f"_{k}"][i]
        } == alone[1][4]
        assert [done[0][i], *(part[i] for part in done[1:4])] == list(alone[2][:4])
    assert done[1].tolist() == [1.0] * count and done[2].all() and not done[3].any()


def _walk(envs: VectorEnv[Any, Any, Any], mode: AutoresetMode) -> list[Any]:
    """The steps give the same results however they are executed, also across the end of an
    episode."""
    seen: list[Any] = [envs.reset(seed=5)]
    over = np.zeros(2, dtype=np.bool_)
    for actions in (("echo a", "submit"), ("pwd", "echo b"), ("submit", "submit"), ("ls /", "pwd")):
        if mode is AutoresetMode.DISABLED and over.any():
            seen.append(envs.reset(seed=9, options={"reset_mask": over}))
        seen.append(envs.step(actions))
        over = seen[-1][2] | seen[-1][3]
    return [[_plain(part) for part in answer] for answer in seen]


def _plain(part: Any) -> Any:
    if isinstance(part, dict):
        return {k: _plain(v) for k, v in sorted(part.items())}
    return part.tolist() if isinstance(part, np.ndarray) else part


@pytest.mark.parametrize("mode", MODES)
def test_autoreset_modes_are_those_of_gymnasium(mode: AutoresetMode) -> None:
    """The results equal those of SyncVectorEnv, which steps one environment after another."""

    def one() -> gym.Env[str, str]:
        return intercode.make("bash")  # type: ignore[no-any-return]

    theirs = SyncVectorEnv([one, one], autoreset_mode=mode)
    ours = intercode.make_vec("bash", 2, autoreset_mode=mode)
    try:
        assert _walk(ours, mode) == _walk(theirs, mode)
        assert ours.metadata["autoreset_mode"] is mode
        assert ours.action_space == theirs.action_space
        assert ours.observation_space == theirs.observation_space
    finally:
        ours.close()
        theirs.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_async_vector_env_takes_our_environments(mode: AutoresetMode) -> None:
    def one() -> gym.Env[str, str]:
        return intercode.make("bash")  # type: ignore[no-any-return]

    theirs = AsyncVectorEnv([one, one], shared_memory=False, autoreset_mode=mode)
    ours = intercode.make_vec("bash", 2, autoreset_mode=mode)
    try:
        assert _walk(theirs, mode) == _walk(ours, mode)
    finally:
        theirs.close()
        ours.close()


def test_gymnasium_make_vec() -> None:
    envs = gym.make_vec("intercode/Bash-v1", num_envs=3, tasks=[0, 1, 2])
    try:
        assert isinstance(envs, VectorInterCode) and envs.num_envs == 3
        _, infos = envs.reset()
        assert infos["index"].tolist() == [0, 1, 2]
        assert envs.observation_space.contains(envs.step(["pwd"] * 3)[0])
    finally:
        envs.close()


def test_tasks_are_distributed_in_turn(made: Callable[..., VectorInterCode]) -> None:
    envs = made(2, tasks=[4, 5, 6], autoreset_mode="SameStep")
    seen = [envs.reset()[1]["index"].tolist()]
    seen += [envs.step(["submit", "submit"])[4]["index"].tolist() for _ in range(3)]
    assert seen == [[4, 5], [6, 4], [5, 6], [4, 5]]
    assert envs.reset(options={"tasks": [1, "starter/bash/" + _name(2)]})[1]["index"].tolist() == [
        1,
        2,
    ]


def _name(position: int) -> str:
    return STARTER.tasks[position].id.removeprefix("starter/bash/")


def test_a_lost_sandbox_ends_its_own_episode_only(
    made: Callable[..., VectorInterCode], monkeypatch: pytest.MonkeyPatch
) -> None:
    envs = made(2, tasks=[0, 1])
    envs.reset()

    def lost(action: str) -> Any:
        raise SandboxLostError(f"gone before {action}")

    monkeypatch.setattr(envs.envs[0], "step", lost)
    shown, rewards, ended, cut, infos = envs.step(["pwd", "echo b"])
    assert shown[1] == "b\n" and rewards.tolist() == [0.0, 0.0]
    assert cut.tolist() == [True, False] and not ended.any()
    assert infos["error"][0] == "SandboxLostError: gone before pwd"
    monkeypatch.undo()
    again = envs.step(["pwd", "echo c"])
    assert again[0][0] == STARTER.tasks[0].query and again[0][1] == "c\n"


@pytest.mark.parametrize(
    ("num_envs", "wrong"),
    [
        (0, {}),
        (1, {"autoreset_mode": "Same"}),
        (1, {"tasks": []}),
        (1, {"profile": "original"}),
        (2, {"dataset": "no such dataset"}),
    ],
)
def test_what_was_refused_can_be_closed(num_envs: int, wrong: dict[str, Any]) -> None:
    """Gymnasium may close what its constructor has left."""
    envs = VectorInterCode.__new__(VectorInterCode)
    with pytest.raises(UsageError):
        envs.__init__(ENVIRONMENTS.load("bash"), num_envs, **wrong)  # type: ignore[misc]
    envs.close()
    assert envs.closed


def test_invalid_arguments_are_refused(made: Callable[..., VectorInterCode]) -> None:
    with pytest.raises(UsageError, match="num_envs is 0"):
        made(0)
    with pytest.raises(UnknownNameError, match="did you mean 'SameStep'"):
        made(1, autoreset_mode="SameSteps")
    with pytest.raises(UsageError, match="tasks is empty"):
        made(1, tasks=[])
    with pytest.raises(UsageError, match=f"task 999 is out of range: starter has {len(STARTER)}"):
        made(2, tasks=[0, 999])
    with pytest.raises(UnknownNameError, match="unknown task of starter 'count'"):
        made(2, tasks=[STARTER.tasks[0].id, "count"])
    envs = made(2, autoreset_mode="Disabled")
    with pytest.raises(UsageError, match="seed: 3 values for 2"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(UsageError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array([False, False])})
    envs.reset(seed=1)
    with pytest.raises(UsageError, match="one for each environment, not 'ls'"):
        envs.step("ls")
    with pytest.raises(UsageError, match="1 actions for 2"):
        envs.step(["pwd"])
    envs.step(["submit", "pwd"])
    with pytest.raises(UsageError, match=r"\[0\] are over"):
        envs.step(["pwd", "pwd"])
