"""The conversation between an agent and a model in one episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from intercode.agents.history import History, is_context_overflow
from intercode.core.errors import ModelError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Model, Tool
from intercode.models.token_count import count_tokens

MAX_SHORTENINGS = 12
"""The number of times a conversation is shortened if an endpoint finds it too long."""
_REFUSED_USAGE = Usage(0, 0, 1, 0, 0, 0.0)
"""The usage of a refused request: no tokens, but one request."""


class Conversation:
    """The messages of an episode. The model is sent those that ``history`` selects.

    The model may call ``tools``. ``finish_turn`` returns what was added since the last turn, for
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
        """The usage of this turn's requests so far."""
        return self._usage

    @property
    def has_answer(self) -> bool:
        """Whether the model has answered in this episode."""
        return any(message["role"] == "assistant" for message in self.messages)

    def pin(self) -> None:
        """Keep all present messages in every later request."""
        self._pinned = len(self.messages)

    def add_system(self, text: str) -> None:
        """Add a system message."""
        self.messages.append(Message(role="system", content=text))

    def add_user(self, text: str) -> None:
        """Add a user message, joined with the one before if that belongs to the same turn."""
        if len(self.messages) > self._recorded and self.messages[-1]["role"] == "user":
            before = self.messages.pop()["content"]
            text = f"{before}\n{text}"
        self.messages.append(Message(role="user", content=text))

    def add_tool_result(self, call: str, text: str) -> None:
        """Add the result of a tool call, by the call's id."""
        self.messages.append(Message(role="tool", content=text, tool_call_id=call))

    def add_context(self, name: str, value: Any) -> None:
        """Add an entry to this turn's context for the record, unless the value is empty."""
        if value:
            self._context[name] = value

    def request_answer(self) -> Completion:
        """Return the model's answer to the selected messages; ``add_answer`` adds it to the
        conversation.

        If the endpoint finds the conversation too long, more of it is left out and the request is
        repeated. Raises ModelError if that does not help, and as Model.complete.
        """
        selected, context = self.history.select(
            self.messages, self._pinned, self._count, self._token_limit
        )
        refusals: list[str] = []
        while True:
            try:
                completion = self.model.complete(selected, tools=self.tools)
            except ModelError as e:
                if not is_context_overflow(e):
                    raise
                self._usage += _REFUSED_USAGE
                refusals.append(str(e))
                self.add_context("history", {**context, "refusals": refusals})
                self._token_limit = self._count(selected) * 3 // 4
                shortened, context = self.history.select(
                    self.messages, self._pinned, self._count, self._token_limit
                )
                if shortened == selected or len(refusals) == MAX_SHORTENINGS:
                    raise
                selected = shortened
                continue
            self._usage += completion.usage
            self.add_context("history", {**context, "refusals": refusals} if refusals else context)
            return completion

    def add_answer(self, message: Message) -> None:
        """Add an answer to the conversation."""
        self.messages.append(message)

    def finish_turn(self) -> Mapping[str, Any]:
        """Return ``messages``, ``usage`` and ``context`` of this turn for its AgentOutput, and
        begin the next."""
        messages = tuple(self.messages[self._recorded :])
        turn = {"messages": messages, "usage": self._usage, "context": self._context}
        self._recorded, self._usage, self._context = len(self.messages), Usage(), {}
        return turn

    def _count(self, messages: Sequence[Message]) -> int:
        return count_tokens(self.model, messages)
