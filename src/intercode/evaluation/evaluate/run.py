"""Plays a dataset with threads, each with an environment of its own, wherever that is."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.config import EvalConfig, max_failed_episodes
from intercode.core.errors import BudgetError, TooManyErrorsError, UsageError
from intercode.core.types import Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.evaluate.budgets import RunBudget
from intercode.evaluation.evaluate.episode_runner import EpisodeRunner
from intercode.evaluation.evaluate.history import RunHistory
from intercode.evaluation.evaluate.open_files import check_open_file_limit
from intercode.evaluation.evaluate.plan import Plan, create_run, make_plan
from intercode.evaluation.evaluate.progress import Progress
from intercode.evaluation.evaluate.run_state import Sample
from intercode.evaluation.evaluate.runners import LOCAL, open_runner
from intercode.models import Model

_Event = Trajectory | BaseException | None
"""What a worker reports: an episode, what the whole run fails with, or None at its end."""


def evaluate(config: EvalConfig, *, model: Model | None = None, quiet: bool = False) -> Path:
    """Play what is still to be played and return the run's directory.

    Every episode is on disk as soon as it ends; the same configuration and ``out`` go on where an
    earlier call stopped. ``model`` takes the place of the one that the configuration names.
    Raises UsageError for what cannot be (an ``out`` that holds another run, say),
    ModelRefusedError and SandboxUnavailableError at once when they happen, BudgetError at a limit
    of the run's, TooManyErrorsError where more episodes failed than ``fail_on_error`` allows; what
    was finished is then on disk.
    """
    plan = make_plan(config, model)
    run_plan(plan, quiet=quiet)
    plan.close()
    return plan.out


def run_plan(plan: Plan, *, quiet: bool = False, label: str = "") -> Path:
    """As ``evaluate``, for a plan made before. ``label`` goes before every line of progress."""
    places = open_runner(plan)
    if plan.config.runner == LOCAL:
        check_open_file_limit(plan.config.parallel)
    create_run(plan)
    with _exclusive_lock(plan.out):
        standing = plan.read_state()
        waiting = plan.pending_samples(standing)
        if not waiting:
            return plan.out
        history = RunHistory(plan.out)
        spending = RunBudget(plan.config, history.earlier_usage)
        progress = Progress(len(plan.samples), list(standing.finished.values()), label=label)
        with (
            places as make,
            _recorded_in_history(plan, history, spending),
            _Workers(plan, spending, waiting, make) as workers,
        ):
            try:
                _collect(plan, workers, progress, quiet)
            finally:
                if not quiet:
                    progress.finish()
    return plan.out


def _collect(plan: Plan, workers: _Workers, progress: Progress, quiet: bool) -> None:
    """Take the episodes as they end. Raises TooManyErrorsError, and what stops the whole run."""
    allowed = max_failed_episodes(plan.config.fail_on_error, progress.total)
    for trajectory in workers:
        progress.add(trajectory, quiet)
        if allowed is not None and progress.errors > allowed:
            raise TooManyErrorsError(
                f"{progress.errors} of {progress.total} episodes ended in an error, and "
                f"fail_on_error = {plan.config.fail_on_error} allows {allowed}; the last: "
                f"{trajectory.error}"
            )


@contextmanager
def _recorded_in_history(plan: Plan, history: RunHistory, spending: RunBudget) -> Iterator[None]:
    """The run's history tells when this time of work began and how it ended."""
    config, how = plan.config, "failed"
    history.begin(
        version=plan.metadata.get("version"), parallel=config.parallel, tasks=len(plan.task_indices),
        epochs=config.epochs, shuffle=config.shuffle, max_tokens=config.max_tokens,
        max_cost=config.max_cost, max_seconds=config.max_seconds,
    )  # fmt: skip
    try:
        yield
        how = "finished"
    except BudgetError:
        how = "limit of the run"
        raise
    except TooManyErrorsError:
        how = "too many errors"
        raise
    except KeyboardInterrupt:
        how = "interrupted"
        raise
    finally:
        history.end(how, spending.usage)


class _Workers:
    """The threads of a run. Iterating gives episodes as they end, written already.

    At a limit of the run's the episodes that still can are played to their end, then BudgetError is
    raised; anything else that no episode would escape is raised at once.
    """

    def __init__(
        self,
        plan: Plan,
        spending: RunBudget,
        waiting: Sequence[Sample],
        make: Callable[[], InterCodeEnv],
    ) -> None:
        self._plan, self._budget, self._make_env = plan, spending, make
        self._stopped, self._draining = threading.Event(), threading.Event()
        self._samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        for sample in waiting:
            self._samples.put(sample)
        self._count = min(plan.config.parallel, len(waiting))
        # daemons: Ctrl-C must not wait for what an endpoint takes minutes to answer
        self._threads = [
            threading.Thread(target=self._work, name=f"episode-{n}", daemon=True)
            for n in range(self._count)
        ]

    def __enter__(self) -> _Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._budget.stop()

    def __iter__(self) -> Iterator[Trajectory]:
        running, limit = self._count, None
        while running:
            event = self._events.get()
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

    def _work(self) -> None:
        player = EpisodeRunner(self._plan, self._budget, self._stopped.wait, self._make_env)
        try:
            while not (self._stopped.is_set() or self._draining.is_set()):
                try:
                    sample = self._samples.get_nowait()
                except queue.Empty:
                    break
                trajectory = player.run(sample)
                if trajectory is None or self._stopped.is_set():
                    break
                trajectories.append_trajectory(self._plan.trajectories_file, trajectory)
                self._events.put(trajectory)
        except BaseException as e:  # handed to the thread that reads the events
            self._draining.set()
            self._events.put(e)
        finally:
            player.close()
            self._events.put(None)


@contextmanager
def _exclusive_lock(out: Path) -> Iterator[None]:
    """Refuse a directory that another process is writing to. Raises UsageError."""
    with (out / ".lock").open("ab") as file:
        if sys.platform != "win32":
            _lock(file, out)
        yield


def _lock(file: Any, out: Path) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # closing the file gives it back
    except BlockingIOError as e:
        raise UsageError(f"another process is working in {out}: wait, or give another --out") from e
