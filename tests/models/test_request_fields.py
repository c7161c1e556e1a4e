"""Requests and responses: parameters, tools, texts, token-level records."""

from __future__ import annotations

from typing import Any

import pytest

from intercode.core.errors import ConfigError, ModelRefusedError, UnknownNameError
from intercode.models import Message, OpenAIModel, Tool
from support.faulty_endpoint import FaultyEndpoint, completion, ok, status

ASK: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello"},
]
RUN = Tool("run", "Runs code.", {"type": "object", "properties": {"code": {"type": "string"}}})
CALL = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"code": "ls"}'}}


def answer(**message: Any) -> dict[str, Any]:
    """Return a response whose message has additional fields."""
    choice = {"message": {"role": "assistant", "content": "x"} | message, "finish_reason": "stop"}
    return completion(choices=[choice])


def test_every_generation_parameter_is_sent_and_recorded() -> None:
    given = {
        "temperature": 0.7,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["END"],
        "max_tokens": 50,
        "reasoning_effort": "low",
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
    }
    options: dict[str, Any] = {**given, "top_logprobs": 2, "token_ids": True}
    extra = {"extra": {"min_p": 0.1, "seed": None}, "headers": {"X-Team": "a"}}
    with FaultyEndpoint(ok()) as server, OpenAIModel("m", server.base_url, **options, **extra) as m:
        m.complete(ASK)
    assert server.requests[0] == {k: v for k, v in given.items() if k != "seed"} | {
        "model": "m",
        "messages": ASK,
        "logprobs": True,
        "top_logprobs": 2,
        "min_p": 0.1,
        "return_token_ids": True,
        "return_tokens": True,
        "verbose": True,
    }
    assert server.headers[0]["X-Team"] == "a"
    recorded = m.metadata()["generation"]
    assert {k: recorded[k] for k in given} == given
    assert recorded["extra"] == {"min_p": 0.1, "seed": None}
    assert recorded["headers"] == {"X-Team": "a"}


@pytest.mark.parametrize("code", [400, 422])
def test_the_other_name_of_the_limit_is_learned_once(code: int) -> None:
    body = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    refusal = status(code, {"error": {"message": body}})
    with (
        FaultyEndpoint(refusal, ok()) as server,
        OpenAIModel("m", server.base_url, max_tokens=9) as model,
    ):
        assert model.complete(ASK).usage.requests == 2
        assert model.complete(ASK).usage.requests == 1
    names = [{k: v for k, v in r.items() if k.startswith("max")} for r in server.requests]
    assert names == [{"max_tokens": 9}, *[{"max_completion_tokens": 9}] * 2]


def test_an_explicit_field_name_is_not_replaced_and_two_refusals_are_final() -> None:
    body = "neither max_tokens nor max_completion_tokens"
    refusal = status(400, {"error": {"message": body}})
    with FaultyEndpoint(refusal) as server:
        for options, requests in (({"max_completion_tokens": 9}, 1), ({"max_tokens": 9}, 2)):
            before = len(server.requests)
            with (
                OpenAIModel("m", server.base_url, **options) as model,
                pytest.raises(ModelRefusedError, match="neither"),
            ):
                model.complete(ASK)
            assert len(server.requests) - before == requests
    assert server.requests[0]["max_completion_tokens"] == 9


def test_tools_are_offered_called_and_answered() -> None:
    first = status(200, answer(content=None, tool_calls=[CALL]))
    with FaultyEndpoint(first, ok("done")) as server, OpenAIModel("m", server.base_url) as model:
        requested = model.complete(ASK, tools=[RUN])
        text = requested.message()
        tool: Message = {"role": "tool", "content": "a.txt", "tool_call_id": "c1"}
        assert model.complete([*ASK, text, tool], tools=[RUN]).text == "done"
    assert requested.text == ""
    assert requested.calls == (CALL,)
    assert server.requests[0]["tools"][0]["function"]["name"] == "run"
    assert server.requests[1]["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        tool,
    ]


@pytest.mark.parametrize("arguments", [{"code": "ls"}, None, '{"code": '])
def test_arguments_of_any_kind_become_text(arguments: Any) -> None:
    call = {"function": {"name": "run", "arguments": arguments}}
    with (
        FaultyEndpoint(status(200, answer(tool_calls=[call]))) as server,
        OpenAIModel("m", server.base_url) as model,
    ):
        made = model.complete(ASK).calls[0]
    texts = {None: "{}", '{"code": ': '{"code": '}
    wanted = '{"code": "ls"}' if isinstance(arguments, dict) else texts[arguments]
    assert made == {
        "id": "call_0",
        "type": "function",
        "function": {"name": "run", "arguments": wanted},
    }


