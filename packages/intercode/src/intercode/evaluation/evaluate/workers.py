"""The threads that play the episodes of a run."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Iterator, Sequence

from intercode.core import trajectories
from intercode.core.errors import BudgetError, GoldError, TaskError
from intercode.core.types import Trajectory
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.evaluation.evaluate.budgets import RunBudget
from intercode.evaluation.evaluate.episode_runner import EpisodeRunner
from intercode.evaluation.evaluate.plan import Plan
from intercode.evaluation.evaluate.run_state import Sample
from intercode.evaluation.tracking.base import RunTracker

EVENT_TIMEOUT = 0.5
"""Seconds after which iterating yields None if nothing has happened."""

Event = Sample | Trajectory | str | None
"""What happens in a run: an episode begins; an episode has ended and is written; a note, as soon as
there is a reason for it; or nothing for a while."""

_Report = Sample | Trajectory | str | BaseException | None
"""What a thread reports: an event, an error that stops the run, or None when it ends."""


class Workers:
    """The threads of a run. Iterating yields what happens, as ``Event`` says.

    At a limit of the run, the episodes in progress continue as far as they can; then BudgetError is
    raised. Any other error that stops the run is raised at once.
    """

    def __init__(
        self,
        plan: Plan,
        budget: RunBudget,
        pending: Sequence[Sample],
        make_env: Callable[[], BranchingEnvironment],
        interrupted: threading.Event | None,
        tracker: RunTracker,
    ) -> None:
        self._plan, self._budget, self._make_env = plan, budget, make_env
        self._envs = EnvironmentPool[BranchingEnvironment]()
        self._tracker = tracker
        self._stopped, self._draining = threading.Event(), threading.Event()
        self._interrupted = interrupted or threading.Event()
        self._samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[_Report] = queue.SimpleQueue()
        self._broken_tasks: dict[int, GoldError | TaskError] = {}
        self._unsaved = itertools.count()
        budget.on_error = lambda text: self._events.put(f"first error of the endpoint: {text}")
        for sample in pending:
            self._samples.put(sample)
        self._count = min(plan.config.parallel, len(pending))
        # daemons, so that Ctrl-C does not wait for the answer of an endpoint
        self._threads = [
            threading.Thread(target=self._work, name=f"episode-{n}", daemon=True)
            for n in range(self._count)
        ]

    def __enter__(self) -> Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._budget.stop()
        self._envs.close()

    def __iter__(self) -> Iterator[Event]:
        running, limit = self._count, None
        while running:
            if self._interrupted.is_set():
                raise KeyboardInterrupt
            try:
                event = self._events.get(timeout=EVENT_TIMEOUT)
            except queue.Empty:
                yield None
                continue
            if event is None:
                running -= 1
            elif isinstance(event, BudgetError):
                limit = limit or event
            elif isinstance(event, BaseException):
                raise event
            else:
                yield event
        if limit is not None:
            raise limit

    def _play(self, runner: EpisodeRunner, sample: Sample) -> Trajectory | None:
        with self._tracker.episode(self._plan.episode_key(sample)) as tracker:
            trajectory = runner.run(sample, tracker)
            tracker.end(trajectory)
            return trajectory

    def _note_unsaved(self, text: str) -> None:
        if next(self._unsaved) == 0:  # the same is likely to concern all episodes
            self._events.put(text)

    def _work(self) -> None:
        runner = EpisodeRunner(
            self._plan,
            self._budget,
            self._stopped.wait,
            self._make_env,
            self._envs,
            self._broken_tasks,
            self._note_unsaved,
        )
        try:
            while not (self._stopped.is_set() or self._draining.is_set()):
                try:
                    sample = self._samples.get_nowait()
                except queue.Empty:
                    break
                self._events.put(sample)
                trajectory = self._play(runner, sample)
                if trajectory is None or self._stopped.is_set():
                    break
                trajectories.append_trajectory(self._plan.trajectories_file, trajectory)
                runner.forget(sample)
                self._events.put(trajectory)
        except BaseException as e:  # raised in the thread that iterates
            self._draining.set()
            self._events.put(e)
        finally:
            self._events.put(None)
