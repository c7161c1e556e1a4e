"""One bash that lives as long as the episode: variables, functions, options, directory and
background jobs carry over from action to action.

The shell reads a script that never ends from a pipe, in which every action is sourced, so that
`break`, `return` and unterminated quotes end the action and not the loop. After each action it
reports the exit status and its directory on a socket of its own, behind a token made for that
action. Anything else that arrives there means that the shell can no longer be trusted. A shell that
has ended, or is not to be trusted, is replaced by a new one in the same directory, with the
variables and functions that it had before the action where they were saved; the observation says
so.
"""

from __future__ import annotations

import time

from intercode.errors import SandboxError, SandboxLostError
from intercode.sandboxes.base import Sandbox
from intercode.sandboxes.breaches import explained
from intercode.sandboxes.output import Collector, decode
from intercode.sessions.shell import START_SECONDS, Shell, ShellEndedError
from intercode.sessions.shell_state import SessionState, may_end
from intercode.types import ExecResult

_GRACE = 0.3  # seconds for a shell to come back once what it waited for was killed
_RESTARTED = "[the shell ended; a new one was started in {cwd}, {state}]\n"


class BashSession:
    """See ``Session``. ``shell`` is the program inside the sandbox; ``state`` is one to begin with,
    from ``state()`` of another session."""

    def __init__(
        self,
        sandbox: Sandbox,
        cwd: str = "/",
        shell: str = "/bin/bash",
        state: SessionState | None = None,
    ) -> None:
        self._sandbox, self._program = sandbox, shell
        self._state = state or SessionState(cwd)
        self._shell: Shell | None = None
        self._background_until: int | None = None
        self._may_leave_jobs = False
        try:
            self._start()
        except (FileNotFoundError, PermissionError) as e:
            raise SandboxError(f"the image has no usable shell: {e}") from e

    @property
    def cwd(self) -> str:
        return self._state.cwd

    def state(self) -> SessionState:
        """What could be given to another session (see shell_state for what is not carried)."""
        try:
            self._state = SessionState(self.cwd, (self._shell or self._start()).dump())
        except ShellEndedError as e:
            raise SandboxError("the shell does not tell its state") from e
        return self._state

    def _start(self) -> Shell:
        """A new shell with the last saved state. Raises SandboxError where none comes up."""
        self._shell = shell = Shell(self._sandbox, self._program)
        try:
            report = shell.start_in(self.cwd)
            if report and self._state.text:
                report = shell.restore(self._state.text)
        except ShellEndedError as e:
            raise SandboxError(f"{self._program} ended at once: is it in the image?") from e
        if report is None:
            raise SandboxError(f"{self._program} did not start within {START_SECONDS:g} s")
        self._state = SessionState(report[1], self._state.text)
        return shell

    def run(self, code: str, timeout: float) -> ExecResult:
        return explained(self._sandbox, self._run(code, timeout), timeout)

    def _run(self, code: str, timeout: float) -> ExecResult:
        if "\0" in code:
            return ExecResult("bash: the action holds a NUL byte and was not run\n", 2)
        collector = Collector(self._sandbox.spec.limits.output)
        try:
            shell = self._shell or self._start()
        except (FileNotFoundError, PermissionError, SandboxError) as e:
            return self._without_shell(collector.bytes(), e)
        deadline = time.monotonic() + timeout
        try:
            if may_end(code):
                self._state = SessionState(self.cwd, shell.dump())
            mark = self._mark(code)
            report = shell.execute(code, collector, timeout)
            timed_out = report is None
            if report is None:
                report = self._interrupt(shell, mark)
        except ShellEndedError:
            return self._ended(shell, collector, time.monotonic() >= deadline)
        self._state = SessionState(report[1], self._state.text)
        if self._may_leave_jobs:
            self._background_until = self._sandbox.mark()
        return _result(shell, collector, None if timed_out else report[0], timed_out)

    def _mark(self, code: str) -> int:
        """A point in time that jobs of the last action lie before: a process's start is known to
        a clock tick only, so where there may be such a job the next tick is waited for."""
        while self._background_until == (mark := self._sandbox.mark()):
            time.sleep(0.001)
        self._background_until = None
        self._may_leave_jobs = "&" in code
        return mark

    def _interrupt(self, shell: Shell, mark: int) -> tuple[int, str]:
        """Make the shell give up the action, and keep it, or raise ShellEndedError."""
        shell.stop()
        self._sandbox.kill_since(mark, keep=[shell.process.pid])
        report = shell.go_on(_GRACE)
        if report is None:  # something was started between the two
            self._sandbox.kill_since(mark, keep=[shell.process.pid])
            report = shell.go_on(_GRACE)
        if report is None:
            raise ShellEndedError
        return report

    def _ended(self, shell: Shell, collector: Collector, timed_out: bool) -> ExecResult:
        shell.process.kill()
        status = shell.process.wait(START_SECONDS)
        result = _result(shell, collector, None if timed_out else status, timed_out)
        shell.close()
        self._shell = None
        try:
            self._start()
        except (FileNotFoundError, PermissionError, SandboxError) as e:
            return self._without_shell(result.output.encode("utf-8", "replace"), e)
        kept = "with the variables it had before" if self._state.text else "without its variables"
        note = _RESTARTED.format(cwd=self.cwd, state=kept)
        return ExecResult(result.output + note, result.exit_code, timed_out, result.cut)

    def _without_shell(self, printed: bytes, error: Exception) -> ExecResult:
        """What the agent is told that has made its own shell impossible. Raises the error where
        it is the box that failed."""
        if isinstance(error, SandboxLostError):
            raise error
        return ExecResult(f"{decode(printed)}[no shell can be started: {error}]\n", 127)

    def close(self) -> None:
        if self._shell is not None:
            self._shell.process.kill()
            self._shell.close()
            self._shell = None


def _result(shell: Shell, collector: Collector, status: int | None, timed_out: bool) -> ExecResult:
    return ExecResult(decode(shell.said(collector)), status, timed_out, collector.cut)
