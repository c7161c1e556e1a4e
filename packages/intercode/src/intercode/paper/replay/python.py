"""Replay rules of the authors' Python logs: what the authors' runner showed in place of an
observation."""

from __future__ import annotations

import re

from intercode.core.types import Score, Step
from intercode.datasets.payloads import PythonPayload
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.comparison import StepComparison
from intercode.environments.python.env import PythonEnv
from intercode.paper.python.profile import score_and_load_gold
from intercode.paper.replay.rules import AuthorsRules

_COUNT_FEEDBACK = re.compile(r"Failed \d+/\d+ Test Cases\. Please try again\.")
_NAMED_FEEDBACK = re.compile(r"Failed Test Case: .*\nPlease try again\.", re.DOTALL)
_SUBMISSION_PREFIX = "def"
_PLAIN_FEEDBACK = "Test case did not pass. Please try again."


class AuthorsPythonRules(AuthorsRules):
    """After an action that begins with ``def`` the authors' runner submitted the function.

    Below a reward of 1 it showed the agent the tests that raised, in one of three forms. The form
    is a setting that the log does not name, so the form of the record is used. Other actions were
    not scored.
    """

    def play(self, env: InterCodeEnv, step: Step) -> tuple[str, float | None]:
        assert isinstance(env, PythonEnv)
        observation = env.execute(step.action).observation
        if step.score is None:
            return observation, None
        if not step.action.startswith(_SUBMISSION_PREFIX):
            return observation, 0.0
        score = score_and_load_gold(env) if env.profile == "original" else env.score()
        return feedback_observation(
            step.observation, observation, score, PythonPayload.of(env.task).tests
        ), score.value

    def cause(self, step: StepComparison) -> str:
        """Return the cause of a difference, out of a fixed set."""
        if "Please try again." in (step.recorded[-17:], step.replayed[-17:]):
            return "a test ends otherwise"
        if "Error" in step.recorded and "Error" in step.replayed:
            return "words of an error, by Python's version"
        return "other"


def feedback_observation(
    recorded: str, observation: str, score: Score, tests: tuple[str, ...]
) -> str:
    """Return the observation, or the feedback in the form of ``recorded`` if tests have raised."""
    raised = score.details.get("raised", ())
    if score.success or not raised:
        return observation
    if _COUNT_FEEDBACK.fullmatch(recorded):
        return f"Failed {len(raised)}/{len(tests)} Test Cases. Please try again."
    if _NAMED_FEEDBACK.fullmatch(recorded):
        return f"Failed Test Case: {tests[raised[0]]}\nPlease try again."
    return _PLAIN_FEEDBACK
