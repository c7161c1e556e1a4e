"""Lends environments to threads. This is the one place that decides whether an environment is used
again, and that closes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, Self, TypeVar

from intercode.core.errors import InterCodeError

_MAX_THREADS = 32


class Lendable(Protocol):
    """An environment, or what holds one."""

    def end_episode(self) -> None: ...
    def close(self) -> None: ...


E = TypeVar("E", bound=Lendable)


class EnvironmentPool(Generic[E]):
    """Lends environments. May be used by many threads.

    - An environment that comes back ends its episode, and is lent again to who asks for its key.
    - If its use failed, or its episode cannot be ended, it is closed, and the next borrower gets a
      new one.
    - ``close`` closes the idle environments, and each other one is closed when it comes back.

    What is prewarmed belongs to an environment, so it stays ready while the environment is idle.
    """

    def __init__(self) -> None:
        self._idle: dict[Hashable, list[E]] = {}
        self._lock, self._closed = threading.Lock(), False

    def take(self, make: Callable[[], E], key: Hashable = None) -> E:
        """Return an idle environment of this key, or a new one. Give it back when it is not used
        any more. Raises what ``make`` raises."""
        with self._lock:
            if idle := self._idle.get(key):
                return idle.pop()
        return make()

    def give_back(self, env: E, key: Hashable = None, *, failed: bool = False) -> None:
        """Take back an environment. ``failed``: whether its use failed."""
        expected = (Exception,) if failed else (InterCodeError, OSError)
        kept = False
        try:
            if not failed:
                with suppress(*expected):
                    env.end_episode()
                    kept = self._keep(env, key)
        finally:
            if not kept:
                with suppress(*expected):  # of a use that failed, its own error is the one to show
                    env.close()

    def _keep(self, env: E, key: Hashable) -> bool:
        """Make an environment idle, unless the pool is closed. Return whether it is."""
        with self._lock:
            if not self._closed:
                self._idle.setdefault(key, []).append(env)
            return not self._closed

    @contextmanager
    def borrow(self, make: Callable[[], E], key: Hashable = None) -> Iterator[E]:
        """Lend an environment for the block. An error in the block means that its use failed."""
        env, failed = self.take(make, key), True
        try:
            yield env
            failed = False
        finally:
            self.give_back(env, key, failed=failed)

    def close(self) -> None:
        """Close the idle environments. May be called again."""
        with self._lock:
            self._closed = True
            idle = [env for envs in self._idle.values() for env in envs]
            self._idle.clear()
        with ThreadPoolExecutor(_MAX_THREADS) as threads:
            list(threads.map(lambda env: env.close(), idle))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
