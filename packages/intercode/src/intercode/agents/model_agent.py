"""The base of all strategies with a language model: the loop, the prompts, and what a turn
records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from intercode.agents.base import Agent
from intercode.agents.feedback import load_style
from intercode.agents.parsing import ParsedAnswer, parse_answer
from intercode.agents.prompt import load_prompt
from intercode.core.errors import BudgetError, EnvironmentStateError, ModelError
from intercode.core.types import AgentOutput, Brief, Step
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.conversation import (
    Conversation,
    History,
    HistoryFunction,
    is_context_overflow,
)
from intercode.models.options import check_integer


class ModelAgent(Agent):
    """A conversation with a model in which code is run and its output is sent back.

    ``prompt`` is a file to use instead of the packaged prompt. ``feedback`` names the style in
    which the model is sent observations and its answers are read. ``observation_limit`` is the
    number of characters of an observation that the model is sent (None: that of the style).
    ``history`` and ``history_tokens`` select what is sent of a long conversation (see History); the
    record always holds the whole of it.

    A strategy sets ``prompt_file`` and overrides what differs: ``request_action`` (the requests of
    a turn), ``tools_for``, ``parse`` (the answer), ``add_feedback`` and ``format_feedback``.
    """

    prompt_file: ClassVar[str]
    required_sections: ClassVar[tuple[str, ...]] = ("system", "task", "observation", "retry")
    placeholders: ClassVar[frozenset[str]] = frozenset()
    """What the strategy fills into its sections, beside what every prompt has."""

    def __init__(
        self,
        *,
        model: Model,
        max_turns: int | None = 10,
        prompt: str | Path | None = None,
        feedback: str = "standard",
        observation_limit: int | None = None,
        history: str | HistoryFunction = "full",
        history_tokens: int | None = None,
    ) -> None:
        check_integer("max_turns", max_turns)
        check_integer("observation_limit", observation_limit)
        self.style = load_style(feedback)
        self.model, self.max_turns, self.feedback = model, max_turns, feedback
        self.prompt = load_prompt(
            prompt, self.prompt_file, self.required_sections, self.placeholders
        )
        self.observation_limit = observation_limit
        self.history = History(history, history_tokens)
        self.conversation = Conversation(model, self.history)
        self._end: Exception | None = EnvironmentStateError("no episode yet: call start() first")

    @property
    def messages(self) -> Sequence[Message]:
        return tuple(self.conversation.messages)

    @property
    def tools(self) -> Sequence[Tool]:
        return self.conversation.tools

    def metadata(self) -> dict[str, Any]:
        """Return what a run records of its agent: the whole prompt and every option."""
        return {
            "prompt": self.prompt.metadata(),
            "max_turns": self.max_turns,
            "feedback": self.feedback,
            "observation_limit": self.style.observation_limit(self),
            "history": self.history.policy,
            "history_tokens": self.history.tokens,
        }

    # ------------------------------------------------------ the loop
    def start(self, brief: Brief) -> None:
        """Begin an episode with the system and task messages."""
        self.brief, self.language = brief, brief.description.language
        limits = [n for n in (brief.max_turns, self.max_turns) if n is not None]
        self._values = self.prompt.values(brief, min(limits, default=None))
        self.turn = 0
        self.last_code: str | None = ""  # of the last turn; None if it had none
        self._end = None  # with what the last turn could not be finished
        self.conversation = Conversation(self.model, self.history, self.tools_for(brief))
        self.conversation.add_system(self.fill_prompt("system"))
        self.conversation.add_user(self.fill_prompt("task"))
        self.conversation.pin()

    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Send the feedback to the model and return the next action.

        Returns None at the turn limit, and once an answer no longer fits the context. Raises
        ModelError if not even the task fits.
        """
        if isinstance(self._end, BudgetError | EnvironmentStateError):
            raise self._end  # after the usage of the turn before was recorded
        if self._end or (self.max_turns is not None and self.turn >= self.max_turns):
            return None
        if feedback is not None:
            self.add_feedback(feedback)
        self.turn += 1
        try:
            return self.request_action()
        except BudgetError as e:
            if e.run_limit or not self.conversation.turn_usage.requests:
                raise
            self._end, reply = e, str(e)
        except ModelError as e:
            if not is_context_overflow(e) or not self.conversation.has_answer:
                raise
            self._end, reply = e, f"No room is left for an answer: {e}"
        return AgentOutput(None, reply=reply, **self.conversation.finish_turn())

    def record_intervention(self, action: str, feedback: Step, before: Step | None = None) -> bool:
        """Tell the model of a turn that a human took in its place; see Agent."""
        if before is not None:
            self.add_feedback(before)
        self.last_code = action
        observation = self.visible_observation(feedback)
        self.conversation.add_user(
            self.fill_prompt("watched", action=action, observation=observation)
        )
        return True

    # ------------------------------------------------------ a strategy may override these
    def tools_for(self, brief: Brief) -> Sequence[Tool]:  # noqa: ARG002
        """Return the tools that the model may call in an episode."""
        return ()

    def add_feedback(self, feedback: Step) -> None:
        """Add the feedback on the last turn to the conversation."""
        self.conversation.add_user(self.feedback_message(feedback))

    def format_feedback(self, feedback: Step) -> str:
        """Return the message to the model after a turn with code."""
        return self.fill_prompt("observation", observation=self.visible_observation(feedback))

    def request_action(self) -> AgentOutput | None:
        """Request an answer and return it as an action; None to stop."""
        completion = self.conversation.request_answer()
        return self.make_output(completion, self.style.parse(self, completion))

    def parse(self, completion: Completion) -> ParsedAnswer:
        """Return the action and the thoughts in an answer."""
        return parse_answer(completion.text, self.language)

    # ------------------------------------------------------ for strategies
    def feedback_message(self, feedback: Step) -> str:
        """Return the message to the model after the last turn, whether that had code or not."""
        return feedback.observation if self.last_code is None else self.format_feedback(feedback)

    def fill_prompt(self, section: str, **values: object) -> str:
        """Return a section of the prompt with its placeholders filled in."""
        turn = self.turn or ""
        return self.prompt.fill(section, {**self._values, "turn": turn, **values})

    def visible_observation(self, feedback: Step) -> str:
        """Return what the model is sent of an observation. The turn's context records a cut."""
        visible, omitted = self.style.show(self, feedback)
        self.conversation.add_context("observation", omitted)
        return visible

    def make_output(
        self, completion: Completion, parsed: ParsedAnswer, message: str = ""
    ) -> AgentOutput:
        """Add an answer to the conversation and return its action, which ends the turn.

        ``message`` is the text of an earlier answer in the same turn, for the record.
        """
        parsed = self.style.without_truncated_code(self, completion, parsed)
        self.conversation.add_answer(completion, parsed.text)
        for name, value in parsed.context.items():
            self.conversation.add_context(name, value)
        self.last_code = parsed.code
        thought = "\n\n".join(t for t in (completion.reasoning, parsed.thought) if t)
        reply = self.fill_prompt("retry", why=parsed.reason) if parsed.code is None else ""
        text = f"{message}\n{completion.text}" if message else completion.text
        return AgentOutput(parsed.code, text, thought, reply, **self.conversation.finish_turn())
