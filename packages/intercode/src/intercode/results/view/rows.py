"""The data of the page's lists: one row per episode, and a summary per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from intercode.core.trajectories import build_episode_trees
from intercode.core.types import Trajectory, Usage
from intercode.results.statistics.intervals import (
    Cluster,
    estimate_proportion,
    value_and_bounds,
)
from intercode.results.statistics.metrics import (
    drop_retried_failures,
    is_failed,
    is_invalid,
    is_refused_action,
    known_usage,
    turn_count,
)
from intercode.results.statistics.samples import all_samples, by_task
from intercode.results.statistics.significance import paired_success_test

FIELDS = (
    "task",
    "index",
    "query",
    "epoch",
    "id",
    "parent",
    "branched_at",
    "group",
    "hardness",
    "tags",
    "agent",
    "model",
    "success",
    "reward",
    "end",
    "error",
    "turns",
    "invalid",
    "refused",
    "human",
    "timed_out",
    "cut",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    "seconds",
    "attempts",
)
"""The columns of a row, in order, followed by ``at`` (the episode's position in its log), ``depth``
and ``replaced``."""

EPISODE_METADATA = ("attempts",)
"""Keys of Trajectory.run that belong to one episode."""


@dataclass(frozen=True, slots=True)
class EpisodeEntry:
    """An episode in an index: its position, and its values for FIELDS.

    ``stub`` is the episode without its steps, from which trees are built. ``usage`` is its own;
    that of a branch begins where it left its parent.
    """

    at: int
    stub: Trajectory
    values: tuple[Any, ...]
    usage: Usage

    @property
    def success(self) -> bool:
        """Whether its best score is 1."""
        return bool(self.values[FIELDS.index("success")])

    @property
    def turns(self) -> float:
        """The number of turns taken; the authors' logs have their own count."""
        return turn_count(self.stub) or float(self.values[FIELDS.index("turns")])


def index_episode(at: int, t: Trajectory) -> EpisodeEntry:
    """Return the entry of an episode at position ``at`` of its log."""
    usage = known_usage(t)
    values = (
        t.task,
        t.index,
        t.query,
        t.epoch,
        t.id,
        t.parent,
        t.branched_at,
        t.group,
        t.hardness,
        list(t.tags),
        t.run.get("agent"),
        t.run.get("model"),
        t.success,
        t.score,
        t.end,
        t.error,
        t.turns,
        sum(map(is_invalid, t.steps)),
        sum(map(is_refused_action, t.steps)),
        sum(s.actor == "human" for s in t.steps),
        sum(s.timed_out for s in t.steps),
        sum(bool(s.context) for s in t.steps),
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cost,
        t.seconds,
        t.run.get("attempts", 1),
    )
    run = {k: t.run[k] for k in ("turns_taken",) if k in t.run}
    stub = t.replace(steps=(), query="", run=run)
    own = known_usage(t.replace(steps=t.steps[t.branched_at or 0 :]))
    return EpisodeEntry(at, stub, values, own)


def episode_rows(entries: Sequence[EpisodeEntry]) -> list[list[Any]]:
    """Return a row for each episode, with branches below the episode that they came from."""
    by_stub = {id(e.stub): e for e in entries}
    counted = {id(t) for t in drop_retried_failures(e.stub for e in entries)}
    out: list[list[Any]] = []
    stack = [(node, 0) for node in reversed(build_episode_trees([e.stub for e in entries]))]
    visited: set[int] = set()
    while stack:
        node, depth = stack.pop()
        visited.add(id(node.trajectory))
        own = by_stub[id(node.trajectory)]
        out.append([*own.values, own.at, depth, id(own.stub) not in counted])
        stack += [(child, depth + 1) for child in reversed(node.children)]
    circular = [e for e in entries if id(e.stub) not in visited]  # each other's parents
    return out + [[*e.values, e.at, 0, id(e.stub) not in counted] for e in circular]


def run_summary(entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    """Return the figures of a run as in the report: over the last episode of each task and epoch,
    without branches.

    Success is in percent, with its interval; an error of the infrastructure counts as not solved,
    and ``upper_bound`` is success if all errors had been solved (absent without one). Turns are
    those of completed episodes.
    """
    by_stub = {id(e.stub): e for e in entries}
    counted = [by_stub[id(t)] for t in all_samples(e.stub for e in entries)]
    last = [e for e in counted if not is_failed(e.stub)]
    solved = {id(e.stub): e.success and not is_failed(e.stub) for e in counted}
    errors = len(counted) - len(last)
    clusters = [
        Cluster(sum(solved[id(t)] for t in same), len(same))
        for same in by_task(e.stub for e in counted).values()
    ]
    share = estimate_proportion(clusters)
    success, low, high = value_and_bounds(None if share is None else share.scaled(100))
    total_usage = sum((e.usage for e in entries), Usage())
    return {
        "episodes": len(entries),
        "counted": len(counted),
        "tasks": len(clusters),
        "solved": sum(solved.values()),
        "success": success,
        "low": low,
        "high": high,
        "errors": errors,
        **({"upper_bound": 100 * (sum(solved.values()) + errors) / len(counted)} if errors else {}),
        "turns": sum(e.turns for e in last) / len(last) if last else None,
        "prompt_tokens": total_usage.prompt_tokens,
        "completion_tokens": total_usage.completion_tokens,
        "cost": total_usage.cost,
    }


def solved_by_task(entries: Sequence[EpisodeEntry]) -> dict[str, list[bool]]:
    """Return, for each task, which of the episodes that success is a share of were solved."""
    by_stub = {id(e.stub): e for e in entries}
    return {
        task: [by_stub[id(t)].success and not is_failed(t) for t in same]
        for task, same in by_task(all_samples(e.stub for e in entries)).items()
    }


def success_test(
    first: Mapping[str, Sequence[bool]], second: Mapping[str, Sequence[bool]]
) -> dict[str, Any] | None:
    """Return the test of `intercode compare` for the success of two runs, as ``solved_by_task``
    gives it; None if no task is in both."""
    pairs = [(first[task], second[task]) for task in first if task in second]
    if not pairs:
        return None
    test = paired_success_test(pairs)
    return {"p": test.p, "method": test.method, "tasks": len(pairs)}


def own_metadata(run: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return those metadata of an episode's record that differ from the run's."""
    return {k: v for k, v in run.items() if k in EPISODE_METADATA or metadata.get(k) != v}
