"""The bridge, asked by the client libraries of OpenAI and Anthropic."""

from __future__ import annotations

import json
import select
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intercode.core.errors import BudgetError
from intercode.core.types import Usage
from intercode.models.base import Completion, Message, make_call
from intercode.models.bridge import (
    Bridge,
    BridgeRequest,
    BridgeStoppedError,
    RequestRefusedError,
    server,
)
from intercode.models.bridge.answers import GivenAnswers
from intercode.models.bridge.requests import answer_message, merge_answers

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
pytestmark = pytest.mark.heavy  # the client libraries take seconds to import

KEY = "intercode-key-of-this-episode"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
USAGE = Usage(100, 20, 1, cached_tokens=60, reasoning_tokens=5, cost=0.5)
Answer = Callable[[BridgeRequest], Completion]
TOOLS: dict[str, Any] = {
    "/v1/chat/completions": {"type": "function", "function": {"name": "run"}},
    "/v1/responses": {"type": "function", "name": "run", "parameters": SCHEMA},
    "/v1/messages": {"name": "run", "input_schema": SCHEMA},
}
"""A tool, as each protocol describes it."""


class Served:
    """A bridge whose owner is a thread. ``requests`` are those that it has answered; ``error`` is
    what ended it."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[BridgeRequest] = []
        self.error: Exception | None = None
        self._answer = answer
        self._is_closing = threading.Event()
        self.bridge = Bridge(socket.create_server(("127.0.0.1", 0)), KEY, "m", self._record)
        self.url = f"http://127.0.0.1:{self.bridge.port}"
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _record(self, request: BridgeRequest) -> Completion:
        self.requests.append(request)
        return self._answer(request)

    def _serve(self) -> None:
        try:
            while not self._is_closing.is_set():
                if select.select([self.bridge], [], [], 0.05)[0]:
                    self.bridge.serve()
        except Exception as e:
            self.error = e

    def close(self) -> None:
        """Close the bridge, after its owner's thread has ended: a bridge has one owner."""
        self._is_closing.set()
        self.thread.join()
        self.bridge.close()

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, Any]:
        given = {"Authorization": f"Bearer {KEY}", **headers}
        request = urllib.request.Request(self.url + path, body, given)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as e:
            return e.code, json.load(e)


