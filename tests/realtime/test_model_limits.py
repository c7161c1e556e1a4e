"""Time-outs of requests to a model that does not answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from intercode.core.errors import BudgetError
from intercode.models import Message, OpenAIModel, limit_model
from intercode.models.budget import Budget, SpendingLimits
from intercode.models.transport.retry import RetryPolicy
from support.fake_clock import FakeClock
from support.faulty_endpoint import Fault, FaultyEndpoint, hang, ok, trickle

ASK: Sequence[Message] = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("fault", [hang, trickle])
def test_no_answer_in_time_is_tried_again(fault: Fault) -> None:
    retry = RetryPolicy(clock=FakeClock(jumps=True))
    with (
        FaultyEndpoint(fault, ok("late")) as server,
        OpenAIModel("m", server.base_url, retry=retry, timeout=1.0) as model,
    ):
        assert model.complete(ASK).text == "late"
        counts = model.traffic()
    assert counts.overloads == 0
    assert counts.timeouts == len(server.requests) - 1 >= 1  # a busy machine may be late twice


def test_the_time_of_a_budget_bounds_a_request() -> None:
    with FaultyEndpoint(hang) as server, OpenAIModel("m", server.base_url) as model:
        limited = limit_model(model, Budget(SpendingLimits(seconds=0.3)))
        with pytest.raises(BudgetError, match=r"episode's (time|limit)"):
            limited.complete(ASK)
