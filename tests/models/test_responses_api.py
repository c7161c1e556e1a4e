"""OpenAI's Responses API: requests and responses in the format of its own client library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import ConfigError, ModelRefusedError, ModelUnavailableError, UsageError
from intercode.models import Message, OpenAIModel, Tool, open_model
from support.faulty_endpoint import FaultyEndpoint, status

ASK: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
]
RUN = Tool("run", "Runs code.", {"type": "object", "properties": {"code": {"type": "string"}}})
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "encrypted_content": "gAAAA",
    "summary": [{"type": "summary_text", "text": "Listing is enough."}],
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "c1",
    "name": "run",
    "arguments": '{"code": "ls"}',
    "status": "completed",
}
ENCRYPTED = ["reasoning.encrypted_content"]


def text_item(text: str, **part: Any) -> dict[str, Any]:
    """Return an output item with a text."""
    content = {"type": "output_text", "text": text, "annotations": []} | part
    shared = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    return shared | {"content": [content]}


def response(*items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the body of a response, which the provider's own library accepts."""
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 14,
    }
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "o-2026",
        "output": list(items),
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    } | changes
    library = pytest.importorskip("openai.types.responses", reason="the extra models brings it")
    library.Response.model_validate(body)
    return body


def done(*items: dict[str, Any], **changes: Any) -> Any:
    return status(200, response(*items, **changes))


def require_published_format(request: dict[str, Any]) -> None:
    """Check a request against the types of the provider's own library."""
    pydantic = pytest.importorskip("pydantic")
    params = pytest.importorskip("openai.types.responses.response_create_params")
    pydantic.TypeAdapter(params.ResponseCreateParamsNonStreaming).validate_python(request)


def model_at(server: FaultyEndpoint, **options: Any) -> OpenAIModel:
    return OpenAIModel("m", server.base_url, provider="openai", stream=False, **options)


def test_reasoning_and_calls_are_sent_back_as_they_came() -> None:
    first = done(REASONING, CALL)
    with FaultyEndpoint(first, done(text_item("done"))) as server, model_at(server) as model:
        called = model.complete(ASK, tools=[RUN])
        result: Message = {"role": "tool", "tool_call_id": "c1", "content": "a b"}
        last = model.complete([*ASK, called.message(), result], tools=[RUN])
    assert server.paths == ["/v1/responses"] * 2
    for request in server.requests:
        require_published_format(request)
    assert server.requests[0] == {
        "model": "m",
        "store": False,
        "include": ENCRYPTED,
        "input": ASK,
        "tools": [
            {
                "type": "function",
                "name": "run",
                "description": "Runs code.",
                "strict": False,
                "parameters": dict(RUN.parameters),
            }
        ],
    }
    output = {"type": "function_call_output", "call_id": "c1", "output": "a b"}
    assert server.requests[1]["input"] == [*ASK, REASONING, CALL, output]
    assert called.calls[0]["function"] == {"name": "run", "arguments": '{"code": "ls"}'}
    assert (called.finish_reason, called.reasoning) == ("tool_calls", "Listing is enough.")
    assert (last.text, last.finish_reason, last.model) == ("done", "stop", "o-2026")
    usage = last.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.requests) == (9, 5, 1)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (4, 3)


def test_options_are_sent_under_their_names_and_unknown_ones_are_refused() -> None:
    options: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 50,
        "reasoning_effort": "low",
        "top_logprobs": 1,
        "extra": {"service_tier": "flex"},
    }
    logprob = {"token": "x", "logprob": -0.5, "bytes": [], "top_logprobs": []}
    with (
        FaultyEndpoint(done(text_item("x", logprobs=[logprob]))) as server,
        model_at(server, **options) as model,
    ):
        assert model.complete(ASK).tokens == {"logprobs": [-0.5], "texts": ["x"]}
    require_published_format(server.requests[0])
    assert server.requests[0] == {
        "model": "m",
        "store": False,
        "input": ASK,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 50,
        "reasoning": {"effort": "low"},
        "top_logprobs": 1,
        "service_tier": "flex",
        "include": [*ENCRYPTED, "message.output_text.logprobs"],
    }
    with pytest.raises(ConfigError, match=r"no option seed, stop: leave it out, or .* api=chat"):
        OpenAIModel("m", "http://localhost/v1", api="responses", seed=1, stop="x")


def test_a_model_without_encrypted_reasoning_is_not_asked_for_it_again() -> None:
    refusal = status(400, {"error": {"message": "Encrypted content is not supported here."}})
    with FaultyEndpoint(refusal, done(text_item("a"))) as server, model_at(server) as model:
        assert [model.complete(ASK).usage.requests for _ in range(2)] == [2, 1]
    assert [r.get("include") for r in server.requests] == [ENCRYPTED, [], None]


def test_an_answer_that_reached_its_limit_and_one_that_was_refused() -> None:
    cut = done(
        text_item("par"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    )
    refused = text_item("") | {"content": [{"type": "refusal", "refusal": "No."}]}
    with FaultyEndpoint(cut, done(refused)) as server, model_at(server) as model:
        assert model.complete(ASK).finish_reason == "length"
        assert model.complete(ASK).text == "No."


@pytest.mark.parametrize(
    "body",
    [{"output": "x"}, {"output": [{"type": "function_call"}]}, {"output": [{"type": "message"}]}],
)
def test_an_invalid_response_is_an_error_of_the_endpoint(body: dict[str, Any]) -> None:
    with (
        FaultyEndpoint(status(200, body)) as server,
        model_at(server, max_attempts=1) as model,
        pytest.raises(ModelUnavailableError, match="the response has"),
    ):
        model.complete(ASK)


def test_the_refusal_of_an_option_says_which_to_leave_out() -> None:
    message = "Unsupported parameter: 'temperature' is not supported with this model."
    with (
        FaultyEndpoint(status(400, {"error": {"message": message}})) as server,
        model_at(server, temperature=0.0, top_p=0.5) as model,
        pytest.raises(ModelRefusedError, match=r"this model\.; leave out the model option temp"),
    ):
        model.complete(ASK)


def test_a_function_in_a_file_is_a_model(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "async def answer(messages):\n    return f'{len(messages)} messages'\nnumber = 5\n"
    )
    model = open_model(f"{file}:answer")
    assert (model.name, model.complete(ASK).text) == ("answer", "2 messages")
    with pytest.raises(ConfigError, match=r"answer is a function, without base_url, seed"):
        open_model(f"{file}:answer", "http://localhost/v1", seed=1)
    for name, error in (("number", "no function of messages"), ("nothing", "nothing")):
        with pytest.raises(UsageError, match=error):
            open_model(f"{file}:{name}")
