"""Requests and answers in the format of Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from intercode.core.types import Usage
from intercode.models.base import (
    Completion,
    Message,
    Tool,
    ToolCall,
    make_call,
    reached_token_limit,
)
from intercode.models.bridge.requests import (
    BridgeRequest,
    Event,
    InvalidRequestError,
    answer_message,
    field,
    merge_answers,
    objects,
    text_of,
)

PATHS = ("/v1/chat/completions", "/chat/completions")
_ROLES = {"system": "system", "developer": "system", "user": "user", "tool": "tool"}
_FINISHES = ("stop", "length", "tool_calls", "content_filter")


def parse_request(body: Any) -> BridgeRequest:
    """Return the request in a decoded body. Raises InvalidRequestError."""
    messages = map(_message, objects(body, "messages"))
    tools = [
        _tool(field(tool, "function", dict))
        for tool in objects(body, "tools", [])
        if field(tool, "type", str, "") == "function"
    ]
    return BridgeRequest(merge_answers(messages), tuple(tools), field(body, "stream", bool, False))


def _message(data: Any) -> Message:
    role = field(data, "role", str)
    text = text_of(data.get("content"))
    if role == "assistant":
        return answer_message(text, [_call(c) for c in objects(data, "tool_calls", [])])
    if role not in _ROLES:
        raise InvalidRequestError(f"there is no role {role!r}")
    message: Message = {"role": _ROLES[role], "content": text}  # type: ignore[typeddict-item]
    if role == "tool":
        message["tool_call_id"] = field(data, "tool_call_id", str)
    return message


def _call(data: Any) -> ToolCall:
    function = field(data, "function", dict)
    arguments = field(function, "arguments", (str, dict), "{}")
    return make_call(field(data, "id", str), field(function, "name", str), arguments)


def _tool(function: Any) -> Tool:
    parameters = field(function, "parameters", dict, {"type": "object", "properties": {}})
    name, description = field(function, "name", str), field(function, "description", str, "")
    return Tool(name, description, parameters)


def response(completion: Completion, _request: BridgeRequest, name: str) -> dict[str, Any]:
    """Return the answer to a request; ``name`` is unique to it."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.text or None}
    if completion.calls:
        message["tool_calls"] = list(completion.calls)
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(completion)}
    return {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": 0,
        "model": completion.model,
        "choices": [choice],
        "usage": _usage(completion.usage),
    }


def events(completion: Completion, request: BridgeRequest, name: str) -> Iterator[Event]:
    """Yield the answer to a request as a stream."""
    whole = response(completion, request, name)
    shared = {k: v for k, v in whole.items() if k not in ("choices", "usage")}
    shared["object"] = "chat.completion.chunk"
    delta: dict[str, Any] = {"role": "assistant", "content": completion.text}
    if completion.calls:
        delta["tool_calls"] = [{"index": n, **call} for n, call in enumerate(completion.calls)]
    finish = finish_reason(completion)
    yield "", {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    yield "", {**shared, "choices": [], "usage": whole["usage"]}


def error(kind: str, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": {"message": message, "type": kind, "code": kind, "param": None}}


def finish_reason(completion: Completion) -> str:
    """Return why an answer ended, in the words of this protocol."""
    if reached_token_limit(completion):
        return "length"
    if completion.calls:
        return "tool_calls"
    return completion.finish_reason if completion.finish_reason in _FINISHES else "stop"


def _usage(usage: Usage) -> dict[str, Any]:
    prompt, answer = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
    }
