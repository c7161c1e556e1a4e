"""Runs a command in a sandbox of any back end, and reads its output as it comes.

``Execution`` holds everything but the waiting, which is a poll in a thread (``run_command``) or the
event loop of asyncio (``async_sandbox.py``).
"""

from __future__ import annotations

import codecs
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import IO, Any, Literal

from intercode_sandbox.api.results import Result
from intercode_sandbox.api.secrets import Secrets
from intercode_sandbox.contract import BaseSandbox, LimitExceeded
from intercode_sandbox.errors import SandboxError, UsageError
from intercode_sandbox.limit_messages import FILE_SIZE_STATUSES, names_full_disk, reported_limit
from intercode_sandbox.long_output import Collector
from intercode_sandbox.silence import Silence
from intercode_sandbox.streams import (
    BaseProcess,
    TimeLimitError,
    decode,
    encode,
    memory_file,
    readable_streams,
)
from intercode_sandbox.users import User, find_user
from intercode_sandbox.validation import absolute_path, check_texts, check_variables

Stream = Literal["stdout", "stderr"]
OutputCallback = Callable[[str, Stream], object]
"""Receives output while a command runs: a piece of text, and the stream that it came from."""

_SHELL = "/bin/sh"
CHUNK = 1 << 16
_LAST_CHUNKS = 32  # of output that is read after the end, if background processes write without end
KILL_SECONDS = 1.0
"""Time to read what a command has written before its time limit."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its settings, as ``Sandbox.run`` documents them. ``is_script``: it is a text
    for /bin/sh. ``idle_timeout``: how long it may write nothing (None: no limit)."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str] = field(repr=False)
    stdin: bytes | IO[bytes] = b""
    merge_stderr: bool = False
    user: User | None = None
    is_script: bool = False
    secrets: Secrets = Secrets(None)  # noqa: RUF009
    idle_timeout: float | None = None

    def start(
        self, base: BaseSandbox, fds: Mapping[int, int], on_terminal: bool = False
    ) -> BaseProcess:
        """Start the command with these descriptors. Raises OSError."""
        settings: dict[str, Any] = {"cwd": self.cwd, "env": self.env, "user": self.user}
        return base.spawn(self.argv, fds=fds, on_terminal=on_terminal, **settings)


def make_command(
    base: BaseSandbox,
    command: str | Sequence[str],
    *,
    stdin: str | bytes | IO[bytes] = b"",
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    user: str | int | None = None,
    merge_stderr: bool = False,
    secrets: Secrets = Secrets(None),  # noqa: B008
) -> Command:
    """Return a command with the defaults of a sandbox. Raises UsageError for a value that the
    sandbox cannot use, MissingCapabilityError for a user if it has none besides root."""
    found = find_user(base, user)
    if not isinstance(command, Sequence) or isinstance(command, bytes | bytearray):
        raise UsageError(f"a command is a text, or a list of a program and texts, not {command!r}")
    is_script = isinstance(command, str)
    arguments = [_SHELL, "-c", command] if isinstance(command, str) else command
    argv = [os.fspath(a) if isinstance(a, os.PathLike) else a for a in arguments]
    if not argv:
        raise UsageError("an empty list is no command: give a program and its arguments")
    check_texts("argument", argv)
    if with_nul := [a for a in argv if "\0" in a]:
        raise UsageError(
            f"an argument holds a NUL byte, which no program gets: {with_nul[0]!r:.200}"
        )
    check_variables({} if env is None else env)
    directory = base.spec.image.cwd if cwd is None else absolute_path(cwd, "cwd")
    data = encode(stdin) if isinstance(stdin, str) else stdin
    if not isinstance(data, bytes) and not hasattr(data, "fileno"):
        raise UsageError(f"stdin is a text, bytes or an open file, not {stdin!r}")
    variables = {**base.env, **(found.env if found else {})}
    variables |= {**secrets.variables, **(env or {})}
    return Command(
        argv,
        directory,
        variables,
        data,
        merge_stderr,
        found,
        is_script,
        secrets,
        base.spec.limits.idle_timeout,
    )


class LiveProcesses:
    """The processes that the owner of a sandbox runs in it, so that the end of one command spares
    the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: dict[int, BaseProcess] = {}

    def start(self, spawn: Callable[[], BaseProcess]) -> BaseProcess:
        """Start a process, and add it before the end of another command could kill it."""
        with self._lock:
            process = spawn()
            self._processes[id(process)] = process
            return process

    def remove(self, process: BaseProcess) -> None:
        with self._lock:
            self._processes.pop(id(process), None)

    def has_others(self, process: BaseProcess | None = None) -> bool:
        """Return whether a process other than ``process`` is live."""
        with self._lock:
            return any(p is not process for p in self._processes.values())

    def kill(self, base: BaseSandbox, process: BaseProcess, mark: int) -> None:
        """Kill a process and everything that was started since ``mark``, except other processes of
        the owner, their descendants, and what earlier processes have started. Without the
        capability ``processes``, only the process is killed."""
        if "processes" not in base.capabilities:
            process.kill()
            return
        with self._lock:  # nothing is started meanwhile
            keep = [p.pid for p in self._processes.values() if p is not process]
            keep += [pid for other in list(keep) for pid in base.descendants(other)]
            keep += base.started_by_earlier(mark)
            base.kill_since(mark, keep=keep)

    def descendants(self, base: BaseSandbox) -> set[int]:
        """Return the numbers of what the live processes have started."""
        with self._lock:
            pids = [process.pid for process in self._processes.values()]
        return {found for pid in pids for found in base.descendants(pid)}


