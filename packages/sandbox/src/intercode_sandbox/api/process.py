"""A program that runs in a sandbox while its owner does other things."""

from __future__ import annotations

import codecs
import math
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal, Self

from intercode_sandbox.api.execution import CHUNK, Command, LiveProcesses, Stream
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import SandboxError, UsageError
from intercode_sandbox.platforms.forks import give_up_after_fork, refuse_inherited
from intercode_sandbox.streams import BaseProcess, encode, poll_milliseconds, readable_streams
from intercode_sandbox.validation import check_timeout

_END_OF_INPUT = b"\x04"  # what a terminal takes for the end of its input
TerminalSize = tuple[int, int]
DEFAULT_SIZE = (24, 80)


class SandboxProcess:
    """A program in a sandbox, as ``Sandbox.spawn`` returns it.

    Its output waits to be read: a program that has written 64 KiB which nobody reads is paused.
    On a terminal, ``stdout`` has everything that it prints. Close the process, or use it in a
    ``with`` statement, to kill it and free its streams. Its methods are for one thread at a time.

    >>> from intercode_sandbox import Sandbox
    >>> with Sandbox("host") as sandbox, sandbox.spawn("cat") as process:
    ...     process.write("text")
    ...     process.close_input()
    ...     print(process.wait(60), process.read(timeout=60))
    0 b'text'
    """

    def __init__(
        self,
        base: BaseSandbox,
        live: LiveProcesses,
        command: Command,
        terminal: bool | TerminalSize = False,
    ) -> None:
        self._base, self._live, self._owner = base, live, os.getpid()
        self.on_close: Callable[[SandboxProcess], object] = lambda _: None
        self._is_closed = False
        self._lock = threading.Lock()  # the sandbox may be closed while a thread waits for output
        self._exit_code: int | None = None
        self._streams: dict[Stream, int] = {}
        self._input = -1
        give_up_after_fork(self, SandboxProcess._give_up)
        size = DEFAULT_SIZE if terminal is True else terminal
        self.terminal = size is not False
        if size is not False:
            checked = _check_size(size)
            self._process = live.start(lambda: self._spawn_on_terminal(command, checked))
        else:
            self._process = live.start(lambda: self._spawn(command))
        for fd in (self._input, *self._streams.values()):
            os.set_blocking(fd, False)

    def _spawn_on_terminal(self, command: Command, size: TerminalSize) -> BaseProcess:
        master, other = self._base.open_terminal(size)
        try:
            process = command.start(self._base, dict.fromkeys(range(3), other), on_terminal=True)
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(other)
        self._streams, self._input = {"stdout": master}, master
        return process

    def _spawn(self, command: Command) -> BaseProcess:
        given: dict[int, int] = {}
        try:
            given[0], self._input = os.pipe()
            self._streams["stdout"], given[1] = os.pipe()
            if not command.merge_stderr:
                self._streams["stderr"], given[2] = os.pipe()
            fds = {2: given[1], **given}
            return command.start(self._base, fds)
        except BaseException:
            self._close_streams()
            raise
        finally:
            for fd in given.values():
                os.close(fd)

    def _give_up(self) -> None:
        """Close the streams in a forked child: the parent's program waits for the end of them."""
        self._lock = threading.Lock()
        self._close_streams()

    @property
    def pid(self) -> int:
        """The number of the program in the sandbox."""
        return self._process.pid

    # --------------------------------------------------------------------- streams
    def read(
        self, stream: Stream = "stdout", *, size: int = CHUNK, timeout: float | None = None
    ) -> bytes:
        """Return what the program has written since the last call; wait for output if there is
        none.

        Args:
            stream: The stream to read.
            size: The most bytes to return.
            timeout: Seconds to wait for output (None: no limit).

        Returns:
            The output; no bytes at the end of the stream.

        Raises:
            TimeoutError: Nothing arrives within ``timeout``.
        """
        if stream not in ("stdout", "stderr"):
            raise UsageError(f"a program writes to stdout and stderr, not to {stream!r}")
        refuse_inherited(self._owner, "program")
        check_timeout(timeout, may_be_over=True)
        if not self._wait_for(stream, select.POLLIN, timeout):
            raise TimeoutError(f"the program wrote nothing for {timeout} s")
        data = self._read_now(stream, size)
        if not data:
            self._close_stream(stream)
        return data or b""

    def output(self, timeout: float | None = None) -> Iterator[tuple[str, Stream]]:
        """Yield pieces of text as the program writes them, each with the name of its stream.

        Ends when the program has ended and its output is read, even if background processes hold
        its streams open.

        Args:
            timeout: Seconds until the program has to end (None: no limit).

        Raises:
            TimeoutError: The program has not ended within ``timeout``.
        """
        refuse_inherited(self._owner, "program")
        decoders = {
            name: codecs.getincrementaldecoder("utf-8")("backslashreplace")
            for name in self._streams
        }
        for data, name in self.chunks(timeout):
            if text := decoders[name].decode(data, final=not data):
                yield text, name

    def chunks(self, timeout: float | None = None) -> Iterator[tuple[bytes, Stream]]:
        """Yield what ``output`` does as bytes; no bytes at the end of a stream.

        Args:
            timeout: Seconds until the program has to end (None: no limit).

        Raises:
            TimeoutError: The program has not ended within ``timeout``.
        """
        refuse_inherited(self._owner, "program")
        check_timeout(timeout, may_be_over=True)
        unread = {fd: name for name, fd in self._streams.items()}
        for fd in readable_streams(self._process, unread, timeout):
            data = self._read_now(unread[fd], CHUNK)
            if data is None:
                continue
            name = unread[fd]
            if not data:
                del unread[fd]
                self._close_stream(name)
            yield data, name
        self.wait(0)

    def write(self, data: str | bytes, timeout: float | None = None) -> None:
        """Write to the standard input of the program.

        Args:
            data: What to write; a text is encoded as UTF-8.
            timeout: Seconds until the program has to have read it (None: no limit).

        Raises:
            TimeoutError: The program does not read it within ``timeout``.
            BrokenPipeError: The input of the program is closed.
        """
        check_timeout(timeout, may_be_over=True)
        rest = memoryview(encode(data) if isinstance(data, str) else data)
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while rest := rest[self.write_some(rest) :]:
            left = deadline - time.monotonic()
            if not self._wait_for("stdin", select.POLLOUT, None if timeout is None else left):
                raise TimeoutError(f"the program did not read its input within {timeout} s")

    def write_some(self, data: bytes | memoryview) -> int:
        """Write as much to the standard input as is possible without waiting.

        Args:
            data: The bytes to write.

        Returns:
            The number of bytes that were written.

        Raises:
            BrokenPipeError: The input of the program is closed.
        """
        refuse_inherited(self._owner, "program")
        with self._lock:
            if self._input < 0:
                raise BrokenPipeError("the input of the program is closed")
            try:
                return os.write(self._input, data)
            except BlockingIOError:
                return 0

    def close_input(self) -> None:
        """Close the standard input of the program. On a terminal, send the character for its
        end."""
        if self.terminal:
            self.write(_END_OF_INPUT)
        else:
            self._close_input()

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the terminal; its programs receive SIGWINCH.

        Args:
            rows: The number of rows, from 1 to 65535.
            columns: The number of columns, from 1 to 65535.

        Raises:
            UsageError: The program has no terminal, or a number is out of its range.
        """
        import termios  # not on Windows

        if not self.terminal or self._input < 0:
            raise UsageError("the program has no terminal: spawn it with terminal=True")
        termios.tcsetwinsize(self._input, _check_size((rows, columns)))

    # ------------------------------------------------------------------------- end
    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end of the program.

        Args:
            timeout: Seconds to wait (None: no limit).

        Returns:
            The exit status (negative: the number of the signal that ended the program), or None if
            the time passes first.
        """
        refuse_inherited(self._owner, "program")
        check_timeout(timeout, may_be_over=True)
        if self._exit_code is None:
            self._exit_code = self._process.wait(timeout)
            if self._exit_code is not None:
                self._live.remove(self._process)
        return self._exit_code

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the program; SIGKILL also to all its descendants, if the sandbox has the
        capability ``processes``. Does nothing after ``close``.

        Args:
            number: The number of the signal.
        """
        if self._is_closed:
            return
        refuse_inherited(self._owner, "program")
        descendants: list[int] = []
        if number == signal.SIGKILL and "processes" in self._base.capabilities:
            descendants = self._stop_all() if self._exit_code is None else []
        self._process.kill(number)
        for pid in descendants:
            self._base.signal(pid, number)

    def _stop_all(self) -> list[int]:
        """Stop the program and its descendants, and return the numbers of these. A stopped process
        neither starts another one nor reacts to the end of one."""
        self._process.kill(signal.SIGSTOP)
        stopped: list[int] = []
        while found := [pid for pid in self._base.descendants(self.pid) if pid not in stopped]:
            for pid in found:
                self._base.signal(pid, signal.SIGSTOP)
            stopped += found
        return stopped

    def close(self) -> None:
        """Kill the program, if it runs, and free its streams. May be called again. Does
        nothing in a forked child."""
        if self._owner != os.getpid():
            return
        if self._exit_code is None:
            with suppress(SandboxError):  # the sandbox is gone
                self.kill()
        self._is_closed = True
        self._live.remove(self._process)
        self._close_streams()
        self.on_close(self)

    def _wait_for(self, of: Stream | Literal["stdin"], event: int, timeout: float | None) -> bool:
        """Wait until a stream can be read or written, or is closed. Return False at the time limit
        in seconds."""
        try:
            fd = self.duplicate(of)
        except UsageError:  # closed, perhaps by another thread
            return True
        try:
            poll = select.poll()
            poll.register(fd, event)
            return bool(poll.poll(poll_milliseconds(timeout)))
        finally:
            os.close(fd)

    def _read_now(self, stream: Stream, size: int) -> bytes | None:
        """Return what a stream has, no bytes at its end, or None if it has nothing."""
        with self._lock:
            if stream not in self._streams:
                return b""
            try:
                return os.read(self._streams[stream], size)
            except BlockingIOError:
                return None
            except OSError:  # how a terminal ends
                return b""

    def _close_stream(self, stream: Stream) -> None:
        with self._lock:
            fd = self._streams.pop(stream, -1)
            if fd >= 0:
                os.close(fd)
            if fd == self._input:  # a terminal
                self._input = -1

    def _close_streams(self) -> None:
        for stream in list(self._streams):
            self._close_stream(stream)
        self._close_input()

    def _close_input(self) -> None:
        with self._lock:
            fd, self._input = self._input, -1
            if fd >= 0:
                os.close(fd)

    def fileno(self, of: Stream | Literal["stdin", "exit"] = "stdout") -> int:
        """Return a descriptor for poll and event loops.

        Args:
            of: A stream; or ``exit``, whose descriptor is readable when the program has ended.

        Raises:
            UsageError: The stream or the program has ended.
        """
        if of == "stdin":
            fd = self._input
        elif of == "exit":
            fd = self._process.fileno()
        else:
            fd = self._streams.get(of, -1)
        if fd < 0:
            raise UsageError(f"{of} of the program has ended")
        return fd

    def duplicate(self, of: Stream | Literal["stdin", "exit"] = "stdout") -> int:
        """Return a duplicate of what ``fileno`` returns, for the caller to close. Unlike that
        number, it stays what it is if another thread closes the program.

        Args:
            of: A stream, or ``exit``.

        Raises:
            UsageError: The stream or the program has ended.
        """
        with self._lock:
            return os.dup(self.fileno(of))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_size(size: object) -> TerminalSize:
    match size:
        case (int(rows), int(columns)) if 0 < rows < 1 << 16 and 0 < columns < 1 << 16:
            return rows, columns
    raise UsageError(f"a terminal has from 1 to 65535 rows and columns, unlike {size!r}")
