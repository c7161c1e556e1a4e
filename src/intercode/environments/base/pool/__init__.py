"""Hundreds of live episodes in one process, for trainers: nobody waits for the slowest.

    async with Pool("bash", size=64, dataset="nl2bash:fs_1", reward_mode="delta") as pool:
        async with pool.episode(task=3, seed=1) as episode:
            while not episode.done:
                turn = await episode.step(await policy(episode.observation))

``pool.group(task, n)`` begins n episodes from one prepared state, as GRPO wants them.
"""

from __future__ import annotations

from intercode.environments.base.pool.episode import Episode, StepResult
from intercode.environments.base.pool.pool import Pool

__all__ = ["Episode", "Pool", "StepResult"]
