"""The state of a run on disk: which of its episodes have a result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from intercode.core import trajectories
from intercode.core.types import ActionError, Trajectory, Usage
from intercode.evaluation.tracebacks import recorded_action_error


@dataclass(frozen=True, slots=True)
class Sample:
    """An episode that a run has to play: the position of a task, and the number of the sample."""

    index: int
    epoch: int


class EpisodeKey(NamedTuple):
    """The identity of an episode on disk: the id of the task, and the number of the sample."""

    task: str
    epoch: int


class EpisodeOutcome(NamedTuple):
    """The part of a finished episode's result that progress reports need."""

    success: bool
    cost: float | None


@dataclass
class RunState:
    """The state of some episodes in a trajectory file.

    ``finished`` has the episodes with a result, ``errors`` the last error of those without, and
    ``action_errors`` the exceptions that actions have caused, with which episodes ended.
    ``usage`` is that of all episodes in the file, with their failed attempts.
    """

    finished: dict[EpisodeKey, EpisodeOutcome] = field(default_factory=dict)
    errors: dict[EpisodeKey, str] = field(default_factory=dict)
    action_errors: list[ActionError] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


def episode_key(trajectory: Trajectory) -> EpisodeKey:
    """Return what identifies an episode."""
    return EpisodeKey(trajectory.task, trajectory.epoch)


def total_usage(trajectory: Trajectory) -> Usage:
    """Return the usage of an episode with that of its failed attempts (``run["lost"]``)."""
    lost = trajectory.run.get("lost")
    return trajectory.usage + (usage_from_json(lost) if isinstance(lost, dict) else Usage())


def usage_from_json(row: dict[str, Any]) -> Usage:
    """Return a Usage from its JSON form."""
    known = {k: v for k, v in row.items() if k in Usage.__dataclass_fields__}
    return Usage(**known)


def read_run_state(file: Path, wanted: Iterable[EpisodeKey]) -> RunState:
    """Read the state of the wanted episodes from a trajectory file, which may be absent.

    Branches of episodes are not episodes of the run.
    """
    state, keys = RunState(), set(wanted)
    for trajectory in trajectories.read_trajectories(file) if file.exists() else ():
        state.usage += total_usage(trajectory)
        key = episode_key(trajectory)
        if trajectory.parent is not None or key not in keys:
            continue
        if trajectories.has_result(trajectory):
            state.finished[key] = EpisodeOutcome(trajectory.success, trajectory.usage.cost)
            if trajectory.end == "action_error":
                error = recorded_action_error(trajectory.run)
                state.action_errors.append(error or ActionError("an exception", ""))
        else:
            state.errors[key] = trajectory.error or "no reason recorded"
    for key in state.finished:
        state.errors.pop(key, None)
    return state
