"""Programs in any language of the table: an action is a whole program, which is written down,
compiled and run from a directory of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from intercode.core.errors import SandboxError
from intercode.core.languages import PROGRAM_DIRECTORY, Language, expand_arguments
from intercode.core.types import ExecResult
from intercode.sandbox.contract import Process
from intercode.sandbox.limit_messages import with_limit_note
from intercode.sandbox.output import Collector, communicate, decode
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sandbox.supervisor.connection import memory_file
from intercode.sessions.base import SessionState, is_infrastructure_failure
from intercode.sessions.programs.repl import missing_language_message

RERUN_COMMAND = "run"
"""The first line of an action that runs the last program once more, on the lines below it."""
_NO_PROGRAM_MESSAGE = "there is no program yet: write one first\n"


class ProgramSession:
    """See ``Session``. A program reads ``stdin``; nothing of it runs on when it has ended. Where
    the first line of an action is ``run``, the last program reads the other lines."""

    def __init__(
        self,
        sandbox: SupervisedSandbox,
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

    def state(self) -> SessionState:
        """The directory and the last program."""
        return SessionState(self._cwd, self.program or "")

    def state_text(self) -> str:
        """Nothing is carried over but files."""
        return ""

    def run(self, code: str, timeout: float) -> ExecResult:
        return with_limit_note(self._sandbox, self._run(code, timeout), timeout)

    def _run(self, code: str, timeout: float) -> ExecResult:
        deadline, mark = time.monotonic() + timeout, self._sandbox.mark()
        first, _, rest = code.partition("\n")
        again = first.strip() == RERUN_COMMAND
        if again and self.program is None:
            return ExecResult(_NO_PROGRAM_MESSAGE, 1)
        built, stdin = ExecResult("", 0), rest if again else self._stdin
        try:
            if not again:
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
        """Write a program down and compile it, where that is to be done, within ``timeout``
        seconds. Raises OSError, or SandboxError where the image lacks the compiler."""
        if self.language.compile and self._has_run:  # what was compiled before is not to run again
            self._sandbox.run_bytes(["rm", "-rf", "--", PROGRAM_DIRECTORY], timeout=timeout)
        self._sandbox.write_file(f"{PROGRAM_DIRECTORY}/{self.language.source}", _encode(code))
        if not self.language.compile:
            return ExecResult("", 0)
        env = {
            **self._sandbox.env,
            "TMPDIR": PROGRAM_DIRECTORY,
        }  # where a compiler that is killed leaves things
        return self._run_program(self.language.compile, PROGRAM_DIRECTORY, "", timeout, env)

    def _run_program(
        self,
        argv: tuple[str, ...],
        cwd: str,
        stdin: str,
        timeout: float,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        box, data = self._sandbox, _encode(stdin)
        try:
            out, status, cut = box.run_bytes(
                expand_arguments(argv), cwd=cwd, env=env, stdin=data, timeout=timeout
            )
        except OSError as e:
            raise self._start_error(e) from e
        self._has_run = True
        return ExecResult(decode(out), status, timed_out=status is None, omitted_bytes=cut)

    def _start_error(self, error: OSError) -> Exception:
        """The error for a program that cannot be started: the image's, if nothing ever could be."""
        return (
            error if self._has_run else SandboxError(missing_language_message(self.language, error))
        )

    def execute(self, stdin: str, into: Collector, timeout: float) -> int | None:
        """Run the program that was built: its exit status, None at the time-out. ``into`` takes
        what it writes to stdout. Everything that it has started is ended. Raises OSError."""
        box, mark = self._sandbox, self._sandbox.mark()
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
            box.kill_since(mark)
            for fd in (read, write):
                if fd >= 0:
                    os.close(fd)

    def _spawn(self, fds: Mapping[int, int]) -> Process:
        try:
            return self._sandbox.spawn(expand_arguments(self.language.run), cwd=self._cwd, fds=fds)
        except OSError as e:
            raise self._start_error(e) from e

    def close(self) -> None:
        """Nothing outlives an action."""


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _join_results(built: ExecResult, ran: ExecResult) -> ExecResult:
    """What a compiler warned of, then what the program printed."""
    said = built.output
    if said and not said.endswith("\n"):
        said += "\n"
    return ExecResult(
        said + ran.output, ran.exit_code, ran.timed_out, built.omitted_bytes + ran.omitted_bytes
    )
