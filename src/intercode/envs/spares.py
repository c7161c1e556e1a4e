"""A box and its session, prepared in the background before they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.sessions.base import Session

_WORKERS = 2
_pools: dict[int, ThreadPoolExecutor] = {}  # by process: a forked child has no threads


@dataclass(frozen=True, slots=True)
class Place:
    """Where code runs: a box and a session in it."""

    box: NamespaceSandbox
    session: Session

    def close(self) -> None:
        """End both."""
        self.session.close()
        self.box.close()


class Spare:
    """At most one place that is ready or being made. Used by one thread."""

    def __init__(self) -> None:
        self._key: Any = None
        self._place: Future[Place] | None = None

    def take(self, key: Any, make: Callable[[], Place]) -> Place:
        """The prepared place if it was made for an equal ``key``, else one that is made now."""
        place, self._place = self._place, None
        if place is None:
            return make()
        if key != self._key:
            _discard(place)
            return make()
        try:
            return place.result()
        except Exception:  # the same again in the foreground tells the caller
            return make()

    def prepare(self, key: Any, make: Callable[[], Place]) -> None:
        """Begin to make a place, unless there is one."""
        if self._place is None:
            self._key, self._place = key, _pool().submit(make)

    def close(self) -> None:
        """Give up what is prepared. May be called again."""
        place, self._place = self._place, None
        if place is not None:
            _discard(place)


def _pool() -> ThreadPoolExecutor:
    if os.getpid() not in _pools:
        _pools[os.getpid()] = ThreadPoolExecutor(_WORKERS, thread_name_prefix="intercode-spare")
    return _pools[os.getpid()]


def _discard(place: Future[Place]) -> None:
    def close(done: Future[Place]) -> None:
        if not done.cancelled() and done.exception() is None:
            done.result().close()

    if not place.cancel():
        place.add_done_callback(close)
