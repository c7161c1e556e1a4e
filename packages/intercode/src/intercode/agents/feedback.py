"""The styles in which a model is sent observations and its answers are read: the option
``feedback``."""

from __future__ import annotations

from typing import Any, ClassVar

from intercode.agents.base import Feedback
from intercode.agents.parsing import ParsedAnswer
from intercode.agents.prompt import OBSERVATION_LIMIT, format_observation
from intercode.core.packages import GYM
from intercode.models.base import Completion
from intercode_sandbox.registry import Registry

FEEDBACK_STYLES = Registry(
    "feedback",
    {"standard": "intercode.agents.feedback:FeedbackStyle"},
    group="intercode.feedback",
    owner=GYM,
)
"""Classes of styles, by name."""


class FeedbackStyle:
    """The standard style: head and tail of an observation, and answers as the strategy parses them.

    A style has no state; its methods are given the agent, a ModelAgent.
    """

    runs_truncated_code: ClassVar[bool] = False
    """Whether the code of an answer that was cut off is run."""

    def observation_limit(self, agent: Any) -> int:  # noqa: ARG002
        """Return the characters of an observation that a model is sent, if the agent sets none."""
        return OBSERVATION_LIMIT

    def show(self, agent: Any, feedback: Feedback) -> tuple[str, dict[str, int]]:
        """Return what a model is sent of an observation, and the sizes if it is not all."""
        return format_observation(feedback, agent.effective_observation_limit)

    def parse(self, agent: Any, completion: Completion) -> ParsedAnswer:
        """Return the action and the thoughts in an answer."""
        parsed: ParsedAnswer = agent.parse(completion)
        return parsed

    def parse_action(self, agent: Any, completion: Completion) -> ParsedAnswer:
        """Return the action in an answer to ReactAgent's request for one."""
        parsed: ParsedAnswer = agent.parse_action(completion)
        return parsed

    def parse_plan(self, agent: Any, text: str) -> list[str]:
        """Return the steps in an answer to PlanSolveAgent's request for a plan."""
        steps: list[str] = agent.parse_plan(text)
        return steps
