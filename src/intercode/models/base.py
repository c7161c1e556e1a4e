"""What a language model is to this package: messages in, one completion out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypedDict

from intercode.types import Usage


class Message(TypedDict):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered.

    ``text`` may be empty. ``model`` is the name that the endpoint itself reported, which is often
    a dated version of the one asked for. ``finish_reason`` is the endpoint's own word
    (``stop``, ``length``, ...), None where it gave none.
    """

    text: str
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    model: str = ""


class Model(Protocol):
    """Something that continues a conversation. May be called from many threads at once."""

    name: str

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Continue the conversation.

        Raises ModelRefusedError where asking again cannot help, ModelUnavailableError where the
        endpoint kept failing.
        """
        ...
