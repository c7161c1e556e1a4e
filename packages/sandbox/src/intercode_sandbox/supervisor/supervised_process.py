"""A process that a supervisor has started, on this machine or at a server."""

from __future__ import annotations

import os
import select
import signal
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from intercode_sandbox.errors import SandboxLostError
from intercode_sandbox.platforms.forks import give_up_after_fork
from intercode_sandbox.streams import poll_milliseconds


class SupervisedProcess:
    """A process in the sandbox. Its exit status arrives on a pipe, whose descriptor it owns.

    ``kill`` sends it the signal ``number``. ``lost_error`` returns the error, with a message, for a
    sandbox that has ended. Its methods are for one thread at a time, except ``kill``.
    """

    def __init__(
        self,
        pid: int,
        status: int,
        kill: Callable[..., object],
        lost_error: Callable[[str], SandboxLostError],
    ) -> None:
        self.pid = pid
        self._status, self._send_signal, self._lost_error = status, kill, lost_error
        self._code: int | None = None
        self._lock = threading.Lock()  # ``kill`` does not look at a pipe while ``wait`` closes it
        give_up_after_fork(self, SupervisedProcess._give_up)

    @property
    def is_reaped(self) -> bool:
        """Whether the exit status was read."""
        return self._code is not None

    def fileno(self) -> int:
        return self._status

    def wait(self, timeout: float | None = None) -> int | None:
        if self._status >= 0:
            if not self._wait_readable(timeout):
                return None
            with self._lock:
                data = os.read(self._status, 4)
                status, self._status = self._status, -1
                os.close(status)
            if len(data) == 4:
                self._code = struct.unpack("i", data)[0]
        if self._code is None:
            raise self._lost_error("the sandbox ended while a command was running")
        return self._code

    def _wait_readable(self, timeout: float | None) -> bool:
        poll = select.poll()  # select() fails for descriptors above 1023
        poll.register(self._status, select.POLLIN)
        return bool(poll.poll(poll_milliseconds(timeout)))

    def kill(self, number: int = signal.SIGKILL) -> None:
        with self._lock:
            has_ended = self._status < 0 or self._wait_readable(0)
        if not has_ended:
            with suppress(SandboxLostError):  # the process has ended with its sandbox
                self._send_signal(number=number)

    def _give_up(self) -> None:
        """Close the pipe, whose content is for the parent of this forked child."""
        self._lock = threading.Lock()
        self.__del__()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # the default value outlives the module when the interpreter ends
        status, self._status = self._status, -1
        if status >= 0:
            close(status)
