"""Anthropic, Google and LiteLLM: the real client libraries against local servers that implement the
parts of their protocols that the tests need."""

from __future__ import annotations

import logging
import math
import sys
import traceback
from typing import Any

import pytest

from intercode.core.errors import ConfigError, ModelRefusedError, ModelUnavailableError
from intercode.models import Message, Tool, open_model
from intercode.models.transport.retry import RetryPolicy
from support.faulty_endpoint import (
    FaultyEndpoint,
    hang,
    limit_first_attempt,
    ok,
    reset,
    short_body,
    status,
    streamed,
)
from support.requirements import require_library

pytestmark = pytest.mark.heavy
KEY = "sk-very-secret-0123456789"
QUICK = RetryPolicy(max_attempts=3, initial_delay=0.001, max_delay=0.01)
RUN = Tool("run", "Runs code.", {"type": "object", "properties": {"code": {"type": "string"}}})
ASK: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
]
BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "text", "text": "Let us see."},
    {"type": "tool_use", "id": "t1", "name": "run", "input": {"code": "ls"}},
]
CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-1",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "content": BLOCKS,
    "usage": {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
    },
}
PARTS = [
    {"text": "hm", "thought": True},
    {"text": "Let us see.", "thoughtSignature": "c2lnbmF0dXJl"},
    {"functionCall": {"name": "run", "args": {"code": "ls"}}, "thoughtSignature": "AAEC"},
]
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP"}],
    "usageMetadata": {
        "promptTokenCount": 50,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 9,
        "cachedContentTokenCount": 30,
    },
    "modelVersion": "gemini-x-1",
}
PRICE = {"input": 1.0, "output": 10.0, "cached": 0.1, "written": 2.0}
NATIVE = [
    ("anthropic", CLAUDE),
    ("google", GEMINI),
    pytest.param("litellm", None, marks=pytest.mark.slow),  # takes seconds to import
]


def model_at(kind: str, server: FaultyEndpoint, **options: Any) -> Any:
    library = {"anthropic": "anthropic", "google": "google.genai", "litellm": "litellm"}[kind]
    # not imported here, because the tests cover our import
    require_library(library, kind)
    name = {"anthropic": "anthropic/claude-x", "google": "google/gemini-x"}
    url = server.base_url if kind == "litellm" else server.base_url.removesuffix("/v1")
    options = {"retry": QUICK, "api_key": KEY, "stream": False} | options
    return open_model(name.get(kind, "litellm/openai/gpt-x"), url, **options)


def sound(body: Any) -> Any:
    return ok("Let us see.") if body is None else status(200, body)


