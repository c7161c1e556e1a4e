"""How far a run is: what of it is on disk, read in one go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from intercode.core import trajectories
from intercode.core.types import Trajectory, Usage


@dataclass(frozen=True, slots=True)
class Sample:
    """One episode that a run has to play: a task's position, and which sample of it, from 0."""

    index: int
    epoch: int


class EpisodeKey(NamedTuple):
    """What an episode of a run is known by on disk: the task's id, and which sample of it."""

    task: str
    epoch: int


class EpisodeOutcome(NamedTuple):
    """What progress needs to know of an episode that is finished."""

    success: bool
    cost: float | None


@dataclass
class RunState:
    """What a trajectory file holds of some episodes.

    ``done``: those with a result, each once however often it is there. ``errors``: the last error
    of those without. ``spent``: by all episodes of the file, attempts that failed included.
    """

    finished: dict[EpisodeKey, EpisodeOutcome] = field(default_factory=dict)
    errors: dict[EpisodeKey, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


def episode_key(trajectory: Trajectory) -> EpisodeKey:
    """What an episode is known by."""
    return EpisodeKey(trajectory.task, trajectory.epoch)


def total_usage(trajectory: Trajectory) -> Usage:
    """What an episode has cost, with what its failed attempts spent (``run["lost"]``)."""
    lost = trajectory.run.get("lost")
    return trajectory.usage + (usage_from_json(lost) if isinstance(lost, dict) else Usage())


def usage_from_json(row: dict[str, Any]) -> Usage:
    """A Usage from its JSON form."""
    known = {k: v for k, v in row.items() if k in Usage.__dataclass_fields__}
    return Usage(**known)


def read_run_state(file: Path, wanted: Iterable[EpisodeKey]) -> RunState:
    """What ``file`` holds of the wanted episodes; a file that is absent holds nothing.

    A branch of an episode is none of the run's own.
    """
    standing, keys = RunState(), set(wanted)
    for trajectory in trajectories.read_trajectories(file) if file.exists() else ():
        standing.usage += total_usage(trajectory)
        key = episode_key(trajectory)
        if trajectory.parent is not None or key not in keys:
            continue
        if trajectories.has_result(trajectory):
            standing.finished[key] = EpisodeOutcome(trajectory.success, trajectory.usage.cost)
        else:
            standing.errors[key] = trajectory.error or "no reason recorded"
    for key in standing.finished:
        standing.errors.pop(key, None)
    return standing