def test_the_legacy_endpoint_gets_the_conversation_as_a_text() -> None:
    choice = {
        "text": " ls",
        "finish_reason": "stop",
        "logprobs": {"tokens": [" ls"], "token_logprobs": [-0.5], "top_logprobs": [{" ls": -0.5}]},
    }
    body = status(200, completion(choices=[choice]))
    with (
        FaultyEndpoint(body) as server,
        OpenAIModel("m", server.base_url, api="completions", logprobs=True) as model,
    ):
        got = model.complete([*ASK, {"role": "assistant", "content": "hi"}, ASK[1]])
        with pytest.raises(ConfigError, match="no tools"):
            model.complete(ASK, tools=[RUN])
    assert server.paths == ["/v1/completions"]
    assert server.requests[0]["prompt"] == (
        "### System:\nBe brief.\n\n### User:\nhello\n\n### Assistant:\nhi\n\n"
        "### User:\nhello\n\n### Assistant:\n"
    )
    assert server.requests[0]["stop"] == ["\n### User:"]
    assert server.requests[0]["logprobs"] == 1
    assert got.text == " ls"
    assert got.tokens == {"logprobs": [-0.5], "texts": [" ls"], "top": [{" ls": -0.5}]}
    assert "template" in model.metadata()


def test_a_template_of_ones_own() -> None:
    template = "<|{role}|>{content}<|end|>"
    model = OpenAIModel("m", "http://localhost/v1", api="completions", template=template)
    request = model.request(ASK, ())
    assert request["prompt"] == "<|system|>Be brief.<|end|><|user|>hello<|end|><|assistant|>"
    assert request["stop"] == ["\n<|user|>"]
    with pytest.raises(ConfigError, match="content"):
        OpenAIModel("m", "http://localhost/v1", api="completions", template="{role}")
    with pytest.raises(ConfigError, match="chat, completions"):
        OpenAIModel("m", "http://localhost/v1", api="answers")  # type: ignore[arg-type]


def test_ids_and_log_probabilities_are_recorded() -> None:
    content = [
        {"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "b", "logprob": -2.0}]},
        {"token": "c", "logprob": -0.2, "top_logprobs": []},
    ]
    body = answer() | {"prompt_token_ids": [1, 2, 3]}
    body["choices"][0] |= {"token_ids": [7, 8], "logprobs": {"content": content}}
    with FaultyEndpoint(status(200, body)) as server, OpenAIModel("m", server.base_url) as model:
        got = model.complete(ASK)
    assert got.tokens == {
        "prompt_ids": [1, 2, 3],
        "ids": [7, 8],
        "logprobs": [-0.1, -0.2],
        "texts": ["a", "c"],
        "top": [{"b": -2.0}, {}],
    }
    assert got.message()["tokens"] == {"finish": "stop", "model": got.model, **got.tokens}
    assert model.request([got.message()], ())["messages"] == [{"role": "assistant", "content": "x"}]


def test_thoughts_and_details_of_usage() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 15},
        "cost": 0.25,
    }
    details = [{"type": "reasoning.encrypted", "data": "xyz"}]
    body = answer(reasoning="hm", reasoning_details=details) | {"usage": usage}
    with (
        FaultyEndpoint(status(200, body)) as server,
        OpenAIModel("m", server.base_url, thoughts="reasoning_content") as model,
    ):
        got = model.complete(ASK)
        sent = model.request([got.message()], ())["messages"][0]
    assert (got.reasoning, got.usage.cached_tokens, got.usage.reasoning_tokens) == ("hm", 64, 15)
    assert got.usage.cost == 0.25
    assert got.usage.seconds > 0
    assert sent["reasoning_details"] == details
    assert sent["reasoning_content"] == "hm"


@pytest.mark.parametrize("code", [307, 308])
def test_a_redirect_on_the_same_host_is_followed_and_keeps_the_request(code: int) -> None:
    moved = status(code, b"", Location="/v2/chat")
    with FaultyEndpoint(moved, ok("there")) as server, OpenAIModel("m", server.base_url) as model:
        assert model.complete(ASK).text == "there"
    assert server.paths == ["/v1/chat/completions", "/v2/chat"]
    assert server.requests[0] == server.requests[1]


def test_no_key_follows_a_redirect_to_another_host() -> None:
    with FaultyEndpoint(ok("thief")) as other:
        moved = status(308, b"", Location=f"{other.base_url}/chat/completions")
        with (
            FaultyEndpoint(moved) as server,
            OpenAIModel("m", server.base_url, api_key="sk-0123456789") as model,
            pytest.raises(ModelRefusedError, match=r"308.*base URL"),
        ):
            model.complete(ASK)
        assert other.requests == []


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": True}, "max_tokens"),
        ({"concurrency": 0}, "concurrency"),
        ({"cache_mode": "maybe"}, "read-only"),
        ({"extra": [1]}, "extra"),
        ({"max_tokens": 0}, "at least 1"),
        ({"headers": {"X-A": "a\nb"}}, "X-A"),
        ({"headers": {"X-A": 3}}, "X-A"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused(option: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        OpenAIModel("m", "http://localhost/v1", **option)


def test_an_unknown_option_names_the_near_one() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'max_tokens'"):
        OpenAIModel("m", "http://localhost/v1", max_token=3)
    model = OpenAIModel("m", "http://localhost/v1", temperature=1.0, top_p="none")
    assert "top_p" not in model.request(ASK, ())


def test_none_for_a_request_option_leaves_the_default() -> None:
    options: dict[str, Any] = dict.fromkeys(("concurrency", "timeout", "patience"), "none")
    with OpenAIModel("m", "http://localhost/v1", **options) as model:
        assert (model.request_options.concurrency, model.request_options.timeout) == (256, 600.0)
