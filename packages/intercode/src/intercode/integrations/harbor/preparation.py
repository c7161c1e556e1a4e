"""Prepares an agent's sandbox for a Harbor task or a step of it: files, set-up, health check."""

from __future__ import annotations

from pathlib import Path

from intercode.core.errors import MissingCapabilityError, TaskSetupError, UsageError
from intercode.integrations.harbor.tasks.steps import StepConfig
from intercode.integrations.harbor.tasks.tables import HealthCheck
from intercode.integrations.harbor.tasks.task_directory import (
    SOLUTION,
    read_files,
    step_files_directory,
)
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.streams import BaseProcess
from intercode_sandbox.users import User, find_user

SETUP_SECONDS = 600.0
_SETUP_SCRIPT = "setup.sh"
_MAX_OUTPUT = 500  # characters of what a failed script printed


def find_task_user(sandbox: BaseSandbox, name: str) -> User | None:
    """Return a user that a task names; None for root, which an empty name is. Raises TaskSetupError
    if the sandbox does not have that user, or has none besides root."""
    try:
        return find_user(sandbox, name or None)
    except (UsageError, MissingCapabilityError) as e:
        raise TaskSetupError(f"the task cannot be played: {e}") from e


def give_directories(sandbox: BaseSandbox, user: User, cwd: str) -> None:
    """Give the agent's user the directory where the task begins, its home directory, and /solution
    for the task's own solution. Images keep no owners: all their files belong to root."""
    sandbox.run(["/bin/mkdir", "-p", SOLUTION])
    give_to(sandbox, user, SOLUTION, *user.own_directories, *([cwd] if cwd != "/" else []))


def give_to(sandbox: BaseSandbox, user: User, *paths: str) -> None:
    """Make a user the owner of files and directories with all that they contain."""
    sandbox.run(["/bin/chown", "-R", f"{user.uid}:{user.gid}", *paths], timeout=SETUP_SECONDS)


def prepare_step(
    sandbox: BaseSandbox, folder: Path, step: StepConfig, cwd: str, user: User | None
) -> None:
    """Write the files of a step into the directory where the task begins, run its ``setup.sh`` and
    its health check, as the agent's user.

    Raises TaskSetupError if that fails.
    """
    _set_up(sandbox, folder, step.name, cwd, user)
    if step.health_check is not None:
        run_health_check(sandbox, step.health_check, cwd, user)


def run_health_check(
    sandbox: BaseSandbox,
    check: HealthCheck,
    cwd: str,
    user: User | None = None,
    entry: BaseProcess | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Run a health check until it succeeds. Raises TaskSetupError if it fails. The message says
    whether ``entry``, the image's entry point, has ended. ``clock`` waits between two runs."""
    command, env = ["/bin/bash", "-c", check.command], _variables(sandbox, user)
    start_end = clock.now() + check.start_period
    failures = 0
    while True:
        starts = clock.now() < start_end
        try:
            result = sandbox.run(command, cwd=cwd, env=env, timeout=check.timeout, user=user)
        except OSError as e:
            raise TaskSetupError(f"the health check {check.command!r} cannot run: {e}") from e
        if result.ok:
            return
        failures += not starts
        if failures >= max(check.retries, 1) and not starts:
            ended = "timed out" if result.timed_out else f"ended with {result.exit_code}"
            if entry is not None and (code := entry.wait(0)) is not None:
                ended += f" (the image's ENTRYPOINT has ended, too, with {code})"
            raise TaskSetupError(
                f"the health check {check.command!r} failed {failures} times in a row and {ended}: "
                f"{result.output[-_MAX_OUTPUT:].strip()!r}"
            )
        clock.sleep(check.start_interval if starts else check.interval)


def _variables(sandbox: BaseSandbox, user: User | None) -> dict[str, str]:
    return {**sandbox.env, **(user.env if user else {})}


def _set_up(sandbox: BaseSandbox, folder: Path, step: str, cwd: str, user: User | None) -> None:
    files = read_files(folder, step_files_directory(step))
    top = cwd.rstrip("/")
    try:
        for name, (content, mode) in files.items():
            sandbox.write(f"{top}/{name}", content, mode)
        if user is not None:
            give_to(sandbox, user, *(f"{top}/{name.partition('/')[0]}" for name in files))
        if _SETUP_SCRIPT not in files:
            return
        result = sandbox.run(
            ["/bin/bash", f"{top}/{_SETUP_SCRIPT}"],
            cwd=cwd,
            timeout=SETUP_SECONDS,
            env=_variables(sandbox, user),
            user=user,
        )
    except OSError as e:
        raise TaskSetupError(f"step {step!r} cannot be prepared: {e}") from e
    if not result.ok:
        ended = "did not end in time" if result.timed_out else f"ended with {result.exit_code}"
        raise TaskSetupError(
            f"{_SETUP_SCRIPT} of step {step!r} {ended}: {result.output[-_MAX_OUTPUT:].strip()!r}"
        )
