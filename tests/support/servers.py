"""Servers on this machine for tests of the networks of sandboxes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

import pytest

Serve = Callable[[socket.socket], None]


def greet(client: socket.socket) -> None:
    """Answer whatever comes first with a greeting over HTTP."""
    client.recv(1 << 16)
    client.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello\n")


class Server:
    """A TCP server on this machine. ``connections`` were made, of which ``open`` remain."""

    def __init__(self, serve: Serve = greet, host: str = "127.0.0.1") -> None:
        self._serve, self._listener = serve, socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections, self.open = 0, 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self.open += 1
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError):
                self._serve(client)
        finally:
            with self._lock:
                self.open -= 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def own_address() -> str:
    """Return an address of this machine that is not its loopback. Skips the test without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect(("192.0.2.77", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address besides its loopback")
        return str(trial.getsockname()[0])
