"""Recycles sandboxes in a background thread and keeps them ready for the next request of their
kind."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

_WORKERS = 2
_MAX_WAITING = 16
"""Limit on recycled sandboxes per process. Above it, the oldest one is closed."""


class Recyclable(Protocol):
    """A sandbox, or a container."""

    @property
    def is_lost(self) -> bool: ...


T = TypeVar("T", bound=Recyclable)
V = TypeVar("V")


def per_process(make: Callable[[], V]) -> Callable[[], V]:
    """Return a function that returns the value of this process, made on the first call.

    A forked child gets one of its own: it has no threads, and its own sandboxes.
    """
    values: dict[int, V] = {}

    def current() -> V:
        pid = os.getpid()
        return values.get(pid) or values.setdefault(pid, make())

    return current


class Recycler(Generic[T]):
    """The recycled sandboxes of this process, the oldest first.

    Kinds are compared by equality. ``end`` closes a sandbox for good.
    """

    def __init__(self, end: Callable[[T], None]) -> None:
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="intercode-recycle")
        self._lock = threading.Lock()
        self._waiting: list[tuple[Any, Future[T | None]]] = []
        self._close = end
        self._names: set[str] = set()

    def take(self, kind: Any) -> T | None:
        """Return a recycled sandbox of this kind, or None."""
        while (waiting := self._find(kind)) is not None:
            found = waiting.result()
            if found is not None and not found.is_lost:
                return found
            if found is not None:
                self._close(found)
        return None

    def recycle(self, kind: Any, item: T, reset: Callable[[T], None]) -> None:
        """Reset a sandbox in the background and keep it for ``take``. Closes it if ``reset``
        raises."""
        with self._lock:
            try:
                future = self._workers.submit(self._reset, item, reset)
            except RuntimeError:  # the interpreter is shutting down
                self._close(item)
                return
            self._waiting.append((kind, future))
            surplus = self._waiting.pop(0)[1] if len(self._waiting) > _MAX_WAITING else None
        if surplus is not None:
            surplus.add_done_callback(self._close_result)

    def run_once(self, name: str, work: Callable[[], None]) -> None:
        """Run other work in the same threads, unless work of this name was run before."""
        with self._lock:
            is_first = name not in self._names
            self._names.add(name)
        if is_first:
            with suppress(RuntimeError):  # the interpreter is shutting down
                self._workers.submit(work)

    def clear(self) -> None:
        """Close the recycled sandboxes."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for _, found in waiting:
            found.add_done_callback(self._close_result)

    def _find(self, kind: Any) -> Future[T | None] | None:
        with self._lock:
            for i, (other_kind, waiting) in enumerate(self._waiting):
                if other_kind == kind:
                    del self._waiting[i]
                    return waiting
        return None

    def _reset(self, item: T, reset: Callable[[T], None]) -> T | None:
        try:
            reset(item)
        except BaseException:
            self._close(item)
            return None
        return item

    def _close_result(self, done: Future[T | None]) -> None:
        if (item := done.result()) is not None:
            self._close(item)
