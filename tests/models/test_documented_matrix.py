"""The matrix of docs/models.md: what works with each protocol, each cell with its test.

The servers answer in the formats that the providers publish; the clients are the real ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import ModelUnavailableError
from intercode.models import Completion, FunctionModel, Message, Model, Tool, open_model
from intercode.models.transport.retry import RetryPolicy
from support.faulty_endpoint import FaultyEndpoint, silent_after, status, streamed
from support.requirements import require_library

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
RUN = Tool("run", "Runs code.", {"type": "object", "properties": {"code": {"type": "string"}}})
ASK: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
]
CODE, SIGNATURE = '{"code": "ls"}', "c2lnbmF0dXJl"


@dataclass(frozen=True)
class Protocol:
    """A way to a model: its name for ``open_model``, an answer as a whole and as events, and the
    options with which it keeps reasoning."""

    model: str
    body: dict[str, Any]
    events: list[Any]
    library: str = ""
    path: str = "/v1"
    options: dict[str, Any] = field(default_factory=dict)
    signature: str = SIGNATURE


_REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "encrypted_content": SIGNATURE,
    "summary": [{"type": "summary_text", "text": "hm"}],
}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m-1",
    "error": None,
    "incomplete_details": None,
    "output": [
        _REASONING,
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let us see.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "run", "arguments": CODE},
    ],
    "usage": {
        "input_tokens": 50,
        "output_tokens": 16,
        "total_tokens": 66,
        "input_tokens_details": {"cached_tokens": 30},
        "output_tokens_details": {"reasoning_tokens": 9},
    },
}
_USAGE = {
    "prompt_tokens": 50,
    "completion_tokens": 16,
    "total_tokens": 66,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 9},
}
_CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": CODE}}
_CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Let us see.",
                "reasoning_content": "hm",
                "tool_calls": [_CALL],
            },
        }
    ],
    "usage": _USAGE,
}


def _chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    return {**head, "choices": [choice]}


def _piece(text: str, **more: Any) -> list[dict[str, Any]]:
    function = {"arguments": text} | ({"name": "run"} if more else {})
    return [{"index": 0, **more, "function": function}]


_CHUNKS = [
    _chunk(role="assistant", content=""),
    _chunk(reasoning_content="h"),
    _chunk(reasoning_content="m"),
    _chunk(content="Let us "),
    _chunk(content="see."),
    _chunk(tool_calls=_piece("", id="c1", type="function")),
    _chunk(tool_calls=_piece(CODE[:6])),
    _chunk(tool_calls=_piece(CODE[6:])),
    _chunk(finish="tool_calls"),
    {**_chunk(), "choices": [], "usage": _USAGE},
]
_CLAUDE_USAGE = {
    "input_tokens": 15,
    "output_tokens": 16,
    "cache_read_input_tokens": 30,
    "cache_creation_input_tokens": 5,
    "output_tokens_details": {"thinking_tokens": 9},
}
_CLAUDE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m-1",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": _CLAUDE_USAGE,
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
        {"type": "text", "text": "Let us see."},
        {"type": "tool_use", "id": "c1", "name": "run", "input": {"code": "ls"}},
    ],
}


def _block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


_CLAUDE_EVENTS = [
    {"type": "message_start", "message": {**_CLAUDE, "content": [], "stop_reason": None}},
    *_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": SIGNATURE},
    ),
    {"type": "ping"},
    *_block(
        1,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Let us "},
        {"type": "text_delta", "text": "see."},
    ),
    *_block(
        2,
        {"type": "tool_use", "id": "c1", "name": "run", "input": {}},
        {"type": "input_json_delta", "partial_json": CODE[:6]},
        {"type": "input_json_delta", "partial_json": CODE[6:]},
    ),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": _CLAUDE_USAGE,
    },
    {"type": "message_stop"},
]


def _gemini(*parts: Any, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    finish = {"finishReason": more.pop("finish")} if "finish" in more else {}
    return {"candidates": [{**candidate, **finish}], "modelVersion": "m-1", **more}


_GEMINI_USAGE = {
    "promptTokenCount": 50,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 9,
    "cachedContentTokenCount": 30,
}
_THOUGHT = {"text": "hm", "thought": True}
_GEMINI_CALL = {
    "functionCall": {"name": "run", "args": {"code": "ls"}},
    "thoughtSignature": SIGNATURE,
}

PROTOCOLS = {
    "responses": Protocol(
        "m",
        _RESPONSE,
        [
            {"type": "response.created", "response": {**_RESPONSE, "output": []}},
            {"type": "response.output_text.delta", "delta": "Let us see."},
            {"type": "response.completed", "response": _RESPONSE},
        ],
        options={"api": "responses"},
    ),
    "chat": Protocol(
        "m",
        _CHAT,
        _CHUNKS,
        options={"thoughts": "reasoning_content"},
        signature='"reasoning_content": "hm"',
    ),
    "anthropic": Protocol("anthropic/m", _CLAUDE, _CLAUDE_EVENTS, "anthropic", ""),
    "google": Protocol(
        "google/m",
        _gemini(
            _THOUGHT,
            {"text": "Let us see."},
            _GEMINI_CALL,
            finish="STOP",
            usageMetadata=_GEMINI_USAGE,
        ),
        [
            _gemini(_THOUGHT),
            _gemini({"text": "Let us "}),
            _gemini({"text": "see."}),
            _gemini(_GEMINI_CALL),
            _gemini({"text": ""}, finish="STOP", usageMetadata=_GEMINI_USAGE),
        ],
        "google.genai",
        "",
    ),
    "litellm": Protocol("litellm/openai/m", _CHAT, _CHUNKS, "litellm"),
}
SLOW = [pytest.mark.slow]  # LiteLLM takes seconds to import
ALL = [pytest.param(name, marks=SLOW if name == "litellm" else []) for name in PROTOCOLS]
KEEP_REASONING = [name for name in PROTOCOLS if name != "litellm"]

pytestmark = pytest.mark.heavy


def _opened(name: str, server: FaultyEndpoint, **options: Any) -> Model:
    protocol = PROTOCOLS[name]
    library = protocol.library
    if library:
        require_library(library, name)
    url = server.base_url.removesuffix("/v1") + protocol.path
    settings = {"api_key": "k", "stream": False, **protocol.options, **options}
    return open_model(protocol.model, url, **settings)


def _answer(name: str, **options: Any) -> tuple[Completion, list[dict[str, Any]]]:
    """Return an answer that was sent whole, and the requests of two turns."""
    with FaultyEndpoint(status(200, PROTOCOLS[name].body)) as server:
        model = _opened(name, server, **options)
        got = model.complete(ASK, tools=[RUN])
        result: Message = {"role": "tool", "content": "a.txt", "tool_call_id": got.calls[0]["id"]}
        model.complete([*ASK, got.message(), result], tools=[RUN])
        model.close()
    return got, server.requests


@pytest.mark.parametrize("name", ALL)
def test_text(name: str) -> None:
    got, requests = _answer(name)
    assert (got.text, got.model) == ("Let us see.", "m-1")
    assert "hello" in json.dumps(requests[0]) and "Be brief." in json.dumps(requests[0])
    assert not {"temperature", "top_p", "topP", "seed"} & set(
        re.findall(r"\w+", json.dumps(requests))
    )


@pytest.mark.parametrize("name", ALL)
def test_tools(name: str) -> None:
    got, (first, second) = _answer(name)
    (call,) = got.calls
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "run",
        {"code": "ls"},
    )
    assert "Runs code." in json.dumps(first) and "a.txt" in json.dumps(second)


@pytest.mark.parametrize("name", KEEP_REASONING)
def test_reasoning_retained(name: str) -> None:
    got, (first, second) = _answer(name)
    assert got.reasoning == "hm"
    signature = PROTOCOLS[name].signature
    assert signature in json.dumps(second) and signature not in json.dumps(first)


@pytest.mark.parametrize("name", ALL)
def test_streaming(name: str) -> None:
    whole, _ = _answer(name)
    events = PROTOCOLS[name].events
    once = RetryPolicy(max_attempts=1)
    comment = "" if name == "google" else ": ping\n\n"  # which its format does not have
    with FaultyEndpoint(streamed(*events, end=_end(name), comment=comment)) as server:
        model: Any = _opened(name, server, stream=True)
        got = model.complete(ASK, tools=[RUN])
        assert model.attempt_timeout == math.inf
        model.close()
    assert (got.text, got.reasoning, got.finish_reason) == (
        whole.text,
        whole.reasoning,
        whole.finish_reason,
    )
    assert _calls(got) == _calls(whole) and _tokens(got) == _tokens(whole)
    assert SIGNATURE not in json.dumps(whole.provider) or SIGNATURE in json.dumps(got.provider)
    begun: Any = {"comment": comment}
    for fault in (silent_after(*events[:2], **begun), streamed(*events[:2], end="", **begun)):
        with FaultyEndpoint(fault) as server:
            model = _opened(name, server, stream=True, timeout=1.0, retry=once)
            with pytest.raises(ModelUnavailableError):
                model.complete(ASK)
            model.close()


def _end(name: str) -> str:
    return "data: [DONE]\n\n" if name in ("chat", "litellm") else ""


def _calls(answer: Completion) -> list[Any]:
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in answer.calls]


def _tokens(answer: Completion) -> tuple[int | None, ...]:
    usage = answer.usage
    return (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
    )


@pytest.mark.parametrize("name", ALL)
def test_cache(name: str, tmp_path: Path) -> None:
    with FaultyEndpoint(status(200, PROTOCOLS[name].body)) as server:
        model = _opened(name, server, cache=str(tmp_path / "answers.sqlite"))
        first, second = (model.complete(ASK, tools=[RUN]) for _ in range(2))
        model.close()
    assert len(server.requests) == 1 and second.cached
    assert second.message() == first.message()
    assert second.original_usage.prompt_tokens == 50


@pytest.mark.parametrize("name", ALL)
def test_usage(name: str) -> None:
    assert _tokens(_answer(name)[0]) == (50, 16, 30, 9)


@pytest.mark.parametrize("kind", ["plain", "asynchronous"])
def test_function(kind: str) -> None:
    """Text and tools of a model that is a function; it has nothing to stream, cache or count."""

    def plain(messages: list[Message], tools: Any = ()) -> Any:
        text = f"{len(messages)} messages, {len(tools)} tools"
        return {"role": "assistant", "content": text, "tool_calls": [_CALL]}

    async def asynchronous(messages: list[Message], tools: Any = ()) -> Any:
        return plain(messages, tools)

    functions: dict[str, Callable[..., Any]] = {"plain": plain, "asynchronous": asynchronous}
    got = FunctionModel(functions[kind]).complete(ASK, tools=[RUN])
    assert (got.text, _calls(got)) == ("2 messages, 1 tools", [("run", {"code": "ls"})])
    assert got.usage.prompt_tokens is None and got.usage.requests == 1


def test_the_page_has_a_cell_for_each_test_and_a_test_for_each_cell() -> None:
    rows = re.findall(r"^\| .*: `(\w+)` \|(.*)\|$", _matrix(), re.M)
    (head,) = re.findall(r"^\| \|.*", _matrix(), re.M)
    columns = re.findall(r"`(test_\w+)`", head)
    assert [name for name, _ in rows] == [*PROTOCOLS, "function"]
    assert [c.removeprefix("test_") for c in columns] == [
        "text",
        "tools",
        "reasoning_retained",
        "streaming",
        "cache",
        "usage",
    ]
    for name, cells in rows:
        has_test = {column: name in _names(column) for column in columns}
        if name == "function":
            has_test |= {"test_text": True, "test_tools": True}
        marks = [cell.strip() == "yes" for cell in cells.split("|")]
        assert marks == list(has_test.values()), name


def _matrix() -> str:
    return PAGE.read_text("utf-8").partition("## What works where")[2].partition("\n## ")[0]


def _names(test: str) -> list[str]:
    """Return the protocols that a test of this module runs with."""
    (mark,) = [m for m in globals()[test].pytestmark if m.name == "parametrize"]
    return [value if isinstance(value, str) else value.values[0] for value in mark.args[1]]
