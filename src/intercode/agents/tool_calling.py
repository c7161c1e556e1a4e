"""Tool calling: the model calls a function to run code and another to submit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intercode.agents.base import Feedback
from intercode.agents.model_agent import ModelAgent
from intercode.agents.parsing import (
    EMPTY_ANSWER_REASON,
    ONLY_THOUGHTS_REASON,
    ParsedAnswer,
    split_thought,
)
from intercode.agents.tools import sanitize_calls, tool_set_of
from intercode.core.types import Brief
from intercode.models.base import Completion, Tool, ToolCall

NO_CALL_REASON = "the answer calls no tool"
ONE_CALL_PER_TURN = (
    "Not run: one call counts a turn, and the first one was taken. Call again if need be."
)
INTERVENTION_RESULT = "This was not run: somebody else took a turn in your place."


class ToolCallingAgent(ModelAgent):
    """Native function calls: a tool that runs code, typed by the environment, and ``submit``, which
    is what is scored. The first call of an answer counts; the others are told that they were not
    run. Code in the text of an answer does not count."""

    name = "tool-calling"
    prompt_file = "tool_calling.txt"
    required_sections = (*ModelAgent.required_sections, "run", "submit")

    def tools_for(self, brief: Brief) -> Sequence[Tool]:
        """The environment's tools, described in the prompt's sections ``run`` and ``submit``."""
        self._tool_set = tool_set_of(brief.environment)
        self._calls: list[ToolCall] = []
        return self._tool_set.tools(self.fill_prompt("run"), self.fill_prompt("submit"))

    def add_feedback(self, feedback: Feedback) -> None:
        """Tell the model what came of its calls."""
        told = self.format_feedback(feedback) if self._had_code else feedback.observation
        if not self._calls:
            self.conversation.add_user(told)
        self._add_results(told)

    def record_intervention(
        self, action: str, feedback: Feedback, before: Feedback | None = None
    ) -> None:
        """Learn of a turn that somebody else took; see ModelAgent."""
        if before is not None and not self._intervened:
            self.add_feedback(before)
        self._add_results(INTERVENTION_RESULT)
        super().record_intervention(action, feedback)

    def parse(self, completion: Completion) -> ParsedAnswer:
        """The first call of an answer."""
        text, thought = split_thought(completion.text)
        self._calls = sanitize_calls(completion.calls, self._turns)
        if not self._calls:
            return ParsedAnswer(
                None,
                thought,
                text,
                NO_CALL_REASON
                if text
                else ONLY_THOUGHTS_REASON
                if thought
                else EMPTY_ANSWER_REASON,
            )
        code, why = self._tool_set.parse_call(completion.calls[0])
        replaced = sum(
            a["function"] != b["function"]
            for a, b in zip(self._calls, completion.calls, strict=True)
        )
        about = {"arguments_replaced": replaced} if replaced else {}
        return ParsedAnswer(code, thought, text, why, about)

    def add_answer(self, completion: Completion, text: str) -> None:
        """Have the answer stay with its calls in a form that endpoints take back."""
        super().add_answer(replace(completion, calls=tuple(self._calls)), text)

    def _add_results(self, told: str) -> None:
        """Give each open call its result."""
        for number, call in enumerate(self._calls):
            self.conversation.add_tool_result(call["id"], ONE_CALL_PER_TURN if number else told)
        self._calls = []