class Execution:
    """A command that runs. Raises OSError if it cannot be started.

    The caller waits until a descriptor of ``streams`` or the process is readable, calls ``read``
    for each readable stream, and at the end of the process or the time limit ``read_rest`` and
    ``finish``.
    """

    def __init__(
        self,
        base: BaseSandbox,
        live: LiveProcesses,
        command: Command,
        on_output: OutputCallback | None = None,
    ) -> None:
        self._base, self._live, self._on_output = base, live, on_output
        limit = base.spec.limits.output
        names: list[Stream] = ["stdout"] if command.merge_stderr else ["stdout", "stderr"]
        self._collectors = {name: Collector(limit) for name in ("stdout", "stderr")}
        self._both = Collector(2 * limit)  # whatever is kept of the two streams
        self._decoders = {
            name: codecs.getincrementaldecoder("utf-8")("backslashreplace") for name in names
        }
        self._redact = {name: command.secrets.redact_pieces() for name in names}
        self.streams: dict[int, Stream] = {}
        self.silence = Silence(command.idle_timeout)
        if not live.has_others():
            base.limit_exceeded()  # what earlier commands have left is not due to this one
        self._begin, self._mark = time.monotonic(), base.mark()
        ends: dict[int, int] = {}
        try:
            for name, target in zip(names, (1, 2), strict=False):
                read, ends[target] = os.pipe()
                self.streams[read] = name
                os.set_blocking(read, False)
            self.process = live.start(lambda: self._spawn(command, {2: ends[1], **ends}))
        except BaseException:
            self.close()
            raise
        finally:
            for fd in ends.values():
                os.close(fd)

    def _spawn(self, command: Command, fds: dict[int, int]) -> BaseProcess:
        def spawn() -> BaseProcess:
            return command.start(self._base, fds)

        if not isinstance(command.stdin, bytes):
            fds[0] = command.stdin.fileno()
            return spawn()
        if not command.stdin:
            return spawn()
        with memory_file(command.stdin) as source:
            fds[0] = source.fileno()
            return spawn()

    def read(self, fd: int) -> bool:
        """Read what a stream has now, at most CHUNK bytes. Return False if there was nothing, or
        at the end of the stream, which is then removed from ``streams``."""
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return False
        name = self.streams[fd]
        if not data:
            self._close_stream(fd)
        self._add(name, data, final=not data)
        return bool(data)

    def _add(self, name: Stream, data: bytes, final: bool) -> None:
        shown = self._redact[name](data, final)  # before any of it is left out or mixed
        self._collectors[name].add(shown)
        self._both.add(shown)
        if self._on_output is not None and (text := self._decoders[name].decode(shown, final)):
            self._on_output(text, name)

    def kill(self) -> None:
        """Kill the command with all that it has started."""
        self._live.kill(self._base, self.process, self._mark)

    def read_rest(self) -> None:
        """Read the rest of the output of an ended or killed command."""
        for fd in list(self.streams):
            chunks = 0
            while self.read(fd) and chunks < _LAST_CHUNKS:
                chunks += 1
        for name in self._redact:  # a background process may hold the stream open
            self._add(name, b"", final=True)

    def finish(self, timed_out: bool) -> Result:
        """Return the result of an ended or killed command, whose output was read."""
        code = None if timed_out else self.process.wait()
        # a limit that another live process may have exceeded counts only if something has killed
        # this command; a shell reports a killed child as 128 and the signal's number
        is_own = not self._live.has_others(self.process) or code is None or not 0 <= code <= 128
        exceeded = self._base.limit_exceeded() if is_own else ""
        if code == 0 and exceeded == "processes":  # refused, and the command went on without it
            exceeded = ""
        out, err = self._collectors["stdout"], self._collectors["stderr"]
        both = self._both.bytes()
        if code != 0 and not exceeded:
            exceeded = self._reported_limit(code, decode(both))
        if code is None and self.silence.exceeded:
            exceeded = "idle_timeout"
        return Result(
            decode(out.bytes()),
            decode(err.bytes()),
            decode(both),
            code,
            time.monotonic() - self._begin,
            out.dropped + err.dropped,
            exceeded,
            out.bytes(note=False),
            err.bytes(note=False),
        )

    def _reported_limit(self, code: int | None, output: str) -> LimitExceeded:
        """Return the limit that made a command fail, by how it ended or what it has printed."""
        if code in FILE_SIZE_STATUSES:
            return "file_size"
        if names_full_disk(output) and (exhausted := self._base.storage_exhausted()):
            return exhausted
        return "" if code is None else reported_limit(output)

    def close(self) -> None:
        """Close the streams. May be called again."""
        for fd in list(self.streams):
            self._close_stream(fd)
        if hasattr(self, "process"):
            self._live.remove(self.process)

    def _close_stream(self, fd: int) -> None:
        del self.streams[fd]
        os.close(fd)