def answer_with_call(request: BridgeRequest) -> Completion:
    """Call the tool, and after its result say what it was."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return Completion(f"it was {last['content']}", USAGE, "stop", "m-1")
    argument = "input" if request.freeform else "command"
    call = make_call("call_7", request.tools[0].name, {argument: "ls -l"})
    return Completion("I look", USAGE, "tool_calls", "m-1", calls=(call,))


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served(answer_with_call)
    yield served
    served.close()


@pytest.mark.parametrize("stream", [False, True])
def test_chat_completions(served: Served, stream: bool) -> None:
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key=KEY, max_retries=0)
    tools = [{"type": "function", "function": {"name": "run", "parameters": SCHEMA}}]
    messages: list[Any] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."}]},
    ]

    def ask() -> tuple[Any, Any]:
        if not stream:
            answer = client.chat.completions.create(model="x", messages=messages, tools=tools)
            return answer.choices[0].message, answer.usage
        options = {"include_usage": True}
        with client.chat.completions.stream(
            model="x", messages=messages, tools=tools, stream_options=options
        ) as events:
            answer = events.get_final_completion()
        return answer.choices[0].message, answer.usage

    message, usage = ask()
    assert message.content == "I look"
    assert (message.tool_calls[0].id, message.tool_calls[0].function.name) == ("call_7", "run")
    assert (usage.prompt_tokens, usage.completion_tokens) == (100, 20)
    assert usage.prompt_tokens_details.cached_tokens == 60
    call = message.tool_calls[0]
    messages.append(
        {
            "role": "assistant",
            "content": "I look",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": "run", "arguments": call.function.arguments},
                }
            ],
        }
    )
    messages.append({"role": "tool", "tool_call_id": "call_7", "content": "a b"})
    assert ask()[0].content == "it was a b"
    check_conversation(served)


def check_conversation(served: Served) -> None:
    """Every protocol gives the model the same conversation."""
    first, second = served.requests
    assert [dict(m) for m in first.messages] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look."},
    ]
    assert [tool.name for tool in first.tools] == ["run"]
    assert [dict(m) for m in second.messages[2:]] == [
        dict(answer_with_call(first).message()),
        {"role": "tool", "content": "a b", "tool_call_id": "call_7"},
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["function", "custom"])
def test_responses(served: Served, stream: bool, kind: str) -> None:
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key=KEY, max_retries=0)
    tool = {"type": kind, "name": "run", **({"parameters": SCHEMA} if kind == "function" else {})}
    items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "Look."}]}]

    def ask() -> Any:
        settings: dict[str, Any] = {
            "model": "x",
            "instructions": "Be brief.",
            "input": items,
            "store": False,
            "tools": [tool, {"type": "web_search"}],
        }
        if not stream:
            return client.responses.create(**settings)
        with client.responses.stream(**settings) as events:
            return events.get_final_response()

    response = ask()
    assert response.output_text == "I look"
    call = response.output[-1]
    assert call.call_id == "call_7"
    text = json.loads(call.arguments)["command"] if kind == "function" else call.input
    assert text == "ls -l"
    assert response.usage.input_tokens_details.cached_tokens == 60
    # a program sends back the text and the call as items of their own, and what it cannot read
    items += [{"type": "reasoning", "summary": [], "encrypted_content": "?"}]
    items += [item.model_dump(exclude={"parsed_arguments", "status"}) for item in response.output]
    items.append({"type": f"{call.type}_output", "call_id": "call_7", "output": "a b"})
    assert ask().output_text == "it was a b"
    check_conversation(served)


@pytest.mark.parametrize("stream", [False, True])
def test_messages(served: Served, stream: bool) -> None:
    client = anthropic.Anthropic(base_url=served.url, api_key=KEY, max_retries=0)
    tools = [{"name": "run", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": "Look."}]

    def ask() -> Any:
        settings: dict[str, Any] = {
            "model": "x",
            "max_tokens": 100,
            "tools": tools,
            "messages": messages,
            "system": [{"type": "text", "text": "Be brief."}],
        }
        if not stream:
            return client.messages.create(**settings)
        with client.messages.stream(**settings) as events:
            return events.get_final_message()

    message = ask()
    text, call = message.content
    assert (text.text, call.id, call.input) == ("I look", "call_7", {"command": "ls -l"})
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (40, 60)
    messages.append(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "?", "signature": "?"},
                *(block.model_dump() for block in message.content),
            ],
        }
    )
    result = {"type": "tool_result", "tool_use_id": "call_7", "content": "a b"}
    messages.append({"role": "user", "content": [result]})
    assert ask().content[0].text == "it was a b"
    check_conversation(served)
    counted = client.messages.count_tokens(model="x", messages=[{"role": "user", "content": "hi"}])
    assert counted.input_tokens > 0


def test_what_a_program_may_not_do(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no such path, no JSON, no length, too long: refused, and counted."""
    monkeypatch.setattr(server, "MAX_REQUEST_BYTES", 1000)
    chat = "/v1/chat/completions"
    assert served.post(chat, b"{}", Authorization="Bearer other")[0] == 401
    assert served.post("/v1/embeddings", b"{}")[0] == 404
    assert served.post(chat, b"{")[0] == 400
    assert served.post(chat, b"[]")[0] == 400
    assert served.post(chat, b'{"messages": [{"role": "queen", "content": ""}]}')[0] == 400
    assert served.post(chat, b'{"messages": "all"}')[0] == 400
    assert served.post("/v1/responses", b'{"input": [{"type": "function_call"}]}')[0] == 400
    assert served.post("/v1/messages", b'{"messages": [3]}')[0] == 400
    assert served.post(chat, b" " * 1001)[0] == 413
    with socket.create_connection(("127.0.0.1", served.bridge.port)) as connection:
        head = f"POST {chat} HTTP/1.1\r\nx-api-key: {KEY}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        assert b" 411 " in connection.recv(1000)
    assert served.requests == []
    assert served.bridge.refusals == 10
    for _ in range(server.MAX_REFUSALS - 10):
        served.bridge.count_refusal()
    served.thread.join(30)
    assert isinstance(served.error, BridgeStoppedError)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/chat/completions", "messages"),
        ("/v1/responses", "input"),
        ("/v1/messages", "messages"),
        ("/v1/messages/count_tokens", "messages"),
    ],
)
def test_a_request_of_too_many_values_is_refused(served: Served, path: str, name: str) -> None:
    message = {"role": "user", "content": "a"}
    few = json.dumps({name: [message] * 1000, "tools": [], "x": [{}] * 100_000}).encode()
    if not path.endswith("count_tokens"):
        few = json.dumps({name: [message], "tools": [TOOLS[path]], "x": [{}] * 100_000}).encode()
    assert served.post(path, few)[0] == 200
    status, data = served.post(path, json.dumps({name: [message], "x": [{}] * 250_000}).encode())
    assert status == 400 and "more than 250000 values" in data["error"]["message"]


