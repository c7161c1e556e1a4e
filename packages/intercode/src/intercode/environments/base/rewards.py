"""The registry of reward functions, and those that several environments share.

A reward function is a pure function of the task, the state that the agent reached and the state
that a gold reached.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

from intercode.core.errors import UsageError
from intercode.core.packages import GYM_DISTRIBUTION, LAB
from intercode.core.types import Dataset, Score, State, Task
from intercode_sandbox.lines import split_lines
from intercode_sandbox.registry import Registry

RewardFunction = Callable[[Task, State, State], Score]

REWARDS = Registry(
    "reward",
    {
        "bash-standard": "intercode.environments.bash.reward:standard",
        "code-standard": "intercode.environments.code.reward:standard",
        "ctf-standard": "intercode.environments.ctf.reward:standard",
        "probe": "intercode.environments.base.rewards:probe_similarity",
        "harbor-standard": GYM_DISTRIBUTION,
        "swe-bench-standard": GYM_DISTRIBUTION,
        "python-standard": "intercode.environments.python.reward:standard",
        "sql-standard": "intercode.environments.sql.reward:standard",
        "spider-lenient": "intercode.environments.sql.reward:lenient",
    },
    group="intercode.rewards",
    owner=GYM_DISTRIBUTION,
)


_ROUNDING = 1e-9
"""By how much a sum of shares may leave the range from 0 to 1."""


def reward_name_of(function: RewardFunction) -> str:
    """Return the name of a function as results record it."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def check_reward(name: str, function: object) -> None:
    """Raise UsageError unless ``function`` can be called as a reward function."""
    if not callable(function):
        raise UsageError(
            f"the reward {name} is {function!r}: give a function of (task, agent, gold) that "
            "returns a Score"
        )
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError as e:
        raise UsageError(
            f"the reward {name} cannot be called with (task, agent, gold), the task and the two "
            f"states: {e}"
        ) from e
    except ValueError:  # a built-in function without a signature
        return


class RewardFunctionError(Exception):
    """A reward function raised an exception, the cause of this one.

    ``reward``: the name of the function. ``is_own``: whether it is one of this package.
    """

    def __init__(self, function: RewardFunction, name: str, error: Exception) -> None:
        self.reward, self.is_own = name, _is_own(function)
        frames = traceback.extract_tb(error.__traceback__)[1:]  # that of score_states
        own = [frame for frame in frames if frame.filename == frames[0].filename]
        where = f", in {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
        code = f": {own[-1].line}" if own and own[-1].line else ""
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        super().__init__(f"the reward function {name} raised {said}{where}{code}")


def _is_own(function: RewardFunction) -> bool:
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "intercode"


def score_states(
    function: RewardFunction, name: str, task: Task, agent: State, gold: State
) -> Score:
    """Return what a reward function gives to the state of an agent. Raises RewardFunctionError if
    it raises an exception, and UsageError if it returns no Score, or one that is not from 0 to 1;
    the rewards of this package may exceed that range as the verifiers of their tasks do."""
    try:
        score: object = function(task, agent, gold)
    except Exception as e:
        raise RewardFunctionError(function, name, e) from e

    def where() -> str:
        return f"the reward {name} returned {score!r:.200} for {task.id}"

    if not isinstance(score, Score):
        given = float(score) if isinstance(score, int | float) and 0 <= score <= 1 else "VALUE"
        raise UsageError(
            f"{where()}, which is of type {type(score).__name__}: return a Score, as in "
            f"intercode.core.Score({given}), with a value from 0 to 1, where 1 is solved"
        )
    numbers_of = {"value": score.value}
    if not isinstance(score.parts, Mapping) or not isinstance(score.details, Mapping):
        raise UsageError(
            f"{where()}: its parts and details are dictionaries, {{}} if there are none"
        )
    for what, number in {**{f"part {k}": v for k, v in score.parts.items()}, **numbers_of}.items():
        if not isinstance(number, numbers.Real) or not math.isfinite(number):
            raise UsageError(f"{where()}: its {what} must be a finite number, not {number!r}")
    if not _is_own(function) and not -_ROUNDING <= score.value <= 1 + _ROUNDING:
        raise UsageError(
            f"{where()}: its value must be from 0 to 1, where 1 is solved; scale it to that range"
        )
    return _with_plain_numbers(score)


def _with_plain_numbers(score: Score) -> Score:
    """Return a score whose numbers JSON can hold, also those of NumPy."""
    kept = (int, float)
    if type(score.value) in kept and all(type(v) in kept for v in score.parts.values()):
        return score
    parts = {k: float(v) for k, v in score.parts.items()}
    return replace(score, value=float(score.value), parts=parts)


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
    "reward of episodes", {"variants": LAB}, group="intercode.episode_rewards"
)
"""Rewards that depend on the actions. Their names are those of rewards, too."""


def names_episode_reward(reward: object) -> bool:
    """Return whether a setting is the name of a reward of episodes."""
    return isinstance(reward, str) and reward not in REWARDS and reward in EPISODE_REWARDS


def probe_similarity(_task: Task, agent: State, gold: State) -> Score:
    """Return the share of the printed lines that both states have in common.

    The lines are compared as multisets, in any order: Σ min / Σ max of their counts. The score is 1
    if the probe printed nothing for both states. The details list ``missed`` and ``extra`` lines.
    """
    printed, expected = (Counter(split_lines(state.probe_output)) for state in (agent, gold))
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


def open_episode_reward(
    name: str | RewardFunction | None, dataset: Dataset, settings: Mapping[str, Any]
) -> EpisodeReward | None:
    """Return the reward of episodes that the setting ``reward`` names, None for a reward of
    states. ``settings``: those of the environment."""
    if not isinstance(name, str) or not names_episode_reward(name):
        return None
    reward: EpisodeReward = EPISODE_REWARDS.load(name)(dataset, settings)
    return reward


# When an environment pays its reward. In every mode the rewards of an episode sum to at most its
# best score, so that no policy earns more by taking more turns.
RewardMode = Literal["final", "per-turn", "delta"]


def sum_of_rewards(mode: RewardMode, score: Score, before: float) -> float:
    """Return the sum of the rewards after a turn whose state has this score. ``before``: that of
    the turns before it.

    ``final``: the score is paid once, when the episode ends. ``per-turn``: by how much the score
    exceeds the best one before, so that the rewards of an episode sum to its best score, or to 0 if
    it ended its sandbox or caused an exception. ``delta``: the change of the score in the turn, so
    that the rewards of an episode sum to its final score. This is potential-based shaping (Ng,
    Harada & Russell, 1999) with the score as the potential and no discount, which does not change
    the optimal policy.
    """
    failed = score.details.get("sandbox_lost") or score.action_error is not None
    return max(score.value, before) if mode == "per-turn" and not failed else score.value
