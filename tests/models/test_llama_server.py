"""Tokens of a real engine: llama.cpp's server with a small model."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from intercode.core.types import Step, Trajectory
from intercode.models import Message, OpenAIModel
from intercode.models.providers.local import LocalServer
from intercode.models.providers.local_file import smollm2
from intercode.results.tokens import TokenTrace, Vocabulary, find_faults
from support import requirements

KEY = "the-key-of-the-tests"
END_OF_TEXT, IM_START, IM_END = 0, 1, 2
GRAMMAR = {"grammar": 'root ::= "ls -l"'}
SAY_LS = {**GRAMMAR, "logit_bias": [[END_OF_TEXT, False]]}
END_OTHERWISE = {**GRAMMAR, "logit_bias": [[IM_END, False]]}
SAY_LLL = {"logit_bias": [["l", 100.0]]}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the model; yield the address."""
    requirements.require("llama")
    settings = {"key": KEY, "context": 1024, "parallel": 1, "threads": 1}
    server = LocalServer({"file": str(smollm2()), **settings})
    yield server.start()
    server.close()


def ask(address: str, path: str, **body: Any) -> Any:
    """Return what the engine answers to a request of its own API."""
    request = urllib.request.Request(
        address + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def play(address: str, extra: dict[str, Any], turns: int, **options: Any) -> Trajectory:
    """Return an episode of these turns, whose prompts the engine makes of the conversation."""
    added: list[Message] = [{"role": "user", "content": "List the files."}]
    messages: list[Message] = []
    steps = []
    options = {"token_ids": True, "logprobs": True, "top_logprobs": 1, "temperature": 1.0} | options
    with OpenAIModel("m", f"{address}/v1", KEY, extra=extra, seed=1, **options) as model:
        for _ in range(turns):
            messages += added
            answer = model.complete(messages)
            messages.append(answer.message())
            steps.append(Step("ls", "a", usage=answer.usage, messages=(*added, messages[-1])))
            added = [{"role": "user", "content": "Again."}]
    return Trajectory("t", 0, "q", tuple(steps), id="e")


def vocabulary(address: str) -> Vocabulary:
    """Return what the engine knows of its tokenizer."""

    def decode(ids: Any) -> str:
        return str(ask(address, "/detokenize", tokens=list(ids))["content"])

    return Vocabulary(49152, None, frozenset([IM_END]), decode)


def test_replies_that_the_engine_tokenises_as_it_sampled_them_are_one_branch(address: str) -> None:
    episode = play(address, SAY_LS, 3, max_tokens=16)
    trace = TokenTrace.from_episodes([episode])
    for call in trace.calls:
        assert call.prompt_ids[0] == IM_START and call.ids[-1] == IM_END
        assert (call.finish, call.text, call.is_raw) == ("stop", "ls -l", True)
        assert call.usage == (len(call.prompt_ids), len(call.ids))
        assert call.logprobs is not None and len(call.logprobs) == len(call.ids)
    usual = ask(address, "/tokenize", content="ls -l")["tokens"]
    unusual = [c.turn for c in trace.calls[:-1] if list(c.ids[:-1]) != usual]
    faults = find_faults(trace, vocabulary=vocabulary(address))
    assert {f.kind for f in faults} == ({"retokenised"} if unusual else set())
    assert len(trace.rows()) == (1 if not unusual else len(unusual) + 1)


def test_a_reply_that_the_engine_tokenises_again_is_refused(address: str) -> None:
    episode = play(address, SAY_LLL, 2, max_tokens=6)
    trace = TokenTrace.from_episodes([episode])
    first, second = trace.calls
    assert len(set(first.ids)) == 1 and first.finish == "length"
    faults = find_faults(trace, vocabulary=vocabulary(address), allow=["reply-cut"])
    begins = len(first.prompt_ids)
    assert [(f.kind, f.turn, f.position) for f in faults] == [("retokenised", 1, begins)]
    assert second.prompt_ids[:begins] == first.prompt_ids


def test_a_reply_that_ends_otherwise_than_the_template_writes_is_refused(address: str) -> None:
    trace = TokenTrace.from_episodes([play(address, END_OTHERWISE, 2, max_tokens=16)])
    first = trace.calls[0]
    assert (first.ids[-1], first.finish) == (END_OF_TEXT, "stop")
    faults = {f.kind: f for f in find_faults(trace)}
    at = len(first.sequence) - 1
    usual = ask(address, "/tokenize", content="ls -l")["tokens"]
    if list(first.ids[:-1]) == usual:
        assert (faults["stop-token-lost"].turn, faults["stop-token-lost"].position) == (1, at)
    else:
        assert "retokenised" in faults


def test_a_stream_lacks_the_last_id_and_is_refused(address: str) -> None:
    trace = TokenTrace.from_episodes([play(address, SAY_LS, 1, max_tokens=16, stream=True)])
    (call,) = trace.calls
    assert call.usage == (len(call.prompt_ids), len(call.ids) + 1)
    faults = find_faults(trace, vocabulary=Vocabulary(stops=frozenset([IM_END])))
    assert {f.kind for f in faults} == {"count-differs", "stop-token-lost"}


def test_another_temperature_is_refused(address: str) -> None:
    episode = play(address, SAY_LS, 1, max_tokens=16, temperature=0.5)
    (fault,) = find_faults(TokenTrace.from_episodes([episode]))
    assert (fault.kind, fault.turn) == ("temperature", 0) and "0.5" in fault.message
