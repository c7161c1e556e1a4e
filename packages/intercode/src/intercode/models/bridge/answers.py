"""Remembers the answers that a bridge has given, with what programs do not send back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from intercode.models.base import Completion, Message, ToolCall

Key = tuple[str, tuple[str, ...]]


class GivenAnswers:
    """The answers of one episode.

    Providers want some of their data back in later requests, such as signed reasoning. It is kept
    here, out of the sandbox, and added to the messages in which a program repeats an answer.
    """

    def __init__(self) -> None:
        self._messages: dict[Key, Message] = {}
        self._ids: set[str] = set()

    def add(self, completion: Completion) -> Completion:
        """Remember an answer and return it. Its calls get ids that no earlier call had."""
        calls = tuple(map(self._with_new_id, completion.calls))
        answer = replace(completion, calls=calls)
        message = answer.message()
        self._messages[_key(message)] = message
        return answer

    def restore(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages with the answers that are known as they were given."""
        return [self._messages.get(_key(m), m) if m["role"] == "assistant" else m for m in messages]

    def _with_new_id(self, call: ToolCall) -> ToolCall:
        name = call["id"]
        if not name or name in self._ids:  # no id begins with another: Claude Code confuses those
            name = f"call_{1000 + len(self._ids)}"
        self._ids.add(name)
        return cast(ToolCall, {**call, "id": name})


def _key(message: Message) -> Key:
    calls: Sequence[ToolCall] = message.get("tool_calls", ())
    return message["content"].strip(), tuple(call["id"] for call in calls)
