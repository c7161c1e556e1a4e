"""What the protocols of the bridge have in common: a request, and how its parts are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from intercode.models.base import Message, Tool, ToolCall

LEFT_OUT = "[{} left out]"
"""What the model reads in place of a part that is no text."""
Event = tuple[str, dict[str, Any]]
"""A part of a streamed answer: the name of its type, which may be empty, and its data."""


class InvalidRequestError(Exception):
    """A request of a program that cannot be read."""


@dataclass(frozen=True, slots=True)
class BridgeRequest:
    """A request of a program, in the form in which ``Model.complete`` takes it.

    ``freeform`` names the tools whose argument is a text and not JSON; the model is offered them
    with one argument, ``FREEFORM_ARGUMENT``.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    freeform: frozenset[str] = frozenset()


FREEFORM_ARGUMENT = "input"


def field(data: Any, name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    """Return a field of an object that a program has sent. Raises InvalidRequestError if the object
    or the field has another type; without a ``default`` also if the field is missing."""
    if not isinstance(data, Mapping):
        raise InvalidRequestError(f"an object was expected where {json.dumps(data)[:80]} is")
    value = data.get(name)
    if value is None:
        value = default
    if not isinstance(value, kind):
        raise InvalidRequestError(f"the field {name!r} is missing or has another type")
    return value


def objects(data: Any, name: str, default: Sequence[Any] | None = None) -> list[Any]:
    """Return a field that is a list; see ``field``."""
    values: list[Any] = field(data, name, list, default)
    return values


def text_of(content: Any) -> str:
    """Return the text of a content that is null, a text, or a list of parts. Other parts than
    text leave a note."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise InvalidRequestError("a content is neither a text nor a list of parts")
    return "\n".join(filter(None, map(_part_text, content)))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    kind = field(part, "type", str, "text")
    if "text" in part or "refusal" in part:
        return str(part.get("text") or part.get("refusal") or "")
    return LEFT_OUT.format(kind)


def merge_answers(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages with successive answers of the model joined to one: some protocols send
    the text and each call of an answer apart."""
    merged: list[Message] = []
    for role, group in groupby(messages, itemgetter("role")):
        parts = list(group)
        if role != "assistant" or len(parts) == 1:
            merged += parts
            continue
        calls = [call for part in parts for call in part.get("tool_calls", ())]
        merged.append(answer_message("\n".join(filter(None, (p["content"] for p in parts))), calls))
    return tuple(merged)


def answer_message(text: str, calls: Sequence[ToolCall]) -> Message:
    """Return an answer of the model as a message."""
    message = Message(role="assistant", content=text)
    if calls:
        message["tool_calls"] = list(calls)
    return message


def freeform_text(call: ToolCall) -> str:
    """Return the argument of a call of a free-form tool; the arguments as they are if the model did
    not keep to the form."""
    arguments = call["function"]["arguments"]
    try:
        value = json.loads(arguments)[FREEFORM_ARGUMENT]
    except (ValueError, TypeError, KeyError, RecursionError):
        return arguments
    return value if isinstance(value, str) else arguments
