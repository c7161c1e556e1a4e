"""Rewards: pure functions of a task, what the agent left behind and what the gold left behind."""

from __future__ import annotations

from collections.abc import Callable

from intercode.registry import Registry
from intercode.types import Score, State, Task

RewardFunction = Callable[[Task, State, State], Score]

REWARDS = Registry(
    "reward",
    {
        "bash-standard": "intercode.rewards.bash:standard",
        "bash-original": "intercode.rewards.bash:original",
        "code-standard": "intercode.rewards.code:standard",
        "ctf-standard": "intercode.rewards.ctf:standard",
        "ctf-original": "intercode.rewards.ctf:original",
        "look": "intercode.rewards.look:share",
        "harbor-standard": "intercode.rewards.harbor:standard",
        "python-standard": "intercode.rewards.python:standard",
        "python-original": "intercode.rewards.python:original",
        "sql-standard": "intercode.rewards.sql:standard",
        "sql-original": "intercode.rewards.sql:original",
        "sql-original-iou": "intercode.rewards.sql:original_iou",
    },
    group="intercode.rewards",
)
