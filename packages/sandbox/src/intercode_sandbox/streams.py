"""Connects programs in a sandbox: processes, their input, and their output within a limit."""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Iterator, Mapping
from tempfile import TemporaryFile
from typing import Any, Protocol

from intercode_sandbox.long_output import Collector
from intercode_sandbox.silence import Silence

_CHUNK = 1 << 16
_LAST_ROUNDS = 32  # of output that is read after the end, if background processes write without end
_MOST_SECONDS = float(1 << 20)  # poll refuses more milliseconds than fit in a C int


class BaseProcess(Protocol):
    """A process inside a sandbox.

    Attributes:
        pid: Its number in the sandbox.
    """

    pid: int

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the process ends."""
        ...

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end of the process.

        Args:
            timeout: Seconds to wait (None: no limit).

        Returns:
            The exit status (negative: the number of the signal that ended it), or None if the time
            passes first.
        """
        ...

    def kill(self, number: int = 9) -> None:
        """Send a signal, unless the process has ended.

        Args:
            number: The number of the signal.
        """
        ...


def poll_milliseconds(seconds: float | None) -> float | None:
    """Return what ``poll`` gets to wait for a time: None, which has no limit, for more than 12
    days, and 0 for a time that is over."""
    return None if seconds is None or seconds > _MOST_SECONDS else max(0.0, seconds * 1000)


def decode(data: bytes) -> str:
    """Decode bytes as UTF-8. Invalid bytes are shown as ``\\xNN``."""
    return data.decode("utf-8", "backslashreplace")


def encode(text: str) -> bytes:
    """Encode text as UTF-8, also text that is not valid: surrogates that stand for bytes become
    these bytes, and others the bytes that they have in UTF-8 without this rule."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def drain(fd: int, into: Collector) -> bool:
    """Read everything that a non-blocking descriptor has now. Return False at the end of the
    stream. Of what is written without end meanwhile, only a part is read."""
    for _ in range(_LAST_ROUNDS):
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        into.add(data)
    return True


class TimeLimitError(TimeoutError):
    """A program and its output have not ended within a time limit."""


def readable_streams(
    process: BaseProcess,
    streams: Mapping[int, object],
    timeout: float | None,
    until_eof: bool = False,
    silence: Silence | None = None,
) -> Iterator[int]:
    """Yield a descriptor of ``streams`` whenever it has output or is at its end.

    The caller reads it, and removes it from ``streams`` at its end. This is over when the process
    has ended and what it wrote is read, even if background processes hold the streams open; with
    ``until_eof``, when ``streams`` is empty, too. Raises TimeLimitError after ``timeout`` seconds
    (None: no limit), and when ``silence`` is exceeded.
    """
    poll, watched, status = select.poll(), set[int](), process.fileno()
    if status >= 0:  # nobody has waited for it
        poll.register(status, select.POLLIN)
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    silence = silence or Silence(None)
    silence.begin()
    ended, last_rounds = status < 0, 0
    while not ended or (streams and last_rounds < _LAST_ROUNDS):
        if watched != streams.keys():
            for fd in watched - streams.keys():
                poll.unregister(fd)
            for fd in streams.keys() - watched:
                poll.register(fd, select.POLLIN)
            watched = set(streams)
        left = silence.left(deadline)
        if left <= 0:
            raise TimeLimitError(f"the program was not done after {timeout} s")
        waits = not ended or until_eof
        ready = {fd for fd, _ in poll.poll(poll_milliseconds(left) if waits else 0)}
        if not ended and (status in ready or process.fileno() != status):
            ended = True
            poll.unregister(status)
        elif ended and not until_eof:
            last_rounds = last_rounds + 1 if ready else _LAST_ROUNDS
        if written := [fd for fd in watched if fd in ready]:
            silence.begin()
            yield from written


def communicate(
    process: BaseProcess,
    streams: Mapping[int, Collector],
    timeout: float | None,
    until_eof: bool = False,
    silence: Silence | None = None,
) -> bool:
    """Read the output of a program until it ends. Return False if ``timeout`` seconds pass first
    (None: no limit), or ``silence`` is exceeded.

    ``until_eof``: wait also for background processes that hold the output open.
    """
    unread = dict(streams)
    for fd in unread:
        os.set_blocking(fd, False)
    try:
        for fd in readable_streams(process, unread, timeout, until_eof, silence):
            if not drain_once(fd, unread[fd]):
                del unread[fd]
    except TimeLimitError:
        return False
    return True


def drain_once(fd: int, into: Collector) -> bool:
    """Read one chunk. Return False at the end of the stream."""
    try:
        data = os.read(fd, _CHUNK)
    except BlockingIOError:
        return True
    into.add(data)
    return bool(data)


def memory_file(data: bytes) -> Any:
    """Return an open file in memory with the given content, positioned at its start."""
    # only Linux has files in memory: a client of remote sandboxes may be another system
    create = getattr(os, "memfd_create", None)
    f: Any = open(create("intercode"), "w+b") if create else TemporaryFile()  # noqa: SIM115
    f.write(data)
    f.seek(0)
    return f
