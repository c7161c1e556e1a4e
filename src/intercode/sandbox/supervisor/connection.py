"""The owner's connection to the keeper of one box."""

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

from intercode.core.errors import SandboxError, SandboxLostError
from intercode.sandbox.supervisor.runtime import protocol

_SOON = 0.2
_ANSWER_SECONDS = 10.0  # for a keeper to answer; one that does not is given up
READ_SECONDS = 60.0  # where it has to read or copy what the box holds
_TIMEVAL = struct.Struct("@ll")
_GIVEN_SECONDS, _GIVEN_PAUSE = 30.0, 0.05


class KeeperLink:
    """Asks a keeper, one request at a time, from any thread. When it is closed, the box ends.

    ``welcome``: what the keeper said when the connection was another link's; see ``hand_over``.
    Raises SandboxError where the keeper could not set up the box.
    """

    def __init__(self, connection: socket.socket, welcome: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = connection
        self._seconds = 0.0
        self.welcome: Mapping[str, Any]
        if welcome is not None:
            self.welcome = welcome
            return
        try:
            self._bound(connection, READ_SECONDS)
            self.welcome, _ = protocol.receive(connection, alone=True)
        except (OSError, EOFError) as e:
            self.close()
            raise SandboxError(f"the sandbox did not start: {e}") from e
        if not self.welcome["ok"]:
            self.close()
            raise SandboxError(f"the sandbox could not be set up: {self.welcome['error']}")

    def request(
        self,
        do: str,
        fds: Sequence[int] = (),
        *,
        seconds: float = _ANSWER_SECONDS,
        late: Callable[[], None] | None = None,
        **arguments: Any,
    ) -> tuple[dict[str, Any], list[int]]:
        """Ask the keeper for something. ``late`` is called as long as it does not answer. Raises
        OSError for what it refuses, SandboxLostError where it has gone."""
        with self._lock:
            if self._socket is None:
                raise SandboxLostError("the sandbox is closed")
            try:
                self._bound(self._socket, seconds)
                protocol.send(self._socket, {"do": do, **arguments}, fds)
                until = time.monotonic() + seconds
                while late and not _readable(self._socket, _SOON) and time.monotonic() < until:
                    late()
                answer, out = protocol.receive(self._socket, alone=True)
            except (OSError, EOFError) as e:
                self._socket.close()
                self._socket = None
                raise SandboxLostError(f"the sandbox went away: {e}") from e
        if not answer["ok"]:
            raise OSError(answer.get("errno", 5), answer["error"])
        return answer, out

    def _bound(self, connection: socket.socket, seconds: float) -> None:
        """Have the kernel bound each wait: with a time-out of its own Python asks before each call
        whether it would wait."""
        if seconds != self._seconds:
            connection.settimeout(None)
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                connection.setsockopt(socket.SOL_SOCKET, option, _TIMEVAL.pack(int(seconds), 0))
            self._seconds = seconds

    @property
    def lost(self) -> bool:
        """Whether the keeper has gone: it never says anything unasked. For use between requests."""
        with self._lock:
            return self._socket is None or _readable(self._socket, 0)

    def given(self, do: str, **arguments: Any) -> int:
        """A descriptor that the keeper sends. The kernel bounds how many an id may have under way,
        and another box of the same id can use them up: that passes, or the box is given up."""
        deadline = time.monotonic() + _GIVEN_SECONDS
        while True:
            try:
                return self.request(do, **arguments)[1][0]
            except OSError as e:
                if e.errno != errno.ETOOMANYREFS:
                    raise
                if time.monotonic() > deadline:
                    raise SandboxError("other boxes hold up the passing of descriptors") from e
            time.sleep(_GIVEN_PAUSE)

    def hand_over(self) -> KeeperLink:
        """The same connection as another link; this one is closed, but the box does not end. Raises
        SandboxLostError where it was closed before."""
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is None:
            raise SandboxLostError("the sandbox is closed")
        return KeeperLink(connection, self.welcome)

    def close(self, wait: bool = False) -> None:
        """Hang up, and with ``wait`` return only when the box's last process is gone. May be called
        again."""
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is None:
            return
        with connection, suppress(OSError):  # OSError: it has gone already
            if wait:
                protocol.send(connection, {"do": "end"})
                connection.recv(1)
            connection.shutdown(socket.SHUT_RDWR)  # a forked child may hold a copy of it


def _readable(connection: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def file_of(data: bytes) -> Any:
    """An anonymous file that holds ``data``, at its start, to be passed on."""
    f = open(os.memfd_create("intercode"), "w+b")  # noqa: SIM115
    f.write(data)
    f.seek(0)
    return f
