"""Plays the episodes of a run with several threads, each with an environment of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, overload

from intercode.agents import AGENTS, Agent, AgentFactory, accepts_parameter, agent_factory
from intercode.agents.given import given_name
from intercode.core.config import CONTENT, EvalConfig, make_config, max_failed_episodes, task_names
from intercode.core.errors import BudgetError, TooManyErrorsError, UsageError
from intercode.core.trajectories import reading
from intercode.core.types import Usage
from intercode.environments.base.pool.open_files import check_open_file_limit
from intercode.environments.runners import LOCAL, open_runner
from intercode.evaluation.evaluate.budgets import RunBudget
from intercode.evaluation.evaluate.history import RunHistory
from intercode.evaluation.evaluate.plan import Plan, env_settings, make_plan
from intercode.evaluation.evaluate.progress import Progress, Report, make_report
from intercode.evaluation.evaluate.progress.header import describe_plan
from intercode.evaluation.evaluate.run_directory import create_run_directory, require_same_run
from intercode.evaluation.evaluate.run_state import Sample
from intercode.evaluation.evaluate.sandbox_check import require_sandboxes
from intercode.evaluation.evaluate.workers import Workers
from intercode.evaluation.tracking.base import TrackedRun
from intercode.evaluation.tracking.trackers import Trackers, open_trackers
from intercode.models import Model, Traffic
from intercode.models.providers.function import ModelFunction, as_model
from intercode.results.run import Run, load_run
from intercode_sandbox.platforms.files import lock_file


@overload
def evaluate(
    dataset: EvalConfig, *, model: Model | ModelFunction | None = None, quiet: bool = False
) -> Path: ...


@overload
def evaluate(
    dataset: str | Path,
    agent: str | Agent | AgentFactory,
    *,
    model: str | Model | ModelFunction | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Run: ...


def evaluate(
    dataset: str | Path | EvalConfig,
    agent: str | Agent | AgentFactory | None = None,
    *,
    model: str | Model | ModelFunction | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Run | Path:
    """Play the episodes of a run that have no result yet, and return the run.

    ``agent`` is a name such as ``try-again``, a class of agents, a function that makes one, or an
    Agent, of which every worker gets a copy. ``model`` is a name such as ``openai/gpt-4o-mini``, a
    Model, or a function that takes messages and returns a text (see FunctionModel). ``settings``
    are those of EvalConfig, such as ``limit``, ``epochs``, ``parallel`` and ``out``. With an
    EvalConfig in place of the dataset and the agent, the run's directory is returned.

    Every episode is written to disk when it ends. A call with the same settings and ``out`` resumes
    the run. Raises UsageError for wrong settings, such as an ``out`` that contains another run;
    ModelRefusedError and SandboxUnavailableError as soon as they occur; BudgetError at a limit of
    the run; and TooManyErrorsError if more episodes fail than ``fail_on_error`` allows. Finished
    episodes are then on disk.
    """
    out = _evaluate(_read_arguments(dataset, agent, model, settings), quiet)
    return out if isinstance(dataset, EvalConfig) else load_run(out)


async def evaluate_async(
    dataset: str | Path,
    agent: str | Agent | AgentFactory,
    *,
    model: str | Model | ModelFunction | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Run:
    """Do what ``evaluate`` does without blocking the event loop, on which an asynchronous model
    function then runs.

    Cancelling it stops the run as Ctrl-C does; the same call with the same ``out`` plays the rest.

    >>> import asyncio
    >>> import intercode
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     out = f"{folder}/gold"
    ...     evaluation = intercode.evaluate_async("starter", "gold", limit=1, out=out, quiet=True)
    ...     print([episode.success for episode in asyncio.run(evaluation).episodes])
    [True]
    """
    loop, interrupted = asyncio.get_running_loop(), threading.Event()
    given = _read_arguments(dataset, agent, model, settings, loop)

    def play() -> Path | None:
        try:
            return _evaluate(given, quiet, interrupted)
        except KeyboardInterrupt:  # by ``interrupted``: signals reach the main thread only
            return None

    playing = asyncio.ensure_future(asyncio.to_thread(play))
    try:
        out = await asyncio.shield(playing)
    except asyncio.CancelledError:
        interrupted.set()
        await asyncio.wait([playing])
        raise
    if out is None:
        raise AssertionError("unreachable: only a cancelled run is interrupted")
    return load_run(out)


class _Given(NamedTuple):
    """What the arguments of ``evaluate`` stand for; ``agent`` is None if a name was given."""

    config: EvalConfig
    model: Model | None
    agent: object


def _evaluate(given: _Given, quiet: bool, interrupted: threading.Event | None = None) -> Path:
    plan = make_plan(given.config, given.model, given_agent=given.agent)
    try:
        return run_and_close(plan, quiet=quiet, interrupted=interrupted)
    except (BudgetError, TooManyErrorsError) as e:
        e.out = plan.out
        e.args = (f"{e}; the finished episodes are in {plan.out}: give it as out to resume",)
        raise


def _read_arguments(
    dataset: str | Path | EvalConfig,
    agent: str | Agent | AgentFactory | None,
    model: str | Model | ModelFunction | None,
    settings: Mapping[str, Any],
    loop: asyncio.AbstractEventLoop | None = None,
) -> _Given:
    own_model = None if model is None or isinstance(model, str) else as_model(model, loop)
    if isinstance(dataset, EvalConfig):
        if agent is not None or settings or isinstance(model, str):
            raise UsageError("an EvalConfig already has the agent, a model's name and the settings")
        return _Given(dataset, own_model, None)
    if not isinstance(dataset, str | Path):
        raise UsageError(
            f"dataset = {dataset!r:.80} is of type {type(dataset).__name__}: give a name such as "
            "'starter', a file's path, or module:function of a function that returns a Dataset; "
            "several datasets are played from the [grid] of a file: `intercode eval --config FILE`"
        )
    named = {"dataset": str(dataset), "agent": agent, "model": model}
    given_agent = None if agent is None or isinstance(agent, str) else agent
    if given_agent is not None:
        agent_factory(given_agent)  # raises for what is no agent
        named["agent"] = given_name(given_agent, AGENTS)
        own = getattr(given_agent, "model", None)
        own_model = own if model is None and isinstance(own, Model) else own_model
    given: dict[str, Any] = {k: v for k, v in named.items() if isinstance(v, str)}
    if settings.get("tasks") is not None:
        given["tasks"] = task_names(settings["tasks"])
    config = make_config({**settings, **given}, "the arguments of evaluate")
    return _Given(config, own_model, given_agent)


def run_plan(
    plan: Plan,
    *,
    quiet: bool = False,
    label: str = "",
    interrupted: threading.Event | None = None,
) -> Path:
    """Play a plan as ``evaluate`` does, and return its directory.

    Args:
        plan: What ``make_plan`` has returned. It stays open.
        quiet: Whether no progress is printed.
        label: A text before every line of progress.
        interrupted: If it is set meanwhile, the run stops as by Ctrl-C. None: only Ctrl-C does.

    Raises:
        SandboxUnavailableError: This machine can open no sandbox. Nothing has been written.
        UsageError: The directory cannot be written, or another run is in it or goes on in it.
        BudgetError: A limit of the run was reached.
        TooManyErrorsError: More episodes failed than ``fail_on_error`` allows.
        KeyboardInterrupt: Ctrl-C, or ``interrupted`` was set.
    """
    config, dataset = plan.config, plan.dataset
    environments = open_runner(
        config.runner,
        plan.make_env,
        dataset.environment,
        env_settings(config, dataset),
        plan.task_indices,
        config.parallel,
    )
    tracker = _open_trackers(plan)
    with make_report(describe_plan(plan), label, quiet) as report:
        with reading(plan.out):
            local, begun = config.runner == LOCAL, plan.trajectories_file.exists()
        if local:
            check_open_file_limit(config.parallel)
        if local and not begun and (chosen := require_sandboxes(plan)):
            report.note(f"sandboxes: {chosen}")  # before anything is written
        with _exclusive_lock(plan.out):
            require_same_run(plan.out, plan.metadata)  # another thread may have begun one
            create_run_directory(plan.out, plan.metadata)
            state = plan.read_state()
            pending = plan.pending_samples(state)
            plan.clean_saved(state.finished)
            if state.finished:
                count = f"{len(state.finished)} of {len(plan.samples)} episodes"
                report.note(f"{count} are finished already in {plan.out}")
            if not pending:
                return plan.out
            if local and begun and (chosen := require_sandboxes(plan)):
                report.note(f"sandboxes: {chosen}")
            history = RunHistory(plan.out)
            budget = RunBudget(config, history.earlier_usage, history.earlier_lost)
            progress = Progress(
                len(plan.samples),
                state.finished,
                usage=lambda: _total_usage(history.earlier_usage, budget.usage),
                traffic=_count_traffic(plan.model),
            )
            report.begin(progress)
            with (
                environments as make_env,
                _recorded_in_history(plan, history, budget),
                _tracked(tracker, progress, report),
                Workers(plan, budget, pending, make_env, interrupted, tracker) as workers,
            ):
                _collect(plan, workers, progress, report, tracker)
            plan.clean_saved()
    return plan.out


def run_and_close(
    plan: Plan,
    *,
    quiet: bool,
    label: str = "",
    interrupted: threading.Event | None = None,
) -> Path:
    """Do what ``run_plan`` does, then close the model that the plan has opened.

    After an error other than BudgetError it stays open: a request may be in progress, and would be
    sent again.
    """
    try:
        run_plan(plan, quiet=quiet, label=label, interrupted=interrupted)
    except BudgetError:  # all workers have ended
        plan.close()
        raise
    plan.close()
    return plan.out


def _open_trackers(plan: Plan) -> Trackers:
    """Return the trackers that a plan names. Golds are not reported: not by an agent that plays
    them, whatever is asked for."""
    config = plan.config
    names = [name for name in config.log if name != CONTENT]
    content = CONTENT in config.log and not accepts_parameter(plan.agent, "golds")
    return open_trackers(names, TrackedRun(plan.out, plan.metadata, content))


@contextmanager
def _tracked(tracker: Trackers, progress: Progress, report: Report) -> Iterator[None]:
    """Report the work in the block to the trackers."""
    tracker.note, finished = report.note, False
    tracker.begin(progress)
    try:
        yield
        finished = True
    finally:
        tracker.end(progress, finished)


def _collect(
    plan: Plan, workers: Workers, progress: Progress, report: Report, tracker: Trackers
) -> None:
    """Report what happens. Raises TooManyErrorsError, and the errors of the workers."""
    allowed = max_failed_episodes(plan.config.fail_on_error, progress.total)
    for event in workers:
        if isinstance(event, str):
            report.note(event)
        elif isinstance(event, Sample):
            progress.start(plan.episode_key(event))
        elif event is not None:
            progress.add(event)
            tracker.add(event, progress)
            if event.error is not None and progress.errors == 1:
                report.note(f"first error: {event.task}: {event.error}")
            if allowed is not None and progress.errors > allowed:
                raise TooManyErrorsError(
                    f"{progress.errors} of {progress.total} episodes ended in an error, and "
                    f"fail_on_error = {plan.config.fail_on_error} allows {allowed}; the last: "
                    f"{event.error}"
                )
        report.update()


def _total_usage(earlier: Usage, here: Usage) -> Usage:
    """Return the usage of a run. One without requests, which has no known tokens, adds none."""
    return (
        earlier + here
        if earlier.requests and here.requests
        else max(earlier, here, key=lambda usage: usage.requests)
    )


def _count_traffic(model: Model | None) -> Callable[[], Traffic | None]:
    """Return a function that counts the retries, rate limits and time-outs of a model from now
    on."""
    now = None if model is None else model.traffic()
    if model is None or now is None:
        return lambda: None
    names = ("retries", "overloads", "timeouts")
    before = {name: getattr(now, name) for name in names}
    return lambda: Traffic(**{name: getattr(now, name) - before[name] for name in names})


@contextmanager
def _recorded_in_history(plan: Plan, history: RunHistory, budget: RunBudget) -> Iterator[None]:
    """Record in the run's history when the work in the block begins and how it ends."""
    config, how = plan.config, "failed"
    history.begin(
        version=plan.metadata.get("version"),
        parallel=config.parallel,
        tasks=len(plan.task_indices),
        epochs=config.epochs,
        shuffle=config.shuffle,
        max_tokens=config.max_tokens,
        max_cost=config.max_cost,
        max_seconds=config.max_seconds,
    )
    try:
        yield
        how = "finished"
    except BaseException as e:
        how = next((text for kind, text in _ENDS.items() if isinstance(e, kind)), how)
        raise
    finally:
        history.end(how, budget.final_usage, budget.budget.lost)


_ENDS: dict[type[BaseException], str] = {
    BudgetError: "limit of the run",
    TooManyErrorsError: "too many errors",
    KeyboardInterrupt: "interrupted",
}
"""What the history of a run says of the errors that ended it, if not ``failed``."""


@contextmanager
def _exclusive_lock(out: Path) -> Iterator[None]:
    """Lock a run's directory. Raises UsageError if a run goes on in it, and if it cannot be made
    or written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("ab")
    except OSError as e:
        raise UsageError(f"cannot write to {out} ({e.strerror}): give another --out") from e
    with lock as file:
        try:
            lock_file(file, wait=False)
        except BlockingIOError as e:
            raise UsageError(
                f"another process is working in {out}, or another thread: wait, or give another "
                "--out"
            ) from e
        yield
