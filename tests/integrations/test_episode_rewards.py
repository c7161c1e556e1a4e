"""In every adapter and reward mode, the rewards of an episode sum to at most 1, whatever it does.

Asking for the score pays nothing. Random sequences of actions, questions, snapshots and submissions
are played on real environments.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import intercode
from intercode.core.errors import EnvironmentStateError, GoldError, UsageError
from intercode.core.trajectories import trajectory_to_row
from intercode.core.types import Dataset, Score, Step, Task, Trajectory
from intercode.integrations.trl import BashEnvironment, CtfEnvironment

pytestmark = pytest.mark.sandbox
MODES = ("final", "per-turn", "delta")
WORTH = 1.0 + 1e-9
LIMIT = 9
FILES = Dataset("files", "bash", (Task("files/0", "Make /a and /b", gold="touch /a /b"),))
SOLVE = "touch /a /b"
ACTIONS = (
    SOLVE,
    "rm -f /a",
    "touch /a",
    "touch /c",
    "rm -f /c",
    "true",
    "",
    "exit",
    "echo hello",
    "submit",
)
SEEDS = range(4)


def _sequence(seed: int) -> list[str]:
    """Return a sequence of actions that solves the task once or more."""
    chance = random.Random(seed)
    actions = [chance.choice(ACTIONS[:-1]) for _ in range(chance.randint(3, 9))]
    actions.insert(chance.randrange(len(actions)), SOLVE)
    return [*actions, *chance.choices(ACTIONS, k=2), "submit", "submit", "true"]


# Each adapter plays a sequence and returns the rewards that its trainer would add up.
def _single(actions: list[str], mode: str) -> float:
    with intercode.make("bash", dataset=FILES, reward_mode=mode, max_turns=LIMIT) as env:
        env.reset()
        total = 0.0
        for action in actions:
            try:
                _, reward, terminated, truncated, _ = env.step(action)
            except EnvironmentStateError:
                break
            total += reward
            env.score()
            if terminated or truncated:
                break
        with pytest.raises(EnvironmentStateError):
            env.step("submit")
    return total


def _vector(actions: list[str], mode: str) -> float:
    envs = intercode.make_vec("bash", 2, dataset=FILES, reward_mode=mode, max_turns=LIMIT)
    totals, running = [0.0, 0.0], [True, True]
    try:
        envs.reset()
        for action in actions:
            _, rewards, terminated, truncated, _ = envs.step([action, "true"])
            for i in range(2):
                totals[i] += rewards[i] * running[i]
                running[i] = running[i] and not (terminated[i] or truncated[i])
            envs.call("score")
            if not any(running):
                break
    finally:
        envs.close()
    return max(totals)


def _pool(actions: list[str], mode: str) -> float:
    async def work() -> float:
        async with (
            intercode.Pool("bash", 2, FILES, reward_mode=mode, max_turns=LIMIT) as pool,
            pool.group(0, 2, prefix=["touch /a"]) as group,
        ):
            for episode in group:
                for action in actions:
                    if not episode.done:
                        await episode.step(action)
                        await episode.score()
            return max(episode.reward for episode in group)

    return asyncio.run(work())


def _trl(actions: list[str], mode: str, prefix: tuple[str, ...] = ()) -> float:
    facade = BashEnvironment(FILES, reward_mode=mode, max_turns=LIMIT)  # type: ignore[arg-type]
    facade.reset(task=0, prefix=prefix)
    for action in actions:
        try:
            facade.bash(action)
        except EnvironmentStateError:
            break
    rewards = [facade.get_reward() for _ in range(3)]
    assert rewards[0] == rewards[1] == rewards[2] is not None
    return float(rewards[0])


def _skyrl(actions: list[str], mode: str, prefix: tuple[str, ...] = ()) -> float:
    pytest.importorskip("skyrl_gym", reason="pip install 'intercode-gym[skyrl]'")
    from intercode.integrations.skyrl import InterCodeTextEnv

    env = InterCodeTextEnv(
        {"dataset": FILES, "reward_mode": mode}, {"task": 0, "max_turns": LIMIT, "prefix": prefix}
    )
    env.init([])
    total = 0.0
    for action in actions:
        result = env.step(f"```bash\n{action}\n```" if action else "no code")
        total += result["reward"]
        env.get_metrics()
        if result["done"]:
            break
    with pytest.raises(UsageError):
        env.step("```bash\nsubmit\n```")
    return total + env._prefix_reward  # which SkyRL is not paid


def _openenv(actions: list[str], mode: str, score_requests: bool = False) -> float:
    """verifiers, too, adds up these rewards, and gives the model control of the whole action."""
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    from intercode.integrations.openenv.server import CodeAction, ServedEnv

    env = ServedEnv(
        lambda: intercode.make("bash", dataset=FILES, reward_mode=mode, max_turns=LIMIT),
        score_requests,
    )
    ask = CodeAction(code="", metadata={"request": "score"})
    save = CodeAction(code=SOLVE, metadata={"request": "snapshot"})
    total = 0.0
    try:
        env.reset(seed=1)
        for action in actions:
            try:
                saved = env.step(save)  # it runs no code, pays nothing and takes no turn
                assert saved.reward == 0.0
                free = CodeAction(code="", metadata={"request": "release", **saved.info})
                assert env.step(free).reward == 0.0
                total += float(env.step(CodeAction(code=action)).reward or 0.0)
                if score_requests or action == actions[-1]:
                    answer = env.step(ask)
                    assert answer.reward == 0.0
            except EnvironmentStateError:
                assert env.step(ask).reward == 0.0
                break
    finally:
        env.close()
    return total


PREFIX = ("touch /a",)
ADAPTERS: dict[str, Callable[[list[str], str], float]] = {
    "a single environment": _single,
    "a vector environment": _vector,
    "Pool": _pool,
    "TRL": _trl,
    "SkyRL": _skyrl,
    "OpenEnv": _openenv,
    "TRL after a prefix": lambda actions, mode: _trl(actions, mode, PREFIX),
    "SkyRL after a prefix": lambda actions, mode: _skyrl(actions, mode, PREFIX),
    "OpenEnv with score requests": lambda actions, mode: _openenv(actions, mode, True),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_no_sequence_is_worth_more_than_the_task(adapter: str, mode: str) -> None:
    for seed in SEEDS:
        actions = _sequence(seed)
        total = ADAPTERS[adapter](actions, mode)
        assert total <= WORTH, (seed, actions)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_solution_is_worth_the_task_in_every_mode(adapter: str) -> None:
    for mode in MODES:
        assert ADAPTERS[adapter](["true", SOLVE, "submit"], mode) == pytest.approx(1.0)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_solution_is_worth_the_task_at_the_turn_limit(adapter: str) -> None:
    for mode in MODES:
        actions = [SOLVE, *["true"] * (LIMIT - 2), "touch /b"]
        assert ADAPTERS[adapter](actions, mode) == pytest.approx(1.0), mode


def test_the_turn_limit_ends_a_task_without_a_gold_unscored() -> None:
    unscored = Dataset("files", "bash", (Task("files/0", "Make /a"),))
    with intercode.make("bash", dataset=unscored, max_turns=2) as env:
        env.reset()
        env.execute("touch /a")
        last = env.execute("ls /a")
        assert (last.observation, last.reward, last.score) == ("/a\n", 0.0, None)
        assert last.truncated and not last.terminated
        env.reset()
        with pytest.raises(GoldError):
            env.execute("submit")


@contextmanager
def _served(mode: str) -> Iterator[Any]:
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    from openenv.core.generic_client import GenericEnvClient

    from support.serving import serving

    options = ("--score-requests", "--set", f"reward_mode={mode}", "--max-turns", str(LIMIT))
    with (
        serving("-m", "intercode", "serve", "bash", *options) as url,
        GenericEnvClient(base_url=url).sync() as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_client_of_a_server_earns_no_more(mode: str) -> None:
    with _served(mode) as client:
        for seed in SEEDS:
            client.reset(seed=seed, task=0)
            total, over = 0.0, False
            for action in _sequence(seed):
                if not over:
                    result = client.step({"code": action})
                    total, over = total + float(result.reward or 0.0), result.done
                asked = client.step({"code": action, "metadata": {"request": "score"}})
                assert asked.reward == 0.0
            assert total <= WORTH


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("environment", ["bash", "sql", "python", "ctf"])
def test_branches_from_a_snapshot_are_each_worth_no_more(environment: str, mode: str) -> None:
    """The rewards along each branch are added up, as in a search with ``restore``."""
    for seed in SEEDS:
        chance = random.Random(seed)
        with intercode.make(environment, reward_mode=mode) as env:
            env.reset(seed=seed, options={"task": seed})
            flag = f"submit {env.task.flag}" if environment == "ctf" else "submit"
            choices = [env.task.solution or "", "echo x", "submit flag{wrong}", flag]
            if environment != "ctf":
                choices.remove("submit flag{wrong}")
            total, saved = 0.0, [(0.0, env.snapshot())]
            for _ in range(10):
                kind = chance.choice(("act", "act", "save", "undo", "ask"))
                if kind == "save":
                    saved.append((total, env.snapshot()))
                elif kind == "undo":
                    total, snapshot = chance.choice(saved)
                    env.restore(snapshot)
                elif kind == "ask":
                    env.score()
                else:
                    result = env.execute(chance.choice(choices))
                    total += result.reward
                    assert total <= WORTH, (seed, environment)
                    if result.done:
                        total, snapshot = chance.choice(saved)
                        env.restore(snapshot)
            for _, snapshot in saved:
                snapshot.close()


@pytest.mark.parametrize("mode", MODES)
def test_served_branches_are_each_worth_no_more(mode: str) -> None:
    """Snapshots, restored in the same and in another session, and prefixes: the rewards along each
    branch, and those that a session is paid between two resets."""
    pytest.importorskip("openenv", reason="pip install 'intercode-gym[openenv]'")
    from intercode.integrations.openenv.server import CodeAction, ServedEnv, ServedSnapshots

    held = ServedSnapshots(32)
    sessions = [
        ServedEnv(lambda: intercode.make("bash", dataset=FILES, reward_mode=mode), snapshots=held)
        for _ in range(2)
    ]
    save = CodeAction(code="", metadata={"request": "snapshot"})
    try:
        for seed in SEEDS:
            chance = random.Random(seed)
            saved: list[tuple[float, str]] = []
            branch, paid = [0.0, 0.0], [0.0, 0.0]  # of each session
            for session in sessions:
                session.reset(seed=1, task=0, prefix=["touch /a"] * (seed % 2))
            for _ in range(14):
                i = chance.randrange(2)
                kind = chance.choice(("act", "act", "act", "save", "restore"))
                live = sessions[i].state.live
                if kind == "save" and live:
                    saved.append((branch[i], sessions[i].step(save).info["snapshot"]))
                elif kind == "act" and live:
                    code = chance.choice((*ACTIONS, SOLVE, SOLVE))
                    reward = float(sessions[i].step(CodeAction(code=code)).reward or 0.0)
                    branch[i], paid[i] = branch[i] + reward, paid[i] + reward
                    assert branch[i] <= WORTH and paid[i] <= WORTH, seed
                elif saved and (kind == "restore" or not live):
                    branch[i], key = chance.choice(saved)
                    paid[i] = 0.0
                    sessions[i].reset(snapshot=key)
            for session in sessions:
                held.release(session._env)
    finally:
        for session in sessions:
            session.close()
        held.prefixes.close()


@pytest.mark.parametrize("mode", MODES)
def test_wrong_flags_earn_nothing(mode: str) -> None:
    facade = CtfEnvironment(reward_mode=mode)
    facade.reset(task=0, seed=3)
    for _ in range(3):
        facade.bash("submit flag{wrong}")
    facade.bash(f"submit {facade._env.task.flag}")
    assert facade.get_reward() == 1.0


def test_inspects_scorer_does_not_add_up_rewards() -> None:
    pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")
    from inspect_ai.model import ModelName
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState

    from intercode.integrations.inspect import reward

    state = TaskState(ModelName("mockllm/model"), "1", 1, "query", [])
    scores = (Score(0.7), Score(1.0), None, Score(1.0))
    steps = tuple(Step("pwd", "", score=one) for one in scores)
    episode = Trajectory("1", 0, "query", steps, end="submitted")
    state.store.set("intercode", trajectory_to_row(episode))
    score = asyncio.run(reward()(state, Target("")))  # type: ignore[arg-type]
    assert score is not None and score.value == {"reward": 1.0, "success": 1.0}
