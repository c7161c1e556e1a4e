"""Threads for requests of asyncio's sandboxes, which block until a supervisor answers.

All sandboxes of the process share them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, TypeVar

from intercode_sandbox.platforms.forks import ForkSafeLock

MAX_THREADS = 8
"""Threads for requests of all sandboxes of this process."""
_COMMAND_THREADS = 4
"""More threads, which start and end commands only, so that no long request delays a time limit."""

T = TypeVar("T")
_Use = Literal["requests", "commands"]
_executors: dict[_Use, ThreadPoolExecutor] = {}
_owner_pid = 0
_lock = ForkSafeLock()


def _submit(work: Callable[[], T], use: _Use = "requests") -> Future[T]:
    """Start a request in the threads that all sandboxes of this process share."""
    global _owner_pid
    with _lock:
        if _owner_pid != os.getpid():  # a forked child has no such threads
            _executors.clear()
            _owner_pid = os.getpid()
        if use not in _executors:
            threads = MAX_THREADS if use == "requests" else _COMMAND_THREADS
            _executors[use] = ThreadPoolExecutor(threads, f"intercode-sandbox-{use}")
        return _executors[use].submit(work)


async def in_executor(work: Callable[[], T], use: _Use = "requests") -> T:
    """Run a request. It is done also if the caller is cancelled meanwhile, unless it has not
    begun."""
    return await asyncio.wrap_future(_submit(work, use))


async def finish_in_executor(work: Callable[[], T], use: _Use = "requests") -> T:
    """Run a request that is done even if the caller is cancelled before it has begun."""
    return await asyncio.shield(asyncio.wrap_future(_submit(work, use)))


async def obtain(
    work: Callable[[], T], release: Callable[[T], object], use: _Use = "requests"
) -> T:
    """Run a request whose result has to be released. If the caller is cancelled meanwhile, it
    is released as soon as there is one."""

    def release_result(done: Future[T]) -> None:
        if not done.cancelled() and done.exception() is None:
            _submit(lambda: release(done.result()), use)

    future = _submit(work, use)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        future.add_done_callback(release_result)
        raise
