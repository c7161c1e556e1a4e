"""Every provider name of docs/models.md, against a server that answers as that provider's
documentation says: answers, streamed and with what is particular to it, refusals and rate limits.

The servers stand for the providers, which cannot be reached here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from intercode.core.errors import ModelRefusedError, ModelUnavailableError
from intercode.models import Message, Model, open_model
from intercode.models.providers.table import LOCAL, PROVIDERS
from intercode.models.transport.retry import RetryPolicy
from support.faulty_endpoint import FaultyEndpoint, completion, status, streamed

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
ASK: list[Message] = [{"role": "user", "content": "hello"}]
QUICK = RetryPolicy(max_attempts=2, initial_delay=0.001, max_delay=0.01)
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m-1",
    "error": None,
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "fine", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9},
}


def chunk(finish: str | None = None, more: Any = None, **delta: Any) -> dict[str, Any]:
    """Return an event of a streamed chat answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "model": "m-1",
        "choices": [choice],
        **(more or {}),
    }


USAGE_LAST = (chunk(finish="stop"), {"choices": [], "model": "m-1", "usage": USAGE})
USAGE_WITH_FINISH = (chunk(finish="stop", more={"usage": USAGE}),)


def error(message: str, **more: Any) -> dict[str, Any]:
    """Return OpenAI's form of an error, which most providers use."""
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


@dataclass(frozen=True)
class Published:
    """What a provider sends: the events of a streamed answer whose text is ``fine`` (none: it is
    asked for a whole answer), the body of an error, and what of the answer to expect."""

    events: tuple[Any, ...] = ()
    refusal: Any = field(default_factory=lambda: error("no such model", code="model_not_found"))
    expected: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=completion)


RESPONSES_EVENTS = (
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
    {"type": "response.output_text.delta", "item_id": "msg_1", "delta": "fine"},
    {"type": "response.completed", "response": RESPONSE},
)
PUBLISHED = {
    "openai": Published(
        RESPONSES_EVENTS, error("no such model", param="model", code="model_not_found")
    ),
    "xai": Published(RESPONSES_EVENTS, {"code": "invalid-argument", "error": "no such model"}),
    "openrouter": Published(
        (
            chunk(
                role="assistant",
                content="",
                reasoning="hm",
                reasoning_details=[{"type": "reasoning.text", "text": "hm"}],
            ),
            chunk(content="fine"),
            chunk(finish="stop"),
            {"choices": [], "usage": {**USAGE, "cost": 0.25}},
        ),
        {"error": {"code": 400, "message": "no such model", "metadata": {}}},
        {"reasoning": "hm", "cost": 0.25},
    ),
    "together": Published((chunk(content="fi"), chunk(content="ne"), *USAGE_WITH_FINISH)),
    "groq": Published(
        (
            chunk(role="assistant", content=""),
            chunk(reasoning="hm"),
            chunk(content="fine"),
            *USAGE_LAST,
        ),
        expected={"reasoning": "hm"},
    ),
    "deepseek": Published(
        (
            chunk(reasoning_content="hm", content=None),
            chunk(content="fine", reasoning_content=None),
            chunk(
                finish="stop",
                more={
                    "usage": {**USAGE, "prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 2}
                },
            ),
        ),
        expected={"reasoning": "hm", "cached": 5},
    ),
    "mistral": Published(
        (
            chunk(content=[{"type": "text", "text": "fi"}]),
            chunk(content=[{"type": "text", "text": "ne"}]),
            *USAGE_WITH_FINISH,
        ),
        {"object": "error", "message": "no such model", "type": "invalid_model", "code": "1500"},
    ),
    "fireworks": Published((chunk(content="fine"), *USAGE_WITH_FINISH)),
    "cerebras": Published(
        (chunk(content="fine"), *USAGE_WITH_FINISH),
        {"message": "no such model", "type": "not_found_error", "code": "model_not_found"},
    ),
    "huggingface": Published((chunk(content="fine"), *USAGE_LAST), {"error": "no such model"}),
    "vllm": Published(
        refusal={"error": {"message": "no such model", "type": "NotFoundError", "code": 404}},
        body=completion()
        | {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "stop_reason": None,
                    "message": {
                        "role": "assistant",
                        "content": "fine",
                        "reasoning_content": "hm",
                        "tool_calls": [],
                    },
                }
            ]
        },
        expected={"reasoning": "hm"},
    ),
    "sglang": Published(
        refusal={"object": "error", "message": "no such model", "type": "NotFound", "code": 404},
        body=completion()
        | {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "matched_stop": 3,
                    "message": {
                        "role": "assistant",
                        "content": "fine",
                        "reasoning_content": None,
                        "tool_calls": None,
                    },
                }
            ]
        },
    ),
    "ollama": Published(
        body=completion()
        | {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "fine", "reasoning": "hm"},
                }
            ]
        },
        expected={"reasoning": "hm"},
    ),
    "llamacpp": Published(
        refusal={
            "error": {"code": 400, "message": "no such model", "type": "invalid_request_error"}
        },
        body=completion() | {"timings": {"prompt_n": 7, "predicted_n": 2}},
    ),
}
LIMITED = {
    "huggingface": {"error": "rate limit reached"},
    "mistral": {"object": "error", "message": "rate limit reached", "type": "rate_limited"},
    "cerebras": {"message": "rate limit reached", "type": "too_many_requests_error"},
}
"""The bodies of an answer with the status 429, where they are not OpenAI's form."""


