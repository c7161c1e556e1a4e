"""Answers that an endpoint streams, in the formats of Chat Completions and Responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from intercode.core.errors import ModelUnavailableError
from intercode.models import Completion, Message, OpenAIModel
from support.faulty_endpoint import Fault, FaultyEndpoint, completion, hang, status, streamed

ASK: list[Message] = [{"role": "user", "content": "hello"}]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"model": "m-2024", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_piece(arguments: str, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"function": {**name, "arguments": arguments}, **more}


CHUNKS = (
    chunk(role="assistant", content=""),
    chunk(reasoning_content="I will "),
    chunk(reasoning_content="list."),
    chunk(content="Liste"),
    chunk(content=" ü"),
    chunk(tool_calls=[call_piece("", index=0, id="c1", type="function", name="run")]),
    chunk(tool_calls=[call_piece('{"code": ', index=0)]),
    chunk(
        tool_calls=[
            call_piece('"ls"}', index=0),
            call_piece("{}", index=1, id="c2", name="run"),
        ]
    ),
    chunk(finish="tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
)


def answer_of(fault: Fault, **options: Any) -> tuple[Completion, dict[str, Any]]:
    """Return the answer of a streaming model, and the request it sent."""
    with (
        FaultyEndpoint(fault) as server,
        OpenAIModel("m", server.base_url, stream=True, **options) as model,
    ):
        return model.complete(ASK), server.requests[0]


def test_the_parts_of_a_chat_answer_are_joined() -> None:
    got, request = answer_of(streamed(*CHUNKS))
    assert request == {
        "model": "m",
        "messages": ASK,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert (got.text, got.reasoning, got.model) == ("Liste ü", "I will list.", "m-2024")
    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in got.calls]
    assert calls == [("c1", "run", '{"code": "ls"}'), ("c2", "run", "{}")]
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (7, 2)
    assert got.finish_reason == "tool_calls"


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_an_event_ends_only_where_its_format_says(character: str) -> None:
    text = f"a{character}b"
    event = json.dumps(chunk(content=text, finish="stop"), ensure_ascii=False)
    for end in ("\n", "\r\n", "\r"):
        got, _ = answer_of(streamed(end=f"data: {event}{end}{end}data: [DONE]{end}{end}"))
        assert got.text == text


@pytest.mark.parametrize("end", ["\n", "\n \n", "\r\n\r\n"])
def test_lines_that_are_whole_events_need_no_empty_line_between_them(end: str) -> None:
    events = [f"data:{json.dumps(event)}{end}" for event in (chunk(content="a"), chunk("stop"))]
    for last in ("data: [DONE]", '\n\ndata: {"choices": []}', "data: {"):
        got, _ = answer_of(streamed(end="".join(events) + "\n" * (last == "data: {") + last))
        assert (got.text, got.finish_reason) == ("a", "stop")


def test_other_choices_are_left_out_and_lists_of_contents_joined() -> None:
    def piece(index: int, text: Any, finish: str | None = None) -> dict[str, Any]:
        delta = {"content": text}
        return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}

    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    pieces = (piece(0, ""), piece(0, thinking), piece(1, "other"), piece(0, "o"), piece(0, "ne"))
    empty = {"choices": [{"index": 0, "delta": None, "finish_reason": None}], "usage": None}
    got, _ = answer_of(streamed(*pieces, piece(1, None, "stop"), empty, piece(0, None, "length")))
    assert (got.text, got.finish_reason) == ("one", "length")


@pytest.mark.parametrize(
    "pieces",
    [
        [call_piece("{}", index=0, id="a", name="f"), call_piece("{}", index=0, id="b", name="f")],
        [
            call_piece('{"x":', index=0, id="a", name="f"),
            call_piece(" 1}", index=0),
            call_piece("", index=0, id="b", name="f"),
            call_piece("{}", index=0),
        ],
        [call_piece("{}", index=0, name="f"), call_piece("{}", index=0, name="g")],
        [
            call_piece("{}", id="a", name="f"),
            call_piece('{"y"', id="b", name="g"),
            call_piece(": 2}"),
        ],
        [
            call_piece("", index=0, id="a", name="f"),
            call_piece("{}", index=0, id="a"),
            call_piece("{", index=1, id="b", name="f"),
            call_piece("}", index=1, id="b", name="f"),
        ],
        [
            call_piece("{", index=1, id="a", name="f"),
            call_piece("}", index=1),
            call_piece("{}", index=7, id="b", name="f"),
        ],
        [
            call_piece("{}", index=0, id="a", name="f"),
            call_piece("", index=0, id=""),
            call_piece("{}", index=1, id="b", name="f"),
        ],
    ],
)
def test_calls_whose_numbers_are_equal_or_missing_are_not_joined(pieces: list[Any]) -> None:
    chunks = [chunk(tool_calls=[piece]) for piece in pieces]
    for events in (chunks, [chunk(tool_calls=pieces)]):
        got, _ = answer_of(streamed(*events, chunk(finish="tool_calls")))
        assert len(got.calls) == 2
        assert all(json.loads(call["function"]["arguments"]) is not None for call in got.calls)
        ids = [call["id"] for call in got.calls]
        assert ids == ["a", "b"] or not any("id" in piece for piece in pieces)


def test_the_last_event_of_the_responses_api_holds_the_answer() -> None:
    part = {"type": "output_text", "text": "done", "annotations": []}
    item = {"type": "message", "role": "assistant", "content": [part]}
    response = {"status": "completed", "model": "o", "output": [item], "error": None}
    got, request = answer_of(
        streamed(
            {"type": "response.created", "response": {"status": "in_progress", "output": []}},
            {"type": "response.output_text.delta", "delta": "do"},
            {"type": "response.completed", "response": response},
        ),
        api="responses",
    )
    assert (got.text, got.finish_reason) == ("done", "stop")
    assert request["stream"] is True and "stream_options" not in request


def test_an_endpoint_that_does_not_stream_is_read_as_well() -> None:
    assert answer_of(status(200, completion("fine")))[0].text == "fine"


def test_the_time_limit_is_on_silence() -> None:
    got, _ = answer_of(streamed(*CHUNKS, pause=1.0), timeout=8.0)
    assert got.usage.seconds > 8.0
    assert got.text == "Liste ü"
    with pytest.raises(ModelUnavailableError, match=r"no complete answer within 0\.4 s"):
        answer_of(hang, timeout=0.4, max_attempts=1)


def test_providers_with_a_key_stream() -> None:
    url = "http://localhost/v1"
    assert OpenAIModel("m", url, provider="groq").stream
    assert not OpenAIModel("m", url).stream


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (streamed(*CHUNKS[:4], end=""), "the stream broke off"),
        (streamed(end="data: {\n\n"), "an event that is not JSON"),
        (streamed(3), "an event that is not an object"),
        (streamed(chunk(tool_calls=[{"index": -1}])), "an unknown tool call"),
        (streamed(end='data: {"choices": []}\ndata: {"cho\n\n'), "an event that is not JSON"),
        (streamed({"error": {"message": "the model is busy"}}), "the model is busy"),
    ],
)
def test_a_broken_stream_is_an_error_of_the_endpoint(fault: Fault, words: str) -> None:
    with pytest.raises(ModelUnavailableError, match=words):
        answer_of(fault, max_attempts=1)
