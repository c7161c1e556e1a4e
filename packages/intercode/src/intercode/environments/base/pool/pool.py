"""A pool of live episodes of one environment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from intercode.core.errors import EnvironmentStateError, UsageError
from intercode.core.types import Dataset
from intercode.environments import make as make_environment
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import check_training
from intercode.environments.base.pool.episode import PooledEpisode
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.environments.base.pool.slots import Slots
from intercode.environments.base.pool.worker_threads import WorkerThreads
from intercode.environments.runners import LOCAL, check_runner, open_runner
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock

_CLOSED = "the pool is closed"
_CHECKS_PER_TIMEOUT = 4  # how often idle episodes are looked for within their time-out


class Pool:
    """Runs up to ``size`` episodes of one environment. Further episodes wait for a free slot.

    ``idle_timeout``: an episode is closed after this number of seconds without a call (None:
    never), so that an episode that its user forgot does not occupy a slot for ever. ``clock``
    measures that time. ``runner``: where the environments are: ``local``, or ``ray`` for the nodes
    of a cluster, with an address as in ``ray:HOST:PORT`` (see docs/ray.md), which then keeps a
    group with a prefix on one node; if a node is lost, calls of its episodes raise
    SandboxLostError, and later episodes are on other nodes. ``settings``: settings of the
    environment, such as ``reward_mode="delta"`` or ``recycle=True``. ``allow_exploitable``: allow a
    profile whose faults training would exploit.

    When the pool is closed, or its process ends in any way, every episode ends and its sandbox is
    removed. Use a pool in one event loop only. Raises UsageError for an invalid size, timeout or
    runner, for that profile and if no cluster answers, UnknownNameError as ``intercode.make`` does,
    and ConfigError if Ray is needed and not installed.
    """

    def __init__(
        self,
        environment: str = "bash",
        size: int = 16,
        dataset: str | Dataset = "starter",
        *,
        idle_timeout: float | None = 600.0,
        clock: Clock = SYSTEM_CLOCK,
        runner: str = LOCAL,
        allow_exploitable: bool = False,
        **settings: Any,
    ) -> None:
        check_training(settings, allow_exploitable)
        check_runner(runner)
        if size < 1:
            raise UsageError(f"size is {size}; it must be at least 1")
        if idle_timeout is not None and idle_timeout <= 0:
            raise UsageError(
                f"idle_timeout is {idle_timeout} s; it must be greater than 0, or None for never"
            )
        self.size, self.idle_timeout, self._clock = size, idle_timeout, clock
        self.idle_closed = 0
        """The number of episodes that were closed after ``idle_timeout``."""
        with ExitStack() as resources:
            first: InterCodeEnv = make_environment(environment, dataset, **settings)
            resources.callback(first.close)
            self.dataset = first.dataset
            make = partial(make_environment, environment, self.dataset, **settings)
            self._make_env = resources.enter_context(
                open_runner(runner, make, environment, settings, range(len(self.dataset)), size)
            )
            self._envs = resources.enter_context(EnvironmentPool[BranchingEnvironment]())
            if runner == LOCAL:
                self._envs.give_back(first)
            else:
                first.close()
            self._resources = resources.pop_all()
        self._live_episodes: set[PooledEpisode] = set()
        self._slots = Slots(size, self._live_episodes)
        self._workers = WorkerThreads(size)
        self._idle_closer: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def live(self) -> int:
        """The number of episodes that occupy a slot. A closed one does until its sandbox ended."""
        return len(self._live_episodes)

    def result_metadata(self) -> dict[str, Any]:
        """Return the metadata that the records of this pool's episodes contain."""
        for episode in self._live_episodes:
            return episode.env.result_metadata()
        with self._envs.borrow(self._make_env) as env:
            return env.result_metadata()

    # -------------------------------------------------------------- episodes
    async def begin(self, task: int | str | None = None, seed: int | None = None) -> PooledEpisode:
        """Wait for a free slot and return a new episode. The caller has to close it.

        Args:
            task: A position or an id. None: a random task.
            seed: That of the episode, as ``InterCodeEnv.reset`` takes it.

        Raises:
            EnvironmentStateError: The pool is closed.
            UsageError: The position or the seed is invalid.
            UnknownNameError: The dataset has no task with this id.
        """
        return (await self.begin_group(task, 1, seed))[0]

    @contextlib.asynccontextmanager
    async def episode(
        self, task: int | str | None = None, seed: int | None = None
    ) -> AsyncIterator[PooledEpisode]:
        """Return a context manager that begins an episode and closes it at the end of the block."""
        async with await self.begin(task, seed) as episode:
            yield episode

    async def begin_group(
        self, task: int | str | None, n: int, seed: int | None = None, prefix: Sequence[str] = ()
    ) -> list[PooledEpisode]:
        """Wait for ``n`` free slots and return episodes of one task and seed, in equal states.

        Args:
            task: A position or an id. None: a random task.
            n: The number of episodes.
            seed: That of every episode, as ``InterCodeEnv.reset`` takes it.
            prefix: Actions that run once; all episodes start with the state after them.

        Returns:
            ``n`` episodes. The caller has to close them.

        Raises:
            EnvironmentStateError: The pool is closed.
            UsageError: The pool is smaller than ``n``, or the prefix ends the episode.
            UnknownNameError: The dataset has no task with this id.
        """
        if n < 1:
            raise UsageError(f"a group has at least 1 episode, not {n}")
        if n > self.size:
            raise UsageError(f"a group of {n} in a pool of {self.size}: make the pool larger")
        if isinstance(prefix, str):
            raise UsageError(f"a prefix is a list of actions, not {prefix!r:.80}")
        episodes = await self._acquire(n)
        try:
            leader, followers = episodes[0], episodes[1:]
            await leader.start(_reset_call(leader.env, task, seed))
            for action in prefix:
                await leader.step(action)
            if leader.done:
                raise UsageError("the prefix ends the episode: leave out its last actions")
            if prefix and followers:
                await self._copy_leader(leader, followers)
            else:
                drawn = leader.env.task_seed  # None: the task does not depend on a seed
                task, seed = leader.env.index, seed if drawn is None else drawn
                await asyncio.gather(*(e.start(_reset_call(e.env, task, seed)) for e in followers))
        except BaseException:
            await _close_all(episodes)
            raise
        return episodes

    @contextlib.asynccontextmanager
    async def group(
        self, task: int | str | None, n: int, seed: int | None = None, prefix: Sequence[str] = ()
    ) -> AsyncIterator[list[PooledEpisode]]:
        """Return a context manager that begins a group and closes it at the end of the block."""
        episodes = await self.begin_group(task, n, seed, prefix)
        try:
            yield episodes
        finally:
            await _close_all(episodes)

    async def fork(self, episode: PooledEpisode, n: int) -> list[PooledEpisode]:
        """Wait for ``n`` free slots and return episodes in the state of a running one.

        It waits until others close episodes, forks included.

        Args:
            episode: The episode to copy. The forks have its reward and its turns.
            n: The number of forks, beside ``episode``.

        Returns:
            ``n`` episodes. The caller has to close them.

        Raises:
            EnvironmentStateError: The episode is over, or the pool is closed.
            UsageError: The pool is smaller than ``n`` + 1, or too few slots are free and every
                occupied one belongs to an episode that waits for forks.
        """
        if n < 1:
            raise UsageError(f"fork takes a number of at least 1, not {n}")
        if n >= self.size:
            raise UsageError(
                f"an episode and {n} forks of it in a pool of {self.size}: make the pool larger"
            )
        forks = await self._acquire(n, episode)
        try:
            await self._copy_leader(episode, forks)
        except BaseException:
            await _close_all(forks)
            raise
        return forks

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End every episode and free every sandbox, also if this call is cancelled. May be called
        again."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    # ------------------------------------------------------------- internals
    async def _close(self) -> None:
        if self._idle_closer is not None:
            self._idle_closer.cancel()
        self._slots.refuse_all(_CLOSED)
        closed = [episode.close("the pool was closed") for episode in self._live_episodes]
        try:
            errors = await asyncio.gather(*closed, return_exceptions=True)
            await self._slots.acquire(self.size)  # each is free when its episode has ended
        finally:
            try:
                await self._workers.submit(self._resources.close)
            finally:
                self._workers.close()
        for error in errors:
            if error is not None:
                raise error

    async def _acquire(self, n: int, parent: PooledEpisode | None = None) -> list[PooledEpisode]:
        """Wait for ``n`` free slots, for forks of ``parent`` if given, and occupy them."""
        self._require_open()
        await self._slots.acquire(n, parent)
        envs = list[BranchingEnvironment]()
        try:
            self._require_open()
            while len(envs) < n:
                envs.append(self._envs.take(self._make_env))
        except BaseException:
            for env in envs:
                self._envs.give_back(env)
            self._slots.release(n)
            raise
        if self.idle_timeout is not None and self._idle_closer is None:
            self._idle_closer = asyncio.create_task(self._close_idle_episodes(self.idle_timeout))
        episodes = [PooledEpisode(env, self._workers, self._release, self._clock) for env in envs]
        self._live_episodes.update(episodes)
        return episodes

    def _require_open(self) -> None:
        if self._closing is not None:
            raise EnvironmentStateError(_CLOSED)

    async def _copy_leader(self, leader: PooledEpisode, followers: Sequence[PooledEpisode]) -> None:
        """Bring the followers into the state of the leader."""
        with await leader.run(leader.env.snapshot) as snapshot:
            for follower in followers:
                await follower.start(partial(follower.env.restore, snapshot))
                follower.observation, follower.turns = leader.observation, leader.turns
                follower.reward = leader.reward

    def _release(self, episode: PooledEpisode) -> None:
        """Free an episode's sandbox in the background, and then its slot."""
        ending = self._workers.submit(partial(self._envs.give_back, episode.env))

        def on_end(done: asyncio.Future[None]) -> None:
            if not done.cancelled():
                done.exception()  # marks it as retrieved, or asyncio logs it
            self._live_episodes.discard(episode)
            self._slots.release()

        ending.add_done_callback(on_end)

    async def _close_idle_episodes(self, timeout: float) -> None:
        """Close episodes that have had no call for longer than ``timeout`` seconds."""
        while True:
            await self._clock.wait(timeout / _CHECKS_PER_TIMEOUT)
            now = self._clock.now()
            idle = [e for e in self._live_episodes if not e.busy and now - e.last_used > timeout]
            for episode in idle:
                self.idle_closed += not episode.closed
                await episode.close(f"nothing happened in it for {timeout:g} s")


def _reset_call(
    env: BranchingEnvironment, task: int | str | None, seed: int | None
) -> Callable[[], object]:
    return lambda: env.reset(seed=seed, options={"task": task})


async def _close_all(episodes: Sequence[PooledEpisode]) -> None:
    await asyncio.gather(*(episode.close() for episode in episodes))
