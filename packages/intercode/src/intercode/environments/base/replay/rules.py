"""Rules for replaying recorded episodes, and the registry of each environment's rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from intercode.core.types import Score, Step, Trajectory
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import SUBMIT, InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison, difference_cause
from intercode_sandbox.registry import Registry

REPLAY_RULES = Registry(
    "replay of environment",
    {
        "bash": "intercode.environments.bash.replay:BashReplayRules",
        "python": "intercode.environments.python.replay:PythonReplayRules",
        "code": "intercode.environments.base.replay.rules:ReplayRules",
        "harbor": "intercode.environments.base.replay.rules:ReplayRules",
        "swe-bench": "intercode.environments.base.replay.rules:ReplayRules",
        "ctf": "intercode.environments.ctf.replay:CtfReplayRules",
        "sql": "intercode.environments.sql.replay:SqlReplayRules",
    },
)

REACT_OBSERVATION_LIMIT = 350
"""Characters of an observation that the authors' ReAct logs hold."""
_EXECUTE = re.compile(r"execute\[(.*)\]", re.DOTALL)


class ReplayRules:
    """How recorded steps become actions again, and when two observations count as equal.

    One object replays many episodes, in several threads at once, and has no state of an episode.
    ``reusable``: an environment that has played one episode plays the next one as a new environment
    would.
    """

    reusable: ClassVar[bool] = False

    def dataset(self, name: str) -> str:
        """Return our name of the dataset that a record calls ``name``."""
        return name

    def settings(self, trajectory: Trajectory) -> Mapping[str, Any]:  # noqa: ARG002
        """Return settings for the environment of an authors' episode beyond the common options,
        such as the ``reward`` with which it was scored."""
        return {}

    def executed_step(self, trajectory: Trajectory, step: Step) -> Step:
        """Return a step as the environment executed it.

        The authors' ReAct logs hold the action with its wrapping, and a reward of 0 for steps that
        were never scored.
        """
        if trajectory.run.get("source") != "authors" or trajectory.run.get("agent") != "react":
            return step
        if wrapped := _EXECUTE.fullmatch(step.action):
            return replace(step, action=wrapped[1], reward=None)
        return step

    def play(self, env: InterCodeEnv, step: Step) -> tuple[str, float | None]:
        """Execute a step of the authors again. Return its observation, and its reward if one was
        recorded."""
        if step.action.split(None, 1)[:1] == [SUBMIT]:
            observation = env.last_observation
        else:
            observation = env.execute(step.action).observation
        return observation, None if step.reward is None else env.score().value

    def play_and_score(self, env: InterCodeEnv, step: Step) -> tuple[str, Score | None]:
        """Execute a step like ``play``, but return the whole score, for rules whose
        ``review_checks`` needs its parts."""
        observation, reward = self.play(env, step)
        return observation, None if reward is None else Score(reward)

    def review_checks(
        self,
        trajectory: Trajectory,  # noqa: ARG002
        checks: list[StepComparison],
    ) -> list[StepComparison]:
        """Return the steps of an authors' episode after all of them were executed.

        Rules override this for what only the whole episode shows, such as the scorer of the record.
        """
        return checks

    def logged_observation(self, trajectory: Trajectory, step: Step, observation: str) -> str:
        """Return an observation as the record would hold it."""
        if (
            len(step.observation) == REACT_OBSERVATION_LIMIT
            and trajectory.run.get("agent") == "react"
        ):
            return observation[:REACT_OBSERVATION_LIMIT]
        return observation

    def same(self, recorded: str, replayed: str) -> bool:
        """Return whether two observations of an authors' episode count as equal."""
        return recorded == replayed

    def stable(self, trajectory: Trajectory, turn: int) -> bool | None:  # noqa: ARG002
        """Return whether a step is stable: it should give the recorded result on every machine.
        None if that is unknown."""
        return None

    def notes(self, steps: Sequence[StepComparison]) -> list[str]:  # noqa: ARG002
        """Return further findings on the replayed steps of a file, in sentences."""
        return []

    def cause(self, step: StepComparison) -> str:
        """Return the cause of a step's difference from its record, out of a fixed set."""
        return difference_cause(step)


def replay_rules_for(trajectory: Trajectory) -> ReplayRules:
    """Return the rules of the environment in which an episode was recorded."""
    name = recorded_environment(trajectory)
    if name not in REPLAY_RULES and name in ENVIRONMENTS:
        return ReplayRules()
    rules: ReplayRules = REPLAY_RULES.load(name)()
    return rules


def recorded_environment(trajectory: Trajectory) -> str:
    """Return our name of the environment in which an episode was recorded."""
    return str(trajectory.run.get("environment") or "bash").removeprefix("ic_")
