"""Replay rules that all logs of the authors share."""

from __future__ import annotations

import re
from dataclasses import replace

from intercode.core.types import Step, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.rules import ReplayRules
from intercode.paper import PROFILE

REACT_OBSERVATION_LIMIT = 350
"""Characters of an observation that the authors' ReAct logs hold."""
_EXECUTE = re.compile(r"execute\[(.*)\]", re.DOTALL)


class AuthorsRules(ReplayRules):
    """Replay rules for logs of the authors.

    Their ReAct logs hold the action with its wrapping, a reward of 0 for steps that were never
    scored, and the beginning of an observation.
    """

    def repeats_in(self, env: InterCodeEnv) -> bool:
        return env.profile == PROFILE

    def executed_step(self, trajectory: Trajectory, step: Step) -> Step:
        if trajectory.run.get("source") != "authors" or trajectory.run.get("agent") != "react":
            return step
        if wrapped := _EXECUTE.fullmatch(step.action):
            return replace(step, action=wrapped[1], score=None)
        return step

    def logged_observation(self, trajectory: Trajectory, step: Step, observation: str) -> str:
        if (
            len(step.observation) == REACT_OBSERVATION_LIMIT
            and trajectory.run.get("agent") == "react"
        ):
            return observation[:REACT_OBSERVATION_LIMIT]
        return observation
