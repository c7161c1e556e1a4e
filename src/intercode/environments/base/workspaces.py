"""A box and its session, prepared in the background before they are asked for."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from intercode.environments.base.recycling import give_back
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sessions.base import Session

_WORKERS = 2
_POLITE = 0.0005  # seconds
_MOST = 64  # places that wait in one process: a thousand environments do not need a thousand more


@dataclass(frozen=True, slots=True)
class Place:
    """Where code runs: a box and a session in it. ``reuse``: the box may serve again afterwards."""

    box: KeptSandbox
    session: Session
    reuse: bool = False

    def close(self) -> None:
        """End both."""
        if self.reuse:
            give_back(self.box, self.session)
        else:
            self.box.close()  # before the session: what runs in it then needs no ending of its own
            self.session.close()


class _Process:
    """What the spares of one process share; a forked child has threads and places of its own."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="intercode-spare")
        self.waiting: dict[Spare, None] = {}  # those that hold a place, oldest first
        self.lock = threading.Lock()  # of ``waiting`` and of every Spare's place
        self._urgent = 0  # places that are made while somebody waits for them
        self._quiet = threading.Condition()

    def now(self, make: Callable[[], Place]) -> Place:
        """Make a place that somebody waits for."""
        with self._quiet:
            self._urgent += 1
        try:
            return make()
        finally:
            with self._quiet:
                self._urgent -= 1
                self._quiet.notify_all()

    def soon(self, make: Callable[[], Place]) -> Place:
        """Make a place when nobody waits for another, after whoever asked for it has gone on:
        there is one interpreter lock."""
        time.sleep(_POLITE)
        with self._quiet:
            self._quiet.wait_for(lambda: self._urgent == 0)
        return make()


_processes: dict[int, _Process] = {}


def _here() -> _Process:
    pid = os.getpid()
    return _processes.get(pid) or _processes.setdefault(pid, _Process())


class Spare:
    """At most one place that is ready or being made. Used by one thread.

    In one process at most 64 places wait; the one that was prepared first is given up for another.
    """

    def __init__(self) -> None:
        self._key: Any = None
        self._place: Future[Place] | None = None

    def take(self, key: Any, make: Callable[[], Place]) -> Place:
        """The prepared place if it was made for an equal ``key``, else one that is made now."""
        place, here = self._release(), _here()
        if place is None or place.cancel():  # there is none, or nobody has begun to make it
            return here.now(make)
        if key != self._key:
            _discard(place)
            return here.now(make)
        try:
            ready = place.result()
        except Exception:  # the same again in the foreground tells the caller
            return here.now(make)
        if not ready.box.link.lost:
            return ready
        ready.close()
        return here.now(make)

    def prepare(self, key: Any, make: Callable[[], Place]) -> None:
        """Begin to make a place, unless there is one."""
        here, given_up = _here(), None
        with here.lock:
            if self._place is not None:
                return
            self._key, self._place = key, here.pool.submit(here.soon, make)
            here.waiting[self] = None
            if len(here.waiting) > _MOST:
                oldest = next(iter(here.waiting))
                del here.waiting[oldest]
                given_up, oldest._place = oldest._place, None
        if given_up is not None:
            _discard(given_up)

    def close(self) -> None:
        """Give up what is prepared. May be called again."""
        place = self._release()
        if place is not None:
            _discard(place)

    def _release(self) -> Future[Place] | None:
        here = _here()
        with here.lock:
            place, self._place = self._place, None
            here.waiting.pop(self, None)
        return place


def _discard(place: Future[Place]) -> None:
    def close(done: Future[Place]) -> None:
        if not done.cancelled() and done.exception() is None:
            done.result().close()

    if not place.cancel():
        place.add_done_callback(close)
