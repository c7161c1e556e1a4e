"""Limits on tokens, cost and time: reservation, lowered limits, refusals and settlement."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intercode.core.errors import BudgetError, ConfigError, ModelRefusedError, ModelUnavailableError
from intercode.core.types import Usage
from intercode.models import (
    Budget,
    Message,
    OpenAIModel,
    Price,
    ScriptedModel,
    SpendingLimits,
    count_tokens,
    limit_model,
)
from intercode.models.limited_model import INITIAL_MARGIN
from intercode.models.transport.retry import RetryPolicy
from support.fake_clock import FakeClock
from support.faulty_endpoint import (
    FaultyEndpoint,
    completion,
    hang,
    limit_first_attempt,
    ok,
    status,
)

ASK: list[Message] = [{"role": "user", "content": "x" * 350}]
USAGE = {"prompt_tokens": 100, "completion_tokens": 20}
PRICE = {"input": 1000.0, "output": 10_000.0}


def asker(server: FaultyEndpoint, *budgets: Budget, **options: Any) -> Any:
    return limit_model(OpenAIModel("m", server.base_url, **options), *budgets)


@pytest.mark.parametrize("bad", [{"tokens": -1}, {"cost": float("nan")}, {"seconds": float("inf")}])
def test_invalid_limits(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        SpendingLimits(**bad)


def test_tokens_are_set_aside_and_settled() -> None:
    budget = Budget(SpendingLimits(tokens=1000))
    held = budget.reserve(300, 500)
    assert held is not None
    assert (held.completion, held.lowered) == (500, False)
    # the first request may need the remaining tokens
    assert budget.reserve(300, 500, wait=False) is None
    budget.settle(held, Usage(280, 100))
    assert budget.tokens == 380
    lowered = budget.reserve(300, 500)
    assert lowered is not None
    assert (lowered.completion, lowered.lowered) == (320, True)
    budget.settle(lowered, Usage(300, 320))
    budget.settle(lowered, Usage(300, 320))  # the second settlement of a reservation has no effect
    with pytest.raises(BudgetError, match=r"episode's limit.*1000 of 1000 tokens") as caught:
        budget.reserve(10, 10)
    assert not caught.value.run_limit


def test_cost_lowers_the_answer_too() -> None:
    price = Price(input=1000, output=10_000, cached=100)
    budget = Budget(SpendingLimits(cost=1.0), whole_run=True, spent=Usage(0, 0, cost=0.3))
    held = budget.reserve(200, 500, price)
    assert held is not None
    assert held.completion == 50  # (0.7 $ - 0.2 $ for the prompt) / 0.01 $ per token
    budget.settle(held, Usage(200, 50, cost=0.7))
    with pytest.raises(BudgetError, match=r"run's limit.*\$1.0000 of \$1.0") as caught:
        budget.reserve(1, 20, price)
    assert caught.value.run_limit


def test_all_time_counts_from_the_beginning() -> None:
    clock = FakeClock()
    budget = Budget(SpendingLimits(seconds=10), clock=clock)
    assert budget.reserve(10**9, 10**9) is not None
    clock.pass_time(10)
    with pytest.raises(BudgetError, match="10 s have passed"):
        budget.reserve(1, 1)
    with pytest.raises(BudgetError):
        budget.check()
    run = Budget(SpendingLimits(seconds=10), whole_run=True, spent=Usage(seconds=9), clock=clock)
    assert run.deadline == clock.now() + 1


def test_many_threads_never_hold_more_than_there_is() -> None:
    budget = Budget(SpendingLimits(tokens=5000), whole_run=True)

    def spend(_: int) -> bool:
        try:
            held = budget.reserve(50, 100)
        except BudgetError:
            return False
        assert held is not None
        budget.settle(held, Usage(50, 80))
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # the threads take turns within a request
    try:
        with ThreadPoolExecutor(16) as threads:
            done = list(threads.map(spend, range(100)))
    finally:
        sys.setswitchinterval(interval)
    assert 4870 <= budget.tokens <= 5000
    assert budget.tokens == 130 * sum(done)


def test_the_request_may_ask_for_no_more_than_is_left() -> None:
    body = completion(usage=USAGE)
    with FaultyEndpoint(status(200, body)) as server:
        budget = Budget(SpendingLimits(tokens=300))
        model = asker(server, budget, max_tokens=400)
        model.complete(ASK)
        model.complete(ASK)
        with pytest.raises(BudgetError, match="240 of 300"):
            model.complete(ASK)
        estimated = count_tokens(None, ASK)
    assert [r["max_tokens"] for r in server.requests] == [
        300 - _ceil(estimated * INITIAL_MARGIN),
        300 - 120 - _ceil(100 * 1.05),
    ]
    assert budget.tokens == 240


def _ceil(x: float) -> int:
    return -int(-x // 1)


def test_without_a_limit_of_its_own_an_answer_gets_one_that_the_endpoint_can_take() -> None:
    """The endpoint here has a context of 3000 tokens, and its error says so."""

    def play(handler: Any) -> None:
        requested = handler.body.get("max_tokens", 0)
        error = {"error": {"message": f"maximum context length is 3000; max_tokens is {requested}"}}
        fault = status(400, error) if requested > 3000 else status(200, completion(usage=USAGE))
        fault(handler)

    with FaultyEndpoint(play) as server:
        assert asker(server, Budget(SpendingLimits(tokens=10**6))).complete(ASK).usage.requests == 4
        assert [r["max_tokens"] for r in server.requests] == [16384, 8192, 4096, 2048]
        asker(server, Budget(SpendingLimits(seconds=100))).complete(ASK)
    assert "max_tokens" not in server.requests[-1]


def test_a_refusal_of_a_lowered_limit_is_the_budgets_end() -> None:
    refusal = status(400, {"error": {"message": "max_tokens must be at least 200"}})
    with FaultyEndpoint(refusal) as server:
        with pytest.raises(BudgetError, match="must be at least 200"):
            asker(server, Budget(SpendingLimits(tokens=250)), max_tokens=400).complete(ASK)
        with pytest.raises(ModelRefusedError):
            asker(server, Budget(SpendingLimits(tokens=2500)), max_tokens=400).complete(ASK)


def test_an_answer_cut_short_by_the_runs_limit_is_discarded() -> None:
    cut = completion(usage=USAGE)
    cut["choices"][0]["finish_reason"] = "length"
    with FaultyEndpoint(status(200, cut)) as server:
        run = Budget(SpendingLimits(tokens=300), whole_run=True)
        with pytest.raises(BudgetError, match="cut an answer short") as caught:
            asker(server, run, max_tokens=400).complete(ASK)
        assert caught.value.run_limit
        assert run.tokens == 120
        episode = asker(server, Budget(SpendingLimits(tokens=300)), max_tokens=400)
        # the episode's own limit may shorten an answer
        assert episode.complete(ASK).finish_reason == "length"


def test_both_budgets_apply_and_the_first_reservation_is_undone_if_the_second_fails() -> None:
    with FaultyEndpoint(status(200, completion(usage=USAGE))) as server:
        episode, run = (
            Budget(SpendingLimits(tokens=10_000)),
            Budget(SpendingLimits(tokens=200), whole_run=True),
        )
        model = asker(server, episode, run, max_tokens=50)
        model.complete(ASK)
        with pytest.raises(BudgetError) as caught:
            model.complete(ASK)
    assert caught.value.run_limit
    assert (episode.tokens, run.tokens) == (120, 120)
    assert episode.reserve(9000, 880, wait=False) is not None  # nothing is reserved any more


def test_a_lost_answer_counts_fully_for_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    retry = RetryPolicy(initial_delay=0.001)
    faults = (
        hang,
        status(200, b'{"choices": ['),
        status(500),
        status(200, completion(usage=USAGE)),
    )
    with FaultyEndpoint(*faults) as server:
        episode, run = (
            Budget(SpendingLimits(tokens=9000)),
            Budget(SpendingLimits(tokens=9000), whole_run=True),
        )
        limit_first_attempt(monkeypatch, server, 2.0)
        asker(server, episode, run, max_tokens=50, retry=retry).complete(ASK)
    held = _ceil(count_tokens(None, ASK) * INITIAL_MARGIN) + 50
    assert (episode.tokens, run.tokens) == (120, 120 + 2 * held)


@pytest.mark.parametrize("limit", [{"tokens": 1000}, {"cost": 1.0}])
def test_an_attempt_after_a_lost_answer_waits_for_what_others_have_reserved(
    limit: dict[str, Any],
) -> None:
    price = Price(1000.0, 1000.0)  # $0.001 a token
    run = Budget(SpendingLimits(**limit), whole_run=True)
    lost, other = (run.reserve(200, 200, price) for _ in range(2))
    assert lost is not None
    assert other is not None
    run.mark_lost(lost)
    run.mark_lost(lost)  # an answer is lost once
    assert run.tokens == 400
    assert not run.reserve_again(lost)  # 400 spent, 400 reserved by the other one, 400 wanted
    run.settle(other, Usage(50, 10, cost=0.06))
    again = run.reserve_again(lost)
    assert again is not None
    assert run.reserve_again(again) is again
    assert run.tokens == 460
    run.mark_lost(again)
    with pytest.raises(BudgetError, match=r"86.*2 lost answers.*about 200 tokens"):
        run.reserve_again(again)
    run.settle(again, Usage(1, 1))  # what is not reserved cannot be settled
    assert (run.tokens, run.cost) == (860, pytest.approx(0.86))


def test_a_run_goes_on_if_an_answer_is_lost_while_others_are_awaited() -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(handler: Any) -> None:
        asked.set()
        answer.wait(60)
        status(200, completion(usage=USAGE))(handler)

    def lost(handler: Any) -> None:
        status(200, b"{")(handler)
        answer.set()

    held = _ceil(count_tokens(None, ASK) * INITIAL_MARGIN) + 50
    with FaultyEndpoint(slow, lost, status(200, completion(usage=USAGE))) as server:
        run = Budget(SpendingLimits(tokens=2 * held + 130), whole_run=True)
        model = asker(server, run, max_tokens=50, retry=RetryPolicy(initial_delay=0.001))
        with ThreadPoolExecutor() as threads:
            first = threads.submit(model.complete, ASK)
            asked.wait(60)
            second = threads.submit(model.complete, ASK)
            assert first.result().text == second.result().text == "fine"
    assert run.tokens == held + 2 * 120


def test_an_attempt_after_a_lost_answer_may_have_a_shorter_one() -> None:
    prompt = _ceil(count_tokens(None, ASK) * INITIAL_MARGIN)
    with FaultyEndpoint(status(200, b"{"), status(200, completion(usage=USAGE))) as server:
        run = Budget(SpendingLimits(tokens=2 * prompt + 250), whole_run=True)
        retry = RetryPolicy(initial_delay=0.001)
        assert asker(server, run, max_tokens=200, retry=retry).complete(ASK).text == "fine"
    assert [request["max_tokens"] for request in server.requests] == [200, 50]
    assert run.tokens == prompt + 200 + 120


def test_no_attempt_is_made_for_which_nothing_is_left() -> None:
    with FaultyEndpoint(status(200, b"{")) as server:
        run = Budget(SpendingLimits(tokens=500), whole_run=True)
        with pytest.raises(BudgetError, match=r"2 lost answers.*would exceed it"):
            asker(server, run, max_tokens=50, retry=RetryPolicy(initial_delay=0.001)).complete(ASK)
    assert len(server.requests) == 2
    assert run.tokens <= 500


def test_cost_is_limited_only_where_a_price_is_known() -> None:
    limits = SpendingLimits(cost=1)
    for model in (OpenAIModel("m", "http://localhost/v1"), ScriptedModel(["x"])):
        with pytest.raises(ConfigError, match=r"as ~/\.config/intercode/prices\.toml"):
            limit_model(model, Budget(limits))
    with FaultyEndpoint(status(200, completion(usage=USAGE))) as server:
        budget = Budget(limits)
        answer = asker(server, budget, price=PRICE, max_tokens=50).complete(ASK)
    assert answer.usage.cost == pytest.approx(0.1 + 0.2)
    assert budget.cost == pytest.approx(0.3)


def test_usage_that_the_endpoint_does_not_report_is_estimated() -> None:
    with FaultyEndpoint(ok("y" * 70, usage=None)) as server:
        budget = Budget(SpendingLimits(tokens=5000))
        answer = asker(server, budget, max_tokens=50).complete(ASK)
    assert answer.usage.prompt_tokens is None
    assert budget.tokens == count_tokens(None, ASK) + 20


def test_a_cached_answer_passes_any_limit(tmp_path: Any) -> None:
    with FaultyEndpoint(status(200, completion(usage=USAGE))) as server:
        options = {"cache": tmp_path / "a.sqlite", "max_tokens": 60}
        first = Budget(SpendingLimits(tokens=200))
        asker(server, first, **options).complete(ASK)
        spent = Budget(SpendingLimits(tokens=0))
        assert asker(server, spent, **options).complete(ASK).cached
    assert (first.tokens, spent.tokens) == (120, 0)


def test_an_answer_that_a_limit_cut_short_is_not_cached(tmp_path: Any) -> None:
    cut = completion(usage=USAGE)
    cut["choices"][0]["finish_reason"] = "length"
    with FaultyEndpoint(status(200, cut), ok("whole")) as server:
        options = {"cache": tmp_path / "a.sqlite", "max_tokens": 400}
        asker(server, Budget(SpendingLimits(tokens=300)), **options).complete(ASK)
        assert (
            asker(server, Budget(SpendingLimits(tokens=3000)), **options).complete(ASK).text
            == "whole"
        )


def test_the_time_of_a_budget_bounds_the_wait_for_another_attempt() -> None:
    with FaultyEndpoint(status(429, Retry_After="700")) as server:
        with pytest.raises(BudgetError, match=r"run's time is up.*429") as caught:
            asker(server, Budget(SpendingLimits(seconds=600), whole_run=True)).complete(ASK)
        assert caught.value.run_limit


def test_a_failure_of_the_endpoint_releases_the_reservation() -> None:
    with FaultyEndpoint(status(500)) as server:
        budget = Budget(SpendingLimits(tokens=1000))
        with pytest.raises(ModelUnavailableError):
            asker(
                server, budget, max_tokens=50, retry=RetryPolicy(2, initial_delay=0.001)
            ).complete(ASK)
    assert budget.tokens == 0
    assert budget.reserve(900, 100, wait=False) is not None


def test_any_model_can_be_limited() -> None:
    budget = Budget(SpendingLimits(tokens=300))
    model = limit_model(ScriptedModel(["a" * 35] * 9), budget)
    model.complete(ASK)
    assert budget.tokens == count_tokens(None, ASK) + 10
    with pytest.raises(BudgetError):
        while True:
            model.complete(ASK)
    assert budget.tokens <= 300
    assert model.metadata() == ScriptedModel([]).metadata()
