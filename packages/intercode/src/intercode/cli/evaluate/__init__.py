"""``intercode eval``: an agent plays a dataset, once or in an experiment of many runs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from intercode.cli.evaluate.options import ARGUMENTS, RENAMED, SETTINGS, read_settings
from intercode.cli.output import log_warnings, temporary_line
from intercode.core.config import make_config
from intercode.core.errors import (
    BudgetError,
    InterCodeError,
    SandboxUnavailableError,
    TooManyErrorsError,
    UsageError,
)
from intercode_sandbox.command.output import log
from intercode_sandbox.command.parser import given_options

if TYPE_CHECKING:
    from intercode.core.types import ActionError
    from intercode.evaluation.evaluate.grid import Grid
    from intercode.evaluation.evaluate.plan import Plan

__all__ = ["ARGUMENTS", "RENAMED", "SETTINGS", "handle"]

MAX_SHOWN_ERRORS = 3
FAILED, ERRORS_LEFT, STOPPED = 1, 3, 4
"""Exit statuses: a run of an experiment failed; some episodes ended in an error; the run stopped
early, at a limit or by --fail-on-error."""

EXAMPLE = """\
examples:
  intercode eval starter --agent gold
      plays the starter tasks with their own solutions: shows that this machine works
  intercode eval starter --agent try-again --model openai/gpt-4o-mini --parallel 8
  intercode eval starter --agent try-again --model my-model --base-url http://localhost:8000/v1
      a model of your own behind any OpenAI-compatible address
  intercode eval starter --agent react --model openai/gpt-4o-mini --epochs 4 --max-cost 2 --dry-run
      prints what it costs at most, and plays nothing; --pilot 5 in its place plays 5 episodes and
      prints what the rest will likely cost
  intercode eval --config experiment.toml
      several datasets, agents, models: lists in a table [grid], such as
      dataset = ["starter:bash", "starter:sql"]

