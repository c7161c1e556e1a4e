"""A program that exchanges lines with its owner, in a sandbox or on this machine."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from intercode.core.errors import SandboxError
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.streams import poll_milliseconds

MAX_LINE = 1 << 20
"""Bytes that a line of the program may have."""
_MAX_WAITING_LINES = 1000
_ERROR_TAIL = 2000
_CHUNK = 1 << 16

Start = Callable[[dict[int, int]], tuple[Callable[[], None], Callable[[], str]]]
"""Starts a program with the given descriptors; see LineProgram."""


class ProgramEndedError(Exception):
    """The program has ended, or has written a line that is too long. The text says how."""


class LineProgram:
    """A running program. ``send`` writes a line and ``receive`` reads one.

    ``start`` gets the program's descriptors 0, 1 and 2, and returns a function that kills it and
    one that says how it has ended. Close this object to kill the program with its descendants. Its
    methods are for one thread at a time, except ``kill``.
    """

    def __init__(self, start: Start) -> None:
        given: dict[int, int] = {}
        self._fds: list[int] = []
        self._lines: deque[bytes] = deque()
        self._partial_line = self._errors = b""
        self._is_closed = False
        try:
            given[0], self._input = os.pipe()
            self._fds.append(self._input)
            self._output, given[1] = os.pipe()
            self._fds.append(self._output)
            self._error_output, given[2] = os.pipe()
            self._fds.append(self._error_output)
            for fd in self._fds:
                os.set_blocking(fd, False)
            self._kill, self._describe_end = start(given)
        except BaseException:
            self._close_descriptors()
            raise
        finally:
            for fd in given.values():
                os.close(fd)

    def send(self, line: bytes, deadline: float) -> None:
        """Write a line. Raises TimeoutError at the deadline, by ``time.monotonic``, and
        ProgramEndedError."""
        rest = memoryview(line + b"\n")
        while rest:
            self._wait(deadline, sending=True)
            try:
                rest = rest[os.write(self._input, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as e:
                raise ProgramEndedError(self._end()) from e

    def receive(self, deadline: float) -> bytes:
        """Return the next line. Raises as ``send`` does."""
        while not self._lines:
            if len(self._partial_line) > MAX_LINE:
                raise ProgramEndedError(f"it wrote a line of more than {MAX_LINE} bytes")
            self._wait(deadline, sending=False)
        return self._lines.popleft()

    def kill(self) -> None:
        """Kill the program with its descendants. May be called again, and by another thread."""
        with suppress(SandboxError, OSError):  # the sandbox is gone, or the program has ended
            self._kill()

    def close(self) -> None:
        """Kill the program and free its descriptors. May be called again."""
        if not self._is_closed:
            self._is_closed = True
            self.kill()
            self._close_descriptors()

    def _wait(self, deadline: float, *, sending: bool) -> None:
        """Wait until a line can be sent or more output was read."""
        poll = select.poll()
        poll.register(self._error_output, select.POLLIN)
        if len(self._lines) < _MAX_WAITING_LINES and len(self._partial_line) <= MAX_LINE:
            poll.register(self._output, select.POLLIN)
        if sending:
            poll.register(self._input, select.POLLOUT)
        left = deadline - time.monotonic()
        ready = dict(poll.poll(poll_milliseconds(left))) if left > 0 else {}
        if not ready:
            raise TimeoutError
        if ready.get(self._error_output):
            self._errors = (self._errors + self._read(self._error_output))[-_ERROR_TAIL:]
        if ready.get(self._output):
            data = self._read(self._output)
            if not data:
                raise ProgramEndedError(self._end())
            *lines, self._partial_line = (self._partial_line + data).split(b"\n")
            self._lines.extend(lines)

    def _read(self, fd: int) -> bytes:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:
            return b""

    def _end(self) -> str:
        """Say how the program has ended, with the end of what it wrote to stderr."""
        self._errors = (self._errors + self._read(self._error_output))[-_ERROR_TAIL:]
        text = self._errors.decode("utf-8", "backslashreplace").strip()
        return f"{self._describe_end()}{': ' if text else ''}{text}"

    def _close_descriptors(self) -> None:
        fds, self._fds = self._fds, []
        for fd in fds:
            os.close(fd)


def start_in_sandbox(command: str, sandbox: BaseSandbox, cwd: str) -> LineProgram:
    """Start a command of ``/bin/sh`` in a sandbox. Raises SandboxError and OSError."""

    def start(fds: dict[int, int]) -> tuple[Callable[[], None], Callable[[], str]]:
        process = sandbox.spawn(["/bin/sh", "-c", command], cwd=cwd, fds=fds)

        def kill() -> None:
            finds_more = "processes" in sandbox.capabilities
            descendants = sandbox.descendants(process.pid) if finds_more else ()
            process.kill()
            for pid in descendants:  # after the program, which could react to their end
                sandbox.signal(pid, signal.SIGKILL)

        return kill, lambda: _ended(process.wait(1.0))

    return LineProgram(start)


def start_outside(command: str) -> LineProgram:
    """Start a program of this machine, with the rights of this process. Raises OSError."""

    def start(fds: dict[int, int]) -> tuple[Callable[[], None], Callable[[], str]]:
        process = subprocess.Popen(
            shlex.split(command), stdin=fds[0], stdout=fds[1], stderr=fds[2], start_new_session=True
        )

        def kill() -> None:
            if process.returncode is None:  # else its number may be that of another program
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

        def describe() -> str:
            try:
                status: int | None = process.wait(1.0)
            except subprocess.TimeoutExpired:
                status = None
            with suppress(ProcessLookupError):  # what it has started
                os.killpg(process.pid, signal.SIGKILL)
            return _ended(status)

        return kill, describe

    return LineProgram(start)


def _ended(status: int | None) -> str:
    return "it closed its output" if status is None else f"it ended with the exit status {status}"
