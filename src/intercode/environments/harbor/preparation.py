"""Prepares an agent's sandbox for a Harbor task or a step of it: files, set-up, health check."""

from __future__ import annotations

import time
from pathlib import Path

from intercode.core.errors import TaskSetupError
from intercode.datasets.harbor.health_check import HealthCheck
from intercode.datasets.harbor.steps import StepConfig
from intercode.datasets.harbor.task_directory import read_files, step_files_directory
from intercode.sandbox.contract import BaseSandbox

SETUP_SECONDS = 600.0
_SETUP_SCRIPT = "setup.sh"
_MAX_OUTPUT = 500  # characters of what a failed script printed


def prepare_step(sandbox: BaseSandbox, folder: Path, step: StepConfig, cwd: str) -> None:
    """Write the files of a step into the directory where the task begins, run its ``setup.sh`` and
    its health check.

    Raises TaskSetupError if that fails.
    """
    _set_up(sandbox, folder, step.name, cwd)
    if step.health_check is not None:
        run_health_check(sandbox, step.health_check, cwd)


def run_health_check(sandbox: BaseSandbox, check: HealthCheck, cwd: str) -> None:
    """Run a health check until it succeeds. Raises TaskSetupError if it fails."""
    start_end = time.monotonic() + check.start_period
    failures = 0
    while True:
        starts = time.monotonic() < start_end
        try:
            result = sandbox.run(["/bin/bash", "-c", check.command], cwd=cwd, timeout=check.timeout)
        except OSError as e:
            raise TaskSetupError(f"the health check {check.command!r} cannot run: {e}") from e
        if result.ok:
            return
        failures += not starts
        if failures >= max(check.retries, 1) and not starts:
            ended = "timed out" if result.timed_out else f"ended with {result.exit_code}"
            raise TaskSetupError(
                f"the health check {check.command!r} failed {failures} times in a row and {ended}: "
                f"{result.output[-_MAX_OUTPUT:].strip()!r}"
            )
        time.sleep(check.start_interval if starts else check.interval)


def _set_up(sandbox: BaseSandbox, folder: Path, step: str, cwd: str) -> None:
    files = read_files(folder, step_files_directory(step))
    top = cwd.rstrip("/")
    try:
        for name, (content, mode) in files.items():
            sandbox.write(f"{top}/{name}", content, mode)
        if _SETUP_SCRIPT not in files:
            return
        result = sandbox.run(
            ["/bin/bash", f"{top}/{_SETUP_SCRIPT}"], cwd=cwd, timeout=SETUP_SECONDS
        )
    except OSError as e:
        raise TaskSetupError(f"step {step!r} cannot be prepared: {e}") from e
    if not result.ok:
        ended = "did not end in time" if result.timed_out else f"ended with {result.exit_code}"
        raise TaskSetupError(
            f"{_SETUP_SCRIPT} of step {step!r} {ended}: {result.output[-_MAX_OUTPUT:].strip()!r}"
        )
