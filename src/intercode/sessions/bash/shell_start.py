"""A shell that comes up in time and knows what the one before it knew."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from intercode.core.types import ExecResult
from intercode.sandbox.contract import Sandbox
from intercode.sandbox.output import Collector, decode
from intercode.sessions.bash.shell import Shell, ShellEndedError
from intercode.sessions.bash.shell_state import SessionState


def start_shell(
    sandbox: Sandbox, program: str, separate_stderr: bool, state: SessionState, timeout: float
) -> tuple[Shell, SessionState]:
    """A new shell, and what it knows: ``state``, or no more than its directory where no shell
    comes up with the rest in half of ``patience`` (seconds).

    Raises ShellEndedError where none comes up in time, FileNotFoundError and PermissionError where
    ``program`` cannot be run.
    """
    until = time.monotonic() + timeout
    if state.text:
        with suppress(ShellEndedError):
            return _try_start(sandbox, program, separate_stderr, state, timeout / 2)
        state = replace(state, text="")
    return _try_start(sandbox, program, separate_stderr, state, until - time.monotonic())


def _try_start(
    sandbox: Sandbox, program: str, separate_stderr: bool, state: SessionState, timeout: float
) -> tuple[Shell, SessionState]:
    until = time.monotonic() + timeout
    shell = Shell(sandbox, program, separate_stderr)
    try:
        report = shell.initialize(state.cwd, timeout)
        if report and state.text:
            report = shell.restore(state.text, until - time.monotonic())
        if report is None:
            raise ShellEndedError(f"{program} did not start within {timeout:.2g} s")
    except BaseException:
        shell.process.kill()
        shell.close()
        raise
    return shell, replace(state, cwd=report[1])


def seed_random(
    sandbox: Sandbox, shell: Shell, state: SessionState, deadline: float
) -> SessionState:
    """In a deterministic box ``$RANDOM`` depends on the number of the action alone, so that neither
    a restored shell nor one that was asked for its state goes other ways. Gives the state with the
    action counted."""
    if (settings := sandbox.spec.determinism) is None:
        return state
    counted = replace(state, actions=state.actions + 1)
    shell.seed(settings.random_seed_for(counted.actions), deadline - time.monotonic())
    return counted


def action_result(
    shell: Shell, collector: Collector, status: int | None, timed_out: bool, note: str = ""
) -> ExecResult:
    """What an action printed and how it ended."""
    said, complained = decode(shell.read_output(collector)), shell.read_stderr()
    cut = collector.dropped + shell.stderr_collector.dropped
    return ExecResult(said, status, timed_out, cut, complained, note)
