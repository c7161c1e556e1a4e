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
from dataclasses import replace

from intercode.core.errors import SandboxError
from intercode.core.types import ExecResult
from intercode.sandbox.contract import Sandbox
from intercode.sandbox.limit_messages import explained
from intercode.sandbox.output import Collector, decode
from intercode.sessions.bash import shell_start
from intercode.sessions.bash.shell import START_SECONDS, Shell, ShellEndedError
from intercode.sessions.bash.shell_state import SessionState, may_end
from intercode.sessions.failures import is_ours

_GRACE = 0.3  # seconds for a shell to come back once what it waited for was killed
_DUMP_SECONDS = 2.0  # for a shell to tell its state before an action that may end it
_BEGINNING = 200  # bytes of an output in which a complaint about our script would stand
_LATER = "[the shell ended; a new one is started with the next action]\n"
_RESTARTED = "[the shell ended; a new one was started in {cwd}, {state}]\n"


class BashSession:
    """See ``Session``. ``shell`` is the program inside the sandbox; ``state`` is one to begin with,
    from ``state()`` of another session; ``apart`` keeps stderr out of the output."""

    def __init__(
        self,
        sandbox: Sandbox,
        cwd: str = "/",
        shell: str = "/bin/bash",
        state: SessionState | None = None,
        apart: bool = False,
    ) -> None:
        self._sandbox, self._program, self._apart = sandbox, shell, apart
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
            text = (self._shell or self._start()).dump()
        except ShellEndedError as e:
            raise SandboxError("the shell does not tell its state") from e
        self._state = replace(self._state, text=text)
        return self._state

    def told(self) -> str:
        """What the shell knows as text, for a fingerprint: nothing is kept of it. Empty where the
        shell is gone or does not tell."""
        try:
            return self._shell.dump() if self._shell else ""
        except ShellEndedError:
            return ""

    def _start(self, patience: float = START_SECONDS) -> Shell:
        """A new shell with the last saved state. Raises SandboxError where none comes up within
        ``patience`` seconds."""
        try:
            self._shell, self._state = shell_start.start(
                self._sandbox, self._program, self._apart, self._state, patience
            )
        except ShellEndedError as e:
            raise SandboxError(str(e)) from e
        return self._shell

    def run(self, code: str, timeout: float) -> ExecResult:
        result = explained(self._sandbox, self._run(code, timeout), timeout)
        return self._with_a_shell(result) if result.note else result

    def _run(self, code: str, timeout: float) -> ExecResult:
        if "\0" in code:
            return ExecResult("bash: the action holds a NUL byte and was not run\n", 2)
        collector = Collector(self._sandbox.spec.limits.output)
        deadline = time.monotonic() + timeout
        try:
            shell = self._shell or self._start(timeout + _GRACE)
        except (OSError, SandboxError) as e:
            return self._without_shell(collector.bytes(), e)
        try:
            if may_end(code):
                left = min(deadline - time.monotonic(), _DUMP_SECONDS)
                self._state = replace(self._state, text=shell.dump(left))
            self._state = shell_start.seed(self._sandbox, shell, self._state, deadline)
            mark = self._mark(code)
            report = shell.execute(code, collector, deadline - time.monotonic())
            timed_out = report is None
            if report is None:
                report = self._interrupt(shell, mark)
            elif report[0] == 1 and not self._was_run(shell, collector, deadline):
                raise ShellEndedError
        except ShellEndedError:
            return self._ended(shell, collector, deadline)
        self._state = replace(self._state, cwd=report[1])
        if self._may_leave_jobs:
            self._background_until = self._sandbox.mark()
        return shell_start.told(shell, collector, None if timed_out else report[0], timed_out)

    def _was_run(self, shell: Shell, collector: Collector, deadline: float) -> bool:
        """Whether an action that failed did so by itself. Where it may be that the shell could not
        even take it (it then says so on a line of our script, or nobody hears it), it is tried."""
        said = shell.said(collector)
        if said and b"bash: line " not in said[:_BEGINNING]:
            return True
        return shell.takes_actions(max(0.0, deadline - time.monotonic()) + _GRACE)

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

    def _ended(self, shell: Shell, collector: Collector, deadline: float) -> ExecResult:
        timed_out = time.monotonic() >= deadline
        shell.process.kill()
        status = shell.process.wait(_GRACE)
        result = shell_start.told(shell, collector, None if timed_out else status, timed_out)
        shell.close()
        self._shell = None
        try:
            self._start(max(0.0, deadline - time.monotonic()) + _GRACE)
        except (OSError, SandboxError) as e:
            if timed_out and not is_ours(e):
                return replace(result, note=_LATER)
            return self._without_shell(result.output.encode("utf-8", "replace"), e)
        return replace(result, note=self._restarted())

    def _with_a_shell(self, result: ExecResult) -> ExecResult:
        """A shell that a limit has ended just as its action was over is replaced now, so that this
        action tells of it and not the next one."""
        shell = self._shell
        if shell is None or shell.process.wait(0) is None:
            return result
        shell.close()
        self._shell = None
        try:
            self._start()
        except (OSError, SandboxError) as e:
            if is_ours(e):
                raise
            return replace(result, note=result.note + _LATER)
        return replace(result, note=result.note + self._restarted())

    def _restarted(self) -> str:
        kept = "with the variables it had before" if self._state.text else "without its variables"
        return _RESTARTED.format(cwd=self.cwd, state=kept)

    def _without_shell(self, printed: bytes, error: Exception) -> ExecResult:
        """What the agent is told that has made its own shell impossible. Raises the error where
        it is ours."""
        if is_ours(error):
            raise error
        return ExecResult(decode(printed), 127, note=f"[no shell can be started: {error}]\n")

    def close(self) -> None:
        if self._shell is not None:
            self._shell.process.kill()
            self._shell.close()
            self._shell = None
