"""One event loop in the background, shared by all the threads that ask models something.

It starts with the first question and ends when nobody holds it any more, or with the process. A
child after a fork starts its own; what it inherited of its parent's is left alone.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
PATIENCE = 5.0
"""Seconds that the end of the loop may take."""


class Holder(Protocol):
    """What lives on the loop, and is closed there when the loop ends."""

    async def aclose(self) -> None:
        """Let go of what is held open."""
        ...


@dataclass(eq=False)
class _Background:
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    holders: set[Holder] = field(default_factory=set)
    running: int = 0


_lock = threading.Lock()
_current: _Background | None = None
_abandoned: list[_Background] = []  # of a parent process: to collect it would close its sockets
_watching = False


def run(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns or raises, done on the loop while this thread waits.

    An interrupt of this thread cancels the work.
    """
    background = _enter()
    try:
        future = asyncio.run_coroutine_threadsafe(work, background.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
    finally:
        _leave(background)


async def arun(work: Coroutine[Any, Any, T]) -> T:
    """As ``run``, for a caller with an event loop of its own, which goes on meanwhile."""
    background = _enter()
    try:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, background.loop))
    finally:
        _leave(background)


def hold(holder: Holder) -> None:
    """Keep the loop until ``release``. Called on the loop."""
    with _lock:
        if _current is not None:
            _current.holders.add(holder)


def release(holder: Holder) -> None:
    """Close a holder, on its loop; the last one ends the loop. Does nothing after a fork."""
    with _lock:
        background = _current
        if background is None or holder not in background.holders:
            return
    run(holder.aclose())
    with _lock:
        background.holders.discard(holder)
        last = not background.holders and not background.running
        if last:
            _forget(background)
    if last:
        _stop(background)


def _enter() -> _Background:
    """The loop, started where there is none, which does not end before ``_leave``."""
    global _current, _watching
    with _lock:
        if _current is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="intercode-models", daemon=True)
            _current = _Background(loop, thread)
            thread.start()
        if not _watching:
            _watching = True
            atexit.register(_end)
            os.register_at_fork(after_in_child=_forked)
        _current.running += 1
        return _current


def _leave(background: _Background) -> None:
    with _lock:
        background.running -= 1


def _forget(background: _Background) -> None:
    global _current
    if _current is background:
        _current = None


def _end() -> None:
    """At the end of the process: close what is open, then the loop.

    Where threads still wait for answers (they are daemons, or the process would not end) the loop
    only stops, so that these do not wake up to an error while everything around them ends.
    """
    with _lock:
        background = _current
        if background is None:
            return
        _forget(background)
    if background.running:
        background.loop.call_soon_threadsafe(background.loop.stop)
        background.thread.join(PATIENCE)
        return
    for holder in list(background.holders):
        future = asyncio.run_coroutine_threadsafe(holder.aclose(), background.loop)
        try:
            future.result(PATIENCE)
        except (TimeoutError, OSError, RuntimeError):
            pass
    _stop(background)


async def _cancel_the_rest() -> None:
    """Tasks that libraries have left running."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=PATIENCE / 2)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _stop(background: _Background) -> None:
    ended = asyncio.run_coroutine_threadsafe(_cancel_the_rest(), background.loop)
    try:
        ended.result(PATIENCE)
    except (TimeoutError, OSError, RuntimeError):
        pass
    background.loop.call_soon_threadsafe(background.loop.stop)
    background.thread.join(PATIENCE)
    if not background.thread.is_alive():
        background.loop.close()


def _forked() -> None:
    global _current, _lock
    _lock = threading.Lock()
    if _current is not None:
        _abandoned.append(_current)
        _current = None
