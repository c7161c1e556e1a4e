"""Places for live episodes: so many at once, each taken, given back, and taken again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Self

from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.core.types import Dataset
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import pick_dataset
from intercode.environments.base.pool.episode import Episode
from intercode.environments.base.pool.worker_threads import WorkerThreads
from intercode.environments.base.snapshots.snapshot import Snapshot

_REAPER_CHECKS = 4  # of the reaper while an episode may be idle


class Pool:
    """At most ``size`` live episodes of one environment; who asks for more waits for a place.

    ``idle``: seconds after which an episode in which nothing happens is closed (None: never): a
    consumer that forgot one, or died of an error, costs no place. ``settings`` are those of the
    environment, such as ``reward_mode="per-turn"`` for a reward after every turn, or ``recycle=True``.
    Everything ends with the pool, and with the process that has it, however that ends.
    Use it in one event loop. Raises UsageError, and as ``intercode.make`` for unknown names.
    """

    def __init__(
        self,
        environment: str = "bash",
        size: int = 16,
        dataset: str | Dataset = "starter",
        *,
        idle_timeout: float | None = 600.0,
        **settings: Any,
    ) -> None:
        if size < 1:
            raise UsageError(f"size is {size}; a pool has a place at least")
        if idle_timeout is not None and idle_timeout <= 0:
            raise UsageError(
                f"idle_timeout is {idle_timeout} s; it must be greater than 0, or None for never"
            )
        make: Callable[..., InterCodeEnv] = ENVIRONMENTS.load(environment)
        first = make(dataset, **settings)
        self.dataset = pick_dataset(dataset, first.name)
        self.size, self.idle_timeout = size, idle_timeout
        self.idle_closed = 0
        self._make_env: Callable[[], InterCodeEnv] = lambda: make(self.dataset, **settings)
        self._idle_envs = [first]
        self._live_episodes: set[Episode] = set()
        self._ending_episodes: set[asyncio.Future[None]] = set()
        self._slots, self._acquire_lock = asyncio.Semaphore(size), asyncio.Lock()
        self._workers = WorkerThreads(size)
        self._idle_closer: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def live(self) -> int:
        """Episodes that hold a place."""
        return len(self._live_episodes)

    def result_metadata(self) -> dict[str, Any]:
        """What every result of this pool's environments has to name."""
        env = self._idle_envs[0] if self._idle_envs else next(iter(self._live_episodes)).env
        return env.result_metadata()

    # -------------------------------------------------------------- episodes
    async def begin(self, task: int | str | None = None, seed: int | None = None) -> Episode:
        """A new episode, once there is a place for it; close it when it is no longer needed.

        ``task``: a position or an id (None: drawn). Raises as ``InterCodeEnv.reset``.
        """
        return (await self.begin_group(task, 1, seed))[0]

    @contextlib.asynccontextmanager
    async def episode(
        self, task: int | str | None = None, seed: int | None = None
    ) -> AsyncIterator[Episode]:
        """``begin``, and ``close`` at the end of the block."""
        async with await self.begin(task, seed) as episode:
            yield episode

    async def begin_group(
        self, task: int | str | None, n: int, seed: int | None = None, prefix: Sequence[str] = ()
    ) -> list[Episode]:
        """``n`` episodes of one task with one seed, from one state, once there are places for all:
        that after ``reset``, or that after the actions in ``prefix``, which run once.

        Raises UsageError where the pool is smaller, and where the prefix ends the episode.
        """
        if not 1 <= n <= self.size:
            raise UsageError(f"a group of {n} in a pool of {self.size}: make the pool larger")
        episodes = await self._acquire(n)
        try:
            leader, twins = episodes[0], episodes[1:]
            await leader.start(_reset_call(leader.env, task, seed))
            for action in prefix:
                await leader.step(action)
            if leader.done:
                raise UsageError("the prefix ends the episode: nothing can go on from there")
            if prefix and twins:
                await self._copy_leader(leader, twins)
            else:
                same = leader.task  # where it was drawn, the others do not draw
                await asyncio.gather(*(e.start(_reset_call(e.env, same, seed)) for e in twins))
        except BaseException:
            await _close_all(episodes)
            raise
        return episodes

    @contextlib.asynccontextmanager
    async def group(
        self, task: int | str | None, n: int, seed: int | None = None, prefix: Sequence[str] = ()
    ) -> AsyncIterator[list[Episode]]:
        """``begin_group``, and ``close`` for all at the end of the block."""
        episodes = await self.begin_group(task, n, seed, prefix)
        try:
            yield episodes
        finally:
            await _close_all(episodes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End every episode and free every sandbox. May be called again."""
        if self._closed:
            return
        self._closed = True
        if self._idle_closer is not None:
            self._idle_closer.cancel()
        await asyncio.gather(*(e.close("the pool was closed") for e in list(self._live_episodes)))
        while self._live_episodes:  # those too that someone else began to close
            await (
                asyncio.wait(self._ending_episodes)
                if self._ending_episodes
                else asyncio.sleep(0.01)
            )
        await asyncio.gather(*(self._workers.submit(env.close) for env in self._idle_envs))
        self._workers.close()

    # ------------------------------------------------------------- internals
    async def _acquire(self, n: int) -> list[Episode]:
        """Wait for so many places, and take them."""
        taken, envs = 0, list[InterCodeEnv]()
        try:
            async with self._acquire_lock:  # two groups would else wait for each other's places
                while taken < n:
                    await self._slots.acquire()
                    taken += 1
            if self._closed:
                raise EnvironmentStateError("the pool is closed")
            while len(envs) < n:
                envs.append(self._idle_envs.pop() if self._idle_envs else self._make_env())
        except BaseException:
            self._idle_envs += envs
            for _ in range(taken):
                self._slots.release()
            raise
        if self.idle_timeout is not None and self._idle_closer is None:
            self._idle_closer = asyncio.create_task(self._close_idle_episodes(self.idle_timeout))
        episodes = [Episode(env, self._workers, self._release) for env in envs]
        self._live_episodes.update(episodes)
        return episodes

    async def _copy_leader(self, leader: Episode, twins: Sequence[Episode]) -> None:
        """Bring the twins to where the leader is."""
        with await leader.run(leader.env.snapshot) as snapshot:
            for twin in twins:
                await twin.start(_restore_call(twin.env, snapshot))
                twin.observation, twin.turns = leader.observation, leader.turns
                twin.reward = leader.reward

    def _release(self, episode: Episode) -> None:
        """Free an episode's box in the background; its place is there once that is done."""
        ending = self._workers.submit(episode.env.end_episode)
        self._ending_episodes.add(ending)

        def ended(done: asyncio.Future[None]) -> None:
            self._ending_episodes.discard(ending)
            self._live_episodes.discard(episode)
            done.exception()  # a box that could not even be ended is not used again
            if not done.cancelled() and done.exception() is None:
                self._idle_envs.append(episode.env)
            self._slots.release()

        ending.add_done_callback(ended)

    async def _close_idle_episodes(self, idle: float) -> None:
        """Close the episodes in which nothing has happened for too long."""
        while True:
            await asyncio.sleep(idle / _REAPER_CHECKS)
            now = time.monotonic()
            for episode in [
                e for e in self._live_episodes if not e.busy and now - e.last_used > idle
            ]:
                self.idle_closed += not episode.closed
                await episode.close(f"nothing happened in it for {idle:g} s")


def _reset_call(
    env: InterCodeEnv, task: int | str | None, seed: int | None
) -> Callable[[], tuple[str, dict[str, Any]]]:
    return lambda: env.reset(seed=seed, options={"task": task})


def _restore_call(
    env: InterCodeEnv, snapshot: Snapshot
) -> Callable[[], tuple[str, dict[str, Any]]]:
    def work() -> tuple[str, dict[str, Any]]:
        env.restore(snapshot)
        return env.task.query, {"task": env.task.id, "index": env.index}

    return work


async def _close_all(episodes: Sequence[Episode]) -> None:
    await asyncio.gather(*(episode.close() for episode in episodes))
