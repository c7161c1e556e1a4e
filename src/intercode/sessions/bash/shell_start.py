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


def start(
    sandbox: Sandbox, program: str, apart: bool, state: SessionState, patience: float
) -> tuple[Shell, SessionState]:
    """A new shell, and what it knows: ``state``, or no more than its directory where no shell
    comes up with the rest in half of ``patience`` (seconds).

    Raises ShellEndedError where none comes up in time, FileNotFoundError and PermissionError where
    ``program`` cannot be run.
    """
    until = time.monotonic() + patience
    if state.text:
        with suppress(ShellEndedError):
            return _try(sandbox, program, apart, state, patience / 2)
        state = replace(state, text="")
    return _try(sandbox, program, apart, state, until - time.monotonic())


def _try(
    sandbox: Sandbox, program: str, apart: bool, state: SessionState, patience: float
) -> tuple[Shell, SessionState]:
    until = time.monotonic() + patience
    shell = Shell(sandbox, program, apart)
    try:
        report = shell.start_in(state.cwd, patience)
        if report and state.text:
            report = shell.restore(state.text, until - time.monotonic())
        if report is None:
            raise ShellEndedError(f"{program} did not start within {patience:.2g} s")
    except BaseException:
        shell.process.kill()
        shell.close()
        raise
    return shell, replace(state, cwd=report[1])


def seed(sandbox: Sandbox, shell: Shell, state: SessionState, deadline: float) -> SessionState:
    """In a deterministic box ``$RANDOM`` depends on the number of the action alone, so that neither
    a restored shell nor one that was asked for its state goes other ways. Gives the state with the
    action counted."""
    if (settings := sandbox.spec.determinism) is None:
        return state
    counted = replace(state, actions=state.actions + 1)
    shell.seed(settings.random_for(counted.actions), deadline - time.monotonic())
    return counted


def told(
    shell: Shell, collector: Collector, status: int | None, timed_out: bool, note: str = ""
) -> ExecResult:
    """What an action printed and how it ended."""
    said, complained = decode(shell.said(collector)), shell.complained()
    cut = collector.cut + shell.complaints.cut
    return ExecResult(said, status, timed_out, cut, complained, note)