def begin(
    base: BaseSandbox,
    live: LiveProcesses,
    command: Command,
    on_output: OutputCallback | None = None,
) -> Execution | Result:
    """Start a command, and return it. If it is a text and the sandbox has no shell any more, return
    what a shell reports of a missing program. Raises OSError for any other cause, UsageError for a
    coroutine function, which nobody would await."""
    if iscoroutinefunction(on_output):
        raise UsageError(
            f"on_output is the coroutine function {on_output!r:.80}, which is not awaited: give a "
            "function, such as the put_nowait of an asyncio.Queue in a lambda"
        )
    try:
        return Execution(base, live, command, on_output)
    except OSError as e:
        if not command.is_script or not str(e.strerror).startswith(f"{_SHELL}:"):
            raise
        message = f"{e.strerror}\n"
        status = 127 if isinstance(e, FileNotFoundError) else 126
        name: Stream = "stdout" if command.merge_stderr else "stderr"
        if on_output is not None:
            on_output(message, name)
        texts: dict[str, Any] = {name: message, f"{name}_bytes": message.encode()}
        return Result(
            **{"stdout": "", "stderr": "", **texts}, output=message, exit_code=status, duration=0.0
        )


def run_command(
    base: BaseSandbox,
    live: LiveProcesses,
    command: Command,
    timeout: float | None,
    on_output: OutputCallback | None = None,
) -> Result:
    """Run a command to its end, or until ``timeout`` seconds have passed (None: no limit)."""
    execution = begin(base, live, command, on_output)
    if isinstance(execution, Result):
        return execution
    try:
        ended = _wait(execution, timeout)
        if not ended:
            execution.kill()
            _wait(execution, KILL_SECONDS)
        execution.read_rest()
        return execution.finish(timed_out=not ended)
    except BaseException:
        with suppress(SandboxError):
            execution.kill()
        raise
    finally:
        execution.close()


def _wait(execution: Execution, timeout: float | None) -> bool:
    """Read output until the process ends. Return False at the time limit in seconds, and if it is
    silent for too long."""
    process, streams = execution.process, execution.streams
    try:
        for fd in readable_streams(process, streams, timeout, silence=execution.silence):
            execution.read(fd)
    except TimeLimitError:
        return False
    return True
