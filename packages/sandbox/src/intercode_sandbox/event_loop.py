"""One background event loop, shared by all threads that send HTTP requests or use remote sandboxes.

It starts with the first request and ends when its last resource is closed, or with the process. A
child process starts its own loop after a fork and leaves the inherited one alone.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from intercode_sandbox.platforms.forks import run_after_fork

T = TypeVar("T")
SHUTDOWN_TIMEOUT = 5.0
"""Seconds that the end of the loop may take."""


class LoopResource(Protocol):
    """An object that lives on the loop and is closed there when the loop ends."""

    async def aclose(self) -> None:
        """Release the resource."""
        ...


@dataclass(eq=False)
class _EventLoop:
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    resources: set[LoopResource] = field(default_factory=set)
    active_calls: int = 0


_lock = threading.Lock()
_current: _EventLoop | None = None
_inherited: list[_EventLoop] = []  # from a parent process; collecting it would close its sockets
_hooks_installed = False


def run_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on the loop while this thread waits, and return its result.

    An interrupt of this thread cancels the work.
    """
    background = _acquire_loop()
    try:
        future = asyncio.run_coroutine_threadsafe(work, background.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
    finally:
        _release_loop(background)


async def await_on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Do what ``run_on_loop`` does, without blocking the caller's own event loop."""
    background = _acquire_loop()
    try:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, background.loop))
    finally:
        _release_loop(background)


def add_resource(holder: LoopResource) -> None:
    """Keep the loop running until ``close_resource``. Call this on the loop."""
    with _lock:
        if _current is not None:
            _current.resources.add(holder)


def close_resource(holder: LoopResource) -> None:
    """Close a resource on its loop. The last one ends the loop. Does nothing after a fork."""
    with _lock:
        background = _current
        if background is None or holder not in background.resources:
            return
    run_on_loop(holder.aclose())
    with _lock:
        background.resources.discard(holder)
        last = not background.resources and not background.active_calls
        if last:
            _clear_current(background)
    if last:
        _stop_loop(background)


def _acquire_loop() -> _EventLoop:
    """Return the loop, started if necessary. It does not end before ``_release_loop``."""
    global _current, _hooks_installed
    with _lock:
        if _current is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=loop.run_forever, name="intercode-event-loop", daemon=True
            )
            _current = _EventLoop(loop, thread)
            thread.start()
        if not _hooks_installed:
            _hooks_installed = True
            atexit.register(_shut_down_at_exit)
            run_after_fork(_reset_after_fork)
        _current.active_calls += 1
        return _current


def _release_loop(background: _EventLoop) -> None:
    with _lock:
        background.active_calls -= 1


def _clear_current(background: _EventLoop) -> None:
    global _current
    if _current is background:
        _current = None


def _shut_down_at_exit() -> None:
    """Close all resources and the loop at the end of the process.

    If threads still wait for answers (daemon threads, or the process would not end), the loop is
    only stopped, so that they do not wake up with an error during shutdown.
    """
    with _lock:
        background = _current
        if background is None:
            return
        _clear_current(background)
    if background.active_calls:
        background.loop.call_soon_threadsafe(background.loop.stop)
        background.thread.join(SHUTDOWN_TIMEOUT)
        return
    for holder in list(background.resources):
        future = asyncio.run_coroutine_threadsafe(holder.aclose(), background.loop)
        try:
            future.result(SHUTDOWN_TIMEOUT)
        except (TimeoutError, OSError, RuntimeError):
            pass
    _stop_loop(background)


async def _cancel_remaining_tasks() -> None:
    """Cancel tasks that libraries have left running."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=SHUTDOWN_TIMEOUT / 2)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _stop_loop(background: _EventLoop) -> None:
    ended = asyncio.run_coroutine_threadsafe(_cancel_remaining_tasks(), background.loop)
    try:
        ended.result(SHUTDOWN_TIMEOUT)
    except (TimeoutError, OSError, RuntimeError):
        pass
    background.loop.call_soon_threadsafe(background.loop.stop)
    background.thread.join(SHUTDOWN_TIMEOUT)
    if not background.thread.is_alive():
        background.loop.close()


def _reset_after_fork() -> None:
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None:
        _inherited.append(_current)
        _current = None
