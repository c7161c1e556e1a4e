"""Locks of modules, in a child that is forked while another thread holds one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from types import ModuleType

import pytest

from intercode.core import python_syntax
from intercode_sandbox.api import forwarding, request_threads
from intercode_sandbox.landlock import open as factory
from intercode_sql.server import engine


async def _request() -> None:
    await request_threads.in_executor(lambda: None)


@pytest.mark.parametrize(
    ("module", "lock", "use"),
    [
        (python_syntax, "_parse_lock", lambda: python_syntax.parse_python("1")),
        (forwarding, "_lock", forwarding.event_loop),
        (request_threads, "_lock", lambda: asyncio.run(_request())),
        (factory, "_clean_up_lock", factory._clean_up_once),
        (engine, "_shared_servers_lock", engine._close_all),
    ],
    ids=["parser", "forwarding", "requests", "leftovers", "servers"],
)
def test_a_forked_child_does_not_wait_for_a_thread_that_it_does_not_have(
    module: ModuleType, lock: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory, "remove_leftovers", lambda: None)
    with getattr(module, lock):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends the child if it waits for the lock
            try:
                use()
                os._exit(0)
            finally:
                os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
