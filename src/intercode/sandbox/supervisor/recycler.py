"""What begins again in the background instead of ending, and waits for who needs one like it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from intercode.sandbox.supervisor.connection import SupervisorConnection

_WORKERS = 2
_MAX_WAITING = 16
"""That wait in one process; the one that has waited longest ends."""


class Recyclable(Protocol):
    """A box, or a container that serves as one."""

    @property
    def connection(self) -> SupervisorConnection: ...


T = TypeVar("T", bound=Recyclable)


class Recycler(Generic[T]):
    """Those of one process that wait or are being renewed, the oldest first. Kinds are compared;
    ``end`` ends one for good."""

    def __init__(self, end: Callable[[T], None]) -> None:
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="intercode-renew")
        self._lock = threading.Lock()
        self._waiting: list[tuple[Any, Future[T | None]]] = []
        self._close = end

    def take(self, kind: Any) -> T | None:
        """One of this kind that is as new, or None where there is none."""
        while (waiting := self._find(kind)) is not None:
            found = waiting.result()
            if found is not None and not found.connection.is_lost:
                return found
            if found is not None:
                self._close(found)
        return None

    def recycle(self, kind: Any, one: T, renew: Callable[[T], None]) -> None:
        """Have one renewed, to be taken again; where that raises, it ends."""
        with self._lock:
            try:
                renewed = self._workers.submit(self._reset, one, renew)
            except RuntimeError:  # the interpreter is ending
                self._close(one)
                return
            self._waiting.append((kind, renewed))
            surplus = self._waiting.pop(0)[1] if len(self._waiting) > _MAX_WAITING else None
        if surplus is not None:
            surplus.add_done_callback(self._close_result)

    def run_in_background(self, work: Callable[[], None]) -> None:
        """Have something else done by the same threads."""
        with suppress(RuntimeError):  # the interpreter is ending
            self._workers.submit(work)

    def clear(self) -> None:
        """End those that wait."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for _, found in waiting:
            found.add_done_callback(self._close_result)

    def _find(self, kind: Any) -> Future[T | None] | None:
        with self._lock:
            for i, (other, waiting) in enumerate(self._waiting):
                if other == kind:
                    del self._waiting[i]
                    return waiting
        return None

    def _reset(self, one: T, renew: Callable[[T], None]) -> T | None:
        try:
            renew(one)
        except BaseException:
            self._close(one)
            return None
        return one

    def _close_result(self, done: Future[T | None]) -> None:
        if (one := done.result()) is not None:
            self._close(one)