def test_anthropics_thinking_and_tools_go_back_unchanged() -> None:
    options = {"thinking": 2000, "price": PRICE, "stop": "END", "reasoning_effort": "low"}
    with (
        FaultyEndpoint(status(200, CLAUDE)) as server,
        model_at("anthropic", server, **options) as model,
    ):
        got = model.complete(ASK, tools=[RUN])
        recorded: list[Message] = [
            {"role": "tool", "content": "a.txt", "tool_call_id": "t1"},
            {"role": "user", "content": "go on"},
        ]
        with model_at("anthropic", server, temperature=0.5) as warm:
            warm.complete([*ASK, got.message(), *recorded], tools=[RUN])
    assert (got.text, got.reasoning, got.finish_reason) == ("Let us see.", "hm", "tool_use")
    assert got.calls[0]["function"] == {"name": "run", "arguments": '{"code": "ls"}'}
    usage = got.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (130, 5, 100)
    assert usage.cost == pytest.approx((10 + 100 * 0.1 + 20 * 2 + 5 * 10) / 1e6)
    first, second = server.requests
    assert first["system"] == "Be brief."
    assert first["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert first["stop_sequences"] == ["END"]
    assert first["output_config"] == {"effort": "low"}
    assert first["cache_control"] == {"type": "ephemeral"}
    assert "temperature" not in first
    assert second["temperature"] == 0.5
    assert [m["role"] for m in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == BLOCKS
    assert [b["type"] for b in second["messages"][2]["content"]] == ["tool_result", "text"]


@pytest.mark.slow
def test_googles_signatures_and_tools_go_back_unchanged() -> None:
    options = {"thinking": 100, "price": PRICE, "max_tokens": 60, "seed": 3, "top_p": 0.5}
    with (
        FaultyEndpoint(status(200, GEMINI)) as server,
        model_at("google", server, **options) as model,
    ):
        got = model.complete(ASK, tools=[RUN])
        tool: Message = {"role": "tool", "content": "a.txt", "tool_call_id": got.calls[0]["id"]}
        model.complete([*ASK, got.message(), tool], tools=[RUN])
    assert (got.text, got.reasoning, got.finish_reason) == ("Let us see.", "hm", "STOP")
    usage = got.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (50, 16)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (30, 9)
    assert usage.cost == pytest.approx((20 + 30 * 0.1 + 16 * 10) / 1e6)
    first, second = server.requests
    config = first["generationConfig"]
    assert (config["maxOutputTokens"], config["seed"], config["topP"]) == (60, 3, 0.5)
    assert first["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert second["contents"][1] == {"role": "model", "parts": PARTS}
    response = second["contents"][2]["parts"][0]["functionResponse"]
    assert (response["name"], response["response"]) == ("run", {"output": "a.txt"})


@pytest.mark.slow
def test_litellm_takes_the_same_fields_and_gives_the_same_answers() -> None:
    with FaultyEndpoint(ok("hi")) as server, model_at("litellm", server, seed=3) as model:
        got = model.complete(ASK)
    assert (got.text, got.usage.prompt_tokens, got.usage.completion_tokens) == ("hi", 7, 2)
    assert server.requests[0]["messages"] == ASK
    assert server.requests[0]["seed"] == 3
    headers = {k.lower(): v for k, v in server.headers[0].items()}
    assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "body"), NATIVE)
@pytest.mark.parametrize(
    "fault",
    [
        status(429, {"error": {"message": "slow"}}, Retry_After="0"),
        status(500),
        status(529, b"x"),
        reset,
        short_body,
        hang,
        status(200, b'{"content": ['),
    ],
    ids=["429", "500", "529", "reset", "short", "hang", "truncated"],
)
def test_passing_faults_are_tried_again(
    kind: str, body: Any, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyEndpoint(fault, sound(body)) as server, model_at(kind, server) as model:
        limit_first_attempt(monkeypatch, server, 2.0 if fault is hang else math.inf)
        got = model.complete(ASK)
    assert got.text == "Let us see."
    assert len(server.requests) == 2


@pytest.mark.parametrize(("kind", "body"), NATIVE)
@pytest.mark.parametrize("code", [400, 401, 404])
def test_a_refusal_is_final_and_shows_no_key(
    kind: str, body: Any, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    refusal = status(code, {"error": {"message": f"bad {KEY}", "type": "x", "code": code}})
    with FaultyEndpoint(refusal) as server, model_at(kind, server) as model:
        with pytest.raises(ModelRefusedError, match=f"HTTP {code}") as caught:
            model.complete(ASK)
        shown = repr(model) + str(model.metadata())
    assert len(server.requests) == 1
    assert KEY not in shown + "".join(traceback.format_exception(caught.value))
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("intercode")]
    assert KEY not in "".join(ours)


@pytest.mark.parametrize(("kind", "body"), NATIVE)
def test_patience_ends_and_shows_no_key(kind: str, body: Any) -> None:
    with (
        FaultyEndpoint(status(503, {"error": {"message": f"busy {KEY}"}})) as server,
        model_at(kind, server) as model,
        pytest.raises(ModelUnavailableError, match="3 attempts") as caught,
    ):
        model.complete(ASK)
    assert len(server.requests) == 3
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(("kind", "body"), NATIVE)
def test_a_refused_parameter_is_named_with_the_remedy(kind: str, body: Any) -> None:
    refusal = status(400, {"error": {"message": "`temperature` is not supported", "type": "x"}})
    remedy = "leave out the model option temperature$"
    with FaultyEndpoint(refusal) as server, model_at(kind, server, temperature=0.5) as model:
        with pytest.raises(ModelRefusedError, match=remedy):
            model.complete(ASK)
        assert len(server.requests) == 1


BUSY = "the model is busy"


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": BUSY}}),
        ("google", {"error": {"code": 503, "message": BUSY, "status": "UNAVAILABLE"}}),
        pytest.param("litellm", {"error": {"message": BUSY, "code": 503}}, marks=pytest.mark.slow),
    ],
)
def test_an_error_in_a_stream_is_tried_again(kind: str, event: Any) -> None:
    with (
        FaultyEndpoint(streamed(event, comment="", end="")) as server,
        model_at(kind, server, stream=True) as model,
        pytest.raises(ModelUnavailableError, match="3 attempts"),
    ):
        model.complete(ASK)
    assert len(server.requests) == 3


