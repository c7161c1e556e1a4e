"""What is particular to re-executing one environment's recorded episodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from intercode.core.registry import Registry
from intercode.core.types import Score, Step, Trajectory
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import SUBMIT, InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison, difference_cause

REPLAY_RULES = Registry(
    "replay of environment",
    {
        "bash": "intercode.environments.bash.replay:BashReplayRules",
        "python": "intercode.environments.python.replay:PythonReplayRules",
        "code": "intercode.environments.base.replay.rules:ReplayRules",
        "harbor": "intercode.environments.base.replay.rules:ReplayRules",
        "ctf": "intercode.environments.ctf.replay:CtfReplayRules",
        "sql": "intercode.environments.sql.replay:SqlReplayRules",
    },
)

REACT_OBSERVATION_LIMIT = 350
"""Characters of an observation that the authors' ReAct logs keep."""
_EXECUTE = re.compile(r"execute\[(.*)\]", re.DOTALL)


class ReplayRules:
    """How the steps of a record become actions again, and when two observations count as equal.

    One object replays many episodes, side by side in threads: it keeps nothing of an episode.
    ``reusable``: an environment that has played one episode plays the next as a new one would.
    """

    reusable: ClassVar[bool] = False

    def dataset(self, name: str) -> str:
        """Our name of the dataset that a record calls ``name``."""
        return name

    def settings(self, trajectory: Trajectory) -> Mapping[str, Any]:  # noqa: ARG002
        """What the environment of an episode of others is to be given beyond the common options,
        such as the ``reward`` with which it was scored."""
        return {}

    def executed_step(self, trajectory: Trajectory, step: Step) -> Step:
        """A step as the environment saw it: the authors' ReAct logs keep the wrapping of the
        action, and a reward of 0 for steps that were never scored."""
        if trajectory.run.get("source") != "authors" or trajectory.run.get("agent") != "react":
            return step
        if wrapped := _EXECUTE.fullmatch(step.action):
            return replace(step, action=wrapped[1], reward=None)
        return step

    def play(self, env: InterCodeEnv, step: Step) -> tuple[str, float | None]:
        """Execute a step of others once more: its observation, and its reward where one was
        recorded."""
        if step.action.split(None, 1)[:1] == [SUBMIT]:
            observation = env.last_observation
        else:
            observation, *_ = env.step(step.action)
        return observation, None if step.reward is None else env.score().value

    def play_and_score(self, env: InterCodeEnv, step: Step) -> tuple[str, Score | None]:
        """As ``play``, with the whole score, for rules whose ``settled`` looks at its parts."""
        observation, reward = self.play(env, step)
        return observation, None if reward is None else Score(reward)

    def review_checks(
        self, trajectory: Trajectory, checks: list[StepComparison]
    ) -> list[StepComparison]:
        """The steps of an episode of others once all of them have been executed: the place to see
        what only the whole episode shows, such as the scorer with which it was recorded."""
        return checks

    def logged_observation(self, trajectory: Trajectory, step: Step, observation: str) -> str:
        """What the record would have kept of an observation."""
        if (
            len(step.observation) == REACT_OBSERVATION_LIMIT
            and trajectory.run.get("agent") == "react"
        ):
            return observation[:REACT_OBSERVATION_LIMIT]
        return observation

    def same(self, recorded: str, replayed: str) -> bool:
        """Whether two observations of an episode of others count as equal."""
        return recorded == replayed

    def stable(self, trajectory: Trajectory, turn: int) -> bool | None:  # noqa: ARG002
        """Whether a step must come again wherever it is executed; None where nobody knows."""
        return None

    def notes(self, steps: Sequence[StepComparison]) -> list[str]:  # noqa: ARG002
        """What else the replayed steps of a file (``replay.StepCheck``) show, in sentences."""
        return []

    def cause(self, step: StepComparison) -> str:
        """Why a step differs from its record: one of a fixed set of causes."""
        return difference_cause(step)


def replay_rules_for(trajectory: Trajectory) -> ReplayRules:
    """The rules of the environment in which an episode was recorded."""
    name = recorded_environment(trajectory)
    if name not in REPLAY_RULES and name in ENVIRONMENTS:
        return ReplayRules()
    rules: ReplayRules = REPLAY_RULES.load(name)()
    return rules


def recorded_environment(trajectory: Trajectory) -> str:
    """Our name of the environment in which an episode was recorded."""
    return str(trajectory.run.get("environment") or "bash").removeprefix("ic_")