def test_requests_without_an_answer_of_the_model_have_a_budget(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are decoded one at a time; when their time is used up, those that ask the model are
    still answered, and every other connection is a refusal, with or without a request."""
    decode, held = server._decode, []

    def watch(body: bytes) -> Any:
        held.append(served.bridge._counting.locked())
        return decode(body)

    monkeypatch.setattr(server, "_decode", watch)
    count, ask = "/v1/messages/count_tokens", "/v1/chat/completions"
    messages = [{"role": "user", "content": "hi"}]
    tool = TOOLS[ask]
    body = json.dumps({"messages": messages}).encode()
    question = json.dumps({"messages": messages, "tools": [tool]}).encode()
    assert served.post(ask, question)[0] == 200
    assert served.bridge._unpaid_seconds == 0
    assert served.post(count, body)[0] == 200
    assert held == [False, True]
    monkeypatch.setattr(server, "MAX_UNPAID_SECONDS", -1.0)  # also before the last was charged
    status, data = served.post(count, body)
    assert (status, data["error"]["type"]) == (429, "rate_limit_error")
    for method in ("GET", "HEAD"):
        request = urllib.request.Request(f"{served.url}/v1/models", method=method)
        with pytest.raises(urllib.error.HTTPError, match="429"):
            urllib.request.urlopen(request, timeout=30)
    assert held == [False, True]
    assert served.post(ask, question)[0] == 200
    while served.bridge.refusals < server.MAX_REFUSALS:
        with socket.create_connection(("127.0.0.1", served.bridge.port)) as connection:
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    served.thread.join(30)
    assert isinstance(served.error, BridgeStoppedError)


def test_many_answers_in_a_row_are_one_message() -> None:
    user: Message = {"role": "user", "content": "u"}
    calls = [make_call(str(n), "run", {}) for n in range(3)]
    parts = [answer_message("a", calls[:1]), answer_message("", calls[1:2]), user]
    parts += [answer_message("b", []), user, user, answer_message("c", calls[2:])]
    joined = [answer_message("a", calls[:2]), user, answer_message("b", []), user, user, parts[-1]]
    assert merge_answers(parts) == tuple(joined)


def test_an_error_of_the_owner_ends_it_and_a_refusal_is_answered() -> None:
    def fail(request: BridgeRequest) -> Completion:
        if request.messages[-1]["content"] == "long":
            raise RequestRefusedError("prompt is too long", 400, "context_length_exceeded")
        raise BudgetError("the secret reason")

    served = Served(fail)
    body = '{{"messages": [{{"role": "user", "content": "{}"}}]}}'
    status, data = served.post("/v1/chat/completions", body.format("long").encode())
    assert (status, data["error"]["code"]) == (400, "context_length_exceeded")
    status, data = served.post("/v1/chat/completions", body.format("short").encode())
    assert status == 403
    assert "secret" not in str(data)
    served.thread.join(30)
    assert isinstance(served.error, BudgetError)
    served.close()
    with pytest.raises(urllib.error.URLError):
        served.post("/v1/messages", b'{"messages": []}')


def test_what_a_provider_wants_back_stays_outside_and_returns() -> None:
    given = GivenAnswers()
    call = make_call("a", "run", {})
    first = given.add(Completion("t", calls=(call,), provider={"p": ["signed"]}, reasoning="r"))
    second = given.add(Completion("t", calls=(call,)))
    assert second.calls[0]["id"] != "a"
    repeated = [{"role": "assistant", "content": "t", "tool_calls": list(first.calls)}]
    [restored] = given.restore(repeated)  # type: ignore[arg-type]
    assert restored == first.message()
    assert restored["provider"] == {"p": ["signed"]}
