"""Tool calling: the model calls a function to run code and another to submit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intercode.agents.base import Feedback
from intercode.agents.model_agent import ModelAgent
from intercode.agents.parsing import EMPTY, THOUGHTS, Parsed, split_thought
from intercode.agents.tools import sound, toolkit_of
from intercode.core.types import Brief
from intercode.models.base import Call, Completion, Tool

NO_CALL = "the answer calls no tool"
ONE_A_TURN = "Not run: one call counts a turn, and the first one was taken. Call again if need be."
SOMEBODY_ELSE = "This was not run: somebody else took a turn in your place."


class ToolCallingAgent(ModelAgent):
    """Native function calls: a tool that runs code, typed by the environment, and ``submit``, which
    is what is scored. The first call of an answer counts; the others are told that they were not
    run. Code in the text of an answer does not count."""

    name = "tool-calling"
    prompt_file = "tool_calling.txt"
    needs = (*ModelAgent.needs, "run", "submit")

    def tools_for(self, brief: Brief) -> Sequence[Tool]:
        """The environment's tools, described in the prompt's sections ``run`` and ``submit``."""
        self._kit = toolkit_of(brief.environment)
        self._calls: list[Call] = []
        return self._kit.tools(self.fill("run"), self.fill("submit"))

    def hear(self, feedback: Feedback) -> None:
        """Tell the model what came of its calls."""
        told = self.describe(feedback) if self._had_code else feedback.observation
        if not self._calls:
            self.talk.tell(told)
        self._answer(told)

    def watch(self, action: str, feedback: Feedback, before: Feedback | None = None) -> None:
        """Learn of a turn that somebody else took; see ModelAgent."""
        if before is not None and not self._watched:
            self.hear(before)
        self._answer(SOMEBODY_ELSE)
        super().watch(action, feedback)

    def read(self, completion: Completion) -> Parsed:
        """The first call of an answer."""
        text, thought = split_thought(completion.text)
        self._calls = sound(completion.calls, self._turns)
        if not self._calls:
            return Parsed(None, thought, text, NO_CALL if text else THOUGHTS if thought else EMPTY)
        code, why = self._kit.read(completion.calls[0])
        replaced = sum(
            a["function"] != b["function"]
            for a, b in zip(self._calls, completion.calls, strict=True)
        )
        about = {"arguments_replaced": replaced} if replaced else {}
        return Parsed(code, thought, text, why, about)

    def keep(self, completion: Completion, text: str) -> None:
        """Have the answer stay with its calls in a form that endpoints take back."""
        super().keep(replace(completion, calls=tuple(self._calls)), text)

    def _answer(self, told: str) -> None:
        """Give each open call its result."""
        for number, call in enumerate(self._calls):
            self.talk.result(call["id"], ONE_A_TURN if number else told)
        self._calls = []
