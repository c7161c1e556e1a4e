"""A box and its session, prepared in the background before they are asked for."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from intercode.environments.base.recycling import release_sandbox
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.base import Session

_WORKERS = 2
_YIELD_SECONDS = 0.0005  # seconds
_MAX_WAITING = (
    64  # places that wait in one process: a thousand environments do not need a thousand more
)


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where code runs: a box and a session in it. ``reuse``: the box may serve again afterwards."""

    sandbox: SupervisedSandbox
    session: Session
    recycle: bool = False

    def close(self) -> None:
        """End both."""
        if self.recycle:
            release_sandbox(self.sandbox, self.session)
        else:
            self.sandbox.close()  # before the session: what runs in it then needs no ending of its own
            self.session.close()


class _PrewarmPool:
    """What the spares of one process share; a forked child has threads and places of its own."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="intercode-spare")
        self.waiting: dict[Prewarmer, None] = {}  # those that hold a place, oldest first
        self.lock = threading.Lock()  # of ``waiting`` and of every Spare's place
        self._foreground = 0  # places that are made while somebody waits for them
        self._no_foreground = threading.Condition()

    def create_now(self, make: Callable[[], Workspace]) -> Workspace:
        """Make a place that somebody waits for."""
        with self._no_foreground:
            self._foreground += 1
        try:
            return make()
        finally:
            with self._no_foreground:
                self._foreground -= 1
                self._no_foreground.notify_all()

    def create_when_idle(self, make: Callable[[], Workspace]) -> Workspace:
        """Make a place when nobody waits for another, after whoever asked for it has gone on:
        there is one interpreter lock."""
        time.sleep(_YIELD_SECONDS)
        with self._no_foreground:
            self._no_foreground.wait_for(lambda: self._foreground == 0)
        return make()


_pools: dict[int, _PrewarmPool] = {}


def _process_pool() -> _PrewarmPool:
    pid = os.getpid()
    return _pools.get(pid) or _pools.setdefault(pid, _PrewarmPool())


class Prewarmer:
    """At most one place that is ready or being made. Used by one thread.

    In one process at most 64 places wait; the one that was prepared first is given up for another.
    """

    def __init__(self) -> None:
        self._key: Any = None
        self._prewarmed: Future[Workspace] | None = None

    def take(self, key: Any, make: Callable[[], Workspace]) -> Workspace:
        """The prepared place if it was made for an equal ``key``, else one that is made now."""
        place, here = self._release(), _process_pool()
        if place is None or place.cancel():  # there is none, or nobody has begun to make it
            return here.create_now(make)
        if key != self._key:
            _discard(place)
            return here.create_now(make)
        try:
            ready = place.result()
        except Exception:  # the same again in the foreground tells the caller
            return here.create_now(make)
        if not ready.sandbox.connection.is_lost:
            return ready
        ready.close()
        return here.create_now(make)

    def prepare(self, key: Any, make: Callable[[], Workspace]) -> None:
        """Begin to make a place, unless there is one."""
        here, given_up = _process_pool(), None
        with here.lock:
            if self._prewarmed is not None:
                return
            self._key, self._prewarmed = key, here.pool.submit(here.create_when_idle, make)
            here.waiting[self] = None
            if len(here.waiting) > _MAX_WAITING:
                oldest = next(iter(here.waiting))
                del here.waiting[oldest]
                given_up, oldest._prewarmed = oldest._prewarmed, None
        if given_up is not None:
            _discard(given_up)

    def close(self) -> None:
        """Give up what is prepared. May be called again."""
        place = self._release()
        if place is not None:
            _discard(place)

    def _release(self) -> Future[Workspace] | None:
        here = _process_pool()
        with here.lock:
            place, self._prewarmed = self._prewarmed, None
            here.waiting.pop(self, None)
        return place


def _discard(place: Future[Workspace]) -> None:
    def close(done: Future[Workspace]) -> None:
        if not done.cancelled() and done.exception() is None:
            done.result().close()

    if not place.cancel():
        place.add_done_callback(close)
