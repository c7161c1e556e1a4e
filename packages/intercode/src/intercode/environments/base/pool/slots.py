"""The slots of a pool, and who gets them next."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Set
from dataclasses import dataclass

from intercode.core.errors import EnvironmentStateError, UsageError


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """Somebody waits for ``n`` slots, for forks of ``parent`` if that is not None."""

    n: int
    parent: Hashable | None
    granted: asyncio.Future[None]


class Slots:
    """Hands out ``size`` slots: to forks first, because their parents occupy slots meanwhile, and
    else in the order in which they were asked for.

    Whoever waits first keeps the others waiting, also where fewer slots are free that would be
    enough for them, so that it gets its slots once enough episodes are closed. ``holders``: the
    episodes that occupy a slot, which the user of this object keeps up to date.
    """

    def __init__(self, size: int, holders: Set[Hashable]) -> None:
        self.size, self.free = size, size
        self._holders = holders
        self._forks: list[_Request] = []
        self._others: list[_Request] = []

    async def acquire(self, n: int, parent: Hashable | None = None) -> None:
        """Wait for ``n`` free slots and occupy them, all at once.

        If every occupied slot belongs to a parent that waits for forks, so that none would become
        free, the smallest request for forks is served, or the last one raises UsageError if none
        fits. Raises EnvironmentStateError if ``refuse_all`` is called.
        """
        request = _Request(n, parent, asyncio.get_running_loop().create_future())
        (self._others if parent is None else self._forks).append(request)
        self._serve()
        granted = request.granted
        try:
            await granted
        except asyncio.CancelledError:
            has_slots = granted.done() and not granted.cancelled() and not granted.exception()
            self.release(n if has_slots else 0)
            raise

    def release(self, n: int = 1) -> None:
        """Free slots."""
        self.free += n
        self._serve()

    def refuse_all(self, why: str) -> None:
        """Let every call that waits raise EnvironmentStateError."""
        for request in self._waiting():
            request.granted.set_exception(EnvironmentStateError(why))

    # ------------------------------------------------------------- internals
    def _waiting(self) -> list[_Request]:
        """Forget the requests that were answered or given up, and return the others."""
        for queue in (self._forks, self._others):
            queue[:] = [request for request in queue if not request.granted.done()]
        return self._forks + self._others

    def _serve(self) -> None:
        while waiting := self._waiting():
            first = waiting[0]
            if first.n > self.free and self._is_stuck():
                first = min(self._forks, key=lambda request: request.n)
                if first.n > self.free:
                    self._forks[-1].granted.set_exception(self._too_small())
                    continue
            if first.n > self.free:
                return
            self.free -= first.n
            first.granted.set_result(None)

    def _is_stuck(self) -> bool:
        """Whether every occupied slot belongs to an episode that waits for forks of itself."""
        return bool(self._forks) and len(self._waiting_parents()) == self.size - self.free

    def _waiting_parents(self) -> Set[Hashable]:
        """Return the episodes that occupy a slot and wait for forks."""
        return {request.parent for request in self._forks} & self._holders

    def _too_small(self) -> UsageError:
        parents = len(self._waiting_parents())
        forks = max(request.n for request in self._forks)
        return UsageError(
            f"{parents} episodes wait for forks and occupy every slot that the pool of {self.size} "
            f"cannot give them: make it at least {parents + forks}, one slot for each of them and "
            f"{forks} for the forks of one"
        )