def test_a_conversation_that_a_provider_declines() -> None:
    declined = CLAUDE | {"content": [], "stop_reason": "refusal"}
    with FaultyEndpoint(status(200, declined)) as server, model_at("anthropic", server) as model:
        got = model.complete(ASK)
    assert (got.text, got.calls, got.finish_reason) == ("", (), "refusal")
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}
    for answer, stream in (
        (status(200, blocked), False),
        (streamed(blocked, comment="", end=""), True),
    ):
        with (
            FaultyEndpoint(answer) as server,
            model_at("google", server, stream=stream) as model,
            pytest.raises(ModelRefusedError, match=r"the prompt was blocked: .*SAFETY") as refused,
        ):
            model.complete(ASK)
        assert not refused.value.affects_all_requests


@pytest.mark.parametrize("kind", ["anthropic", "google", "litellm"])
def test_a_missing_library_is_an_error_with_the_install_command(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("anthropic", "google.genai", "litellm"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf"models of {kind}/.*intercode-gym\[models\]"):
        open_model(f"{kind}/a/b", api_key=KEY)


def test_a_missing_key_is_an_error_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "INTERCODE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for kind, variable in (("anthropic", "ANTHROPIC_API_KEY"), ("google", "GEMINI_API_KEY")):
        with pytest.raises(ConfigError, match=variable):
            open_model(f"{kind}/x")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["anthropic", "google", "litellm"])
def test_a_login_in_an_address_is_not_recorded(kind: str) -> None:
    pytest.importorskip(
        {"google": "google.genai"}.get(kind, kind), reason="pip install 'intercode-gym[models]'"
    )
    url = "http://me:pass-word-0123@localhost:1"
    model: Any = open_model(f"{kind}/x/y", url, api_key=KEY)
    assert model.metadata()["endpoint"].rstrip("/") == "http://localhost:1"
    assert "pass-word" not in repr(model) + model.redact("pass-word-0123")
    with pytest.raises(ConfigError, match="key in its query"):
        open_model(f"{kind}/x/y", "http://localhost:1?api_key=0123456789", api_key=KEY)


@pytest.mark.parametrize(
    ("kind", "variable", "name", "body"),
    [
        ("anthropic", "ANTHROPIC_BASE_URL", "anthropic/claude-x", CLAUDE),
        ("google", "GOOGLE_GEMINI_BASE_URL", "google/gemini-x", GEMINI),
        *(
            pytest.param("litellm", variable, name, None, marks=pytest.mark.slow)
            for variable, name in {
                "OPENAI_BASE_URL": "litellm/openai/gpt-x",
                "OPENAI_API_BASE": "litellm/gpt-4o",
                "DEEPSEEK_API_BASE": "litellm/deepseek/deepseek-chat",
            }.items()
        ),
    ],
)
def test_the_address_that_a_library_reads_from_the_environment_is_recorded(
    monkeypatch: pytest.MonkeyPatch, kind: str, variable: str, name: str, body: Any
) -> None:
    """Otherwise a run would be continued against another server without a word."""
    require_library(kind if kind != "google" else "google.genai", kind)
    with FaultyEndpoint(sound(body)) as server:
        url = server.base_url if kind == "litellm" else server.base_url.removesuffix("/v1")
        monkeypatch.setenv(variable, f"{url}/")
        with open_model(name, api_key=KEY, stream=False, retry=QUICK) as model:
            assert model.complete(ASK).text == "Let us see."
            assert model.endpoint is not None and model.endpoint.rstrip("/") == url
            assert model.metadata()["endpoint"] == model.endpoint


@pytest.mark.slow  # the library is slow to import
def test_the_region_of_a_cloud_is_a_part_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    require_library("litellm", "litellm")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    for variable in ("AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable, raising=False)

    def address() -> str | None:
        with open_model("litellm/bedrock/meta.llama-x", api_key=KEY) as model:
            return model.endpoint

    assert address() == "litellm:bedrock"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert address() == "litellm:bedrock:eu-west-1"
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")
    assert address() == "litellm:bedrock:us-east-1"


def test_vertex_ai_is_another_address_of_google(monkeypatch: pytest.MonkeyPatch) -> None:
    require_library("google.genai", "google")
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
    found = set()
    for value, project in (("", ""), ("true", ""), ("1", "shop")):
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", value)
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
        with open_model("google/gemini-x", api_key=KEY) as model:
            found.add(model.endpoint)
    assert len(found) == 3
