"""The trackers of a run, by name, as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from intercode.core.types import Step, Trajectory
from intercode.evaluation.evaluate.progress.counts import Progress
from intercode.evaluation.evaluate.run_state import EpisodeKey
from intercode.evaluation.tracking.base import EpisodeTracker, RunTracker, TrackedRun
from intercode.models.base import Completion, Message, Tool
from intercode_sandbox.registry import Registry

T = TypeVar("T")
TRACKERS = Registry(
    "tracker",
    {
        "wandb": "intercode.evaluation.tracking.wandb_tracker:WandbTracker",
        "otel": "intercode.evaluation.tracking.otel_tracker:OtelTracker",
    },
)
"""The classes of trackers by name. Each is a RunTracker."""


class Trackers(RunTracker):
    """Several trackers as one. One that raises in ``begin``, ``add`` or ``end`` is told nothing
    more, and the run goes on."""

    def __init__(self, run: TrackedRun, trackers: Sequence[tuple[str, RunTracker]]) -> None:
        super().__init__(run)
        self._trackers = list(trackers)
        self.note: Callable[[str], None] = lambda _: None
        """Called with what a user should read."""

    def begin(self, progress: Progress) -> str:
        def begin(tracker: RunTracker) -> None:
            if text := tracker.begin(progress):
                self.note(text)

        self._call(begin)
        return ""

    def add(self, trajectory: Trajectory, progress: Progress) -> None:
        self._call(lambda tracker: tracker.add(trajectory, progress))

    def end(self, progress: Progress, finished: bool) -> None:
        self._call(lambda tracker: tracker.end(progress, finished))

    @contextmanager
    def episode(self, key: EpisodeKey) -> Iterator[EpisodeTracker]:
        with ExitStack() as stack:
            episodes = [stack.enter_context(t.episode(key)) for _, t in self._trackers]
            yield episodes[0] if len(episodes) == 1 else _EpisodeTrackers(episodes)

    def _call(self, function: Callable[[RunTracker], None]) -> None:
        for name, tracker in self._trackers.copy():
            try:
                function(tracker)
            except Exception as e:  # of another program, or of its server
                self._trackers.remove((name, tracker))
                self.note(f"the run goes on without {name}: {type(e).__name__}: {e}")


class _EpisodeTrackers(EpisodeTracker):
    def __init__(self, episodes: Sequence[EpisodeTracker]) -> None:
        self._episodes = episodes

    @contextmanager
    def turn(self, number: int) -> Iterator[None]:
        with ExitStack() as stack:
            for episode in self._episodes:
                stack.enter_context(episode.turn(number))
            yield

    @contextmanager
    def request(
        self, messages: Sequence[Message], tools: Sequence[Tool]
    ) -> Iterator[Callable[[Completion], None]]:
        with ExitStack() as stack:
            calls = [stack.enter_context(e.request(messages, tools)) for e in self._episodes]
            yield _all(calls)

    @contextmanager
    def action(self, action: str) -> Iterator[Callable[[Step], None]]:
        with ExitStack() as stack:
            calls = [stack.enter_context(e.action(action)) for e in self._episodes]
            yield _all(calls)

    def end(self, trajectory: Trajectory | None) -> None:
        for episode in self._episodes:
            episode.end(trajectory)


def _all(functions: Sequence[Callable[[T], None]]) -> Callable[[T], None]:
    """Return a function that calls all functions."""

    def call(value: T) -> None:
        for function in functions:
            function(value)

    return call


def open_trackers(names: Sequence[str], run: TrackedRun) -> Trackers:
    """Return the trackers with these names, or ``package.module:Class`` of your own.

    Raises UnknownNameError, and ConfigError for one whose library is missing.
    """
    return Trackers(run, [(name, TRACKERS.load(name)(run)) for name in dict.fromkeys(names)])
