"""The pool: slots, groups, time-outs, and closing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

import intercode
from intercode import datasets
from intercode.core.errors import (
    DatabaseLostError,
    EnvironmentStateError,
    SandboxLostError,
    UnknownNameError,
    UsageError,
)
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.pool import Pool, PooledEpisode
from intercode.environments.base.pool import pool as pool_module
from support import traces
from support.fake_clock import FakeClock
from support.sandboxes import eventually, eventually_async

pytestmark = pytest.mark.sandbox
STARTER = datasets.load("starter")
T = TypeVar("T")
GO = "/tmp/go"
WAIT = f"until [ -e {GO} ]; do sleep 0.05; done"


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 120))


@pytest.mark.slow
def test_episodes_give_the_results_of_the_environment() -> None:
    tasks = range(24)

    async def play(pool: Pool, i: int) -> list[Any]:
        async with pool.episode(task=i, seed=i) as episode:
            turns = [await episode.step(a) for a in (STARTER.tasks[i].gold or "", "submit")]
            assert episode.done and episode.turns == 2 and episode.reward == turns[-1].reward
            return [episode.query, *(list(turn.as_gymnasium()) for turn in turns)]

    async def all_of_them() -> list[list[Any]]:
        async with Pool("bash", size=8) as pool:
            return await asyncio.gather(*(play(pool, i) for i in tasks))

    for i, found in zip(tasks, run(all_of_them()), strict=True):
        with intercode.make("bash") as env:
            query, _ = env.reset(seed=i, options={"task": i})
            alone = [list(env.step(a)) for a in (STARTER.tasks[i].gold, "submit")]
        assert found == [query, *alone]


def test_a_further_episode_waits_for_a_slot() -> None:
    async def work() -> None:
        async with Pool("bash", size=2) as pool:
            first, _second = await pool.begin(0), await pool.begin(1)
            third = asyncio.create_task(pool.begin(2))
            for _ in range(20):  # a free slot is taken at once
                await asyncio.sleep(0)
            assert not third.done() and pool.live == 2
            await first.close()
            assert (await third).query == STARTER.tasks[2].query
            assert pool.live == 2

    run(work())


@pytest.mark.slow
def test_no_episode_waits_for_a_slower_one() -> None:
    async def work() -> None:
        async with Pool("bash", size=2) as pool:
            slow, quick = await pool.begin(0), await pool.begin(1)
            waiting = asyncio.create_task(slow.step(f"{WAIT}; echo waited"))
            for i in range(5):
                assert (await quick.step(f"echo {i}")).observation == f"{i}\n"
            assert not waiting.done()
            slow.env.sandbox.write(GO, b"")
            assert (await waiting).observation == "waited\n"

    run(work())


def test_a_group_starts_in_one_state() -> None:
    async def work() -> None:
        async with Pool("bash", size=4, reward_mode="delta") as pool:
            prefix = ["cd /tmp; x=7; echo made > f", "echo second"]
            async with pool.group(3, 4, seed=5, prefix=prefix) as group:
                assert [e.turns for e in group] == [2] * 4
                assert [e.observation for e in group] == ["second\n"] * 4
                results = await asyncio.gather(*(e.step("pwd; echo $x; cat f") for e in group))
                assert [t.observation for t in results] == ["/tmp\n7\nmade\n"] * 4
                await group[0].step("echo mine > f")
                assert (await group[1].step("cat f")).observation == "made\n"
            async with pool.group(None, 4, seed=5) as group:
                assert len({e.task.id for e in group}) == 1
                assert len({e.query for e in group}) == 1
            assert pool.live == 0 or await _drained(pool)
            with pytest.raises(UsageError, match="a group of 5 in a pool of 4"):
                await pool.begin_group(0, 5)
            with pytest.raises(UsageError, match="the prefix ends the episode"):
                await pool.begin_group(0, 2, prefix=["submit"])

    run(work())


async def _drained(pool: Pool) -> bool:
    while pool.live:
        await asyncio.sleep(0.01)
    return True


def test_a_running_episode_is_forked() -> None:
    async def work() -> None:
        async with Pool("bash", size=3, reward_mode="delta") as pool:
            episode = await pool.begin(0, seed=1)
            await episode.step("x=$RANDOM; echo $x")
            forks = await pool.fork(episode, 2)
            values = [(await e.step("echo $x")).observation for e in (episode, *forks)]
            assert len(set(values)) == 1 and [e.turns for e in forks] == [2, 2]
            assert pool.live == 3
            with pytest.raises(UsageError, match="an episode and 3 forks of it in a pool of 3"):
                await pool.fork(episode, 3)
            await episode.submit()
            await asyncio.gather(*(fork.close() for fork in forks))
            with pytest.raises(EnvironmentStateError):
                await pool.fork(episode, 1)

    asyncio.run(work())


def test_forks_that_wait_for_each_other_are_refused() -> None:
    async def use(pool: Pool, task: int, both: asyncio.Barrier) -> list[str]:
        async with pool.episode(task) as episode:
            await both.wait()
            forks = await pool.fork(episode, 2)
            try:
                return [fork.task.id for fork in forks]
            finally:
                await asyncio.gather(*(fork.close() for fork in forks))

    async def work(size: int) -> list[list[str] | BaseException]:
        both = asyncio.Barrier(2)
        async with Pool("bash", size=size) as pool:
            uses = (use(pool, i, both) for i in range(2))
            return await asyncio.gather(*uses, return_exceptions=True)

    ids = [[task.id] * 2 for task in STARTER.tasks[:2]]
    (refused,) = (result for result in run(work(3)) if result not in ids)
    assert isinstance(refused, UsageError) and "at least 4" in str(refused)
    assert run(work(4)) == ids


def test_two_groups_that_do_not_fit_take_turns() -> None:
    async def use(pool: Pool, task: int) -> str:
        async with pool.group(task, 3) as group:
            await asyncio.gather(*(e.step("true") for e in group))
            return group[0].task.id

    async def work() -> list[str]:
        async with Pool("bash", size=4) as pool:
            return await asyncio.gather(*(use(pool, i) for i in range(6)))

    assert run(work()) == [t.id for t in STARTER.tasks[:6]]


@pytest.mark.parametrize("way", ["timeout", "cancel", "close"])
def test_a_step_that_exceeds_its_time_ends_at_once(way: str) -> None:
    async def work() -> None:
        async with Pool("bash", size=1, timeout=1e6) as pool:
            episode = await pool.begin(0)
            await _ended(episode, "sleep 1000000", way, SandboxLostError)
            again = await pool.begin(1)
            assert (await again.step("echo on")).observation == "on\n"
            with pytest.raises(EnvironmentStateError, match="over"):
                await episode.step("pwd")

    run(work())


async def _ended(episode: PooledEpisode, action: str, way: str, lost: type[Exception]) -> None:
    """End a long action in one of three ways."""
    if way == "timeout":
        with pytest.raises(TimeoutError, match=r"longer than 0\.3 s: the episode is over"):
            await episode.step(action, timeout=0.3)
        return
    step = asyncio.create_task(episode.step(action))
    await (_runs(episode) if action.startswith("sleep") else asyncio.sleep(0.3))
    await (episode.close() if way == "close" else _cancelled(step))
    if way == "close":
        with pytest.raises(lost):
            await step


async def _runs(episode: PooledEpisode) -> None:
    """Wait until the program that the action starts runs."""
    processes = episode.env.sandbox.processes
    await eventually_async(lambda: "sleep" in " ".join(processes()), "the action runs")


async def _cancelled(step: asyncio.Task[Any]) -> None:
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step


def test_an_idle_episode_is_closed() -> None:
    async def work() -> None:
        clock = FakeClock()
        async with Pool("bash", size=1, idle_timeout=600, clock=clock) as pool:
            forgotten = await pool.begin(0)
            await clock.advance(599)
            await forgotten.step("pwd")
            await clock.advance(599)
            assert not forgotten.closed
            await clock.advance(200)
            other = await pool.begin(1)  # waits until the first episode is closed
            assert pool.idle_closed == 1 and not other.done
            with pytest.raises(EnvironmentStateError, match="nothing happened in it for 600 s"):
                await forgotten.step("pwd")

    run(work())


def test_one_step_at_a_time() -> None:
    async def work() -> None:
        async with Pool("bash", size=1) as pool, pool.episode(0) as episode:
            step = asyncio.create_task(episode.step(WAIT))
            await eventually_async(lambda: episode.busy, "it runs")
            with pytest.raises(EnvironmentStateError, match="one step at a time"):
                await episode.step("pwd")
            episode.env.sandbox.write(GO, b"")
            await step
            await episode.step("submit")
            with pytest.raises(EnvironmentStateError, match="close it and begin another"):
                await episode.step("pwd")

    run(work())


def test_invalid_arguments_occupy_no_slot() -> None:
    async def work() -> None:
        async with Pool("bash", size=1) as pool:
            for _ in range(3):
                with pytest.raises(UsageError, match="out of range"):
                    await pool.begin(10_000)
            with pytest.raises(UsageError, match="at least 1 episode, not 0"):
                await pool.begin_group(0, 0)
            with pytest.raises(UsageError, match="a prefix is a list of actions, not 'ls'"):
                await pool.begin_group(0, 1, prefix="ls")
            episode = await pool.begin(0)
            with pytest.raises(UsageError, match="timeout has to be more than 0"):
                await episode.step("ls", timeout=0)
            with pytest.raises(UsageError, match="an episode and 1 forks of it in a pool of 1"):
                await pool.fork(episode, 1)
            assert episode.query and not episode.done
        with pytest.raises(EnvironmentStateError, match="the pool is closed"):
            await pool.begin(0)

    run(work())
    with pytest.raises(UsageError, match="size is 0"):
        Pool("bash", size=0)
    with pytest.raises(UsageError, match="idle_timeout is 0"):
        Pool("bash", idle_timeout=0)
    with pytest.raises(UnknownNameError, match="did you mean 'bash'"):
        Pool("bahs")
    for runner, message in {
        3: "runner is 3; it must be a name, such as 'local'",
        None: "runner is None",
        "local:foo": "runner = 'local:foo': local has no address",
        "rey": "did you mean 'ray'",
    }.items():
        with pytest.raises(UsageError, match=message):
            Pool("no such environment", runner=runner)  # type: ignore[arg-type]


def test_a_runner_that_cannot_be_opened_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise UsageError("no cluster answers")

    closed = list[InterCodeEnv]()
    monkeypatch.setattr(InterCodeEnv, "close", lambda env: closed.append(env))
    monkeypatch.setattr(pool_module, "open_runner", fail)
    with pytest.raises(UsageError, match="no cluster answers"):
        Pool("sql", 1, runner="ray:127.0.0.1:1")
    assert len(closed) == 1


@pytest.mark.parametrize("way", ["fault", "cancel"])
def test_a_pool_frees_everything_if_its_close_fails_or_is_cancelled(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty() -> None:
        raise RuntimeError("a fault of abort")

    async def work() -> None:
        pool = Pool("bash", size=2)
        episode, other = await pool.begin(0), await pool.begin(1)
        sandboxes = [e.env.sandbox for e in (episode, other)]
        closed, close = set[object](), type(sandboxes[0]).close
        monkeypatch.setattr(
            type(sandboxes[0]), "close", lambda sandbox: (closed.add(sandbox), close(sandbox))
        )
        step = asyncio.create_task(episode.step(WAIT))
        await _runs(episode)
        if way == "fault":
            monkeypatch.setattr(episode.env, "abort", faulty)
        closing = asyncio.create_task(pool.close())
        await asyncio.sleep(0)
        if way == "fault":
            sandboxes[0].write(GO, b"")
            with pytest.raises(RuntimeError, match="a fault of abort"):
                await closing
        else:
            await _cancelled(closing)
            await pool.close()
        assert pool.live == 0 and closed >= {*sandboxes}
        await asyncio.gather(step, return_exceptions=True)

    run(work())


def test_an_environment_that_cannot_be_made_occupies_no_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        async with Pool("bash", size=2) as pool:
            with monkeypatch.context() as broken:
                broken.setattr(pool, "_make_env", lambda: intercode.make("no such environment"))
                for _ in range(3):
                    with pytest.raises(UnknownNameError):
                        await pool.begin_group(0, 2)
            assert len(await pool.begin_group(0, 2)) == 2

    run(work())


@pytest.mark.parametrize("way", ["step", "close"])
def test_a_task_cancelled_while_it_ends_frees_its_slot(way: str) -> None:
    async def work() -> None:
        async with Pool("bash", size=1, timeout=1e6) as pool:
            episode = await pool.begin(0)
            step = asyncio.create_task(episode.step("sleep 1000000"))
            await _runs(episode)
            giving_up = step if way == "step" else asyncio.create_task(episode.close())
            if way == "step":
                step.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await _cancelled(giving_up)
            assert episode.closed
            assert (await (await pool.begin(1)).step("echo on")).observation == "on\n"
            await asyncio.gather(step, return_exceptions=True)

    run(work())


@pytest.mark.namespace_only("SQL needs no sandbox")
@pytest.mark.parametrize("way", ["timeout", "cancel", "close"])
def test_an_sql_statement_is_ended_at_once(way: str) -> None:
    async def work() -> None:
        async with Pool("sql", size=1, timeout=900.0) as pool:
            episode = await pool.begin(0)
            await _ended(episode, "SELECT SLEEP(900)", way, DatabaseLostError)
            again = await pool.begin(1)
            assert (await again.step("SELECT 1")).observation == "[(1,)]"

    run(work())  # waits for 120 s at most


def test_sql_and_python() -> None:
    async def work(environment: str) -> float:
        async with Pool(environment, size=2) as pool, pool.group(0, 2) as group:
            gold = group[0].env.task.solution or ""
            await asyncio.gather(*(e.step(gold) for e in group))
            return sum([(await e.submit()).reward for e in group])

    assert run(work("sql")) == 2.0
    assert run(work("python")) == 2.0


@pytest.mark.slow
@pytest.mark.namespace_only("counts the processes of a launcher")
def test_nothing_outlives_a_killed_consumer() -> None:
    code = (
        "import asyncio, sys\n"
        "from intercode.environments.base.pool import Pool\n"
        "async def main():\n"
        "    async with Pool('bash', size=20) as pool:\n"
        "        episodes = [await pool.begin(i) for i in range(20)]\n"
        "        steps = [asyncio.create_task(e.step('sleep 300')) for e in episodes]\n"
        "        await asyncio.sleep(1)\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.sleep(300)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as consumer:
        assert consumer.stdout is not None and consumer.stdout.readline() == b"ready\n"
        family = traces.family(consumer.pid)
        assert len(family.inits) >= 20
        os.kill(consumer.pid, signal.SIGKILL)
    eventually(lambda: not traces.living((*family.sandboxes, *family.launchers)), "nothing is left")
