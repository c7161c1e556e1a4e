"""What a tracker of a run is told.

The classes here do nothing: trackers override what they need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core.types import Step, Trajectory
from intercode.evaluation.evaluate.progress.counts import Progress
from intercode.evaluation.evaluate.run_state import EpisodeKey
from intercode.models.base import Completion, Message, Tool


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """The run that a tracker reports. ``metadata`` is that of run.json, without secrets;
    ``content`` says whether texts of tasks, models and actions may be reported."""

    out: Path
    metadata: Mapping[str, Any]
    content: bool


class EpisodeTracker:
    """Follows one episode, in the thread that plays it."""

    def turn(self, number: int) -> AbstractContextManager[None]:
        """Return the context of a turn, counted from 1."""
        return nullcontext()

    def request(
        self, messages: Sequence[Message], tools: Sequence[Tool]
    ) -> AbstractContextManager[Callable[[Completion], None]]:
        """Return the context of a request to the model; it yields what to call with the answer."""
        return nullcontext(_ignore)

    def action(self, action: str) -> AbstractContextManager[Callable[[Step], None]]:
        """Return the context of an action; it yields what to call with its result."""
        return nullcontext(_ignore)

    def end(self, trajectory: Trajectory | None) -> None:
        """Report the end of the episode, with its record if there is one."""


class RunTracker:
    """Follows one run. The constructor raises ConfigError if something is missing.

    ``begin``, ``add`` and ``end`` are called in one thread, ``episode`` in those of the episodes.
    """

    def __init__(self, run: TrackedRun) -> None:
        self.run = run

    def begin(self, progress: Progress) -> str:
        """Begin, or continue what an earlier process reported of this run.

        Returns what a user should read, or an empty text.
        """
        return ""

    def episode(self, key: EpisodeKey) -> AbstractContextManager[EpisodeTracker]:
        """Return the context in which an episode is played."""
        return nullcontext(EpisodeTracker())

    def add(self, trajectory: Trajectory, progress: Progress) -> None:
        """Report an episode that has ended and is counted."""

    def end(self, progress: Progress, finished: bool) -> None:
        """Report the end of the work of this process; ``finished`` if all episodes were played."""


def _ignore(_: object) -> None:
    pass
