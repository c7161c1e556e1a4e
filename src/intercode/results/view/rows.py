"""What the page's lists know of an episode, and of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from intercode.core.trajectories import EpisodeNode, build_episode_trees
from intercode.core.types import Trajectory, Usage
from intercode.results.statistics.intervals import Cluster, estimate_proportion
from intercode.results.statistics.metrics import drop_retried_failures, is_failed
from intercode.results.statistics.samples import by_task, is_invalid, turn_count

FIELDS = (
    "task", "index", "query", "epoch", "id", "parent", "branched_at", "group", "hardness", "tags",
    "agent", "model", "success", "reward", "end", "error", "turns", "invalid", "refused", "person",
    "timed_out", "cut", "prompt_tokens", "completion_tokens", "cost", "seconds", "attempts",
)  # fmt: skip
"""The columns of a row, in order; ``at`` (where the episode stands in its log), ``depth`` and
``replaced`` are put behind them."""

EPISODE_METADATA = ("attempts",)
"""Keys of Trajectory.run that belong to one episode."""


@dataclass(frozen=True, slots=True)
class EpisodeEntry:
    """An episode in an index: where it is, and its values for FIELDS.

    ``stub`` is the episode without its steps, of which trees are made. ``usage``: what it spent
    itself, which for a branch begins where it left its parent.
    """

    at: int
    stub: Trajectory
    values: tuple[Any, ...]
    usage: Usage

    @property
    def success(self) -> bool:
        """Whether its best reward is 1."""
        return bool(self.values[FIELDS.index("success")])

    @property
    def turns(self) -> float:
        """How many turns were taken; the authors' logs bring their own count."""
        return turn_count(self.stub) or float(self.values[FIELDS.index("turns")])


def index_episode(at: int, t: Trajectory) -> EpisodeEntry:
    """What an index keeps of an episode that stands at position ``at`` of its log."""
    usage = t.usage
    values = (
        t.task, t.index, t.query, t.epoch, t.id, t.parent, t.branched_at, t.group, t.hardness,
        list(t.tags), t.run.get("agent"), t.run.get("model"), t.success, t.reward, t.end, t.error,
        t.turns, sum(map(is_invalid, t.steps)), sum(s.refused for s in t.steps),
        sum(s.actor == "human" for s in t.steps), sum(s.timed_out for s in t.steps),
        sum(bool(s.context) for s in t.steps), usage.prompt_tokens, usage.completion_tokens,
        usage.cost, t.seconds, t.run.get("attempts", 1),
    )  # fmt: skip
    kept = {k: t.run[k] for k in ("turns_taken",) if k in t.run}
    stub = t.replace(steps=(), query="", run=kept)
    own = sum((s.usage for s in t.steps[t.branched_at or 0 :]), Usage())
    return EpisodeEntry(at, stub, values, own)


def episode_rows(entries: Sequence[EpisodeEntry]) -> list[list[Any]]:
    """A row for each episode, branches below the episode that they came from."""
    by_stub = {id(e.stub): e for e in entries}
    counted = {id(t) for t in drop_retried_failures(e.stub for e in entries)}
    out: list[list[Any]] = []
    stack = [(node, 0) for node in reversed(build_episode_trees([e.stub for e in entries]))]
    met: set[int] = set()
    while stack:
        node, depth = stack.pop()
        met.add(id(node.trajectory))
        own = by_stub[id(node.trajectory)]
        out.append([*own.values, own.at, depth, id(own.stub) not in counted])
        stack += _child_nodes(node, depth)
    circular = [e for e in entries if id(e.stub) not in met]  # parents of each other: no tree
    return out + [[*e.values, e.at, 0, id(e.stub) not in counted] for e in circular]


def run_summary(entries: Sequence[EpisodeEntry]) -> dict[str, Any]:
    """The figures of a run as the report has them: over episodes that ended without an error and
    are no branches, the last one of each task and epoch. Success in percent, with its interval."""
    good = [e for e in entries if not is_failed(e.stub) and e.stub.parent is None]
    last = list({(e.stub.task, e.stub.epoch): e for e in good}.values())
    solved = {id(e.stub): e.success for e in last}
    clusters = [
        Cluster(sum(solved[id(t)] for t in same), len(same))
        for same in by_task(e.stub for e in last).values()
    ]
    success = estimate_proportion(clusters)
    spent = sum((e.usage for e in entries), Usage())
    return {
        "episodes": len(entries),
        "counted": len(last),
        "tasks": len(clusters),
        "solved": sum(solved.values()),
        "success": None if success is None else 100 * success.value,
        "low": None if success is None or success.low is None else 100 * success.low,
        "high": None if success is None or success.high is None else 100 * success.high,
        "errors": sum(is_failed(t) for t in drop_retried_failures(e.stub for e in entries)),
        "turns": sum(e.turns for e in last) / len(last) if last else None,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "cost": spent.cost,
    }


def own_metadata(run: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What an episode's record says of its run that the run itself does not say."""
    return {k: v for k, v in run.items() if k in EPISODE_METADATA or facts.get(k) != v}


def _child_nodes(node: EpisodeNode, depth: int) -> list[tuple[EpisodeNode, int]]:
    return [(child, depth + 1) for child in reversed(node.children)]
