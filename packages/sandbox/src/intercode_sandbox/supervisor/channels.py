"""The owner's ends of terminals and connections that a supervisor opens in its sandbox."""

from __future__ import annotations

import errno
import os
import select
import socket

_GET_SLAVE = 0x5441  # TIOCGPTPEER
_CONNECT_SECONDS = 5.0


def open_slave(master: int, size: tuple[int, int]) -> int:
    """Return the slave side of a terminal, given this number of rows and columns. It is the one in
    the sandbox, whose name means nothing on this machine."""
    import fcntl  # not on Windows, which imports this module for remote sandboxes
    import termios

    slave = fcntl.ioctl(master, _GET_SLAVE, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    termios.tcsetwinsize(slave, size)
    return slave


def complete_connection(connection: socket.socket) -> None:
    """Wait until a connection is established. Raises OSError if it is not."""
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    if not poll.poll(_CONNECT_SECONDS * 1000):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    if code := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(code, os.strerror(code))
    connection.setblocking(True)
