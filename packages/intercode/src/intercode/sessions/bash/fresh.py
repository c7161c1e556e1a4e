"""A new bash for every action, with or without the state of the one before (``standard`` profile).

Each shell gets the state of the shell before it (see shell.py), runs one action and returns its own
state. After `exit`, `exec`, a killed shell or closed descriptors, only that action's changes to
variables and directory are lost. Background jobs stay alive; their output comes with a later
action.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial

from intercode.core.errors import SandboxError
from intercode.core.types import ExecResult
from intercode.sessions.base import SessionState, action_collector, is_infrastructure_failure
from intercode.sessions.bash.shell import (
    Shell,
    ShellEndedError,
    action_result,
    refuse,
    seed_random,
    start_shell,
)
from intercode_sandbox.clock_ticks import mark_after
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.limit_messages import with_limit_note
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import decode, drain

_GRACE_SECONDS = 0.3  # added to an action's time, to start the shell and save its state
_LOST_NOTE = "[the shell ended: this action's changes to variables and directory are lost]\n"


class FreshShellSession:
    """A session with a new bash per action; see ``Session``.

    ``carry_state``: carry over variables, functions and options too, not only the directory.
    ``shell`` is the program inside the sandbox. ``state`` is the state to start with.
    ``separate_stderr`` keeps stderr out of the output.
    """

    def __init__(
        self,
        sandbox: BaseSandbox,
        cwd: str = "/",
        shell: str = "/bin/bash",
        state: SessionState | None = None,
        carry_state: bool = True,
        separate_stderr: bool = False,
    ) -> None:
        self._sandbox, self._program = sandbox, shell
        self._carry_state, self._separate_stderr = carry_state, separate_stderr
        self._state = state or SessionState(cwd)
        self._job_outputs: list[int] = []  # pipes to which background jobs may still write
        self._last_job_mark: int | None = None

    @property
    def cwd(self) -> str:
        return self._state.cwd

    def state(self) -> SessionState:
        """Return the state that the next action's shell gets."""
        return self._state

    def state_text(self) -> str:
        """Return the saved state as text; see ``Session``."""
        return self._state.text

    def run(self, code: str, timeout: float) -> ExecResult:
        if (refused := refuse(code)) is not None:
            return refused
        return with_limit_note(self._sandbox, self._run(code, timeout), timeout)

    def _run(self, code: str, timeout: float) -> ExecResult:
        mark = mark_after(self._sandbox, self._last_job_mark)
        earlier_output = self._read_job_output()
        deadline = time.monotonic() + timeout
        try:
            shell, self._state = start_shell(
                partial(Shell, self._sandbox, self._program, self._separate_stderr, None),
                self._state,
                timeout + _GRACE_SECONDS,
            )
        except (ShellEndedError, OSError, SandboxError) as e:
            if is_infrastructure_failure(e):
                raise
            return ExecResult(earlier_output, 127, note=f"[no shell can be started: {e}]\n")
        try:
            result = self._run_action(shell, code, deadline, mark)
        finally:
            self._end_shell(shell)
        self._last_job_mark = self._sandbox.mark() if "&" in code else None
        return replace(result, output=earlier_output + result.output + self._read_job_output())

    def _run_action(self, shell: Shell, code: str, deadline: float, mark: int) -> ExecResult:
        collector = action_collector(self._sandbox)
        note = ""
        try:
            self._state = seed_random(self._sandbox, shell, self._state, deadline)
            report = shell.execute(code, collector, deadline - time.monotonic())
            status, timed_out = report[0] if report else None, report is None
            if report is None:
                self._sandbox.kill_since(mark)
            else:
                text = (
                    shell.dump_state(deadline - time.monotonic() + _GRACE_SECONDS)
                    if self._carry_state
                    else ""
                )
                self._state = replace(self._state, cwd=report[1], text=text)
        except ShellEndedError:
            shell.process.kill()
            timed_out = collector.silence.is_over(deadline)
            status = None if timed_out else shell.process.wait(_GRACE_SECONDS)
            note = _LOST_NOTE if self._carry_state else ""
        return action_result(shell, collector, status, timed_out, note)

    def _end_shell(self, shell: Shell) -> None:
        """End a shell. Keep its output open if a job still holds it."""
        with suppress(SandboxError):
            shell.process.kill()
            shell.process.wait(_GRACE_SECONDS)
        for fd in (shell.output, shell.errors):
            if fd >= 0:
                self._job_outputs.append(os.dup(fd))  # closed once no process writes to it
        shell.close()

    def _read_job_output(self) -> str:
        """Return what background jobs have printed since the last action."""
        collector = Collector(self._sandbox.spec.limits.output)
        for fd in list(self._job_outputs):
            if not drain(fd, collector):
                os.close(fd)
                self._job_outputs.remove(fd)
        return decode(collector.bytes())

    def close(self) -> None:
        while self._job_outputs:
            os.close(self._job_outputs.pop())
