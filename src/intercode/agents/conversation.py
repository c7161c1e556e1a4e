"""What an agent and a model say to each other in one episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intercode.agents.history import History, is_context_overflow
from intercode.core.errors import ModelError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.token_count import count_tokens

MAX_SHORTENINGS = 12
"""How often a conversation that an endpoint finds too long is cut before that is given up."""
_REFUSED_USAGE = Usage(0, 0, 1, 0, 0, 0.0)
"""What a request costs that was refused: nothing, but it was one."""


class Conversation:
    """The messages of an episode, of which the model is shown what ``history`` keeps.

    ``tools`` may be called by the model. ``turn`` hands out what joined since the last turn, for
    the record.
    """

    def __init__(self, model: Model, history: History, tools: Sequence[Tool] = ()) -> None:
        self.model, self.history, self.tools = model, history, tuple(tools)
        self.messages: list[Message] = []
        self._pinned = self._recorded = 0
        self._token_limit: int | None = None
        self._usage = Usage()
        self._context: dict[str, Any] = {}

    @property
    def turn_usage(self) -> Usage:
        """What the requests of this turn have cost so far."""
        return self._usage

    @property
    def has_answer(self) -> bool:
        """Whether the model has said anything in this episode."""
        return any(message["role"] == "assistant" for message in self.messages)

    def pin(self) -> None:
        """Whatever was said so far is never left out."""
        self._pinned = len(self.messages)

    def add_system(self, text: str) -> None:
        """Say what holds for the whole conversation."""
        self.messages.append(Message(role="system", content=text))

    def add_user(self, text: str) -> None:
        """Tell the model something, in one message with what it was told just before."""
        if len(self.messages) > self._recorded and self.messages[-1]["role"] == "user":
            before = self.messages.pop()["content"]
            text = f"{before}\n{text}"
        self.messages.append(Message(role="user", content=text))

    def add_tool_result(self, call: str, text: str) -> None:
        """Tell the model what came of a call of a tool, by the call's id."""
        self.messages.append(Message(role="tool", content=text, tool_call_id=call))

    def add_context(self, what: str, value: Any) -> None:
        """Record something for this turn's context; nothing where the value is empty."""
        if value:
            self._context[what] = value

    def request_answer(self) -> Completion:
        """The model's answer to what it is shown; ``keep`` makes it part of the conversation.

        Where the endpoint finds the conversation too long, more of it is left out and it is asked
        again. Raises ModelError where that does not help either, and as Model.complete.
        """
        shown, about = self.history.select(
            self.messages, self._pinned, self._count, self._token_limit
        )
        refusals: list[str] = []
        while True:
            try:
                completion = self.model.complete(shown, tools=self.tools)
            except ModelError as e:
                if not is_context_overflow(e):
                    raise
                self._usage += _REFUSED_USAGE
                refusals.append(str(e))
                self.add_context("history", {**about, "refusals": refusals})
                self._token_limit = self._count(shown) * 3 // 4
                shorter, about = self.history.select(
                    self.messages, self._pinned, self._count, self._token_limit
                )
                if shorter == shown or len(refusals) == MAX_SHORTENINGS:
                    raise
                shown = shorter
                continue
            self._usage += completion.usage
            self.add_context("history", {**about, "refusals": refusals} if refusals else about)
            return completion

    def add_answer(self, message: Message) -> None:
        """Make an answer part of the conversation."""
        self.messages.append(message)

    def finish_turn(self) -> Mapping[str, Any]:
        """``messages``, ``usage`` and ``context`` of this turn, for its Move; the next begins."""
        messages = tuple(self.messages[self._recorded :])
        said = {"messages": messages, "usage": self._usage, "context": self._context}
        self._recorded, self._usage, self._context = len(self.messages), Usage(), {}
        return said

    def _count(self, messages: Sequence[Message]) -> int:
        return count_tokens(self.model, messages)
