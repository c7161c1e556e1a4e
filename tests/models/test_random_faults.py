"""Many concurrent callers at an endpoint with random faults, by seed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from intercode.core.errors import BudgetError
from intercode.models import Budget, Message, OpenAIModel, SpendingLimits, limit_model
from intercode.models.transport.retry import RetryPolicy
from support.chaotic_endpoint import Chaos
from support.faulty_endpoint import FaultyEndpoint

pytestmark = pytest.mark.heavy
CALLS, AT_ONCE = 80, 12


def model_at(url: str, **options: object) -> OpenAIModel:
    retry = RetryPolicy(max_attempts=60, initial_delay=0.001, max_delay=0.01)
    return OpenAIModel("m", url, retry=retry, timeout=0.2, **options)


def question(number: int) -> list[Message]:
    return [
        {"role": "system", "content": "Answer. " * 20},
        {"role": "user", "content": f"question {number}"},
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_no_call_is_lost_or_answered_wrongly(seed: int) -> None:
    chaos = Chaos(seed)
    with FaultyEndpoint(chaos) as server, model_at(server.base_url) as model:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            found = list(threads.map(lambda n: model.complete(question(n)), range(CALLS)))
        traffic = model.traffic()
    assert [c.text for c in found] == [f"answer {n}" for n in range(CALLS)]
    assert sum(c.usage.requests for c in found) + chaos.played.get("here", 0) >= len(
        server.requests
    )
    assert len(chaos.played) > 12
    assert traffic.answers == CALLS
    assert traffic.in_flight == traffic.waiting == 0


def test_the_same_for_asynchronous_callers() -> None:
    async def all_of_them(model: OpenAIModel) -> list[str]:
        answers = await asyncio.gather(*(model.acomplete(question(n)) for n in range(40)))
        return [a.text for a in answers]

    with FaultyEndpoint(Chaos(4)) as server, model_at(server.base_url) as model:
        found = asyncio.run(all_of_them(model))
    assert found == [f"answer {n}" for n in range(40)]


@pytest.mark.parametrize(("seed", "limit"), [(5, 2000), (6, 6000)])
def test_nothing_above_the_runs_limit_is_spent_even_on_answers_that_got_lost(
    seed: int, limit: int
) -> None:
    chaos = Chaos(seed)
    run = Budget(SpendingLimits(tokens=limit), whole_run=True)
    answered: list[str] = []
    refused: list[int] = []

    def one(number: int) -> None:
        try:
            answered.append(limit_model(model, run).complete(question(number)).text)
        except BudgetError as e:
            assert e.run_limit
            refused.append(number)

    with (
        FaultyEndpoint(chaos) as server,
        model_at(server.base_url, max_tokens=50) as model,
        ThreadPoolExecutor(AT_ONCE) as threads,
    ):
        list(threads.map(one, range(CALLS)))
    assert sum(chaos.worked) <= run.tokens <= limit
    assert {*answered} | {f"answer {n}" for n in refused} == {f"answer {n}" for n in range(CALLS)}
    assert len(answered) + len(refused) == CALLS
    assert answered
    assert refused


def test_an_episodes_limit_holds_for_what_was_answered() -> None:
    with FaultyEndpoint(Chaos(8)) as server, model_at(server.base_url, max_tokens=50) as model:

        def episode(number: int) -> tuple[int, int]:
            budget = Budget(SpendingLimits(tokens=700))
            asker, spent = limit_model(model, budget), 0
            while True:
                try:
                    answer = asker.complete(question(number))
                except BudgetError as e:
                    assert not e.run_limit
                    return spent, budget.tokens
                assert answer.text == f"answer {number}"
                usage = answer.usage
                spent += (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            found = list(threads.map(episode, range(8)))
    assert all(600 <= spent <= 700 and spent == counted for spent, counted in found)
    assert len({spent for spent, _ in found}) == 1  # no episode's result depends on the faults
