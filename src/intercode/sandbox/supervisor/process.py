"""A process in a sandbox that has a keeper, as its owner sees it."""

from __future__ import annotations

import os
import select
import signal
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from intercode.core.errors import SandboxLostError

if TYPE_CHECKING:
    from intercode.sandbox.supervisor.connection import SupervisorConnection


class SupervisedProcess:
    """A process in the box: its status arrives on a pipe."""

    def __init__(self, link: SupervisorConnection, pid: int, child: int, status: int) -> None:
        self.pid = pid
        self._connection, self._child, self._status = link, child, status
        self._code: int | None = None

    @property
    def is_reaped(self) -> bool:
        """Whether its status was asked for, and there."""
        return self._code is not None

    def fileno(self) -> int:
        return self._status

    def wait(self, timeout: float | None = None) -> int | None:
        if self._code is None:
            if timeout is not None and not self._wait_readable(timeout):
                return None
            data = os.read(self._status, 4)
            os.close(self._status)
            self._status = -1
            if len(data) < 4:
                raise SandboxLostError("the sandbox went away while a command was running")
            self._code = struct.unpack("i", data)[0]
        return self._code

    def _wait_readable(self, timeout: float) -> bool:
        poll = select.poll()  # not select(), which fails for descriptors above 1023
        poll.register(self._status, select.POLLIN)
        return bool(poll.poll(timeout * 1000))

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self._code is None:
            with suppress(SandboxLostError):  # then it has ended with its box
                self._connection.request("kill", child=self._child, number=number)

    def __del__(self) -> None:
        if self._status >= 0:
            os.close(self._status)
