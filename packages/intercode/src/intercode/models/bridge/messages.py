"""Requests and answers in the format of Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from intercode.models.base import Completion, Message, Tool, ToolCall, make_call
from intercode.models.bridge import chat
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

PATHS = ("/v1/messages", "/messages")
COUNT_PATHS = ("/v1/messages/count_tokens", "/messages/count_tokens")
_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
_UNREADABLE = ("thinking", "redacted_thinking")
"""Blocks that only their own provider could read."""


def parse_request(body: Any) -> BridgeRequest:
    """Return the request in a decoded body. Raises InvalidRequestError."""
    system = text_of(body.get("system") if isinstance(body, dict) else None)
    messages = [Message(role="system", content=system)] if system else []
    messages += [m for data in objects(body, "messages") for m in _messages(data)]
    tools = [
        Tool(field(t, "name", str), field(t, "description", str, ""), t["input_schema"])
        for t in objects(body, "tools", [])
        if field(t, "input_schema", dict, {})  # others are run by the provider
    ]
    return BridgeRequest(merge_answers(messages), tuple(tools), field(body, "stream", bool, False))


def _messages(data: Any) -> Sequence[Message]:
    """Return the messages that one message of this protocol stands for: results of calls come
    before other text."""
    role, content = field(data, "role", str), field(data, "content", (str, list), [])
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    kinds = [field(block, "type", str) for block in blocks]
    if role == "assistant":
        calls = [_call(b) for b, kind in zip(blocks, kinds, strict=True) if kind == "tool_use"]
        rest = [
            b for b, k in zip(blocks, kinds, strict=True) if k not in ("tool_use", *_UNREADABLE)
        ]
        return [answer_message(text_of(rest), calls)]
    if role not in ("user", "system"):
        raise InvalidRequestError(f"there is no role {role!r}")
    results = [
        Message(
            role="tool",
            content=text_of(block.get("content")),
            tool_call_id=field(block, "tool_use_id", str),
        )
        for block, kind in zip(blocks, kinds, strict=True)
        if kind == "tool_result"
    ]
    rest = [b for b, kind in zip(blocks, kinds, strict=True) if kind != "tool_result"]
    said: Message = {"role": role, "content": text_of(rest)}
    return [*results, *([said] if rest else [])]


def _call(block: Any) -> ToolCall:
    return make_call(
        field(block, "id", str), field(block, "name", str), field(block, "input", dict, {})
    )


def response(completion: Completion, _request: BridgeRequest, name: str) -> dict[str, Any]:
    """Return the answer to a request; ``name`` is unique to it."""
    blocks: list[dict[str, Any]] = []
    if completion.text or not completion.calls:
        blocks.append({"type": "text", "text": completion.text})
    blocks += map(_call_block, completion.calls)
    usage = completion.usage
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": completion.model,
        "content": blocks,
        "stop_sequence": None,
        "stop_reason": _STOPS.get(chat.finish_reason(completion), "end_turn"),
        "usage": {
            "input_tokens": (usage.prompt_tokens or 0) - (usage.cached_tokens or 0),
            "cache_read_input_tokens": usage.cached_tokens or 0,
            "cache_creation_input_tokens": 0,
            "output_tokens": usage.completion_tokens or 0,
        },
    }


def _call_block(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call["function"]["arguments"] or "{}")
    except (ValueError, RecursionError):
        arguments = {}
    value = arguments if isinstance(arguments, dict) else {}
    return {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": value}


def events(completion: Completion, request: BridgeRequest, name: str) -> Iterator[Event]:
    """Yield the answer to a request as a stream."""
    whole = response(completion, request, name)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"]}}
    begun["usage"]["output_tokens"] = 0
    parts: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        parts += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    parts.append({"type": "message_delta", "delta": stop, "usage": whole["usage"]})
    parts.append({"type": "message_stop"})
    for part in parts:
        yield part["type"], part


def error(kind: str, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    return {"type": "error", "error": {"type": kind, "message": message}}
