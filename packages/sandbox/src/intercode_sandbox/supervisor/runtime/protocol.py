"""Messages between owner, launcher and supervisor: JSON after its length, with file descriptors."""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_HEADER = struct.Struct("!I")
_MAX_FDS = 16
_FIRST_READ = 1 << 12
_MAX_MESSAGE = 64 << 20
"""Limit on the bytes of a message. A supervisor sends long listings in parts, which are shorter."""


class UnexpectedDataError(EOFError):
    """More data follows a message that the sender ends with, unless it is about to end."""


def send(sock: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send a message. Raises OSError if the connection is closed."""
    body = json.dumps(message).encode("utf-8", "surrogateescape")
    data = memoryview(_HEADER.pack(len(body)) + body)
    ancillary = []
    if fds:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    sent = sock.sendmsg([data], ancillary, socket.MSG_NOSIGNAL)
    if sent < len(data):
        sock.sendall(data[sent:], socket.MSG_NOSIGNAL)


def receive(sock: socket.socket, single: bool = False) -> tuple[dict[str, Any], list[int]]:
    """Receive a message and its descriptors.

    ``single``: no other message can follow it without a request, so more than its header is read at
    once. Raises EOFError if the connection is closed or the message is too long.
    """
    space, first = socket.CMSG_LEN(_MAX_FDS * 4), _FIRST_READ if single else _HEADER.size
    head, ancillary, _, _ = sock.recvmsg(first, space, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % 4])
    try:
        if len(head) < _HEADER.size:
            head += _receive_exactly(sock, _HEADER.size - len(head))
        body = head[_HEADER.size :]
        (length,) = _HEADER.unpack_from(head)
        if length > _MAX_MESSAGE:
            raise EOFError(f"a message of {length} bytes: at most {_MAX_MESSAGE} are read")
        if len(body) < length:
            body += _receive_exactly(sock, length - len(body))
        if len(body) > length:
            raise UnexpectedDataError("unexpected data after the message")
        message = json.loads(body.decode("utf-8", "surrogateescape"))
    except BaseException:
        close_all(fds)
        raise
    return message, list(fds)


def _receive_exactly(sock: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = sock.recv(min(count, 1 << 20))
        if not part:
            raise EOFError("the connection is closed")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors and ignore errors."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
