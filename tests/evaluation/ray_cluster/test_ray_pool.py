"""The pool over nodes: it works as the local pool, keeps groups on one node, and survives lost
nodes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

import intercode
from intercode import Pool, datasets
from intercode.core.errors import EnvironmentStateError, SandboxLostError, UsageError
from intercode.core.types import Step
from intercode.environments import PooledEpisode
from intercode.environments.ray.node_env import NodeEnv
from support.raylets import Raylets, left_of
from support.snippets import Reader, read_snippets

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]
STARTER = datasets.load("starter")
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 180))


def node_of(episode: PooledEpisode) -> str:
    assert isinstance(episode.env, NodeEnv) and episode.env.host is not None
    return str(episode.env.host.node)


def test_episodes_are_as_those_of_the_environment(raylets: Raylets) -> None:
    async def play(pool: Pool, i: int) -> list[Any]:
        async with pool.episode(task=i, seed=i) as episode:
            turns = [await episode.step(a) for a in (STARTER.tasks[i].gold or "", "submit")]
            return [episode.query, *(list(turn.as_gymnasium()) for turn in turns)]

    async def all_of_them() -> list[list[Any]]:
        async with Pool("bash", 4, runner=f"ray:{raylets.address}") as pool:
            with intercode.make("bash") as env:
                assert pool.result_metadata() == env.result_metadata()
            return await asyncio.gather(*(play(pool, i) for i in range(12)))

    for i, found in enumerate(run(all_of_them())):
        with intercode.make("bash") as env:
            query, _ = env.reset(seed=i, options={"task": i})
            alone = [list(env.step(a)) for a in (STARTER.tasks[i].gold, "submit")]
        assert found == [query, *alone]


def test_the_pool_of_the_page_runs(raylets: Raylets, tmp_path: Path) -> None:
    """docs/ray.md, on a smaller cluster."""
    root = Path(__file__).parents[3]
    (snippet,) = [
        s for s in read_snippets((root / "docs/ray.md").read_text("utf-8")) if "ray:auto" in s.body
    ]
    body = snippet.body.replace("ray:auto", f"ray:{raylets.address}").replace("size=256", "size=2")
    reader = Reader(tmp_path, root)
    reader.run(replace(snippet, body=body))
    assert isinstance(reader.names["turn"], Step)


def test_groups_time_outs_and_cancelling(raylets: Raylets) -> None:
    async def work() -> None:
        async with Pool("bash", 3, runner=f"ray:{raylets.address}", timeout=1e6) as pool:
            async with pool.group(3, 3, seed=5, prefix=["cd /tmp; x=7; echo made > f"]) as group:
                seen = await asyncio.gather(*(e.step("pwd; echo $x; cat f") for e in group))
                assert [t.observation for t in seen] == ["/tmp\n7\nmade\n"] * 3
                await group[0].step("echo mine > f")
                assert (await group[1].step("cat f")).observation == "made\n"
                assert (await group[2].score()).value < 1
                with pytest.raises(TimeoutError):
                    await group[0].step("sleep 1000000", timeout=0.5)
                with pytest.raises(EnvironmentStateError, match="took longer"):
                    await group[0].step("true")
                waiting = asyncio.create_task(group[1].step("sleep 1000000"))
                await asyncio.sleep(0.3)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            async with pool.episode(task=0) as episode:  # all slots are free again
                assert (await episode.step("echo on")).observation == "on\n"
            with pytest.raises(UsageError, match="a group of 4 in a pool of 3"):
                await pool.begin_group(0, 4)

    run(work())


def test_a_process_that_dies_on_a_live_node_is_started_again(raylets: Raylets) -> None:
    async def work() -> None:
        async with Pool("bash", 2, runner=f"ray:{raylets.address}") as pool:
            lost = await pool.begin(0)
            (worker,) = raylets.workers(raylets.nodes[0])
            families = raylets.families()
            os.kill(worker, signal.SIGKILL)
            with pytest.raises(SandboxLostError, match="was lost"):
                await lost.step("echo here")
            await lost.close()
            async with pool.episode(1) as episode:
                assert (await episode.step("echo again")).observation == "again\n"
            assert left_of(families) == []

    run(work())


def test_a_lost_node_costs_its_episodes_only(raylets: Raylets) -> None:
    second = raylets.add(cpus=2)

    async def work() -> None:
        async with Pool("bash", 4, runner=f"ray:{raylets.address}") as pool:
            episodes = [await pool.begin(i) for i in range(4)]
            # until both nodes are ready for all of them
            while sorted(Counter(map(node_of, episodes)).values()) != [2, 2]:
                for episode in episodes:
                    await episode.close()
                episodes = [await pool.begin(i) for i in range(4)]
            families = raylets.families()
            await asyncio.to_thread(raylets.kill, second)
            found = await asyncio.gather(
                *(e.step("echo here") for e in episodes), return_exceptions=True
            )
            lost = [e for e in found if isinstance(e, SandboxLostError)]
            assert len(lost) == 2
            assert [t.observation for t in found if isinstance(t, Step)] == ["here\n"] * 2
            for episode in episodes:
                await episode.close()
            # all on the other node
            again = await asyncio.gather(*(pool.begin(i) for i in range(4)))
            told = await asyncio.gather(*(e.step("echo again") for e in again))
            assert [t.observation for t in told] == ["again\n"] * 4
        assert left_of(families) == []

    run(work())
