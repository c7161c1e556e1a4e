"""Runs `intercode serve --protocol sandboxes` in a process of its own during a ``with`` block."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class ServerProcess:
    """A server of sandboxes. ``url`` is its address, ``kind`` the name of its back end."""

    process: subprocess.Popen[str]
    url: str

    @property
    def kind(self) -> str:
        return f"remote:{self.url}"


@contextmanager
def serving_sandboxes(*arguments: str, token: str = "", port: int = 0) -> Iterator[ServerProcess]:
    """Start a server on a port, 0 for any free one, and end it with everything that it has opened.

    A test that starts another server on the same port takes one of ``free_port``: any other test
    could get a port of 0 in between.
    """
    env = {k: v for k, v in os.environ.items() if k != "INTERCODE_SERVE_TOKEN"}
    if token:
        env["INTERCODE_SERVE_TOKEN"] = token
    words = ["serve", "--protocol", "sandboxes", f"--port={port}"]
    command = [sys.executable, "-m", "intercode", *words]
    process = subprocess.Popen([*command, *arguments], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+:\d+", process.stdout.readline())
        assert found is not None, "the server has ended"
        yield ServerProcess(process, found[0])
    finally:
        process.terminate()
        process.wait(30)
