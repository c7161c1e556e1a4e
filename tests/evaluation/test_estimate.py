"""The bounds that a dry run computes from the prompts hold in a real run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from intercode import models
from intercode.cli.evaluate import dry_run
from intercode.core.config import EvalConfig
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.estimate import UsageEstimate, estimate
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.run import evaluate
from intercode.models import ScriptedModel
from support.faulty_endpoint import FaultyEndpoint, Handler, completion, status

pytestmark = pytest.mark.sandbox
PRICE = {"input": 10.0, "output": 100.0}


def counting(handler: Handler) -> None:
    """Answers in three tokens, and reports as many prompt tokens as we count."""
    messages = handler.endpoint.requests[-1]["messages"]
    text = "```bash\necho -1\n```"
    usage = {"prompt_tokens": models.count_tokens(None, messages), "completion_tokens": 3}
    status(200, completion(text, usage=usage))(handler)


def config(dataset: str, out: Path, url: str = "http://127.0.0.1:9/v1", **more: Any) -> EvalConfig:
    return EvalConfig(
        dataset, "try-again", model="m", base_url=url, max_turns=4, out=out, parallel=1, **more
    )


def test_a_run_stays_within_its_estimate(
    squares: str, tmp_path: Path, episodes_of: Callable[[Path], list[Trajectory]]
) -> None:
    options = {"max_tokens": 60, "price": PRICE}
    with FaultyEndpoint(counting) as server:
        asked = config(squares, tmp_path / "run", server.base_url, limit=3, model_options=options)
        told = estimate(make_plan(asked))
        found = episodes_of(evaluate(asked, quiet=True))
        assert (told.episodes, told.finished, told.requests) == (3, 0, 12)
        assert len(server.requests) == 12
        prompts = sum(t.usage.prompt_tokens or 0 for t in found)
        first = sum(t.steps[0].usage.prompt_tokens or 0 for t in found)
        assert told.min_prompt_tokens == first  # exactly these prompts are sent
        assert told.prompt_tokens is not None and prompts <= told.prompt_tokens
        assert told.completion_tokens == 12 * 60
        cost = sum(t.usage.cost or 0.0 for t in found)
        assert told.cost is not None and 0 < cost <= told.cost
        again = estimate(make_plan(replace(asked, limit=4)))
        assert (again.episodes, again.finished, again.requests) == (1, 3, 4)
        done = estimate(make_plan(asked))
        assert (done.episodes, done.requests, done.cost) == (0, 0, 0.0)


def test_the_observations_of_the_authors_runners_are_shorter(squares: str, tmp_path: Path) -> None:
    model = ScriptedModel(["```bash\nls\n```"])

    def prompt_tokens(**options: Any) -> int:
        told = estimate(make_plan(config(squares, tmp_path / "run", agent_options=options), model))
        assert told.prompt_tokens is not None
        return told.prompt_tokens

    assert prompt_tokens(feedback="original") < prompt_tokens()
    assert prompt_tokens(feedback="original") == prompt_tokens(observation_limit=1000)


@pytest.mark.parametrize("dataset", ["starter:ctf", "starter:code"])
def test_the_notes_of_an_environment_count(dataset: str, tmp_path: Path) -> None:
    plan = make_plan(config(dataset, tmp_path / "run", limit=1))
    agent = plan.make_agent()
    with plan.make_env() as env:
        env.reset(options={"task": plan.task_indices[0]})
        agent.start(env.brief)
        assert env.brief.notes in str(agent.messages[-1]["content"])
    assert plan.model is not None
    first = models.count_tokens(plan.model, agent.messages)
    assert estimate(plan).min_prompt_tokens == first


def test_unknown_prices_and_limits_are_noted(squares: str, tmp_path: Path) -> None:
    told = estimate(make_plan(config(squares, tmp_path / "run")))
    assert told.cost is None and told.requests == 32
    assert any("no price is known for 'm'" in note for note in told.notes)
    assert any("no max_tokens" in note for note in told.notes)
    told = estimate(make_plan(EvalConfig(squares, "gold", out=tmp_path / "run")))
    assert told.notes == ("the agent uses no model",) and told.requests == 0


def test_a_plan_is_a_request_of_its_own(squares: str, tmp_path: Path) -> None:
    asked = replace(config(squares, tmp_path / "run", limit=1), agent="plan-solve")
    assert estimate(make_plan(asked)).requests == 5


def test_a_price_for_long_prompts_counts_where_a_prompt_can_be_that_long(
    squares: str, tmp_path: Path
) -> None:
    def cost(long_from: int) -> float:
        price = {**PRICE, "long_from": long_from, "long": {"input": 20.0, "output": 200.0}}
        asked = config(squares, tmp_path / "run", model_options={"price": price})
        told = estimate(make_plan(asked)).cost
        assert told is not None
        return told

    assert cost(100_000) * 2 == pytest.approx(cost(2_000))


def test_limits_lower_the_figures(squares: str, tmp_path: Path) -> None:
    asked = config(squares, tmp_path / "run", epochs=2, model_options={"price": PRICE})
    free = estimate(make_plan(asked))
    bound = estimate(make_plan(replace(asked, max_cost_per_episode=0.02, max_tokens=5000)))
    assert free.cost is not None and free.cost > 0.32
    assert bound.cost == pytest.approx(16 * 0.02)
    assert any("max_tokens = 5000 allows 5000" in note for note in bound.notes)


def test_turns_without_a_bound_have_no_estimate(squares: str, tmp_path: Path) -> None:
    asked = config(squares, tmp_path / "run", agent_options={"max_turns": None})
    model = ScriptedModel(["```bash\nls\n```"])
    told = estimate(make_plan(replace(asked, max_turns=None), model))
    assert told.requests is None and told.cost is None and told.min_prompt_tokens > 0


def test_a_second_request_for_the_action_is_counted(squares: str, tmp_path: Path) -> None:
    def thinking(handler: Handler) -> None:
        messages = handler.endpoint.requests[-1]["messages"]
        asked = messages[-1]["content"].startswith("Action")
        text = "execute[echo -1]" if asked else "Thought: I look."
        usage = {"prompt_tokens": models.count_tokens(None, messages), "completion_tokens": 60}
        status(200, completion(text, usage=usage))(handler)

    options = {"max_tokens": 60, "price": PRICE}
    with FaultyEndpoint(thinking) as server:
        asked = replace(
            config(squares, tmp_path / "run", server.base_url, limit=2, model_options=options),
            agent="react",
        )
        told = estimate(make_plan(asked))
        evaluate(asked, quiet=True)
        sent = [models.count_tokens(None, r["messages"]) for r in server.requests]
    assert told.requests == len(sent) == 2 * 4 * 2
    assert told.prompt_tokens is not None and sum(sent) <= told.prompt_tokens


def test_the_sum_of_unknown_costs_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = UsageEstimate(2, 0, 4, 100, 200, 300, None, ())
    dry_run.print_total([unknown, unknown])
    assert "cost      unknown" in capsys.readouterr().out
    dry_run.print_total([unknown, replace(unknown, cost=0.5)])
    assert "at most $0.5, and 1 runs of unknown cost" in capsys.readouterr().out
