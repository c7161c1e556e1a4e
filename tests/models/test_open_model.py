"""Names of models: their endpoints and keys. And the scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intercode.core.errors import (
    ConfigError,
    DataError,
    ModelRefusedError,
    UnknownNameError,
    UsageError,
)
from intercode.models import Message, OpenAIModel, ScriptedModel, ToolCall, open_model
from support.faulty_endpoint import FaultyEndpoint, ok

VARIABLES = ("OPENAI_API_KEY", "INTERCODE_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY")
USER: Message = {"role": "user", "content": "go"}
ANSWER: Message = {"role": "assistant", "content": "a"}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def opened(name: str, base_url: str | None = None) -> OpenAIModel:
    model = open_model(name, base_url)
    assert isinstance(model, OpenAIModel)
    return model


def test_a_provider_gives_address_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    model = opened("openai/gpt-x")
    assert (model.name, model.endpoint) == ("gpt-x", "https://api.openai.com/v1/responses")
    # the key of another provider is never used
    with pytest.raises(ConfigError, match="OPENROUTER_API_KEY"):
        open_model("openrouter/some/model")


def test_a_base_url_takes_the_name_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened("openai/gpt-x", "http://localhost:8000/v1").name == "openai/gpt-x"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1")
    assert opened("org/model").endpoint == "http://localhost:9/v1/chat/completions"


def test_the_key_is_optional_with_a_base_url_and_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FaultyEndpoint(ok()) as server:
        open_model("m", server.base_url).complete([USER])
        monkeypatch.setenv("OPENAI_API_KEY", "one")
        open_model("m", server.base_url).complete([USER])
        monkeypatch.setenv("INTERCODE_API_KEY", "two\n")
        open_model("m", server.base_url).complete([USER])
    assert [h.get("Authorization") for h in server.headers] == [None, "Bearer one", "Bearer two"]


@pytest.mark.parametrize("name", ["gpt-x", "nobody/gpt-x", "openai/"])
def test_a_missing_endpoint_is_an_error_that_names_the_options(name: str) -> None:
    with pytest.raises(ConfigError, match=r"--base-url URL.*OPENAI_BASE_URL.*openai/NAME"):
        open_model(name)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"temprature.*did you mean 'temperature'"):
        open_model("m", "http://localhost:1/v1", temprature=1)


def test_a_script_counts_the_answers_in_the_conversation(tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    file.write_text('["one", "two"]')
    model = open_model(f"scripted:{file}")
    assert [model.complete([USER]).text for _ in range(2)] == ["one", "one"]
    assert model.complete([USER, ANSWER, USER]).text == "two"
    with pytest.raises(ModelRefusedError, match=r"2 replies.*number 3"):
        model.complete([USER, ANSWER, USER, ANSWER, USER])


def test_a_script_may_be_a_function() -> None:
    assert ScriptedModel(lambda m: m[-1]["content"].upper()).complete([USER]).text == "GO"


@pytest.mark.parametrize("content", ["[1]", "{}", '["a",', None])
def test_an_invalid_script(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "replies.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(DataError, match=r"replies\.json"):
        open_model(f"scripted:{file}")


def test_a_script_may_think_and_call_tools(tmp_path: Path) -> None:
    file = tmp_path / "replies.json"
    calls = '[{"name": "run", "arguments": {"code": "ls"}}, {"name": "stop", "arguments": "{"}]'
    file.write_text(f'[{{"text": "so", "reasoning": "hm", "calls": {calls}}}, "end"]')
    model = open_model(f"scripted:{file}")
    got = model.complete([USER])
    assert (got.text, got.reasoning, got.finish_reason) == ("so", "hm", "tool_calls")
    assert [c["function"] for c in got.calls] == [
        {"name": "run", "arguments": '{"code": "ls"}'},
        {"name": "stop", "arguments": "{"},
    ]
    assert [c["id"] for c in got.calls] == ["call_0", "call_1"]
    assert model.complete([USER, got.message(), USER]).text == "end"


def test_a_reply_may_be_a_message() -> None:
    call: ToolCall = {
        "id": "7",
        "type": "function",
        "function": {"name": "run", "arguments": '{"code": "ls"}'},
    }
    message: Message = {"role": "assistant", "content": "so", "tool_calls": [call]}
    got = ScriptedModel([message]).complete([USER])
    assert got.message() == message and got.finish_reason == "tool_calls"
    silent = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert ScriptedModel([silent]).complete([USER]).calls == (call,)


@pytest.mark.parametrize(
    "content",
    [
        '[{"calls": [{}]}]',
        '[{"txt": "a"}]',
        '[{"calls": 3}]',
        '[{"text": 3}]',
        '[{"role": "user", "content": "a"}]',
        '[{"content": "a", "calls": [{"name": "run"}]}]',
        '[{"content": "a", "refusal": "no"}]',
        '[{"calls": [{"name": "run", "id": 5}]}]',
        "[{}]",
        '[{"txt": ""}]',
        '[[{"name": "run", "arguments": {}}]]',
        '[{"content": "", "tool_calls": [{"function": {"name": "run"}, "nmae": "a"}]}]',
    ],
)
def test_a_reply_of_another_form_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "replies.json"
    file.write_text(content)
    with pytest.raises(DataError, match="a reply is a text, "):
        open_model(f"scripted:{file}")
    with pytest.raises(UsageError, match='"tool_calls":'):
        ScriptedModel(json.loads(content))


def test_a_dumped_message_of_openai_is_a_reply() -> None:
    empty = dict.fromkeys(("refusal", "audio", "function_call", "tool_calls"))
    dumped = {"role": "assistant", "content": "hi", "annotations": [], **empty}
    got = ScriptedModel([{**dumped, "name": "x", "reasoning_content": "hm"}]).complete([USER])
    assert (got.text, got.reasoning, got.calls) == ("hi", "hm", ())


@pytest.mark.parametrize("replies", [5, None, {"a"}, b"a", "a", {"text": "a"}])
def test_what_is_no_list_of_replies_is_refused(replies: object) -> None:
    with pytest.raises(UsageError, match="replies are a list or a function"):
        ScriptedModel(replies)  # type: ignore[arg-type]


def test_a_generator_of_replies_is_a_list() -> None:
    model = ScriptedModel(text for text in ("a", "b"))  # type: ignore[arg-type]
    assert model.complete([USER, ANSWER]).text == "b"


def test_a_function_that_returns_no_reply_is_refused() -> None:
    with pytest.raises(UsageError, match="a reply is a text, "):
        ScriptedModel(lambda _: [{"name": "run"}]).complete([USER])  # type: ignore[arg-type,return-value]


def test_a_known_endpoint_has_its_price_also_by_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    by_name = opened("openai/gpt-4o-mini")
    by_address = opened("gpt-4o-mini", "https://api.openai.com/v1")
    assert by_name.price is not None
    assert by_name.price == by_address.price
    assert opened("gpt-4o-mini", "http://localhost:8000/v1").price is None


def test_a_list_of_prices_is_an_error_with_the_value() -> None:
    with pytest.raises(ConfigError, match=r"prices is a file of prices, not \[1.0\]"):
        open_model("m", "http://localhost/v1", prices=[1.0])


@pytest.mark.parametrize("name", ["solver:answer", "solver.py"])
def test_an_unknown_model_that_is_a_file_here_gives_the_functions_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    (tmp_path / "solver.py").write_text("def answer(messages):\n    return 'ls'\n")
    function = name.partition(":")[2] or "FUNCTION"
    with pytest.raises(ConfigError, match=f"for a function in solver.py: solver.py:{function}$"):
        open_model(name)