To resume a run that was stopped (Ctrl-C, kill, power cut), give the same command with the same
--out, or intercode eval --resume DIR. Only what is missing is played. To replay a run exactly, play
it with --set deterministic=true.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but some episodes ended in an error, 4 stopped
early (a limit, or --fail-on-error), 130 Ctrl-C."""


SEVERAL = "several datasets are played from the [grid] of a file: --config FILE"


def handle(args: argparse.Namespace) -> int:
    """Play the run or the experiment, then print its tables and its directory."""
    given = given_options(args)
    dry, file = given.pop("dry_run", False), given.get("config")
    pilot = given.pop("pilot", 0)
    if dry and pilot:
        raise UsageError("--pilot plays episodes and --dry-run none: give one of them")
    values = read_settings(given)
    if values.get("grid"):
        return _run_grid(values, file, dry, pilot)
    values.pop("grid", None)
    return _run(values, dry, file, pilot)


def _run(values: dict[str, Any], dry: bool, file: str | Path | None, pilot: int) -> int:
    from intercode.cli.evaluate import dry_run
    from intercode.evaluation.evaluate.plan import make_plan
    from intercode.evaluation.evaluate.run import run_plan
    from intercode.results import report

    config = make_config(values, str(file) if file else "the settings")
    if config.out is not None and config.out.exists() and not config.out.is_dir():
        raise UsageError(f"--out {config.out} is a file; name a directory")
    try:
        model = f" with {config.model}" if config.model else ""
        with temporary_line(f"loading {config.dataset} for {config.agent}{model} ..."):
            plan = make_plan(config, needs_key=not dry)
    except SandboxUnavailableError as e:
        from intercode.evaluation.evaluate.sandbox_check import with_remedy

        raise with_remedy(e, config.backend) from e
    log_warnings(plan.dataset)
    asked = config.sample or config.limit or 0
    if asked > len(plan.task_indices):
        log(f"{asked} tasks are asked for, and there are only {len(plan.task_indices)}")
    if config.model is not None and plan.model is None:
        log(f"the agent {config.agent} uses no model: --model {config.model} has no effect")
    if dry:
        dry_run.print_estimate(plan)
        return 0
    stopped: InterCodeError | None = None
    try:
        if pilot:
            _play_pilot(plan, pilot)
        else:
            run_plan(plan)
    except KeyboardInterrupt:
        log(f"\nstopped; `intercode eval --resume {plan.out}` plays the rest")
        raise
    except (BudgetError, TooManyErrorsError) as e:
        stopped = e
    if pilot:
        dry_run.print_estimate(plan)
    else:
        if plan.trajectories_file.exists():
            print(report.render(report.build([plan.out])))
        print(f"Trajectories: {plan.trajectories_file}\nSettings:     {plan.out / 'run.json'}")
    errors = _print_errors(plan)
    if stopped is not None:
        log(_stop_message(stopped, plan))
        return STOPPED
    return ERRORS_LEFT if errors else 0


def _play_pilot(plan: Plan, episodes: int, label: str = "pilot: ") -> None:
    """Play a pilot, or say why nothing is played. Raises what ``run_plan`` raises."""
    from intercode.evaluation.evaluate.likely_usage import play_pilot

    if why := play_pilot(plan, episodes, label):
        log(f"{label}nothing is played: {why}")


def _stop_message(error: InterCodeError, plan: Plan) -> str:
    left = len(plan.pending_samples())
    change = "a higher limit" if isinstance(error, BudgetError) else "the cause fixed"
    return (
        f"stopped with {left} of {len(plan.samples)} episodes still to be played: {error}\n"
        f"The same command with --out {plan.out} and {change} resumes it."
    )


def _print_errors(plan: Plan) -> bool:
    """Print the errors of the episodes on disk. Return whether there are any, for an agent that
    plays golds also those that an action has caused."""
    from intercode.agents import accepts_parameter

    errors, caused = plan.episode_errors(), plan.action_errors()
    if errors:
        log(_error_summary(errors, plan.out))
    if caused:
        log(_action_error_summary(caused, plan.out))
    return bool(errors or (caused and accepts_parameter(plan.config.agent, "golds")))


def _action_error_summary(errors: Sequence[ActionError], out: Path) -> str:
    """Return how many episodes an exception in the path of an action has ended, and which."""
    texts = (" ".join(str(error).split()) for error in errors)
    lines = [f"action errors in {len(errors)} of the episodes (not solved, not played again):"]
    for text, times in Counter(texts).most_common(MAX_SHOWN_ERRORS):
        lines.append(f"  {times} x {text}")
    show = f"`intercode show {out} TASK` prints"
    if any(error.reward for error in errors):
        lines.append(
            "The reward function must give every state a Score, also one that it does not expect: "
            f"{show} where it failed."
        )
    if not all(error.reward for error in errors):
        lines.append(
            "An action caused an exception while the machine worked. This may be a fault of "
            f"InterCode: {show} its trace; please report it."
        )
    return "\n".join(lines)


def _error_summary(texts: Sequence[str], out: Path) -> str:
    """Return how many episodes had errors, the most frequent errors, and what to do."""
    lines = [f"errors in {len(texts)} of the episodes (counted as not solved):"]
    for text, times in Counter(" ".join(t.split()) for t in texts).most_common(MAX_SHOWN_ERRORS):
        lines.append(f"  {times} x {text}")
    if any(text.startswith("Sandbox") for text in texts):
        lines.append("`intercode doctor` prints what this machine lacks.")
    lines.append(
        f"`intercode show {out} TASK` prints such an episode, with the traceback of an error in "
        "your code."
    )
    return "\n".join([*lines, f"The same command with --out {out} plays these again."])


def _run_grid(values: dict[str, Any], file: Path | None, dry: bool, pilot: int) -> int:
    from intercode.evaluation.evaluate.grid import read_grid, run_grid
    from intercode.results import report

    name = file.stem if file is not None else "experiment"
    out = Path(values.get("out") or Path("runs") / name).expanduser()
    grid = read_grid(values, out, str(file or "the settings"))
    if dry or pilot:
        return _estimate_grid(grid, pilot)
    results = run_grid(grid, log=log, on_dataset=log_warnings)
    if any(out.glob("*/trajectories.jsonl")):
        print(report.render(report.build([out])))
    states = [result.state for result in results]
    summary = ", ".join(f"{n} {state}" for state, n in Counter(states).items())
    print(f"{len(results)} runs in {out}: {summary}")
    if set(states) - {"done"}:
        cause = "Once the cause is removed, the" if "failed" in states else "The"
        log(f"{cause} same command plays what is missing.")
    return _worst_status(states)


def _worst_status(states: Sequence[str]) -> int:
    worst = {"failed": FAILED, "stopped": STOPPED, "errors": ERRORS_LEFT}
    return next((status for state, status in worst.items() if state in states), 0)


def _estimate_grid(grid: Grid, pilot: int) -> int:
    from intercode.cli.evaluate import dry_run
    from intercode.evaluation.evaluate.grid import SOME_RUNS_HINT, make_plans

    estimates, states, datasets, notes = [], [], set[str](), set[str]()
    for cell, plan in make_plans(grid, needs_key=bool(pilot)):
        if isinstance(plan, InterCodeError):
            states.append("failed")
            log(f"{cell.name} cannot be played: {plan}")
            continue
        if plan.dataset.name not in datasets:
            datasets.add(plan.dataset.name)
            log_warnings(plan.dataset)
        if pilot:
            states.append(_pilot_state(plan, pilot, f"{cell.name}, pilot: "))
        estimates.append(dry_run.print_estimate(plan, cell.name, notes))
    if "failed" in states and not pilot:
        log(SOME_RUNS_HINT)
    dry_run.print_total(estimates)
    return _worst_status(states)


def _pilot_state(plan: Plan, episodes: int, label: str) -> str:
    """Play a pilot of one run of an experiment, and return how it ended."""
    try:
        _play_pilot(plan, episodes, label)
    except (BudgetError, TooManyErrorsError) as e:
        log(f"{label}stopped: {e}")
        return "stopped"
    except (InterCodeError, OSError) as e:
        log(f"{label}failed: {type(e).__name__}: {e}")
        return "failed"
    errors = _print_errors(plan)
    return "errors" if errors else "done"