@contextmanager
def opened(
    name: str, server: FaultyEndpoint, monkeypatch: pytest.MonkeyPatch, model: str = "m"
) -> Iterator[Model]:
    """Yield the model of a provider whose address is a local server."""
    provider = PROVIDERS[name]
    monkeypatch.setitem(PROVIDERS, name, replace(provider, base_url=server.base_url))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("INTERCODE_API_KEY", raising=False)
    if provider.key_variable:
        monkeypatch.setenv(provider.key_variable, "the-key")
    with open_model(f"{name}/{model}", retry=QUICK) as it:  # type: ignore[attr-defined]
        yield it


def test_every_name_of_the_page_is_tested() -> None:
    table = PAGE.read_text("utf-8").partition("| names |")[2].partition("\n\n")[0]
    names = set(re.findall(r"`(\w+)/(?:PROVIDER/)?`", table))
    assert names == set(PROVIDERS) - {LOCAL}
    compatible = {name for name, provider in PROVIDERS.items() if provider.is_compatible}
    assert set(PUBLISHED) == compatible  # the others have tests of their own


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    published = PUBLISHED[name]
    whole = status(200, published.body)
    answer = streamed(*published.events) if published.events else whole
    with FaultyEndpoint(answer) as server, opened(name, server, monkeypatch) as model:
        got = model.complete(ASK)
    (request,), (headers,) = server.requests, server.headers
    assert (got.text, got.finish_reason) == ("fine", "stop")
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (7, 2)
    expected = {"reasoning": "", "cached": None, "cost": None} | published.expected
    priced = {"cost": got.usage.cost} if expected["cost"] is not None else {"cost": None}
    assert {"reasoning": got.reasoning, "cached": got.usage.cached_tokens, **priced} == expected
    assert request["model"] == "m" and request.get("stream", False) == bool(published.events)
    key = "Bearer the-key" if PROVIDERS[name].key_variable else None
    assert headers.get("Authorization") == key
    path = "/v1/responses" if published.events is RESPONSES_EVENTS else "/v1/chat/completions"
    assert server.paths == [path]
    unset = {"temperature", "top_p", "seed", "stop", "max_tokens", "max_output_tokens"}
    assert not unset & request.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_refusal_says_why(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = status(400, PUBLISHED[name].refusal)
    with (
        FaultyEndpoint(refusal) as server,
        opened(name, server, monkeypatch) as model,
        pytest.raises(ModelRefusedError, match=r"HTTP 400: .*no such model"),
    ):
        model.complete(ASK)
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_rate_limit_is_waited_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    published = PUBLISHED[name]
    body = LIMITED.get(name) or error("rate limit reached", code="rate_limit_exceeded")
    limited = status(429, body, Retry_After="0")
    sound = streamed(*published.events) if published.events else status(200, published.body)
    with FaultyEndpoint(limited, sound) as server, opened(name, server, monkeypatch) as model:
        assert model.complete(ASK).text == "fine"
    assert len(server.requests) == 2
    with (
        FaultyEndpoint(limited) as server,
        opened(name, server, monkeypatch) as model,
        pytest.raises(ModelUnavailableError, match=r"HTTP 429: .*rate limit reached"),
    ):
        model.complete(ASK)


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("openai", ({"type": "error", "code": "server_error", "message": "overloaded now"},)),
        (
            "openai",
            (
                {
                    "type": "response.failed",
                    "response": {
                        **RESPONSE,
                        "status": "failed",
                        "error": {"code": "server_error", "message": "overloaded now"},
                    },
                },
            ),
        ),
        (
            "openrouter",
            (
                chunk(content="fi"),
                chunk(finish="error", more={"error": {"code": 502, "message": "overloaded now"}}),
            ),
        ),
        ("groq", ({"error": {"message": "overloaded now", "type": "internal_server_error"}},)),
    ],
)
def test_an_error_in_the_middle_of_an_answer_is_tried_again(
    name: str, events: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = streamed(*events), streamed(*PUBLISHED[name].events)
    with FaultyEndpoint(broken, sound) as server, opened(name, server, monkeypatch) as model:
        assert model.complete(ASK).text == "fine"
    assert len(server.requests) == 2
    with (
        FaultyEndpoint(broken) as server,
        opened(name, server, monkeypatch) as model,
        pytest.raises(ModelUnavailableError, match="overloaded now"),
    ):
        model.complete(ASK)


def test_the_refusal_of_a_model_is_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that declines says so in a field of its own, in both of OpenAI's formats."""
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    refused = {**RESPONSE, "output": [item]}
    event = {"type": "response.completed", "response": refused}
    with FaultyEndpoint(streamed(event)) as server, opened("openai", server, monkeypatch) as model:
        assert model.complete(ASK).text == "I will not."
    pieces = (chunk(role="assistant", content=None, refusal="I will "), chunk(refusal="not."))
    answer = streamed(*pieces, *USAGE_LAST)
    with FaultyEndpoint(answer) as server, opened("groq", server, monkeypatch) as model:
        got = model.complete(ASK)
    assert got.text == "I will not." and json.dumps(got.message())
