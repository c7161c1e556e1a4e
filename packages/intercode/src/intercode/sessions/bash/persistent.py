"""One bash for the whole episode: variables, functions, options, directory and background jobs
carry over from action to action.

The shell reads an endless script from a pipe. It sources every action, so that `break`, `return`
and unterminated quotes end the action and not the loop. After each action it reports the exit
status and its directory on a socket of its own, marked with a token of that action. Anything else
that arrives on the socket means that the shell can no longer be trusted.

A shell that has ended, or is not trusted, is replaced by a new one in the same directory. The new
shell gets the variables and functions from before the action if they were saved. The observation
says that this happened.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from intercode.core.errors import SandboxError
from intercode.core.types import ExecResult
from intercode.sessions.base import SessionState, action_collector, is_infrastructure_failure
from intercode.sessions.bash.scripts import split_debug_trap
from intercode.sessions.bash.shell import (
    START_SECONDS,
    Shell,
    ShellEndedError,
    action_result,
    may_end_shell,
    refuse,
    seed_random,
    start_shell,
)
from intercode_sandbox.clock_ticks import mark_after
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.limit_messages import with_limit_note
from intercode_sandbox.long_output import Collector
from intercode_sandbox.streams import decode
from intercode_sandbox.users import User

_GRACE_SECONDS = 0.3  # time for a shell to report after its command was killed
_DUMP_SECONDS = 2.0  # time for a shell to write its state before a risky action
_ERROR_PREFIX_BYTES = 200  # start of an output, searched for an error about our script
_RESTART_LATER_NOTE = "[the shell ended; a new one is started with the next action]\n"
_RESTARTED_NOTE = "[the shell ended; a new one was started in {cwd}, {state}]\n"


class BashSession:
    """A session in one bash; see ``Session``.

    ``shell`` is the program inside the sandbox. ``state`` comes from ``state()`` of another
    session. ``separate_stderr`` keeps stderr out of the output. ``user`` runs the shell; None is
    root.
    """

    ends_with_sandbox = True

    def __init__(
        self,
        sandbox: BaseSandbox,
        cwd: str = "/",
        shell: str = "/bin/bash",
        state: SessionState | None = None,
        separate_stderr: bool = False,
        user: User | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._start_program = partial(Shell, sandbox, shell, separate_stderr, user)
        self._state = state or SessionState(cwd)
        self._shell: Shell | None = None
        self._has_just_ended = False  # the shell, during the last action
        self._last_job_mark: int | None = None
        self._may_leave_jobs = False
        try:
            self._start()
        except (FileNotFoundError, PermissionError) as e:
            raise SandboxError(f"the image has no usable shell: {e}") from e

    @property
    def cwd(self) -> str:
        return self._state.cwd

    def state(self) -> SessionState:
        """Return the state for another session. See shell.py for what it does not hold."""
        try:
            text = (self._shell or self._start()).dump_state()
        except ShellEndedError as e:
            raise SandboxError("the shell did not answer the request for its state") from e
        self._state = replace(self._state, text=text)
        return self._state

    def state_text(self) -> str:
        """Return the state of the shell as text, empty if the shell is gone or does not answer."""
        try:
            return self._shell.dump_state() if self._shell else ""
        except ShellEndedError:
            return ""

    def _start(self, timeout: float = START_SECONDS) -> Shell:
        """Start a shell with the last saved state. Raises SandboxError if none starts within
        ``timeout`` seconds."""
        try:
            self._shell, self._state = start_shell(self._start_program, self._state, timeout)
        except ShellEndedError as e:
            raise SandboxError(str(e)) from e
        return self._shell

    def run(self, code: str, timeout: float) -> ExecResult:
        result = with_limit_note(self._sandbox, self._run(code, timeout), timeout)
        return self._ensure_shell(result) if result.note else result

    def _run(self, code: str, timeout: float) -> ExecResult:
        if (refused := refuse(code)) is not None:
            return refused
        collector = action_collector(self._sandbox)
        deadline = time.monotonic() + timeout
        try:
            shell, note = self._shell or self._start(timeout + _GRACE_SECONDS), ""
        except (OSError, SandboxError) as e:
            return self._no_shell_result(collector.bytes(), e)
        try:
            if shell.is_quiet or may_end_shell(code):
                left = min(deadline - time.monotonic(), _DUMP_SECONDS)
                self._state = replace(self._state, text=shell.dump_state(left))
        except ShellEndedError:
            restarted = self._replace_ended_shell(shell, Collector(0), deadline)
            if self._shell is None:
                return restarted
            shell, note = self._shell, restarted.note
        try:
            self._state = seed_random(self._sandbox, shell, self._state, deadline)
            mark = self._mark_after_jobs(code)
            report = shell.execute(code, collector, deadline - time.monotonic())
            timed_out = report is None
            if report is None:
                report = self._interrupt(shell, mark)
            elif report[0] == 1 and not self._action_was_executed(shell, collector, deadline):
                raise ShellEndedError
        except ShellEndedError:
            result = self._replace_ended_shell(shell, collector, deadline)
            return replace(result, note=note + result.note)
        self._has_just_ended = False
        if report[1] != self._state.cwd:
            self._state = replace(self._state, cwd=report[1])
        if self._may_leave_jobs:
            self._last_job_mark = self._sandbox.mark()
        return action_result(shell, collector, None if timed_out else report[0], timed_out, note)

    def _action_was_executed(self, shell: Shell, collector: Collector, deadline: float) -> bool:
        """Return whether an action with exit status 1 was run at all.

        A shell that could not run it prints an error about our script, or prints nothing. In both
        cases a test script is sent.
        """
        output = shell.read_output(collector)
        if output and b"bash: line " not in output[:_ERROR_PREFIX_BYTES]:
            return True
        return shell.accepts_actions(max(0.0, deadline - time.monotonic()) + _GRACE_SECONDS)

    def _mark_after_jobs(self, code: str) -> int:
        """Return a time after the start of all jobs of the last action."""
        mark = mark_after(self._sandbox, self._last_job_mark)
        self._last_job_mark = None
        self._may_leave_jobs = "&" in code
        return mark

    def _interrupt(self, shell: Shell, mark: int) -> tuple[int, str]:
        """Make the shell give up the action and stay alive, or raise ShellEndedError."""
        if not shell.is_armed:
            shell.process.kill()  # first: it would go on with the action
            self._sandbox.kill_since(mark)
            raise ShellEndedError
        shell.stop()
        self._sandbox.kill_since(mark, keep=[shell.process.pid])
        report = shell.resume_after_stop(_GRACE_SECONDS)
        if report is None:  # the action started another process between the two calls
            self._sandbox.kill_since(mark, keep=[shell.process.pid])
            report = shell.resume_after_stop(_GRACE_SECONDS / 2)
        if report is None:
            raise ShellEndedError
        return report

    def _replace_ended_shell(
        self, shell: Shell, collector: Collector, deadline: float
    ) -> ExecResult:
        timed_out = collector.silence.is_over(deadline)
        shell.process.kill()
        status = None if timed_out else shell.process.wait(_GRACE_SECONDS)
        result = action_result(shell, collector, status, timed_out)
        shell.close()
        self._shell = None
        if self._has_just_ended:  # a DEBUG trap that exits would end each new one
            self._state = replace(self._state, text=split_debug_trap(self._state.text)[0])
        self._has_just_ended = True
        try:
            self._start(max(0.0, deadline - time.monotonic()) + _GRACE_SECONDS)
        except (OSError, SandboxError) as e:
            if timed_out and not is_infrastructure_failure(e):
                return replace(result, note=_RESTART_LATER_NOTE)
            return self._no_shell_result(result.output.encode("utf-8", "replace"), e)
        return replace(result, note=self._restart_note())

    def _ensure_shell(self, result: ExecResult) -> ExecResult:
        """Replace a shell that a limit killed just after its action, so that this action reports it
        and not the next one."""
        shell = self._shell
        if shell is None or shell.process.wait(0) is None:
            return result
        shell.close()
        self._shell = None
        try:
            self._start()
        except (OSError, SandboxError) as e:
            if is_infrastructure_failure(e):
                raise
            return replace(result, note=result.note + _RESTART_LATER_NOTE)
        return replace(result, note=result.note + self._restart_note())

    def _restart_note(self) -> str:
        state = "with the variables it had before" if self._state.text else "without its variables"
        return _RESTARTED_NOTE.format(cwd=self.cwd, state=state)

    def _no_shell_result(self, printed: bytes, error: Exception) -> ExecResult:
        """Return the result if the agent has made it impossible to start a shell. Raises the error
        if the machine is the cause."""
        if is_infrastructure_failure(error):
            raise error
        return ExecResult(decode(printed), 127, note=f"[no shell can be started: {error}]\n")

    def close(self) -> None:
        shell, self._shell = self._shell, None  # another thread may close it at the same time
        if shell is not None:
            shell.process.kill()
            shell.close()
