"""Selects the episodes that statistics are computed over, and reads figures of single episodes."""

from __future__ import annotations

from collections.abc import Iterable

from intercode.core.logs import lacks_code
from intercode.core.types import SUCCESS_THRESHOLD, Step, Trajectory
from intercode.results.statistics.metrics import drop_retried_failures, is_failed


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
    out: dict[str, list[Trajectory]] = {}
    for episode in episodes:
        out.setdefault(episode.task, []).append(episode)
    return out


def max_epochs(episodes: Iterable[Trajectory]) -> int:
    """Return the largest number of episodes of one task."""
    return max((len(same) for same in by_task(episodes).values()), default=0)


def agent_turns(episode: Trajectory) -> tuple[Step, ...]:
    """Return the turns of the agent, without the submission that the authors' ReAct loop adds when
    the turns are used up."""
    steps = episode.steps
    if len(steps) > episode.run.get("turns_taken", len(steps)) and steps[-1].action == "submit":
        return steps[:-1]
    return steps


def turn_count(episode: Trajectory) -> float:
    """Return how many turns were taken; the authors' logs have their own count."""
    return float(episode.run.get("turns_taken", episode.turns))


def solving_turn(episode: Trajectory) -> int | None:
    """Return the turn, from 1, after which the reward was 1 for the first time; None if it never
    was.

    An agent that is scored only at its end solves a task in its last turn; a forced submission
    counts with the turn before.
    """
    for number, step in enumerate(episode.steps, start=1):
        if step.reward is not None and step.reward >= SUCCESS_THRESHOLD:
            return min(number, max(1, len(agent_turns(episode))))
    return None


def is_invalid(step: Step) -> bool:
    """Return whether a turn's action could not be executed, or held no code. A turn without a
    recorded flag is not invalid."""
    return step.valid is False or lacks_code(step)


def has_validity(step: Step) -> bool:
    """Return whether the validity of a turn's action is known."""
    return step.valid is not None or lacks_code(step)
