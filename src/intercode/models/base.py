"""What a language model is to this package: messages in, one completion out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, Protocol, TypedDict

from intercode.core.types import Usage


class ToolCall(TypedDict):
    """One call of a tool in a message, as chat endpoints write it: ``function`` holds ``name`` and
    ``arguments``, the latter as JSON text of the model's own."""

    id: str
    type: Literal["function"]
    function: dict[str, str]


class Message(TypedDict):
    """One message of a conversation, in the form of OpenAI's chat endpoints.

    ``reasoning`` and ``provider`` are what an answer held beside its text (see Completion), to be
    sent back where the endpoint wants it; they are no part of the text.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    reasoning: NotRequired[str]
    provider: NotRequired[Any]
    tokens: NotRequired[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. ``parameters`` is a JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered.

    ``text`` may be empty. ``model`` is the name that the endpoint itself reported, which is often
    a dated version of the one asked for. ``finish_reason`` is the endpoint's own word
    (``stop``, ``length``, ...), None where it gave none. ``reasoning`` is what it thought, where
    the endpoint tells that apart; ``provider`` what an endpoint wants to be sent back unchanged.
    ``tokens`` holds what the endpoint gave of ``prompt_ids``, ``ids``, ``logprobs``, ``texts`` and
    ``top`` (the likeliest others), lists with one entry a token. ``cached``: it came from a cache
    of ours, and nothing was spent; ``saved`` is what it had cost when it was asked.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    model: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    provider: Any = None
    tokens: Mapping[str, Any] = field(default_factory=dict)
    cached: bool = False
    original_usage: Usage = field(default_factory=Usage)

    def message(self) -> Message:
        """The answer as a message of the conversation that goes on."""
        message = Message(role="assistant", content=self.text)
        if self.calls:
            message["tool_calls"] = list(self.calls)
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.provider is not None:
            message["provider"] = self.provider
        if self.tokens:
            message["tokens"] = self.tokens
        return message


class Model(Protocol):
    """Something that continues a conversation. May be called from many threads at once."""

    name: str

    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """Continue the conversation; the answer may call one or more of ``tools``.

        Raises ModelRefusedError where asking again cannot help, ModelUnavailableError where the
        endpoint kept failing, BudgetError where the request would go beyond a limit.
        """
        ...
