"""One live episode of a pool."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeVar

from intercode.core.errors import EnvironmentStateError, InfrastructureError
from intercode.core.types import Score
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.pool.worker_threads import Hands

T = TypeVar("T")


class Turn(NamedTuple):
    """What a step answers: as ``InterCodeEnv.step``."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Episode:
    """An episode that holds one of its pool's places until it is closed.

    ``query``: what is asked; ``observation``: what was shown last, at first the query; ``info``: of
    the last turn; ``reward``: the sum so far; ``turns``: actions so far; ``done``: terminated,
    truncated, or closed. One step at a time; other episodes go on meanwhile.
    """

    def __init__(
        self, env: InterCodeEnv, hands: Hands, give_back: Callable[[Episode], None]
    ) -> None:
        self.env = env
        self.query, self.observation, self.info = "", "", dict[str, Any]()
        self.reward, self.turns, self.done = 0.0, 0, False
        self.used = time.monotonic()
        self._hands, self._give_back = hands, give_back
        self._busy: asyncio.Future[Any] | None = None
        self._closed = ""  # why, where it is

    @property
    def task(self) -> str:
        """The id of the task."""
        return self.env.task.id

    @property
    def closed(self) -> bool:
        """Whether its place was given back."""
        return bool(self._closed)

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return self._busy is not None

    async def step(self, action: str, timeout: float | None = None) -> Turn:
        """Run an action, or submit.

        ``timeout``: seconds for all of it, waiting included. When they are over, and when the task
        that waits is cancelled, the sandbox is freed at once and the episode is over: TimeoutError.
        Raises EnvironmentStateError after the end, InfrastructureError where the box failed.
        """
        return await self._turn(lambda: self.env.step(action), timeout)

    async def submit(self, answer: str | None = None, timeout: float | None = None) -> Turn:
        """Hand in; see ``InterCodeEnv.submit`` and ``step``."""
        return await self._turn(lambda: self.env.submit(answer), timeout)

    async def score(self) -> Score:
        """The reward of the state as it is, which stays as it is; also after the turn limit."""
        return await self.do(self.env.score)

    async def close(self, why: str = "it was closed") -> None:
        """Give the place back; what is under way is ended. May be called again."""
        if self._closed:
            return
        self._closed, self.done = why, True
        if self._busy is not None:
            await self._abandon(self._busy)
        else:
            self._give_back(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ------------------------------------------------------------- internals
    async def begin(self, work: Callable[[], tuple[str, dict[str, Any]]]) -> None:
        """Have the environment brought to where the episode begins; the pool does that."""
        self.query, self.info = await self.do(work)
        self.observation = self.query

    async def _turn(
        self,
        work: Callable[[], tuple[str, float, bool, bool, dict[str, Any]]],
        timeout: float | None,
    ) -> Turn:
        if self.done and not self._closed:
            raise EnvironmentStateError("the episode is over: close it and begin another")
        try:
            turn = Turn(*await self.do(work, timeout))
        except InfrastructureError:
            self.done = True
            raise
        self.observation, self.info = turn.observation, turn.info
        self.reward += turn.reward
        self.turns += 1
        self.done = turn.terminated or turn.truncated
        return turn

    async def do(self, work: Callable[[], T], timeout: float | None = None) -> T:
        """Have something done in a thread; cancelling ends the episode, as with ``step``."""
        if self._closed:
            raise EnvironmentStateError(f"the episode is over, as {self._closed}")
        if self._busy is not None:
            raise EnvironmentStateError("one step at a time: the last one has not come back yet")
        running = self._hands.do(work)
        self._busy = running
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(running)
        except (asyncio.CancelledError, TimeoutError):
            if not running.done():
                await self._end(running, timeout)
            raise
        finally:
            self._busy, self.used = None, time.monotonic()

    async def _end(self, running: asyncio.Future[Any], timeout: float | None) -> None:
        """Give the episode up in the middle of something."""
        if not self._closed:
            self._closed = (
                f"a step took longer than {timeout} s" if timeout else "a step was cancelled"
            )
            self.done = True
            await self._abandon(running)

    async def _abandon(self, running: asyncio.Future[Any]) -> None:
        """Have the box ended, so that what waits for it comes back, and wait for that. The place is
        given back then, also where this is cancelled meanwhile."""

        def ended(done: asyncio.Future[Any]) -> None:
            if not done.cancelled():
                done.exception()  # it was looked at
            self._give_back(self)

        running.add_done_callback(ended)
        self.env.abort()
        await asyncio.shield(asyncio.wait([running]))
