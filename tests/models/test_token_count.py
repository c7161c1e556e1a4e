"""Token counts: which counter is used, and that it never raises."""

from __future__ import annotations

from typing import Any

import pytest

from intercode.models import (
    Budget,
    Completion,
    Message,
    Model,
    OpenAIModel,
    SpendingLimits,
    Tool,
    count_tokens,
    limit_model,
)
from intercode.models.token_count import Calibration, estimate_tokens
from support.faulty_endpoint import FaultyEndpoint, ok

ASK: list[Message] = [
    {"role": "system", "content": "x" * 35},
    {"role": "user", "content": "ü" * 35},
]


def test_the_estimate() -> None:
    assert count_tokens(None, "x" * 35) == 10
    assert count_tokens(None, "") == 0
    assert count_tokens(None, ASK) == 3 + 4 + 10 + 4 + 20
    tool = Tool("run", "Runs code.", {"type": "object"})
    assert estimate_tokens(ASK, tools=[tool]) > estimate_tokens(ASK) + 10
    call = {"id": "1", "type": "function", "function": {"name": "run", "arguments": "ls " * 50}}
    message: Any = {"role": "assistant", "content": "", "tool_calls": [call]}
    assert count_tokens(None, [message]) > 40


def test_the_models_own_counter_goes_first_and_may_fail() -> None:
    class Own(Model):
        name = "own"

        def __init__(self, count: Any) -> None:
            self._count = count

        def count_tokens(self, content: Any) -> Any:
            return self._count(content)

        def complete(self, messages: Any, *, tools: Any = ()) -> Completion:
            raise AssertionError("nothing is requested")

    assert count_tokens(Own(len), "abc") == 3
    within: Any = limit_model(Own(len), Budget(SpendingLimits(tokens=9)))
    assert count_tokens(within, "abc") == 3
    assert count_tokens(Own(lambda _: 1 / 0), "x" * 35) == 10
    assert count_tokens(Own(lambda _: "many"), "x" * 35) == 10
    assert count_tokens(Own(lambda _: None), "x" * 35) == 10


def test_the_endpoints_counts_correct_the_estimate_for_one_episode_only() -> None:
    estimated = count_tokens(None, ASK)
    usage = {"prompt_tokens": estimated * 2, "completion_tokens": 1}
    with FaultyEndpoint(ok(usage=usage)) as server, OpenAIModel("m", server.base_url) as model:
        one, other = model.for_sample(0), model.for_sample(0)
        one.complete(ASK)
        counts = [count_tokens(m, ASK) for m in (model, one, other)]
    assert counts == [estimated, estimated * 2, estimated]


@pytest.mark.parametrize("counted", [None, 0, 10**9])
def test_a_count_that_is_not_plausible_changes_nothing(counted: int | None) -> None:
    calibration = Calibration()
    calibration.update(100, counted)
    assert calibration.ratio == 1.0


def test_no_table_of_tokens_is_downloaded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tiktoken", reason="pip install 'intercode-gym[models]'")
    import socket

    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    named = OpenAIModel("openai/gpt-4o-2099", "http://localhost/v1")
    assert count_tokens(named, "x" * 35) == 10


def test_tiktokens_count_is_taken_where_its_table_is_there(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test uses a small table of its own: bytes, and one longer token."""
    pytest.importorskip("tiktoken", reason="pip install 'intercode-gym[models]'")
    import base64

    import tiktoken

    from intercode.models import token_count

    own = tiktoken.Encoding(
        "own",
        pat_str=r"\w+|\s+",
        mergeable_ranks={bytes([n]): n for n in range(256)} | {b"ab": 256},
        special_tokens={},
    )
    table = tmp_path / "table"
    table.write_bytes(base64.b64encode(b"a") + b" 0")
    monkeypatch.setattr(token_count, "_table_path", lambda kind: table)
    monkeypatch.setattr(tiktoken, "get_encoding", lambda kind: own)
    model = OpenAIModel("gpt-4o-2098", "http://localhost/v1")
    assert count_tokens(model, "abab ab") == 4
