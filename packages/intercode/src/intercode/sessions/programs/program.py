"""Sessions that run programs: an action is a whole program, which is written to a file, compiled
and run. The language is any of ``core/languages.py``."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace

from intercode.core.errors import SandboxError
from intercode.core.languages import PROGRAM_DIRECTORY, Language, expand_arguments
from intercode.core.types import ExecResult
from intercode.sessions.base import SessionState, is_infrastructure_failure
from intercode.sessions.paths import to_programs
from intercode.sessions.programs.repl import missing_language_message
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.limit_messages import with_limit_note
from intercode_sandbox.long_output import Collector
from intercode_sandbox.silence import Silence
from intercode_sandbox.streams import BaseProcess, communicate, decode, memory_file

RERUN_COMMAND = "run"
"""An action that begins with this line runs the last program again, and its other lines are the
program's standard input."""
_NO_PROGRAM_MESSAGE = "there is no program yet: write one first\n"


class ProgramSession:
    """A session whose actions are programs; see ``Session``.

    ``stdin`` is the text on the standard input of a program. When a program ends, all processes
    that it started are killed.

    >>> from intercode.core import Language
    >>> from intercode.sessions import ProgramSession
    >>> from intercode_sandbox import SandboxSpec, open_sandbox, resolve_image
    >>> awk = Language("Awk", "main.awk", run=("awk", "-f", "{home}/main.awk"))
    >>> with open_sandbox(SandboxSpec(resolve_image("host"))) as sandbox:
    ...     ProgramSession(sandbox, awk).run("BEGIN { print 6 * 7 }", timeout=10).output
    '42\\n'
    """

    def __init__(
        self,
        sandbox: BaseSandbox,
        language: Language,
        cwd: str = "/",
        stdin: str = "",
        state: SessionState | None = None,
    ) -> None:
        self._sandbox, self.language, self._stdin = sandbox, language, stdin
        self._cwd = state.cwd if state else cwd
        self.program: str | None = (state.text or None) if state else None
        self._has_run = self.program is not None

    @property
    def cwd(self) -> str:
        return self._cwd

    @property
    def _program_directory(self) -> str:
        """The path at which programs see their directory."""
        return to_programs(self._sandbox, PROGRAM_DIRECTORY)

    def state(self) -> SessionState:
        """Return the directory and the last program."""
        return SessionState(self._cwd, self.program or "")

    def state_text(self) -> str:
        """Return an empty text: a program leaves no state except files."""
        return ""

    def run(self, code: str, timeout: float) -> ExecResult:
        return with_limit_note(self._sandbox, self._run(code, timeout), timeout)

    def _run(self, code: str, timeout: float) -> ExecResult:
        deadline, mark = time.monotonic() + timeout, self._sandbox.mark()
        first, _, rest = code.partition("\n")
        rerun = first.strip() == RERUN_COMMAND
        if rerun and self.program is None:
            return ExecResult(_NO_PROGRAM_MESSAGE, 1)
        built, stdin = ExecResult("", 0), rest if rerun else self._stdin
        try:
            if not rerun:
                self.program = code
                built = self.build(code, timeout)
            if not built.ok:
                return built
            left = deadline - time.monotonic()
            ran = self._run_program(self.language.run, self._cwd, stdin, left)
        except OSError as e:
            if is_infrastructure_failure(e):
                raise
            return ExecResult(f"{built.output}the program cannot be run: {e}\n", 127)
        finally:
            self._sandbox.kill_since(mark)
        return _join_results(built, ran)

    def build(self, code: str, timeout: float) -> ExecResult:
        """Write a program to its file, and compile it if the language has a compiler.

        Raises OSError, or SandboxError if the image lacks the compiler.
        """
        if self.language.compile and self._has_run:  # otherwise the old program would run
            self._sandbox.run_bytes(["rm", "-rf", "--", self._program_directory], timeout=timeout)
        self._sandbox.write(f"{PROGRAM_DIRECTORY}/{self.language.source}", _encode(code))
        if not self.language.compile:
            return ExecResult("", 0)
        # the next build removes the temporary files of a compiler that was killed
        env = {**self._sandbox.env, "TMPDIR": self._program_directory}
        return self._run_program(self.language.compile, PROGRAM_DIRECTORY, "", timeout, env)

    def _run_program(
        self,
        argv: tuple[str, ...],
        cwd: str,
        stdin: str,
        timeout: float,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        argv_expanded, data = expand_arguments(argv, self._program_directory), _encode(stdin)
        silence = Silence(self._sandbox.spec.limits.idle_timeout)
        try:
            output, status, omitted = self._sandbox.run_bytes(
                argv_expanded, cwd=cwd, env=env, stdin=data, timeout=timeout, silence=silence
            )
        except OSError as e:
            raise self._start_error(e) from e
        self._has_run = True
        timed_out = status is None and not silence.exceeded
        return ExecResult(decode(output), status, timed_out, omitted, silent=silence.exceeded)

    def _start_error(self, error: OSError) -> Exception:
        """Return the error for a program that cannot be started.

        If no program has run before, the image probably lacks the language: a SandboxError, which
        no agent can cause.
        """
        if self._has_run:
            return error
        missing = SandboxError(missing_language_message(self.language, error))
        missing.machine_failed = True
        return missing

    def execute(self, stdin: str, into: Collector, timeout: float) -> int | None:
        """Run the last built program. Return its exit status, or None if it reached the timeout.

        Collects its standard output in ``into``. Kills all processes that it started. Raises
        OSError.
        """
        sandbox, mark = self._sandbox, self._sandbox.mark()
        read, write = os.pipe()
        try:
            with memory_file(_encode(stdin)) as source:
                fds = {0: source.fileno(), 1: write}
                process = self._spawn(fds)
            os.close(write)
            write = -1
            done = communicate(process, {read: into}, timeout)
            return process.wait() if done else None
        finally:
            sandbox.kill_since(mark)
            for fd in (read, write):
                if fd >= 0:
                    os.close(fd)

    def _spawn(self, fds: Mapping[int, int]) -> BaseProcess:
        try:
            argv = expand_arguments(self.language.run, self._program_directory)
            return self._sandbox.spawn(argv, cwd=self._cwd, fds=fds)
        except OSError as e:
            raise self._start_error(e) from e

    def close(self) -> None:
        """Do nothing: no process outlives an action."""


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _join_results(built: ExecResult, ran: ExecResult) -> ExecResult:
    """Return the compiler's warnings and the program's output as one result."""
    warnings = built.output
    if warnings and not warnings.endswith("\n"):
        warnings += "\n"
    omitted = built.omitted_bytes + ran.omitted_bytes
    return replace(ran, output=warnings + ran.output, omitted_bytes=omitted)
