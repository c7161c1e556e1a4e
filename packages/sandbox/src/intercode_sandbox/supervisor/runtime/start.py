"""Starts the processes of supervisors: executes the program, or forks a template that has executed
it. The template also forks the processes that hold user namespaces."""

from __future__ import annotations

import errno
import fcntl
import os
import socket

from . import protocol
from . import syscalls as sys_

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Kind = tuple[bool, bool, bool, dict[str, Any] | None]
    """Whether a supervisor has its own network, a plain PID 1, and a user id of its own; and the
    gateway of that network, if it has one."""

_LAUNCHER, _INHERITED = 3, 4


class Template:
    """A process that has executed the supervisor's program and forks it for each sandbox, which
    takes less time than executing it again. The supervisors are children of this process, and
    inherit the control group of the template. Raises OSError if the program cannot be executed."""

    def __init__(self, program: int) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.pid = start_program(program, theirs.fileno(), ())
        protocol.send(self._socket, {"template": True, "key": str(sys_.KEY)})

    def fork(self, what: str, connection: socket.socket) -> int:
        """Fork a ``"supervisor"``, or a process that holds a user ``"namespace"`` (see
        user_ids.py), with this connection to the launcher. Return its pid. Raises OSError if that
        is not possible, ConnectionError if the template has ended."""
        return self._order({"fork": what}, (connection.fileno(),))

    def enter(self, files: Sequence[str]) -> None:
        """Let the template enter control groups by writing to these files. Raises OSError if it
        cannot, ConnectionError if it has ended."""
        self._order({"enter": files}, ())

    def _order(self, order: dict[str, Any], fds: Sequence[int]) -> int:
        protocol.send(self._socket, order, fds)
        try:
            answer, _ = protocol.receive(self._socket)
        except EOFError as e:
            raise ConnectionResetError(errno.ECONNRESET, "the template has ended") from e
        result: int = answer["result"]
        if result < 0:
            raise OSError(-result, f"the template: {os.strerror(-result)}")
        return result

    def close(self) -> None:
        """End the template."""
        self._socket.close()


def start_program(supervisor: int, connection: int, fds: Sequence[int]) -> int:
    """Execute the supervisor, a descriptor. Return its pid.

    It gets a connection to the launcher, and descriptors that cannot be sent. Raises OSError if it
    cannot be executed.
    """
    given = {_LAUNCHER: connection, **{_INHERITED + i: fd for i, fd in enumerate(fds)}}
    high = {
        target: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _INHERITED + len(fds))
        for target, fd in {**given, -1: supervisor}.items()
    }
    itself = f"/proc/self/fd/{high[-1]}"
    actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in high.items() if target >= 0]
    try:
        return os.posix_spawn(itself, ["intercode"], {}, file_actions=actions, setsid=True)
    finally:
        for fd in high.values():
            os.close(fd)


def copy_to_memory(program: int) -> int:
    """Return a descriptor of a copy of a program, a file in memory that can be executed."""
    copy = os.memfd_create("intercode", os.MFD_CLOEXEC)
    os.fchmod(copy, 0o755)
    position = 0
    while sent := os.sendfile(copy, program, position, 1 << 30):
        position += sent
    return copy


def first_message(
    setup: dict[str, str],
    kind: Kind,
    request: dict[str, Any] | None,
    fds: Sequence[int],
) -> dict[str, Any]:
    """Return the first message to a supervisor: what to prepare, and the request if
    ``fds`` could not be sent with one. ``setup``: the directories of the stage and of the device
    nodes."""
    own_network, plain, _, gateway = kind
    message: dict[str, Any] = {**setup, "own_network": own_network, "plain": plain}
    message["key"] = str(sys_.KEY)
    if gateway is not None:
        message["gateway"] = gateway
    return message if request is None else {**message, "request": request, "inherited": len(fds)}
