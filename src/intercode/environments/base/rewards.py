"""The registry of reward functions, and those that several environments share.

A reward function is a pure function of the task, the state that the agent reached and the state
that a gold reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from intercode.core.registry import Registry
from intercode.core.types import Dataset, Score, State, Task

RewardFunction = Callable[[Task, State, State], Score]

REWARDS = Registry(
    "reward",
    {
        "bash-standard": "intercode.environments.bash.reward:standard",
        "bash-original": "intercode.environments.bash.reward:original",
        "code-standard": "intercode.environments.code.reward:standard",
        "ctf-standard": "intercode.environments.ctf.reward:standard",
        "ctf-original": "intercode.environments.ctf.reward:original",
        "probe": "intercode.environments.base.rewards:probe_similarity",
        "harbor-standard": "intercode.environments.harbor.reward:standard",
        "swe-bench-standard": "intercode.environments.swe_bench.reward:standard",
        "python-standard": "intercode.environments.python.reward:standard",
        "python-original": "intercode.environments.python.reward:original",
        "sql-standard": "intercode.environments.sql.reward:standard",
        "spider-lenient": "intercode.environments.sql.reward:lenient",
        "sql-original": "intercode.environments.sql.reward:original",
        "sql-original-iou": "intercode.environments.sql.reward:original_iou",
    },
    group="intercode.rewards",
)


class EpisodeReward(Protocol):
    """A reward that depends on the actions of an episode, and not only on the state they reached.

    It is made for one environment, from its dataset and settings, and closed with it.
    """

    def __init__(self, dataset: Dataset, settings: Mapping[str, Any]) -> None: ...

    def score(self, index: int, actions: Sequence[str], score: Score) -> Score:
        """Return the score of the actions that were executed on the task at a position.
        ``score``: that of the state by the environment's own reward."""
        ...

    def abort(self) -> None:
        """Interrupt ``score`` from another thread."""
        ...

    def close(self) -> None: ...


EPISODE_REWARDS = Registry(
    "reward of episodes", {"variants": "intercode.evaluation.variants.reward:VariantReward"}
)
"""Rewards that depend on the actions. Their names are those of rewards, too."""


def probe_similarity(_task: Task, agent: State, gold: State) -> Score:
    """Return the share of the printed lines that both states have in common.

    The lines are compared as multisets, in any order: Σ min / Σ max of their counts. The score is 1
    if the probe printed nothing for both states. The details list ``missed`` and ``extra`` lines.
    """
    printed, expected = (Counter(state.probe_output.splitlines()) for state in (agent, gold))
    total = (printed | expected).total()
    value = (printed & expected).total() / total if total else 1.0
    missed, extra = sorted((expected - printed).elements()), sorted((printed - expected).elements())
    return Score(value, {"probe": value}, {"missed": missed, "extra": extra})


def share_of_passed_tests(_task: Task, agent: State, _gold: State) -> Score:
    """Return the share of the hidden tests that passed, or 0 if no test was run."""
    passed = [run.passed for run in agent.tests]
    value = sum(passed) / len(passed) if passed else 0.0
    failed = {n: run.error for n, run in enumerate(agent.tests) if not run.passed}
    return Score(value, {"tests": value}, {"tests": len(passed), "failed": failed})


def open_episode_reward(dataset: Dataset, settings: Mapping[str, Any]) -> EpisodeReward | None:
    """Return the reward of episodes that an environment's settings name, None for a reward of
    states."""
    name = settings["reward"]
    if not isinstance(name, str) or name not in EPISODE_REWARDS:
        return None
    reward: EpisodeReward = EPISODE_REWARDS.load(name)(dataset, settings)
    return reward
