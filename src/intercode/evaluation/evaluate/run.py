"""Plays the episodes of a run with several threads, each with an environment of its own."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.config import EvalConfig, max_failed_episodes
from intercode.core.errors import BudgetError, TooManyErrorsError, UsageError
from intercode.core.registry import Registry
from intercode.core.types import Trajectory
from intercode.environments.base.contract import BranchingEnvironment
from intercode.evaluation.evaluate.budgets import RunBudget
from intercode.evaluation.evaluate.episode_runner import EpisodeRunner
from intercode.evaluation.evaluate.history import RunHistory
from intercode.evaluation.evaluate.open_files import check_open_file_limit
from intercode.evaluation.evaluate.plan import Plan, create_run, make_plan
from intercode.evaluation.evaluate.progress import Progress
from intercode.evaluation.evaluate.run_state import Sample
from intercode.evaluation.evaluate.sandbox_check import require_sandboxes
from intercode.models import Model

LOCAL = "local"
RUNNERS = Registry(
    "runner",
    {
        LOCAL: "intercode.evaluation.evaluate.run:local_environments",
        "ray": "intercode.evaluation.ray.ray_runner:ray_environments",
    },
)
"""Where environments can run. Each name refers to a function of a plan, which returns a context
manager of the function that makes environments."""

_Event = Trajectory | str | BaseException | None
"""What a worker reports: an episode, the first error of an endpoint, an error that stops the run,
or None when it ends."""


def evaluate(config: EvalConfig, *, model: Model | None = None, quiet: bool = False) -> Path:
    """Play the episodes of a run that have no result yet, and return the run's directory.

    Every episode is written to disk when it ends. A call with the same configuration and ``out``
    resumes the run. ``model`` replaces the one that the configuration names.

    Raises UsageError for wrong settings, such as an ``out`` that contains another run;
    ModelRefusedError and SandboxUnavailableError as soon as they occur; BudgetError at a limit of
    the run; and TooManyErrorsError if more episodes fail than ``fail_on_error`` allows. Finished
    episodes are then on disk.
    """
    plan = make_plan(config, model)
    run_plan(plan, quiet=quiet)
    plan.close()
    return plan.out


def run_plan(plan: Plan, *, quiet: bool = False, label: str = "") -> Path:
    """Play a plan as ``evaluate`` does. ``label`` is put before every line of progress.

    Raises SandboxUnavailableError before anything is written if this machine can open no sandbox.
    """
    environments = open_runner(plan)
    local, begun = plan.config.runner == LOCAL, plan.trajectories_file.exists()
    if local:
        check_open_file_limit(plan.config.parallel)
    chosen = ""
    if local and not begun:
        chosen = require_sandboxes(plan)  # before anything is written
    create_run(plan)
    with _exclusive_lock(plan.out):
        state = plan.read_state()
        pending = plan.pending_samples(state)
        if state.finished and not quiet:
            count = f"{len(state.finished)} of {len(plan.samples)} episodes"
            print(f"{label}{count} are finished already in {plan.out}", file=sys.stderr)
        if not pending:
            return plan.out
        if local and begun:
            chosen = require_sandboxes(plan)
        if chosen and not quiet:
            print(f"{label}sandboxes: {chosen}", file=sys.stderr)
        history = RunHistory(plan.out)
        budget = RunBudget(plan.config, history.earlier_usage)
        finished = list(state.finished.values())
        progress = Progress(
            len(plan.samples), finished, label=label, earlier_usage=history.earlier_usage
        )
        with (
            environments as make_env,
            _recorded_in_history(plan, history, budget),
            _Workers(plan, budget, pending, make_env) as workers,
        ):
            try:
                _collect(plan, workers, progress, quiet)
            finally:
                if not quiet:
                    progress.finish()
    return plan.out


def _collect(plan: Plan, workers: _Workers, progress: Progress, quiet: bool) -> None:
    """Report the episodes as they end. Raises TooManyErrorsError, and the errors of the workers."""
    allowed = max_failed_episodes(plan.config.fail_on_error, progress.total)
    for event in workers:
        if isinstance(event, str):
            progress.note(f"first error of the endpoint: {event}", quiet)
            continue
        trajectory = event
        progress.add(trajectory, quiet)
        if trajectory.error is not None and progress.errors == 1:
            progress.note(f"first error: {trajectory.task}: {trajectory.error}", quiet)
        if allowed is not None and progress.errors > allowed:
            raise TooManyErrorsError(
                f"{progress.errors} of {progress.total} episodes ended in an error, and "
                f"fail_on_error = {plan.config.fail_on_error} allows {allowed}; the last: "
                f"{trajectory.error}"
            )


@contextmanager
def _recorded_in_history(plan: Plan, history: RunHistory, budget: RunBudget) -> Iterator[None]:
    """Record in the run's history when the work in the block begins and how it ends."""
    config, how = plan.config, "failed"
    history.begin(
        version=plan.metadata.get("version"), parallel=config.parallel,
        tasks=len(plan.task_indices), epochs=config.epochs, shuffle=config.shuffle,
        max_tokens=config.max_tokens, max_cost=config.max_cost, max_seconds=config.max_seconds,
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
        history.end(how, budget.usage)


class _Workers:
    """The threads of a run. Iterating yields the episodes as they end, after they are written, and
    as a text the first error of an endpoint, as soon as it occurs.

    At a limit of the run, the episodes in progress continue as far as they can; then BudgetError is
    raised. Any other error that stops the run is raised at once.
    """

    def __init__(
        self,
        plan: Plan,
        budget: RunBudget,
        pending: Sequence[Sample],
        make_env: Callable[[], BranchingEnvironment],
    ) -> None:
        self._plan, self._budget, self._make_env = plan, budget, make_env
        self._stopped, self._draining = threading.Event(), threading.Event()
        self._samples: queue.SimpleQueue[Sample] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._broken_golds: dict[int, str] = {}
        budget.on_error = self._events.put
        for sample in pending:
            self._samples.put(sample)
        self._count = min(plan.config.parallel, len(pending))
        # daemons, so that Ctrl-C does not wait for the answer of an endpoint
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

    def __iter__(self) -> Iterator[Trajectory | str]:
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
        runner = EpisodeRunner(
            self._plan, self._budget, self._stopped.wait, self._make_env, self._broken_golds
        )
        try:
            while not (self._stopped.is_set() or self._draining.is_set()):
                try:
                    sample = self._samples.get_nowait()
                except queue.Empty:
                    break
                trajectory = runner.run(sample)
                if trajectory is None or self._stopped.is_set():
                    break
                trajectories.append_trajectory(self._plan.trajectories_file, trajectory)
                self._events.put(trajectory)
        except BaseException as e:  # raised in the thread that iterates
            self._draining.set()
            self._events.put(e)
        finally:
            runner.close()
            self._events.put(None)


@contextmanager
def _exclusive_lock(out: Path) -> Iterator[None]:
    """Lock a run's directory. Raises UsageError if another process works in it."""
    with (out / ".lock").open("ab") as file:
        if sys.platform != "win32":
            _lock(file, out)
        yield


def _lock(file: Any, out: Path) -> None:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # closing the file releases it
    except BlockingIOError as e:
        raise UsageError(f"another process is working in {out}: wait, or give another --out") from e


def open_runner(plan: Plan) -> AbstractContextManager[Callable[[], BranchingEnvironment]]:
    """Return the context in which a plan's environments can be made. Raises UnknownNameError."""
    environments: AbstractContextManager[Callable[[], BranchingEnvironment]] = RUNNERS.load(
        plan.config.runner
    )(plan)
    return environments


@contextmanager
def local_environments(plan: Plan) -> Iterator[Callable[[], BranchingEnvironment]]:
    """Yield a function that makes environments in this process."""
    yield plan.make_env
