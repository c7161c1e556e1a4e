"""Requests and answers in the format of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from intercode.core.types import Usage
from intercode.models.base import Completion, Message, Tool, ToolCall, make_call
from intercode.models.bridge import chat
from intercode.models.bridge.requests import (
    FREEFORM_ARGUMENT,
    BridgeRequest,
    Event,
    InvalidRequestError,
    answer_message,
    field,
    freeform_text,
    merge_answers,
    objects,
    text_of,
)

PATHS = ("/v1/responses", "/responses")
_FREEFORM_SCHEMA = {
    "type": "object",
    "properties": {FREEFORM_ARGUMENT: {"type": "string"}},
    "required": [FREEFORM_ARGUMENT],
}
_ROLES = {"system": "system", "developer": "system", "user": "user"}


def parse_request(body: Any) -> BridgeRequest:
    """Return the request in a decoded body. Raises InvalidRequestError."""
    if field(body, "previous_response_id", str, ""):
        raise InvalidRequestError("nothing is stored here: send the whole input")
    items = field(body, "input", (str, list))
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    instructions = field(body, "instructions", str, "")
    messages = [Message(role="system", content=instructions)] if instructions else []
    messages += [message for item in items for message in _messages(item)]
    tools, freeform = _tools(objects(body, "tools", []))
    stream = field(body, "stream", bool, False)
    return BridgeRequest(merge_answers(messages), tools, stream, freeform)


def _messages(item: Any) -> Sequence[Message]:
    """Return the message of an input item; none for one that only its own provider could read."""
    kind = field(item, "type", str, "message")
    if kind == "message":
        return [_message(item)]
    if kind in ("function_call_output", "custom_tool_call_output"):
        call_id, text = field(item, "call_id", str), text_of(item.get("output"))
        return [Message(role="tool", content=text, tool_call_id=call_id)]
    if kind == "function_call":
        arguments: Any = field(item, "arguments", str, "{}")
    elif kind == "custom_tool_call":
        arguments = {FREEFORM_ARGUMENT: field(item, "input", str, "")}
    else:
        return []
    call = make_call(field(item, "call_id", str), field(item, "name", str), arguments)
    return [answer_message("", [call])]


def _message(item: Any) -> Message:
    role, text = field(item, "role", str), text_of(item.get("content"))
    if role == "assistant":
        return answer_message(text, ())
    if role not in _ROLES:
        raise InvalidRequestError(f"there is no role {role!r}")
    return {"role": _ROLES[role], "content": text}  # type: ignore[typeddict-item]


def _tools(declared: Sequence[Any]) -> tuple[tuple[Tool, ...], frozenset[str]]:
    tools, freeform = [], set()
    for tool in declared:
        kind = field(tool, "type", str)
        if kind not in ("function", "custom"):
            continue
        name, description = field(tool, "name", str), field(tool, "description", str, "")
        schema = field(tool, "parameters", dict, {"type": "object", "properties": {}})
        if kind == "custom":
            freeform.add(name)
            schema = _FREEFORM_SCHEMA
            grammar = field(tool, "format", dict, {}).get("definition")
            if grammar:
                description = f"{description}\n\nGrammar of {FREEFORM_ARGUMENT}:\n{grammar}"
        tools.append(Tool(name, description, schema))
    return tuple(tools), frozenset(freeform)


def response(completion: Completion, request: BridgeRequest, name: str) -> dict[str, Any]:
    """Return the answer to a request; ``name`` is unique to it."""
    cut = chat.finish_reason(completion) == "length"
    return {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 0,
        "model": completion.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "output": _output(completion, request, name),
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
        "metadata": {},
        "instructions": None,
        "temperature": None,
        "top_p": None,
        "usage": _usage(completion.usage),
    }


def _output(completion: Completion, request: BridgeRequest, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if completion.text:
        part = {"type": "output_text", "text": completion.text, "annotations": [], "logprobs": []}
        items.append(
            {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
        )
    items += [_call_item(call, request) for call in completion.calls]
    return [{"id": f"item_{name}_{n}", **item} for n, item in enumerate(items)]


def _call_item(call: ToolCall, request: BridgeRequest) -> dict[str, Any]:
    name = call["function"]["name"]
    shared = {"call_id": call["id"], "name": name, "status": "completed"}
    if name in request.freeform:
        return {"type": "custom_tool_call", "input": freeform_text(call), **shared}
    return {"type": "function_call", "arguments": call["function"]["arguments"], **shared}


def events(completion: Completion, request: BridgeRequest, name: str) -> Iterator[Event]:
    """Yield the answer to a request as a stream."""
    whole = response(completion, request, name)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    parts: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(whole["output"]):
        parts += _item_events(index, item)
    parts.append({"type": f"response.{whole['status']}", "response": whole})
    for number, part in enumerate(parts):
        yield part["type"], {**part, "sequence_number": number}


def _item_events(index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    at = {"output_index": index, "item_id": item["id"]}
    begun = {**item, "status": "in_progress"}
    if item["type"] == "message":
        [part] = item["content"]
        inner = {**at, "content_index": 0}
        text = {"text": part["text"], "logprobs": []}
        delta = {"delta": part["text"], "logprobs": []}
        empty = {**part, "text": ""}
        yield _added(index, {**begun, "content": []})
        yield {"type": "response.content_part.added", **inner, "part": empty}
        yield {"type": "response.output_text.delta", **inner, **delta}
        yield {"type": "response.output_text.done", **inner, **text}
        yield {"type": "response.content_part.done", **inner, "part": part}
    else:
        is_function = item["type"] == "function_call"
        argument = "arguments" if is_function else "input"
        kind = "function_call_arguments" if is_function else "custom_tool_call_input"
        yield _added(index, {**begun, argument: ""})
        yield {"type": f"response.{kind}.delta", **at, "delta": item[argument]}
        yield {"type": f"response.{kind}.done", **at, argument: item[argument]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


error = chat.error


def _usage(usage: Usage) -> dict[str, Any]:
    prompt, answer = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {
        "input_tokens": prompt,
        "output_tokens": answer,
        "total_tokens": prompt + answer,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
    }
