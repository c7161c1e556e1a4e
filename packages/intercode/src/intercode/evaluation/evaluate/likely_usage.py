"""What the rest of a run will likely use, judged by episodes that were played: of the run itself,
of earlier runs with the same settings, or of a pilot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.errors import InterCodeError
from intercode.core.types import Trajectory, Usage
from intercode.evaluation.evaluate.budgets import total_tokens
from intercode.evaluation.evaluate.plan import Plan
from intercode.evaluation.evaluate.run import run_plan
from intercode.evaluation.evaluate.run_directory import read_run_metadata
from intercode.evaluation.evaluate.run_state import usage_from_json
from intercode.evaluation.evaluate.task_selection import sample_tasks
from intercode.models import Price
from intercode.results.statistics.intervals import Estimate, estimate_mean, values_by_task
from intercode.results.statistics.metrics import drop_retried_failures, known_usage

ALIKE = (
    "environment",
    "dataset",
    "agent",
    "model",
    "max_turns",
    "agent_options",
    "prompts",
    "generation",
)
"""Settings in which earlier runs must be equal for their usage to be expected again."""


@dataclass(frozen=True, slots=True)
class LikelyUsage:
    """The likely usage of a number of episodes, with 95 % intervals; None where it is not known.

    ``source`` says which episodes it was judged by.
    """

    source: str
    requests: Estimate | None
    tokens: Estimate | None
    cost: Estimate | None


def likely_usage(plan: Plan, episodes: int) -> LikelyUsage | None:
    """Return the likely usage of so many further episodes of a plan; None if none was played.

    If the run itself has no episodes yet, those of earlier runs beside its directory are taken.
    """
    played, source = _completed(plan.out), f"of {plan.out}"
    if not played:
        earlier = _earlier_runs(plan)
        played = [t for episodes_of in earlier.values() for t in episodes_of]
        source = (
            f"of {next(iter(earlier))}" if len(earlier) == 1 else f"of {len(earlier)} earlier runs"
        )
    if not played or not episodes:
        return None
    price = None if plan.model is None else plan.model.price
    figures = (lambda u: float(u.requests), total_tokens, lambda u: _cost(u, price))
    requests, tokens, cost = (_total(played, of, episodes) for of in figures)
    return LikelyUsage(f"{len(played):,} episodes {source}", requests, tokens, cost)


def play_pilot(plan: Plan, episodes: int, label: str = "pilot: ") -> str:
    """Play a random sample of the first epoch's episodes without a result, as a part of the run.

    The tasks are stratified as by ``sample_tasks``. Returns why nothing was played, or "" if
    something was. Raises what ``run_plan`` raises.
    """
    if not plan.uses_model:
        return f"the agent {plan.config.agent} uses no model"
    tasks = sorted({sample.index for sample in plan.pending_samples() if sample.epoch == 0})
    if not tasks:
        return "the first epoch has a result for every task"
    chosen = sample_tasks(plan.dataset, tasks, episodes, plan.config.seed or 0)
    config = replace(plan.config, epochs=1)
    run_plan(replace(plan, config=config, task_indices=chosen), label=label)
    return ""


def _completed(out: Path) -> list[Trajectory]:
    """Return the episodes in a run's directory that used a model and have a result."""
    file = out / trajectories.TRAJECTORIES_FILE
    if not file.exists():
        return []
    found = drop_retried_failures(trajectories.read_trajectories(file))
    return [
        t for t in found if t.parent is None and trajectories.has_result(t) and _usage(t).requests
    ]


def _earlier_runs(plan: Plan) -> dict[Path, list[Trajectory]]:
    """Return the episodes of the runs of the same settings beside that of a plan, by directory."""
    found = {}
    for file in sorted(plan.out.parent.glob(f"*/{trajectories.RUN_FILE}")):
        try:
            metadata = read_run_metadata(file.parent)
            if metadata is None or not _is_alike(metadata, plan.metadata):
                continue
            if played := _completed(file.parent):
                found[file.parent] = played
        except (InterCodeError, OSError):
            continue  # what cannot be read is no run to learn from
    return found


def _is_alike(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return not trajectories.identity_differences(old, new, ALIKE)


def _usage(episode: Trajectory) -> Usage:
    """Return the known usage of an episode, with that of its failed attempts."""
    lost = episode.run.get("lost")
    return known_usage(episode) + (usage_from_json(lost) if isinstance(lost, dict) else Usage())


def _cost(usage: Usage, price: Price | None) -> float | None:
    """Return the cost of an episode, by the present price if none was recorded."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if usage.cost is not None or price is None or prompt is None or completion is None:
        return usage.cost
    return price.cost(prompt, completion, usage.cached_tokens or 0)


def _total(
    played: Sequence[Trajectory], of: Callable[[Usage], float | None], episodes: int
) -> Estimate | None:
    known = [(t.task, value) for t in played if (value := of(_usage(t))) is not None]
    mean = estimate_mean(values_by_task(known))
    if mean is None:
        return None
    total = mean.scaled(episodes)
    return total if total.low is None else replace(total, low=max(total.low, 0.0))
