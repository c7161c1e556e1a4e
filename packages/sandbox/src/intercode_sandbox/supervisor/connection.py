"""The owner's connection to the supervisor of one sandbox."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from intercode_sandbox.errors import SandboxError, SandboxKilledError, SandboxLostError
from intercode_sandbox.platforms.forks import give_up_after_fork, refuse_inherited
from intercode_sandbox.supervisor.runtime import protocol

_POLL_SECONDS = 0.2
_ANSWER_SECONDS = 10.0  # timeout for an answer; after that the sandbox counts as lost
READ_SECONDS = 60.0  # timeout of requests that read or copy files
_ENDING_SECONDS = 1.0  # time for a supervisor to end after the sandbox
_TIMEVAL = struct.Struct("@ll")
_FD_RETRY_SECONDS, _FD_RETRY_PAUSE = 30.0, 0.05


class SupervisorConnection:
    """A connection to a supervisor, for one request at a time, from any thread. Closing it ends the
    sandbox.

    ``handshake``: the first message of the supervisor, if the connection was transferred; see
    ``transfer``. ``seconds``: time to wait for it otherwise. ``given_fds``: the descriptors that
    came with it, for the caller. Raises SandboxError if the supervisor could not set the sandbox
    up.

    Before it ends because of the sandbox, a supervisor says so. The loss is then the sandbox's own
    doing (SandboxKilledError), as it is if ``memory_exceeded`` returns true, or if the supervisor
    does not answer in time. A supervisor that ends without a word was ended by the machine.

    A forked child cannot use the connection: requests raise UsageError, and closing does nothing.
    """

    def __init__(
        self,
        connection: socket.socket,
        handshake: Mapping[str, Any] | None = None,
        seconds: float = READ_SECONDS,
    ) -> None:
        self._owner, self._lock = os.getpid(), threading.Lock()
        self._socket: socket.socket | None = connection
        give_up_after_fork(connection, socket.socket.close)
        self._seconds = 0.0
        self._cause = ""  # why the sandbox ended, if that was its own doing
        self.memory_exceeded: Callable[[], object] = lambda: False
        self.handshake: Mapping[str, Any]
        self.given_fds: list[int] = []
        if handshake is not None:
            self.handshake = handshake
            return
        try:
            self._set_timeout(connection, seconds)
            self.handshake, self.given_fds = protocol.receive(connection, single=True)
        except (OSError, EOFError) as e:
            self.close()
            raise SandboxError(f"the sandbox did not start: {e}") from e
        if not self.handshake["ok"]:
            self.close()
            raise SandboxError(f"the sandbox could not be set up: {self.handshake['error']}")

    def request(
        self,
        operation: str,
        fds: Sequence[int] = (),
        *,
        seconds: float = _ANSWER_SECONDS,
        on_delay: Callable[[], None] | None = None,
        on_part: Callable[[dict[str, Any]], None] | None = None,
        **arguments: Any,
    ) -> tuple[dict[str, Any], list[int]]:
        """Send a request and return the answer with its descriptors.

        ``on_delay`` is called repeatedly while there is no answer. ``on_part`` is called with each
        part of an answer that comes in parts, except the last, which is returned. Raises OSError if
        the supervisor refuses, SandboxLostError if it is gone, or SandboxKilledError if what ran in
        the sandbox has ended it.
        """
        refuse_inherited(self._owner)
        with self._lock:
            if self._socket is None:
                raise self._lost_error("the sandbox is closed")
            try:
                self._set_timeout(self._socket, seconds)
                protocol.send(self._socket, {"do": operation, **arguments}, fds)
                deadline = time.monotonic() + seconds
                while (
                    on_delay
                    and not _readable(self._socket, _POLL_SECONDS)
                    and time.monotonic() < deadline
                ):
                    on_delay()
                answer, received = protocol.receive(self._socket, single=True)
                while on_part is not None and answer.get("more"):
                    on_part(answer)
                    answer, received = protocol.receive(self._socket, single=True)
                self._cause = answer.get("lost", "")
                if self._cause:
                    raise EOFError(self._cause)
            except BlockingIOError as e:
                self._cause = f"there was no answer for {seconds:g} s"
                self._drop()
                raise self._lost_error("") from e
            except (OSError, EOFError) as e:
                if isinstance(e, protocol.UnexpectedDataError):  # a report follows the answer
                    self._cause = "PID 1 ended"
                self._read_report()
                self._drop()
                raise self._lost_error(f"the sandbox has ended: {e}") from e
        if not answer["ok"]:
            raise OSError(answer.get("errno", 5), answer["error"])
        return answer, received

    def lost_error(self, message: str) -> SandboxLostError:
        """Return the error for a sandbox that is ending: a SandboxLostError with this message, or
        a SandboxKilledError with the cause."""
        refuse_inherited(self._owner)
        with self._lock:
            if self._socket is not None and _readable(self._socket, _ENDING_SECONDS):
                self._read_report()
            return self._lost_error(message)

    def _lost_error(self, message: str) -> SandboxLostError:
        if not self._cause:
            return SandboxLostError(message)
        return SandboxKilledError(f"the sandbox was ended by what ran in it: {self._cause}")

    def _read_report(self) -> None:
        """Read why the supervisor ended, if it said so and that is not known yet."""
        if not self._cause and self._socket is not None and _readable(self._socket, 0):
            with suppress(OSError, EOFError):
                self._cause = protocol.receive(self._socket, single=True)[0].get("lost", "")
        if not self._cause and self.memory_exceeded():
            self._cause = "it exceeded its memory limit"

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _set_timeout(self, connection: socket.socket, seconds: float) -> None:
        """Set the timeouts of the socket in the kernel, because Python's own timeouts would add a
        poll to every call."""
        if seconds != self._seconds:
            connection.settimeout(None)
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                connection.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL.pack(int(seconds), 0))
            self._seconds = seconds

    @property
    def is_inherited(self) -> bool:
        """Whether the connection belongs to a process from which this one was forked."""
        return self._owner != os.getpid()

    @property
    def is_lost(self) -> bool:
        """Whether the supervisor is gone, at least for this process. It sends nothing without a
        request, so a socket that is readable between requests was closed by the supervisor."""
        if self.is_inherited:
            return True
        with self._lock:
            return self._socket is None or _readable(self._socket, 0)

    def request_fd(self, operation: str, **arguments: Any) -> int:
        """Send a request and return the descriptor of the answer.

        The kernel limits how many descriptors of a user are being passed at a time, and another
        sandbox can use up this limit. This method retries for some seconds and then raises
        SandboxError, as it does if this process has no descriptor left.
        """
        deadline = time.monotonic() + _FD_RETRY_SECONDS
        while True:
            try:
                received = self.request(operation, **arguments)[1]
                if not received:
                    raise SandboxError(
                        "this process can open no more files: close some, or raise `ulimit -n`"
                    )
                return received[0]
            except OSError as e:
                if e.errno != errno.ETOOMANYREFS:
                    raise
                if time.monotonic() > deadline:
                    raise SandboxError(
                        "other sandboxes of this user block the passing of descriptors"
                    ) from e
            time.sleep(_FD_RETRY_PAUSE)

    def transfer(self) -> SupervisorConnection:
        """Return a new object for the same socket, and make this one unusable without ending the
        sandbox. Raises SandboxLostError if this one is closed already."""
        refuse_inherited(self._owner)
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is None:
            raise SandboxLostError("the sandbox is closed")
        return SupervisorConnection(connection, self.handshake)

    def close(self, wait: bool = False) -> None:
        """Close the connection. ``wait``: return only after the last process has ended. May be
        called again."""
        if self.is_inherited:
            return
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is None:
            return
        with connection, suppress(OSError):  # the supervisor is already gone
            if wait:
                protocol.send(connection, {"do": "end"})
                connection.recv(1)
            connection.shutdown(socket.SHUT_RDWR)  # a child that C code forked may hold a copy


def _readable(connection: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
