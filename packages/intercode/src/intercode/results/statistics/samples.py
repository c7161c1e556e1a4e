"""Selects the episodes that statistics are computed over, and reads figures of single episodes."""

from __future__ import annotations

from collections.abc import Iterable

from intercode.core.types import Trajectory
from intercode.results.statistics.metrics import (
    agent_turns,
    drop_retried_failures,
    is_failed,
    solves,
    split_episodes,
)


def independent_episodes(episodes: Iterable[Trajectory]) -> list[Trajectory]:
    """Return the independent samples of tasks: for each task and epoch the last episode recorded.

    Branches are left out, because they share their beginning with another episode. So are episodes
    that ended in an error of the infrastructure: success is a share of ``all_samples``, everything
    else is known only of an episode that was completed.
    """
    return [t for t in all_samples(episodes) if not is_failed(t)]


def all_samples(episodes: Iterable[Trajectory]) -> list[Trajectory]:
    """Return what success is a share of: ``independent_episodes``, and for each task and epoch
    without one the error of the infrastructure that it ended in."""
    own = [t for t in episodes if t.parent is None]
    return list({(t.task, t.epoch): t for t in drop_retried_failures(own)}.values())


def by_task(episodes: Iterable[Trajectory]) -> dict[str, list[Trajectory]]:
    """Return episodes by task, in the order of the first of each."""
    return split_episodes(episodes, lambda t: t.task)


def max_epochs(episodes: Iterable[Trajectory]) -> int:
    """Return the largest number of episodes of one task."""
    return max((len(same) for same in by_task(episodes).values()), default=0)


def solving_turn(episode: Trajectory) -> int | None:
    """Return the turn, from 1, after which the reward was 1 for the first time; None if it never
    was.

    An agent that is scored only at its end solves a task in its last turn; a forced submission
    counts with the turn before.
    """
    for number, step in enumerate(episode.steps, start=1):
        if solves(step):
            return min(number, max(1, len(agent_turns(episode))))
    return None
