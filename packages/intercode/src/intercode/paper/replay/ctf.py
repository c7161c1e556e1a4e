"""Replay rules of the authors' Capture-the-Flag logs."""

from __future__ import annotations

from intercode.core.types import Step
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.ctf.replay_rules import CAUSES, CtfReplayRules, first_cause
from intercode.paper.replay.rules import AuthorsRules

_CAUSES = (
    ("what somebody had put there", r"Image-ExifTool|__pycache__|shark", "recorded"),
    ("what somebody had put there", r"shark", "action"),
    ("another architecture", r"no such architecture", "replayed"),
    *CAUSES,
    ("chance", r"convertme\.py", "action"),
)
"""Causes as in the rules of the environment."""


class AuthorsCtfRules(AuthorsRules, CtfReplayRules):
    """Executes every step as recorded. A submitted answer is compared with the task's flag."""

    def play(self, env: InterCodeEnv, step: Step) -> tuple[str, float | None]:
        result = env.execute(step.action)
        reward = None if result.score is None else result.score.value
        return result.observation, None if step.score is None else reward or 0.0

    def cause(self, step: StepComparison) -> str:
        if step.stable is False:
            return super().cause(step)
        return first_cause(_CAUSES, step) or super().cause(step)
