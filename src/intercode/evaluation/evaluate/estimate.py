"""What a run would take at the most, from its own prompts, before anything is spent."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from intercode.agents.base import Agent
from intercode.core.types import Brief, Task
from intercode.environments import ENVIRONMENTS
from intercode.evaluation.evaluate.plan import Plan
from intercode.evaluation.evaluate.run_state import Sample
from intercode.models import Model
from intercode.models.token_count import count_tokens

ASSUMED_ANSWER_TOKENS = 500
"""Tokens of an answer that are assumed where the model has no limit on them."""
ASSUMED_OBSERVATION_CHARACTERS = 4000
"""Characters of an observation that a model is shown, where its agent does not tell."""
MAX_COUNTED_PROMPTS = 400
"""So many tasks' prompts are counted, evenly spread; the others are taken to be like them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The bounds of what is still to be played.

    ``requests``, ``prompt_tokens``, ``completion_tokens``: at most, None where nothing bounds them;
    ``least``: the tokens of each first prompt, sent once. ``cost`` in US dollars at the most, None
    where it is not known. ``notes`` say what was assumed and what is not known.
    """

    episodes: int
    finished: int
    requests: int | None = 0
    min_prompt_tokens: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    cost: float | None = 0.0
    notes: tuple[str, ...] = ()


def estimate(plan: Plan) -> Estimate:
    """What the episodes of a plan that have no result yet would take. Opens and sends nothing.

    A request's prompt is the first one plus, for each turn before it, an answer and an observation
    of the greatest length that there is. Limits on tokens and cost lower the figures.
    """
    standing = plan.read_state()
    waiting = plan.pending_samples(standing)
    counts = len(waiting), len(standing.finished)
    if not plan.uses_model or plan.model is None:
        return Estimate(*counts, notes=("the agent asks no model",))
    if not waiting:
        return Estimate(*counts)
    firsts, agent = _first_prompts(plan, plan.model, waiting)
    least = round(sum(firsts) / len(firsts) * len(waiting))
    turns = plan.metadata.get("max_turns")
    if turns is None:
        note = "nothing bounds the turns of an episode: give --max-turns"
        return Estimate(*counts, None, least, None, None, None, (note,))
    notes: list[str] = []
    turns += int(getattr(agent, "extra_requests", 0))
    times = int(getattr(agent, "requests_per_turn", 1))
    answer = _answer_tokens(plan.model, notes)
    grown, again = times * answer + _observation_tokens(agent), (times - 1) * answer
    each = times * (grown * turns * (turns - 1) / 2 + again * turns / 2)
    prompts = math.ceil(least * times * turns + len(waiting) * each)
    requests = len(waiting) * times * turns
    longest = max(max(firsts) + grown * (turns - 1) + again, 1)
    cost = _max_cost(plan.model, prompts, requests * answer, longest, notes)
    found = Estimate(*counts, requests, least, prompts, requests * answer, cost)
    return _apply_limits(plan, found, notes)


def _first_prompts(plan: Plan, model: Model, waiting: Sequence[Sample]) -> tuple[list[int], Agent]:
    """The tokens of the first prompt of some of the tasks."""
    agent = plan.make_agent()
    step = max(1, len(waiting) // MAX_COUNTED_PROMPTS)
    counts = []
    for sample in waiting[::step]:
        agent.start(_brief(plan, plan.dataset.tasks[sample.index]))
        talk: Any = getattr(agent, "messages", ())
        tools = getattr(getattr(agent, "conversation", None), "tools", ())
        described = "".join(json.dumps(asdict(tool)) for tool in tools)
        counts.append(count_tokens(model, list(talk)) + count_tokens(model, described))
    return counts, agent


def _brief(plan: Plan, task: Task) -> Brief:
    """What an agent would be told of a task, had an episode of it begun."""
    kind = ENVIRONMENTS.load(plan.dataset.environment)
    notes = str(task.data.get("notes", ""))
    turns = plan.config.max_turns
    return Brief(task.id, task.query, kind.name, turns, notes, kind.expects_answer)


def _answer_tokens(model: Model, notes: list[str]) -> int:
    generation = getattr(model, "generation", None)
    longest = getattr(generation, "max_answer_tokens", None)
    if longest is None:
        notes.append(
            f"answers of {ASSUMED_ANSWER_TOKENS} tokens are assumed, as the model has no max_tokens: "
            "longer ones (thoughts count) take more"
        )
        return ASSUMED_ANSWER_TOKENS
    return int(longest)


def _observation_tokens(agent: Agent) -> int:
    limit = getattr(agent, "observation_limit", None) or ASSUMED_OBSERVATION_CHARACTERS
    return math.ceil(limit / 3.5)  # bytes of a token, as models/token_count.py has it


def _max_cost(
    model: Model, prompts: int, answers: int, longest: int, notes: list[str]
) -> float | None:
    """Every token at the price of one in the ``longest`` prompt: some models charge more there."""
    price = getattr(model, "price", None)
    if price is None:
        notes.append(
            f"no price is known for {model.name!r}, so the cost is unknown: give one with "
            '--model-option price=\'{"input": 0.15, "output": 0.6}\' (dollars per million tokens)'
        )
        return None
    prompt: float = price.max_cost(longest, 0)
    answer: float = price.max_cost(longest, 1) - prompt
    if price.date:
        notes.append(f"prices as of {price.date}, without reductions for cached prompts")
    return prompts * prompt / longest + answers * answer


def _apply_limits(plan: Plan, found: Estimate, notes: list[str]) -> Estimate:
    """The figures with those limits said that would cut them."""
    config = plan.config
    values = asdict(found) | {"notes": ()}
    tokens = (found.prompt_tokens or 0) + (found.completion_tokens or 0)
    ends = ("max_tokens_per_episode", found.episodes, tokens), ("max_tokens", 1, tokens)
    for name, times, amount in ends:
        limit = getattr(config, name)
        if limit is not None and limit * times < amount:
            notes.append(f"{name} = {limit} allows {limit * times} tokens in all")
    for name, times in (("max_cost_per_episode", found.episodes), ("max_cost", 1)):
        limit = getattr(config, name)
        if limit is not None and found.cost is not None and limit * times < values["cost"]:
            values["cost"] = limit * times
            notes.append(f"{name} = {limit:g} bounds the cost")
    return Estimate(**{**values, "notes": tuple(notes)})
