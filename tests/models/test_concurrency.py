"""Adaptive concurrency: growth, halving, order, and an overloaded endpoint."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intercode.models import Message, OpenAIModel
from intercode.models.transport.concurrency import INITIAL_LIMIT, ConcurrencyLimiter
from intercode.models.transport.retry import RetryPolicy
from support.faulty_endpoint import FaultyEndpoint, ok, status

ASK: list[Message] = [{"role": "user", "content": "hello"}]


def test_it_doubles_each_round_until_the_first_sign_of_overload() -> None:
    async def rounds() -> list[int]:
        pace = ConcurrencyLimiter(1000, 4)
        limits = []
        for crowded in (False, False, True, False):
            slots = [await pace.acquire() for _ in range(int(pace.limit))]
            for n, slot in enumerate(slots):
                pace.release(slot, answered=not crowded, overloaded=crowded and n < 5)
            limits.append(int(pace.limit))
        return limits

    # the limit is halved once in the round of 16, not five times; then it grows by about 1 per
    # round
    assert asyncio.run(rounds()) == [8, 16, 8, 8]


def test_it_stays_between_one_and_the_bound() -> None:
    async def drive() -> tuple[float, float]:
        pace = ConcurrencyLimiter(3, 3)
        for _ in range(20):
            pace.release(await pace.acquire(), answered=True)
        high = pace.limit
        for _ in range(20):
            pace.release(await pace.acquire(), answered=False, overloaded=True)
        return high, pace.limit

    assert asyncio.run(drive()) == (3, 1)
    assert ConcurrencyLimiter(1000).limit == INITIAL_LIMIT
    assert ConcurrencyLimiter(10).limit == 10


def test_waiting_requests_are_admitted_in_order_and_cancellation_frees_the_slot() -> None:
    async def drive() -> list[int]:
        pace, order = ConcurrencyLimiter(1, 1), list[int]()

        async def one(number: int) -> None:
            slot = await pace.acquire()
            order.append(number)
            await asyncio.sleep(0)
            pace.release(slot, answered=True)

        first = await pace.acquire()
        tasks = [asyncio.create_task(one(n)) for n in range(5)]
        await asyncio.sleep(0)
        assert pace.waiting == 5
        tasks[1].cancel()
        pace.release(first, answered=True)
        tasks[0].cancel()  # the task has already got its slot
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (pace.in_flight, pace.waiting) == (0, 0)
        return order

    assert asyncio.run(drive()) == [2, 3, 4]


@pytest.mark.slow
def test_the_limit_adapts_to_an_endpoint_that_takes_four_requests_at_once() -> None:
    """The endpoint refuses requests above four; the client finds roughly that number.

    A request is answered when the next one was refused, or when none is still on its way.
    """
    changed, inside, refused = threading.Condition(), [0], [0]

    def play(handler: Any) -> None:
        with changed:
            inside[0] += 1
            busy, seen = inside[0] > 4, refused[0]
            refused[0] += busy
            changed.notify_all()
            while not busy and refused[0] == seen and inside[0] < model.traffic().in_flight:
                changed.wait(0.02)
        (status(429) if busy else ok())(handler)
        with changed:
            inside[0] -= 1

    retry = RetryPolicy(max_attempts=100, initial_delay=0.005, max_delay=0.02)
    with FaultyEndpoint(play) as server, OpenAIModel("m", server.base_url, retry=retry) as model:
        with ThreadPoolExecutor(40) as threads:
            list(threads.map(lambda _: model.complete(ASK), range(200)))
        traffic = model.traffic()
    assert traffic.answers == 200
    assert traffic.limit <= 12
    assert len(server.requests) < 200 + 400


def test_the_limit_never_exceeds_its_bound() -> None:
    changed, inside, most = threading.Condition(), [0], [0]

    def play(handler: Any) -> None:
        with changed:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            changed.notify_all()
            for _ in range(250):  # a model that allows fewer is answered, too
                if most[0] >= 3 and inside[0] >= model.traffic().in_flight:
                    break
                changed.wait(0.02)
            inside[0] -= 1
        ok()(handler)

    with FaultyEndpoint(play) as server, OpenAIModel("m", server.base_url, concurrency=3) as model:
        with ThreadPoolExecutor(12) as threads:
            list(threads.map(lambda _: model.complete(ASK), range(30)))
        assert model.metadata()["concurrency"] == 3
    assert most[0] == 3
