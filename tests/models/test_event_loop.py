"""The event loop of all models: start and end, forks, and interrupts."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from intercode.models import Message, OpenAIModel
from intercode_sandbox import event_loop
from support.faulty_endpoint import FaultyEndpoint, hang, ok

ASK: list[Message] = [{"role": "user", "content": "hello"}]


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "intercode-event-loop"]


LIFE = """
import sys, threading
from intercode.models import OpenAIModel

def threads():
    return [t.name for t in threading.enumerate() if t.name == "intercode-event-loop"]

ask = [{"role": "user", "content": "hello"}]
first, second = (OpenAIModel("m", sys.argv[1]) for _ in range(2))
print(len(threads()))
first.complete(ask)
second.complete(ask)
print(len(threads()))
first.close()
first.close()
print(len(threads()))
second.close()
print(len(threads()))
print(first.complete(ask).text)
first.close()
print(len(threads()))
"""


@pytest.mark.slow
def test_it_starts_with_the_first_request_and_ends_with_the_last_model() -> None:
    with FaultyEndpoint(ok()) as server:
        argv = [sys.executable, "-c", LIFE, server.base_url]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["0", "1", "1", "0", "fine", "0"], done.stderr


def test_a_forked_child_sends_requests_while_the_parent_continues() -> None:
    faults = [ok(str(n)) for n in range(9)]
    with FaultyEndpoint(*faults) as server, OpenAIModel("m", server.base_url) as model:
        model.complete(ASK)
        child = os.fork()
        if child == 0:
            signal.alarm(120)
            try:
                text = model.complete(ASK).text
                model.close()
                os._exit(0 if text.isdigit() and not threads() else 2)
            except BaseException:
                os._exit(3)
        assert os.waitpid(child, 0) == (child, 0)
        assert model.complete(ASK).text.isdigit()
    assert len(server.requests) == 3


PROGRAM = """
import sys, threading
from intercode.models import OpenAIModel
model = OpenAIModel("m", sys.argv[1], timeout=30)
ask = lambda: model.complete([{"role": "user", "content": "x"}])
if sys.argv[2] == "waiting":
    threading.Thread(target=ask, daemon=True).start()
    while not model.traffic().in_flight: pass
else:
    print(ask().text)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["answered", "waiting"])
def test_a_process_ends_cleanly_without_closing_anything(how: str) -> None:
    with FaultyEndpoint(hang if how == "waiting" else ok()) as server:
        run = subprocess.run(
            [sys.executable, "-W", "always", "-c", PROGRAM, server.base_url, how],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert run.stdout == ("fine\n" if how == "answered" else "")
    assert not re.search("Error|Exception|ResourceWarning", run.stderr), run.stderr


def test_asynchronous_callers_are_not_held_up() -> None:
    ticked, answers = threading.Event(), list[bool]()

    async def ask_and_tick(model: OpenAIModel) -> None:
        requests = [asyncio.create_task(model.acomplete(ASK)) for _ in range(20)]
        while model.traffic().in_flight < 20:
            await asyncio.sleep(0)
        ticked.set()
        assert {text.text for text in await asyncio.gather(*requests)} == {"fine"}

    def answer(handler: object) -> None:
        answers.append(ticked.wait(120))  # in vain if the caller's loop waits for the answer
        ok()(handler)  # type: ignore[arg-type]

    with FaultyEndpoint(answer) as server, OpenAIModel("m", server.base_url) as model:
        asyncio.run(ask_and_tick(model))
    assert answers == [True] * 20


def test_a_cancelled_call_frees_its_slot() -> None:
    async def give_up(model: OpenAIModel) -> None:
        call = asyncio.create_task(model.acomplete(ASK))
        while not server.requests:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        while model.traffic().in_flight:
            await asyncio.sleep(0)

    with (
        FaultyEndpoint(hang, ok()) as server,
        OpenAIModel("m", server.base_url, concurrency=1) as model,
    ):
        asyncio.run(give_up(model))
        assert model.complete(ASK).text == "fine"


def test_exceptions_of_the_work_are_raised_by_the_caller() -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        event_loop.run_on_loop(work())
