"""Runs a server of environments in a process of its own during a ``with`` block."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

_PORTS = range(10_000, 32_768)
"""Linux takes higher ones for connections, so another test might have the port before a server."""


def free_port() -> int:
    """Return a port of this machine that nobody uses, and that Linux gives to no connection."""
    while True:
        with closing(socket.socket()) as s, suppress(OSError):
            s.bind(("127.0.0.1", random.SystemRandom().choice(_PORTS)))
            return int(s.getsockname()[1])


@contextmanager
def serving(
    *command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start Python with these arguments and a port; yield the address once the server is
    healthy."""
    port = free_port()
    arguments = [sys.executable, *command, "--port", str(port)]
    server = subprocess.Popen(arguments, cwd=cwd, env=env)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(3000):
            assert server.poll() is None, "the server has ended"
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=30):
                    break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail("the server does not answer")
        yield url
    finally:
        server.terminate()
        server.wait(120)
