"""The registry of reward functions.

A reward function is a pure function of the task, the state that the agent reached and the state
that a gold reached.
"""

from __future__ import annotations

from collections.abc import Callable

from intercode.core.registry import Registry
from intercode.core.types import Score, State, Task

RewardFunction = Callable[[Task, State, State], Score]

REWARDS = Registry(
    "reward",
    {
        "bash-standard": "intercode.environments.bash.reward:standard",
        "bash-original": "intercode.environments.bash.reward:original",
        "code-standard": "intercode.environments.code.reward:standard",
        "ctf-standard": "intercode.environments.ctf.reward:standard",
        "ctf-original": "intercode.environments.ctf.reward:original",
        "probe": "intercode.environments.base.probe_reward:probe_similarity",
        "harbor-standard": "intercode.environments.harbor.reward:standard",
        "python-standard": "intercode.environments.python.reward:standard",
        "python-original": "intercode.environments.python.reward:original",
        "sql-standard": "intercode.environments.sql.reward:standard",
        "sql-original": "intercode.environments.sql.reward:original",
        "sql-original-iou": "intercode.environments.sql.reward:original_iou",
    },
    group="intercode.rewards",
)
