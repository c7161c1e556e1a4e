"""One live episode of a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self, TypeVar

from intercode.core.errors import EnvironmentStateError, InfrastructureError
from intercode.core.observations import MAX_OBSERVATION_LENGTH
from intercode.core.types import Score, Step, Task
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.pool.worker_threads import WorkerThreads
from intercode_sandbox.clock import Clock
from intercode_sandbox.validation import check_timeout

T = TypeVar("T")


class PooledEpisode:
    """An episode that occupies a slot of its pool until it is closed.

    ``query``: the task's query. ``observation``: the last observation, at first the query.
    ``last``: the result of the last turn, if there was one. ``reward``: the sum of the rewards.
    ``turns``: the number of actions. ``done``: terminated, truncated or closed. One call at a time
    is allowed; other episodes can run at the same time.

    >>> import asyncio
    >>> import intercode
    >>> async def play():
    ...     async with intercode.Pool("bash", size=1) as pool, pool.episode(task=0) as episode:
    ...         await episode.step("echo 1")
    ...         return episode.observation, episode.done
    >>> asyncio.run(play())
    ('1\\n', False)
    """

    def __init__(
        self,
        env: BranchingEnvironment,
        workers: WorkerThreads,
        give_back: Callable[[PooledEpisode], None],
        clock: Clock,
    ) -> None:
        self.env, self._clock = env, clock
        self.query, self.observation = "", ""
        self.last: Step | None = None
        self.reward, self.turns, self.done = 0.0, 0, False
        self.last_used = clock.now()
        self._workers, self._release = workers, give_back
        self._running: asyncio.Future[Any] | None = None
        self._close_reason = ""  # empty while the episode is open

    @property
    def task(self) -> Task:
        """The task. ``task.id`` names it; its gold is not for the policy."""
        return self.env.task

    @property
    def closed(self) -> bool:
        """Whether the episode was closed."""
        return bool(self._close_reason)

    @property
    def busy(self) -> bool:
        """Whether a call is in progress."""
        return self._running is not None

    async def step(self, action: str, timeout: float | None = None) -> Step:
        """Run an action, or submit.

        ``timeout``: seconds for the whole call. When it expires, the sandbox is freed at once, the
        episode is over, and TimeoutError is raised. Cancelling the call ends the episode in the
        same way. Raises EnvironmentStateError after the end, and InfrastructureError if the sandbox
        failed.
        """
        return await self._turn(lambda: self.env.execute(action), timeout)

    async def submit(self, answer: str | None = None, timeout: float | None = None) -> Step:
        """Submit. See ``InterCodeEnv.finish`` and ``step``."""
        return await self._turn(lambda: self.env.finish(answer), timeout)

    async def score(self) -> Score:
        """Return the score of the present state. See ``InterCodeEnv.score``."""
        return await self.run(self.env.score)

    async def close(self, reason: str = "it was closed") -> None:
        """Interrupt a call in progress and free the slot. May be called again."""
        if self._close_reason:
            return
        self._close_reason, self.done = reason, True
        if self._running is not None:
            await self._abandon(self._running)
        else:
            self._release(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ------------------------------------------------------------- internals
    async def start(self, work: Callable[[], object]) -> None:
        """Bring the environment into the first state of the episode. Called by the pool."""
        await self.run(work)
        self.query = self.observation = self.env.task.query[:MAX_OBSERVATION_LENGTH]

    async def _turn(self, work: Callable[[], Step], timeout: float | None) -> Step:
        if self.done and not self._close_reason:
            raise EnvironmentStateError("the episode is over: close it and begin another")
        try:
            turn = await self.run(work, timeout)
        except InfrastructureError:
            self.done = True
            raise
        self.observation, self.last = turn.observation, turn
        self.reward += turn.paid
        self.turns += 1
        self.done = turn.done
        return turn

    async def run(self, work: Callable[[], T], timeout: float | None = None) -> T:
        """Call a function in a thread. Cancelling ends the episode, as with ``step``."""
        check_timeout(timeout)
        if self._close_reason:
            raise EnvironmentStateError(f"the episode is over: {self._close_reason}")
        if self._running is not None:
            raise EnvironmentStateError("one step at a time: the last one is still running")
        running = self._workers.submit(work)
        self._running = running
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(running)
        except asyncio.CancelledError:
            if not running.done():
                await self._cancel(running, None)
            raise
        except TimeoutError as e:
            if running.done():
                raise
            await self._cancel(running, timeout)
            raise TimeoutError(f"{self._close_reason}: the episode is over") from e
        finally:
            self._running, self.last_used = None, self._clock.now()

    async def _cancel(self, running: asyncio.Future[Any], timeout: float | None) -> None:
        """End the episode during a call."""
        if not self._close_reason:
            self._close_reason = (
                f"a step took longer than {timeout} s" if timeout else "a step was cancelled"
            )
            self.done = True
            await self._abandon(running)

    async def _abandon(self, running: asyncio.Future[Any]) -> None:
        """End the sandbox, so that the call in progress returns, wait for that, and free the slot.

        Frees the slot even if this task is cancelled while it waits.
        """

        def on_end(done: asyncio.Future[Any]) -> None:
            if not done.cancelled():
                done.exception()  # marks it as retrieved, or asyncio logs it
            self._release(self)

        running.add_done_callback(on_end)
        self.env.abort()
        await asyncio.shield(asyncio.wait([running]))
