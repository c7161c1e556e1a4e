"""Estimates the requests, tokens and cost of a run: upper bounds from its own prompts, and what is
likely from episodes that were played."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from intercode.agents.base import Agent
from intercode.core.observations import OBSERVATION_LIMIT
from intercode.evaluation.evaluate.likely_usage import LikelyUsage, likely_usage
from intercode.evaluation.evaluate.plan import Plan
from intercode.evaluation.evaluate.run_state import Sample
from intercode.models import Model
from intercode.models.token_count import count_tokens

ASSUMED_ANSWER_TOKENS = 500
"""Tokens of an answer of a model without a limit on them."""
MAX_COUNTED_PROMPTS = 400
"""How many prompts are counted at most, evenly spread. The others are assumed to be alike."""


@dataclass(frozen=True, slots=True)
class UsageEstimate:
    """Bounds for the episodes that remain to be played.

    ``requests``, ``prompt_tokens`` and ``completion_tokens`` are upper bounds, or None if there are
    none. ``min_prompt_tokens`` counts the first prompt of each episode. ``cost`` is an upper bound
    in US dollars, or None if it is not known. ``likely`` is what they will likely use, if episodes
    alike were played. ``notes`` name assumptions and what is not known.
    """

    episodes: int
    finished: int
    requests: int | None = 0
    min_prompt_tokens: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    cost: float | None = 0.0
    notes: tuple[str, ...] = ()
    likely: LikelyUsage | None = None


def estimate(plan: Plan) -> UsageEstimate:
    """Estimate the episodes of a plan that have no result yet. Sends no request.

    For the bounds, the prompt of a request is assumed to be the first prompt and, for each earlier
    turn, an answer and an observation of maximum length. Limits of the run lower the bounds.
    """
    bounds = _estimate_bounds(plan)
    if not plan.uses_model:
        return bounds
    return replace(bounds, likely=likely_usage(plan, bounds.episodes))


def _estimate_bounds(plan: Plan) -> UsageEstimate:
    state = plan.read_state()
    pending = plan.pending_samples(state)
    counts = len(pending), len(state.finished)
    if not plan.uses_model or plan.model is None:
        return UsageEstimate(*counts, notes=("the agent uses no model",))
    if not pending:
        return UsageEstimate(*counts)
    first_prompts, agent = _first_prompts(plan, plan.model, pending)
    minimum = round(sum(first_prompts) / len(first_prompts) * len(pending))
    turns = plan.metadata.get("max_turns")
    if turns is None:
        note = "no limit is set on the turns of an episode: give --max-turns"
        return UsageEstimate(*counts, None, minimum, None, None, None, (note,))
    notes: list[str] = []
    turns = (turns + agent.extra_requests) * (agent.max_restarts + 1)
    times = agent.requests_per_turn
    answer = _answer_tokens(plan.model, notes)
    growth = times * answer + _observation_tokens(agent)  # prompt tokens per turn
    within_turn = (times - 1) * answer  # prompt tokens by earlier requests of a turn
    added = times * (growth * turns * (turns - 1) / 2 + within_turn * turns / 2)
    prompts = math.ceil(minimum * times * turns + len(pending) * added)
    requests = len(pending) * times * turns
    longest = max(max(first_prompts) + growth * (turns - 1) + within_turn, 1)
    cost = _max_cost(plan.model, prompts, requests * answer, longest, notes)
    bounds = UsageEstimate(*counts, requests, minimum, prompts, requests * answer, cost)
    return _apply_limits(plan, bounds, notes)


def _first_prompts(plan: Plan, model: Model, pending: Sequence[Sample]) -> tuple[list[int], Agent]:
    """Return the tokens of the first prompt of some of the tasks, and the agent."""
    agent = plan.make_agent()
    step = max(1, len(pending) // MAX_COUNTED_PROMPTS)
    counts = []
    with plan.make_env() as env:
        for sample in pending[::step]:
            agent.start(env.brief_of(plan.dataset.tasks[sample.index]))
            described = "".join(json.dumps(asdict(tool)) for tool in agent.tools)
            counts.append(count_tokens(model, agent.messages) + count_tokens(model, described))
    return counts, agent


def _answer_tokens(model: Model, notes: list[str]) -> int:
    if model.max_answer_tokens is None:
        notes.append(
            f"answers of {ASSUMED_ANSWER_TOKENS} tokens are assumed, because the model has no "
            "max_tokens; longer answers, thoughts included, need more"
        )
        return ASSUMED_ANSWER_TOKENS
    return model.max_answer_tokens


def _observation_tokens(agent: Agent) -> int:
    limit: int = agent.metadata().get("observation_limit", OBSERVATION_LIMIT)
    return math.ceil(limit / 3.5)  # bytes for each token, as in models/token_count.py


def _max_cost(
    model: Model, prompts: int, answers: int, longest: int, notes: list[str]
) -> float | None:
    """Price every token as in the ``longest`` prompt, for which some models charge more."""
    if (price := model.price) is None:
        notes.append(
            f"no price is known for {model.name!r}, so the cost is unknown: set one with --set "
            'model_options.price=\'{"input": 0.15, "output": 0.6}\' (dollars per million tokens)'
        )
        return None
    prompt = price.max_cost(longest, 0)
    answer = price.max_cost(longest, 1) - prompt
    if price.date:
        notes.append(f"prices as of {price.date}, without reductions for cached prompts")
    return prompts * prompt / longest + answers * answer


def _apply_limits(plan: Plan, bounds: UsageEstimate, notes: list[str]) -> UsageEstimate:
    """Lower the bounds to the limits of the run, and note the limits."""
    config = plan.config
    tokens, cost = (bounds.prompt_tokens or 0) + (bounds.completion_tokens or 0), bounds.cost
    for name, limit, times in (
        ("max_tokens_per_episode", config.max_tokens_per_episode, bounds.episodes),
        ("max_tokens", config.max_tokens, 1),
    ):
        if limit is not None and limit * times < tokens:
            notes.append(f"{name} = {limit} allows {limit * times} tokens in all")
    for name, max_cost, times in (
        ("max_cost_per_episode", config.max_cost_per_episode, bounds.episodes),
        ("max_cost", config.max_cost, 1),
    ):
        if max_cost is not None and cost is not None and max_cost * times < cost:
            cost = max_cost * times
            notes.append(f"{name} = {max_cost:g} bounds the cost")
    return replace(bounds, cost=cost, notes=tuple(notes))
