"""One bash that lives as long as the episode: variables, functions, options, directory and
background jobs carry over from action to action.

The shell reads a script that never ends, one ``eval`` per action, from a pipe, so that `break`,
`return` and unterminated quotes end the action and not the loop. After each action it reports the
exit status and its directory on a socket of its own, behind a token made for that action. Anything
else that arrives there means that the shell can no longer be trusted: it is started again in the
last known directory, and the observation says so.
"""

from __future__ import annotations

import os
import secrets
import select
import shlex
import signal
import socket
import time

from intercode.errors import SandboxError
from intercode.sandboxes.base import SCRIPT_NAME, Process, Sandbox
from intercode.sandboxes.output import Collector, decode, drain, drain_once
from intercode.types import ExecResult

_SCRIPT, _REPORT = 62, 63  # descriptor numbers in the shell
_START_SECONDS = 10.0
_GRACE = 0.5  # seconds for a shell to come back once what it waited for was killed
_LONGEST_REPORT = 1 << 16
_HELLO = "exec {script}<&-; trap 'break 1000' RTMAX; cd {cwd}; unset OLDPWD\n"
_ACTION = "builtin eval {code}\n"
_AFTER = 'builtin printf "%s %s %s\\0" {token} "$?" "$PWD" >&{report}\n'
_RESTARTED = "[the shell ended; a new one was started in {cwd}, without the old one's variables]\n"


class _EndedError(Exception):
    """The shell is no longer there, or no longer to be trusted."""


class BashSession:
    """See ``Session``. ``shell`` is the program inside the sandbox."""

    def __init__(self, sandbox: Sandbox, cwd: str = "/", shell: str = "/bin/bash") -> None:
        self._sandbox, self._program, self._cwd = sandbox, shell, cwd
        self._shell: _Shell | None = None
        self._start()

    @property
    def cwd(self) -> str:
        return self._cwd

    def _start(self) -> _Shell:
        self._shell = _Shell(self._sandbox, self._program)
        hello = _HELLO.format(script=_SCRIPT, cwd=shlex.quote(self._cwd))
        report = self._shell.drive(hello, None, _START_SECONDS)
        if report is None:
            raise SandboxError(f"{self._program} did not start within {_START_SECONDS:g} s")
        self._cwd = report[1]
        return self._shell

    def run(self, code: str, timeout: float) -> ExecResult:
        if "\0" in code:
            return ExecResult("bash: the action holds a NUL byte and was not run\n", 2)
        shell = self._shell or self._start()
        collector = Collector(self._sandbox.spec.limits.output)
        mark = self._sandbox.mark()
        text = _ACTION.format(code=shlex.quote(code))
        try:
            report = shell.drive(text, collector, timeout)
            if report is None:
                report = self._interrupt(shell, mark)
                self._cwd = report[1]
                return _result(shell, collector, None, timed_out=True)
        except _EndedError:
            return self._ended(shell, collector)
        self._cwd = report[1]
        return _result(shell, collector, report[0])

    def _interrupt(self, shell: _Shell, mark: int) -> tuple[int, str]:
        """Make the shell give up what it is doing, and keep it, or raise _EndedError."""
        self._sandbox.kill_since(mark, keep=[shell.process.pid])
        report = shell.drive("", None, _GRACE)
        if report is None:  # the shell itself is busy, in a loop of its own
            shell.process.kill(signal.SIGRTMAX)
            self._sandbox.kill_since(mark, keep=[shell.process.pid])
            report = shell.drive("", None, _GRACE)
        if report is None:
            raise _EndedError
        return report

    def _ended(self, shell: _Shell, collector: Collector) -> ExecResult:
        timed_out = time.monotonic() >= shell.deadline
        shell.process.kill()
        status = shell.process.wait(_START_SECONDS)
        result = _result(shell, collector, None if timed_out else status, timed_out)
        shell.close()
        self._shell = None
        self._start()
        note = _RESTARTED.format(cwd=self._cwd)
        return ExecResult(result.output + note, result.exit_code, timed_out, result.cut)

    def close(self) -> None:
        if self._shell is not None:
            self._shell.process.kill()
            self._shell.close()
            self._shell = None


def _result(
    shell: _Shell, collector: Collector, status: int | None, timed_out: bool = False
) -> ExecResult:
    drain(shell.output, collector)
    return ExecResult(decode(collector.bytes()), status, timed_out, collector.cut)


class _Shell:
    """A running shell and the three channels to it."""

    def __init__(self, sandbox: Sandbox, program: str) -> None:
        script_r, self.script = os.pipe()
        self.output, out_w = os.pipe()
        self.report, theirs = socket.socketpair()
        self.deadline = 0.0
        self._token = ""
        try:
            self.process: Process = sandbox.spawn(
                [program, "--norc", "--noprofile", SCRIPT_NAME],
                cwd="/dev",
                fds={1: out_w, 2: out_w, _SCRIPT: script_r, _REPORT: theirs.fileno()},
            )
        except BaseException:
            self.close()
            raise
        finally:
            os.close(script_r)
            os.close(out_w)
            theirs.close()
        os.set_blocking(self.script, False)
        os.set_blocking(self.output, False)
        self.report.setblocking(False)

    def drive(
        self, text: str, collector: Collector | None, timeout: float
    ) -> tuple[int, str] | None:
        """Feed the shell and wait for its report: (exit status, directory), or None at the
        time-out. An empty text waits for the report of the last one. Raises _EndedError."""
        if text:
            self._token = secrets.token_hex(8)
            text += _AFTER.format(token=self._token, report=_REPORT)
        left = memoryview(text.encode("utf-8", "surrogateescape"))
        collector = collector or Collector(1 << 12)
        self.deadline = time.monotonic() + timeout
        poll = select.poll()
        for fd in (self.output, self.report.fileno(), self.process.fileno()):
            poll.register(fd, select.POLLIN)
        poll.register(self.script, select.POLLOUT if left else 0)
        report = b""
        while (wait := self.deadline - time.monotonic()) > 0:
            ready = dict(poll.poll(wait * 1000))
            if self.script in ready:
                left = self._feed(left)
                if not left:
                    poll.unregister(self.script)
            if self.output in ready and not drain_once(self.output, collector):
                poll.unregister(self.output)
            if self.report.fileno() in ready:
                report += self._hear()
                if report.endswith(b"\0"):
                    return self._parse(report)
            elif self.process.fileno() in ready:
                raise _EndedError
        return None

    def _feed(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self.script, left[:4096]) :]
        except BlockingIOError:
            return left
        except BrokenPipeError as e:
            raise _EndedError from e

    def _hear(self) -> bytes:
        data = self.report.recv(_LONGEST_REPORT)
        if not data:
            raise _EndedError
        return data

    def _parse(self, report: bytes) -> tuple[int, str]:
        try:
            token, status, cwd = report[:-1].decode("utf-8", "surrogateescape").split(" ", 2)
        except ValueError as e:
            raise _EndedError from e
        if token != self._token or not status.isdigit() or not cwd.startswith("/"):
            raise _EndedError
        return int(status), cwd

    def close(self) -> None:
        for fd in (self.script, self.output):
            os.close(fd)
        self.report.close()
