"""The client against a local server with every known fault."""

from __future__ import annotations

import logging
import socket
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from intercode.core.errors import ConfigError, ModelRefusedError, ModelUnavailableError
from intercode.models import Message, OpenAIModel
from intercode.models.transport.retry import RetryPolicy, parse_retry_after
from support.fake_clock import FakeClock
from support.faulty_endpoint import (
    Fault,
    FaultyEndpoint,
    completion,
    ok,
    reset,
    short_body,
    status,
)

ASK: Sequence[Message] = [{"role": "user", "content": "hello"}]
KEY = "sk-very-secret-0123456789"


def model_at(url: str, clock: FakeClock | None = None, **options: Any) -> OpenAIModel:
    retry = RetryPolicy(
        max_attempts=options.pop("max_attempts", 6),
        patience=options.pop("patience", 900.0),
        clock=clock or FakeClock(jumps=True),
    )
    return OpenAIModel("m", url, api_key=KEY, retry=retry, **options)


def test_a_valid_response_is_parsed_and_the_request_has_all_fields() -> None:
    with FaultyEndpoint(ok("hi")) as server:
        extra = {"seed": 3, "temperature": None}
        with model_at(server.base_url + "/", max_tokens=50, extra=extra) as model:
            got = model.complete(ASK)
    assert (got.text, got.finish_reason, got.model) == ("hi", "stop", "m-2024")
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.requests) == (7, 2, 1)
    assert server.paths == ["/v1/chat/completions"]
    assert server.requests == [{"model": "m", "max_tokens": 50, "seed": 3, "messages": ASK}]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_retry_after_in_seconds_is_waited_in_full() -> None:
    clock = FakeClock(jumps=True)
    limited = status(429, {"error": {"message": "slow down"}}, Retry_After="7")
    with (
        FaultyEndpoint(limited, limited, ok()) as server,
        model_at(server.base_url, clock) as model,
    ):
        assert model.complete(ASK).usage.requests == 3
    assert len(server.requests) == 3
    assert [7 <= w <= 8 for w in clock.slept] == [True, True]


def test_retry_after_as_a_date_is_waited_in_full() -> None:
    clock = FakeClock(jumps=True)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    with (
        FaultyEndpoint(status(503, Retry_After=date), ok()) as server,
        model_at(server.base_url, clock) as model,
    ):
        model.complete(ASK)
    assert len(clock.slept) == 1
    assert 300 <= clock.slept[0] <= 601  # less the seconds until the answer is read


def test_reading_retry_after() -> None:
    now = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
    assert parse_retry_after("2.5") == 2.5
    assert parse_retry_after("-3") == 0
    assert parse_retry_after("Wed, 01 May 2024 12:00:09 GMT", now) == 9
    assert parse_retry_after("Wed, 01 May 2024 11:00:00 GMT", now) == 0
    assert [parse_retry_after(v) for v in (None, "", "soon", "nan", "inf")] == [None] * 5


@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(408),
        status(409),
        status(529, b"overloaded"),
        reset,
        short_body,
        status(200, b'{"choices": [{"mess'),
        status(200, {"choices": []}),
        status(200, {"error": {"code": 502, "message": "upstream"}}),
    ],
)
def test_passing_faults_are_tried_again(fault: Fault) -> None:
    clock = FakeClock(jumps=True)
    with FaultyEndpoint(fault, ok("done")) as server, model_at(server.base_url, clock) as model:
        got = model.complete(ASK)
    assert (got.text, got.usage.requests, len(server.requests)) == ("done", 2, 2)
    assert len(clock.slept) == 1
    assert 0.5 <= clock.slept[0] <= 1


def test_waits_double_and_attempts_are_bounded() -> None:
    clock = FakeClock(jumps=True)
    with (
        FaultyEndpoint(status(500, {"error": {"message": "broken disk"}})) as server,
        model_at(server.base_url, clock, max_attempts=5) as model,
        pytest.raises(ModelUnavailableError, match=r"5 attempts failed.*broken disk"),
    ):
        model.complete(ASK)
    assert len(server.requests) == 5
    assert all(top / 2 <= w <= top for w, top in zip(clock.slept, (1, 2, 4, 8), strict=True))


def test_patience_bounds_the_whole_call() -> None:
    clock = FakeClock(jumps=True)
    with (
        FaultyEndpoint(status(429, Retry_After="50")) as server,
        model_at(server.base_url, clock, patience=120) as model,
        pytest.raises(ModelUnavailableError, match="beyond the patience of 120 s"),
    ):
        model.complete(ASK)
    assert len(server.requests) == 3
    assert 100 <= sum(clock.slept) <= 120


