"""The styles in which a model is sent observations and its answers are read: the option
``feedback``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from intercode.agents.parsing import ParsedAnswer, is_complete
from intercode.agents.prompt import format_observation
from intercode.core.observations import OBSERVATION_LIMIT
from intercode.core.packages import GYM_DISTRIBUTION
from intercode.core.types import Step
from intercode.models.base import Completion, reached_token_limit, was_interrupted
from intercode_sandbox.registry import Registry, unknown_name_error

FEEDBACK_STYLES = Registry(
    "feedback",
    {"standard": "intercode.agents.feedback:FeedbackStyle"},
    group="intercode.feedback",
    owner=GYM_DISTRIBUTION,
)
"""Classes of styles, by name."""
TRUNCATED_ANSWER = "the answer reached its limit of tokens and was cut off"


class FeedbackStyle:
    """The standard style: head and tail of an observation, and answers as the strategy parses them.

    A style has no state; its methods are given the agent, a ModelAgent.
    """

    runs_truncated_code: ClassVar[bool] = False
    """Whether the code of an answer that was cut off is run."""

    def observation_limit(self, agent: Any) -> int:
        """Return the characters of an observation that a model is sent: the agent's limit, if it
        has one."""
        own: int | None = agent.observation_limit
        return self.default_limit(agent) if own is None else own

    def default_limit(self, agent: Any) -> int:  # noqa: ARG002
        """Return the characters of an observation that a model is sent, if the agent sets none."""
        return OBSERVATION_LIMIT

    def show(self, agent: Any, feedback: Step) -> tuple[str, dict[str, int]]:
        """Return what a model is sent of an observation, and the sizes if it is not all."""
        return format_observation(feedback, self.observation_limit(agent))

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

    def without_truncated_code(
        self, agent: Any, completion: Completion, parsed: ParsedAnswer
    ) -> ParsedAnswer:
        """Drop the code of an answer that was cut off, unless it had ended before the cut: small
        models go on after it. The reason for an answer without code is the cut then."""
        cut = reached_token_limit(completion) or was_interrupted(completion)
        if self.runs_truncated_code or not cut:
            return parsed
        if completion.calls:  # the first one is the action
            complete = parsed.code is not None and len(completion.calls) > 1
        else:
            complete = parsed.code is not None and is_complete(
                completion.text,
                parsed.code,
                agent.language,
                lambda text: agent.parse(replace(completion, text=text)).code,
            )
        interrupted = f"the answer was broken off ({completion.finish_reason})"
        reason = interrupted if was_interrupted(completion) else TRUNCATED_ANSWER
        return parsed if complete else replace(parsed, code=None, reason=reason)


def load_style(name: str) -> FeedbackStyle:
    """Return the style of that name. Raises UnknownNameError."""
    if not isinstance(name, str) or name not in FEEDBACK_STYLES:
        raise unknown_name_error("feedback", str(name), list(FEEDBACK_STYLES))
    style: FeedbackStyle = FEEDBACK_STYLES.load(name)()
    return style
