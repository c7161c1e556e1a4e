"""Keeps hundreds of episodes live in one process, for trainers that step them independently.

    async with Pool("bash", size=64, dataset="nl2bash:fs_1", reward_mode="delta") as pool:
        async with pool.episode(task=3, seed=1) as episode:
            while not episode.done:
                turn = await episode.step(await policy(episode.observation))

``pool.group(task, n)`` begins n episodes in the same state, as GRPO needs them.
``pool.fork(episode, n)`` continues a running episode n times.
"""

from __future__ import annotations

from intercode.core.types import Step
from intercode.environments.base.pool.episode import PooledEpisode
from intercode.environments.base.pool.pool import Pool

__all__ = ["Pool", "PooledEpisode", "Step"]
