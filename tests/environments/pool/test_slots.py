"""Who gets the slots of a pool, and who would wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.environments.base.pool.slots import Slots


async def _start(call: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a call, and return when it has its slots or waits for them."""
    task = asyncio.create_task(call)
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def _held_by(*parents: str, size: int) -> tuple[Slots, set[str]]:
    """Return slots of which each parent has one."""
    holders = set(parents)
    slots = Slots(size, holders)
    await slots.acquire(len(parents))
    return slots, holders


def test_requests_are_served_in_their_order_and_whole() -> None:
    async def work() -> None:
        slots, _ = await _held_by("a", "b", size=3)
        three, one = await _start(slots.acquire(3)), await _start(slots.acquire(1))
        assert not three.done() and not one.done() and slots.free == 1
        slots.release(2)
        await three
        assert not one.done()
        slots.release(3)
        await one
        assert slots.free == 2

    asyncio.run(work())


def test_a_fork_goes_before_a_group_that_needs_the_slot_of_its_parent() -> None:
    async def work() -> None:
        slots, _ = await _held_by("a", size=3)
        group = await _start(slots.acquire(3))
        await slots.acquire(2, "a")
        slots.release(3)
        await group

    asyncio.run(work())


def test_forks_that_fit_go_before_forks_that_wait_for_them() -> None:
    async def work() -> None:
        slots, _ = await _held_by("a", "b", size=6)
        large = await _start(slots.acquire(5, "a"))
        await slots.acquire(2, "b")
        slots.release(3)
        await large

    asyncio.run(work())


def test_the_last_to_wait_is_refused_when_nobody_else_can_free_a_slot() -> None:
    async def work() -> None:
        slots, holders = await _held_by("a", "b", "c", size=5)
        first, last = [await _start(slots.acquire(4, parent)) for parent in ("a", "b")]
        assert not first.done() and not last.done()  # "c" may end
        holders.remove("c")
        slots.release()
        with pytest.raises(UsageError, match="at least 6"):
            await last
        assert not first.done()
        holders.remove("b")
        slots.release()
        await first

    asyncio.run(work())


def test_a_parent_without_a_slot_is_not_counted() -> None:
    async def work() -> None:
        slots, _ = await _held_by("a", size=3)
        gone = await _start(slots.acquire(3, "gone"))
        last = await _start(slots.acquire(3, "a"))
        with pytest.raises(UsageError, match="at least 4"):
            await last
        slots.release()
        await gone

    asyncio.run(work())


def test_forks_that_nobody_closes_let_other_forks_wait() -> None:
    async def work() -> None:
        slots, holders = await _held_by("a", "b", size=4)
        await slots.acquire(2, "a")
        holders |= {"a1", "a2"}
        second, behind = await _start(slots.acquire(2, "b")), await _start(slots.acquire(1))
        slots.release()
        holders.remove("a1")
        await _start(asyncio.sleep(0))
        assert not second.done() and not behind.done() and slots.free == 1
        slots.release()
        holders.remove("a2")
        await second
        slots.release()
        await behind

    asyncio.run(work())


def test_a_cancelled_request_leaves_its_slots_to_the_next() -> None:
    async def work() -> None:
        slots, _ = await _held_by("a", size=2)
        waiting, behind = await _start(slots.acquire(2)), await _start(slots.acquire(1))
        waiting.cancel()
        await behind
        granted = await _start(slots.acquire(1))
        slots.release()
        granted.cancel()  # at the moment in which it gets its slot
        with pytest.raises(asyncio.CancelledError):
            await granted
        assert slots.free == 1

    asyncio.run(work())


def test_who_waits_is_refused_at_the_end() -> None:
    async def work() -> None:
        slots, _ = await _held_by("a", size=1)
        waiting = await _start(slots.acquire(1))
        slots.refuse_all("the pool is closed")
        with pytest.raises(EnvironmentStateError, match="the pool is closed"):
            await waiting

    asyncio.run(work())
