"""A pool that plays tasks of families."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from intercode.environments.base.pool import Pool

pytestmark = pytest.mark.sandbox


T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 120))


@pytest.mark.parametrize("task", [None, 0, "families/bash/trail/1/1000005"])
def test_a_group_plays_one_task_of_a_family(task: int | str | None) -> None:
    async def work() -> None:
        async with (
            Pool("bash", size=2, dataset="families:bash/trail[difficulty=1]") as pool,
            pool.group(task, 2, seed=5 if task == 0 else None) as group,
        ):
            assert group[0].task.id == group[1].task.id
            assert task is None or group[0].task.id == "families/bash/trail/1/1000005"
            first, second = await asyncio.gather(*(e.step("ls -R") for e in group))
            assert first.observation == second.observation

    run(work())
