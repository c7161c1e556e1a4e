"""Tokens in the answers of engines: recorded or written in the format that each publishes, since
vLLM, SGLang and Tinker need hardware or an account. llama.cpp answers for real in
test_llama_server.py."""

from __future__ import annotations

from typing import Any

import pytest

from intercode.models import Message, OpenAIModel, Tool, read_tokens
from support.faulty_endpoint import FaultyEndpoint, completion, status

ASK: list[Message] = [{"role": "user", "content": "List the files."}]
LOGPROBS = {"content": [{"token": "ls", "logprob": -0.5}, {"token": "", "logprob": -0.25}]}
VLLM = {
    "prompt_token_ids": [1, 5, 6],
    "choices": [
        {"finish_reason": "stop", "stop_reason": 2, "token_ids": [7, 2], "logprobs": LOGPROBS}
    ],
}
SGLANG_CHAT = {
    "choices": [
        {"prompt_token_ids": [1, 5, 6], "response_token_ids": [7, 2], "matched_stop": 2}
        | {"finish_reason": "stop", "logprobs": LOGPROBS}
    ]
}
SGLANG = {
    "text": "ls",
    "output_ids": [7, 2],
    "meta_info": {
        "prompt_tokens": 3,
        "finish_reason": {"type": "stop", "matched": 2},
        "input_token_logprobs": [[None, 1, None], [-1.5, 5, None], [-2.5, 6, None]],
        "output_token_logprobs": [[-0.5, 7, "ls"], [-0.25, 2, ""]],
    },
}
TINKER = {
    "type": "sample",
    "sequences": [{"stop_reason": "stop", "tokens": [7, 2], "logprobs": [-0.5, -0.25]}],
}
LLAMA_COMPLETION = {
    "content": "ls",
    "tokens": [7, 2],
    "stop_type": "eos",
    "truncated": False,
    "generation_settings": {"temperature": 0.5, "post_sampling_probs": False},
    "completion_probabilities": [
        {"id": 7, "token": "ls", "logprob": -0.5},
        {"id": 2, "token": "", "logprob": -0.25},
    ],
}
SHARED = {"ids": [7, 2], "logprobs": [-0.5, -0.25]}
TEXTS = {"texts": ["ls", ""]}
PROMPT = {"prompt_ids": [1, 5, 6]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (VLLM, {**SHARED, **TEXTS, **PROMPT, "stop": 2}),
        (SGLANG_CHAT, {**SHARED, **TEXTS, **PROMPT, "stop": 2}),
        (SGLANG, {**SHARED, **TEXTS, **PROMPT, "stop": 2, "raw": False, "finish": "stop"}),
        (TINKER, {**SHARED, "finish": "stop"}),
        (
            LLAMA_COMPLETION,
            {**SHARED, **TEXTS, "raw": True, "temperature": 0.5, "finish": "stop"},
        ),
        ({"choices": []}, {}),
        ({"sequences": []}, {}),
        ({"content": [{"type": "text", "text": "ls"}]}, {}),
    ],
    ids=["vllm", "sglang-chat", "sglang", "tinker", "llama.cpp", "nothing", "no-sample", "other"],
)
def test_the_tokens_of_each_engine_are_read(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert read_tokens(given) == expected


def test_a_prompt_of_which_a_part_has_log_probabilities_is_not_taken() -> None:
    meta = {**SGLANG["meta_info"], "prompt_tokens": 9}  # type: ignore[dict-item]
    assert "prompt_ids" not in read_tokens({**SGLANG, "meta_info": meta})


def test_an_engine_that_tells_the_text_of_a_prompt_is_asked_for_its_ids() -> None:
    body = completion()
    body["__verbose"] = {"prompt": "<s>ls", "tokens": [7, 2], "truncated": True}
    replies = [status(200, body), status(200, {"tokens": [1, 5, 6]})]
    with FaultyEndpoint(*replies) as server, OpenAIModel("m", server.base_url) as model:
        got = model.complete(ASK)
    assert got.tokens == {"prompt_ids": [1, 5, 6], "ids": [7, 2], "raw": True, "truncated": True}
    assert server.requests[1] == {"content": "<s>ls", "add_special": True, "parse_special": True}


def test_calls_with_ids_say_with_which_tools_they_were_made() -> None:
    body = completion()
    body["choices"][0]["token_ids"] = [7]
    tools = [Tool("run", "Runs.", {}), Tool("run", "Runs a command.", {})]
    replies = [status(200, body)] * 3
    with FaultyEndpoint(*replies) as server, OpenAIModel("m", server.base_url) as model:
        first, second = (model.complete(ASK, tools=[tool]).tokens["tools"] for tool in tools)
        assert "tools" not in model.complete(ASK).tokens
    assert first != second


def test_calls_with_ids_have_the_texts_at_which_they_were_to_end() -> None:
    body = {"choices": [{"text": "ls", "finish_reason": "stop", "token_ids": [7]}]}
    with FaultyEndpoint(status(200, body), status(200, completion())) as server:
        with OpenAIModel("m", server.base_url, api="completions") as model:
            assert model.complete(ASK).tokens["stop_texts"] == server.requests[0]["stop"]
        with OpenAIModel("m", server.base_url, stop="END") as model:
            assert model.complete(ASK).tokens == {}  # without ids nothing is added