def test_no_endpoint_listens() -> None:
    with socket.socket() as taken:  # the port is taken, but nobody listens on it
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            model_at(f"http://{address}/v1", max_attempts=2) as model,
            pytest.raises(ModelUnavailableError, match=f"{address}.*ConnectionRefusedError"),
        ):
            model.complete(ASK)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 301])
def test_a_refusal_is_not_retried_and_gives_the_reason(code: int) -> None:
    clock = FakeClock(jumps=True)
    fault = status(code, {"error": {"message": "such is the law"}})
    with (
        FaultyEndpoint(fault) as server,
        model_at(server.base_url, clock) as model,
        pytest.raises(ModelRefusedError, match=f"HTTP {code}: such is the law"),
    ):
        model.complete(ASK)
    assert len(server.requests) == 1
    assert clock.slept == []


@pytest.mark.parametrize(
    "fault",
    [
        status(429, {"error": {"message": "pay first", "code": "insufficient_quota"}}),
        status(200, {"error": {"message": "pay first", "code": 402}}),
    ],
)
def test_an_empty_purse_is_final(fault: Fault) -> None:
    with FaultyEndpoint(fault) as server, model_at(server.base_url) as model:
        with pytest.raises(ModelRefusedError, match="pay first"):
            model.complete(ASK)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, ""), ("", ""), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab")],
)
def test_content_that_is_not_plain_text(content: Any, text: str) -> None:
    with FaultyEndpoint(ok(content)) as server, model_at(server.base_url) as model:
        assert model.complete(ASK).text == text


def test_missing_usage_is_unknown_and_not_zero() -> None:
    body = completion("x", usage=None)
    with FaultyEndpoint(status(200, body)) as server, model_at(server.base_url) as model:
        usage = model.complete(ASK).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.requests) == (None, None, 1)


@pytest.mark.parametrize(
    "fault",
    [
        status(401, {"error": {"message": f"bad key {KEY}"}}),
        status(500, f"key {KEY} broke me".encode()),
        status(200, {"error": {"message": f"{KEY} is out", "code": 401}}),
        status(200, b"{" + KEY.encode()),
        reset,
    ],
)
def test_the_key_is_in_no_message_log_or_repr(
    fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        FaultyEndpoint(fault) as server,
        model_at(server.base_url, max_attempts=2) as model,
        pytest.raises((ModelRefusedError, ModelUnavailableError)) as caught,
    ):
        model.complete(ASK)
    assert server.headers[0]["Authorization"].endswith(KEY)
    shown = "".join(traceback.format_exception(caught.value)) + repr(model) + str(model)
    link: BaseException | None = caught.value
    while link is not None:
        shown += repr(link)
        link = link.__cause__ or link.__context__
    assert KEY not in shown + caplog.text


def test_invalid_unicode_can_be_sent() -> None:
    with FaultyEndpoint(ok()) as server, model_at(server.base_url) as model:
        model.complete([{"role": "user", "content": "odd \udcff and ü"}])
    assert server.requests[0]["messages"][0]["content"] == "odd \udcff and ü"


def test_one_model_serves_many_threads() -> None:
    faults = [status(500) if n % 5 == 0 else ok(str(n)) for n in range(60)]
    with (
        FaultyEndpoint(*faults) as server,
        model_at(server.base_url) as model,
        ThreadPoolExecutor(8) as pool,
    ):
        texts = [c.text for c in pool.map(lambda _: model.complete(ASK), range(40))]
    assert len(set(texts)) == 40
    assert sum("0" <= t[0] <= "9" for t in texts) == 40
    assert len(server.requests) == 50


@pytest.mark.parametrize("url", ["ftp://host/v1", "localhost:8000", "http://", "nonsense"])
def test_an_invalid_base_url(url: str) -> None:
    with pytest.raises(ConfigError, match="http"):
        OpenAIModel("m", url)


def test_bad_settings_are_refused_without_showing_the_key() -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIModel("m", "http://localhost/v1", api_key="sk-schlüssel")
    assert "schl" not in str(caught.value)
    with pytest.raises(ConfigError, match="max_attempts"):
        OpenAIModel("m", "http://localhost/v1", max_attempts=0)
    shown = repr(OpenAIModel("m", "http://me:word@localhost/v1"))
    assert "word" not in shown
