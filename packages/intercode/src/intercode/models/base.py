"""The interface of a language model: messages and tools in, one completion out."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from intercode.core.types import Tool as Tool
from intercode.core.types import Usage
from intercode.models.prices import Price
from intercode.models.transport.concurrency import Traffic


class ToolCall(TypedDict):
    """A tool call in a message, in the form of OpenAI's chat endpoints. ``function`` holds ``name``
    and ``arguments``; ``arguments`` is JSON text as the model wrote it.

    >>> from intercode.models import Message, ToolCall
    >>> call: ToolCall = {
    ...     "id": "1",
    ...     "type": "function",
    ...     "function": {"name": "bash", "arguments": '{"command": "ls"}'},
    ... }
    >>> answer: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
    """

    id: str
    type: Literal["function"]
    function: dict[str, str]


def make_call(call_id: object, name: object, arguments: Any) -> ToolCall:
    """Return a tool call. Arguments that are not text yet become JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(
        id=str(call_id), type="function", function={"name": str(name), "arguments": text}
    )


class Message(TypedDict):
    """A message of a conversation, in the form of OpenAI's chat endpoints.

    ``reasoning``, ``provider`` and ``tokens`` are copied from the Completion that the message was
    made of; ``tokens`` has its ``finish`` reason and ``model``, too. They are sent back to
    endpoints that need them and are not part of the text.

    >>> from intercode.models import Message, ScriptedModel
    >>> conversation: list[Message] = [
    ...     {"role": "system", "content": "You use Bash."},
    ...     {"role": "user", "content": "List the files."},
    ... ]
    >>> ScriptedModel(["ls"]).complete(conversation).text
    'ls'
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    reasoning: NotRequired[str]
    provider: NotRequired[Any]
    tokens: NotRequired[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer to a conversation.

    ``text`` may be empty. ``model`` is the name that the endpoint reports, often a dated version of
    the requested name. ``finish_reason`` is the endpoint's own value (``stop``, ``length``, ...),
    or None if it sent none. ``reasoning`` is the model's reasoning if the endpoint separates it
    from the text. ``provider`` holds data that the endpoint expects back unchanged in later turns.
    ``tokens`` holds what the endpoint sent of the tokens; see ``read_tokens``. ``cached`` is true
    for an answer from the local cache: ``usage`` is then zero, and ``original_usage`` is what the
    answer cost when it was requested.
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
        """Return the answer as a message that can be appended to the conversation."""
        message = Message(role="assistant", content=self.text)
        if self.calls:
            message["tool_calls"] = list(self.calls)
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.provider is not None:
            message["provider"] = self.provider
        if self.tokens:
            more = {"finish": self.finish_reason, "model": self.model}
            message["tokens"] = {**{k: v for k, v in more.items() if v}, **self.tokens}
        return message


_LIMITS = (
    "length",
    "max_tokens",
    "max_output_tokens",
    "model_length",  # Mistral: the context is full
    "model_context_window_exceeded",  # Anthropic
)
_INTERRUPTIONS = (
    "abort",  # vLLM, SGLang
    "blocklist",
    "content_filter",
    "error",
    "insufficient_system_resource",  # DeepSeek
    "prohibited_content",
    "recitation",
    "safety",
    "spii",
)


def reached_token_limit(answer: Completion) -> bool:
    """Return whether an answer was cut off at a limit of tokens, in any provider's words."""
    return (answer.finish_reason or "").lower() in _LIMITS


def was_interrupted(answer: Completion) -> bool:
    """Return whether the endpoint broke an answer off for another reason than its length."""
    return (answer.finish_reason or "").lower() in _INTERRUPTIONS


class Model(ABC):
    """Continues conversations. Several threads may call it at once.

    A class of your own sets ``name`` and implements ``complete``; everything else has a default.

    >>> from intercode.models import Completion, Model
    >>> class Echo(Model):
    ...     name = "echo"
    ...     def complete(self, messages, *, tools=()):
    ...         return Completion(messages[-1]["content"])
    >>> Echo().complete([{"role": "user", "content": "ls"}]).text
    'ls'
    """

    name: str
    endpoint: str | None = None
    """The address that requests go to, without secrets; None if there is none."""
    price: Price | None = None
    """The prices of tokens; None if they are not known, and limits on cost are then refused."""

    @abstractmethod
    def complete(self, messages: Sequence[Message], *, tools: Sequence[Tool] = ()) -> Completion:
        """Return the next message of the conversation; it may call one or more of ``tools``.

        Raises ModelRefusedError if a retry cannot help, ModelUnavailableError if all attempts
        failed, and BudgetError if the request would exceed a spending limit.
        """

    @property
    def max_answer_tokens(self) -> int | None:
        """The limit on the tokens of an answer; None if requests set none."""
        return None

    @property
    def token_ratio(self) -> float:
        """The factor that corrects estimates of tokens, from the endpoint's own counts."""
        return 1.0

    def count_tokens(self, content: str | Sequence[Message] | Mapping[str, Any]) -> int | None:
        """Return the number of tokens of a text or of messages; None to have it estimated."""
        return None

    def for_sample(self, sample: int) -> Model:
        """Return a view of this model for another sample of the same tasks, where that differs."""
        return self

    def metadata(self) -> dict[str, Any]:
        """Return what a run records of its model: what can change an answer, and no secret."""
        return {}

    def traffic(self) -> Traffic | None:
        """Return the counts of requests so far, for progress reports; None if there are none."""
        return None

    def close(self) -> None:
        """Close the connections. May be called again."""
