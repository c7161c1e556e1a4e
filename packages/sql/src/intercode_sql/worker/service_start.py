"""Starts services: Python modules in processes of their own, with a channel to their owner."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys

PASSES_DESCRIPTORS = hasattr(socket, "send_fds")
"""Whether descriptors can be sent over sockets."""
_CONNECT_SECONDS = 60.0
_TOKEN_BYTES = 32


def start_service(module: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start ``python -m module`` with a channel to it, which it opens with ``service_channel``.

    Raises OSError.
    """
    command = [sys.executable, "-P", "-m", module]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    if PASSES_DESCRIPTORS:
        mine, other = socket.socketpair()
        with other:
            process = subprocess.Popen(
                [*command, str(other.fileno())],
                pass_fds=[other.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
            )
        return process, mine
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_CONNECT_SECONDS)
        token = secrets.token_bytes(_TOKEN_BYTES)
        process = subprocess.Popen(
            [*command, f"port={listener.getsockname()[1]}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        assert process.stdin is not None
        try:
            with process.stdin as stdin:
                stdin.write(token)
            return process, _accept(listener, token)
        except BaseException:
            process.kill()
            raise


def _accept(listener: socket.socket, token: bytes) -> socket.socket:
    """Return the first connection that begins with the token; another program may connect too."""
    while True:
        channel, _ = listener.accept()
        channel.settimeout(_CONNECT_SECONDS)
        try:
            if secrets.compare_digest(_receive_token(channel), token):
                channel.settimeout(None)
                return channel
        except OSError:
            pass
        channel.close()


def _receive_token(channel: socket.socket) -> bytes:
    received = b""
    while len(received) < _TOKEN_BYTES:
        part = channel.recv(_TOKEN_BYTES - len(received))
        if not part:
            break
        received += part
    return received


def service_channel() -> socket.socket:
    """Return the channel of a process that ``start_service`` has started."""
    kind, _, port = sys.argv[1].partition("=")
    if not port:
        return socket.socket(fileno=int(kind))
    channel = socket.create_connection(("127.0.0.1", int(port)), _CONNECT_SECONDS)
    channel.sendall(sys.stdin.buffer.read(_TOKEN_BYTES))
    channel.settimeout(None)
    return channel
