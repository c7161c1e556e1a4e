"""Opens shells in a live sandbox for terminals of this machine.

The process with the sandbox serves the shells on a Unix socket that only this user can open;
``intercode-sandbox attach`` connects a terminal to it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import stat
import struct
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from intercode_sandbox.api.execution import CHUNK
from intercode_sandbox.api.process import SandboxProcess
from intercode_sandbox.api.sandbox import Sandbox
from intercode_sandbox.errors import InterCodeError, MissingCapabilityError, SandboxError
from intercode_sandbox.platforms.forks import give_up_after_fork

SHELL = "if command -v bash >/dev/null; then exec bash -i; fi; exec /bin/sh -i"
"""The command of a shell for a person."""
MAX_SOCKET_PATH = 107  # bytes; sockaddr_un of Linux
SIZE = struct.Struct("!HH")
"""What a client sends first: the rows and columns of its terminal."""

_PREFIX = "intercode-terminal-"
_START_SECONDS = 60.0


class TerminalServer:
    """Opens a shell in a sandbox for each terminal that runs ``command``.

    Close it, or use it in a ``with`` statement, when no more shells are wanted; shells end with the
    sandbox.

    Args:
        sandbox: The sandbox.
        cwd: The directory of the shells (None: that of the image).
        user: The user of the shells, as in ``Sandbox.spawn`` (None: root).

    Raises:
        MissingCapabilityError: The sandbox lacks ``terminal``.
        SandboxError: The directory of temporary files has too long a name.

    >>> from intercode_sandbox import Sandbox, TerminalServer
    >>> with Sandbox("host") as sandbox, TerminalServer(sandbox) as server:
    ...     "attach" in server.command  # run it in any terminal
    True
    """

    def __init__(
        self, sandbox: Sandbox, *, cwd: str | None = None, user: str | int | None = None
    ) -> None:
        if "terminal" not in sandbox.capabilities:
            raise MissingCapabilityError(f"sandboxes of the tier {sandbox.tier} have no terminals")
        self._sandbox, self._cwd, self._user = sandbox, cwd, user
        _remove_abandoned()
        self._owner = os.getpid()
        self._directory = tempfile.mkdtemp(prefix=_PREFIX)  # mode 0700
        self.path = os.path.join(self._directory, "socket")
        self._listener = socket.socket(socket.AF_UNIX)
        give_up_after_fork(self._listener, socket.socket.close)
        try:
            self._listener.bind(self.path)
            self._listener.listen()
        except OSError as e:
            self.close()
            if len(os.fsencode(self.path)) > MAX_SOCKET_PATH:
                raise SandboxError(
                    f"{self.path} is too long for the name of a socket ({MAX_SOCKET_PATH} bytes): "
                    "set TMPDIR to a directory with a shorter name"
                ) from e
            raise
        threading.Thread(target=self._accept, name="intercode-terminal", daemon=True).start()

    @property
    def command(self) -> str:
        """The shell command that connects a terminal."""
        words = [sys.executable, "-P", "-m", "intercode_sandbox", "attach", self.path]
        return shlex.join(words)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, SandboxError):  # the client or the sandbox is gone
            greeting = client.recv(SIZE.size, socket.MSG_WAITALL)
            if len(greeting) < SIZE.size:
                return
            env = {"TERM": os.environ.get("TERM", "xterm")}
            try:
                shell = self._sandbox.spawn(
                    SHELL, cwd=self._cwd, env=env, user=self._user, terminal=SIZE.unpack(greeting)
                )
            except (OSError, InterCodeError) as e:  # the person at the terminal reads it
                client.sendall(f"no shell in this sandbox: {e}\r\n".encode())
                return
            with shell:
                threading.Thread(target=_pass_input, args=(client, shell), daemon=True).start()
                try:
                    for data, _ in shell.chunks():
                        client.sendall(data)
                finally:
                    client.shutdown(socket.SHUT_RDWR)  # wakes the thread that receives

    def close(self) -> None:
        """Accept no more terminals. May be called again. Does nothing in a forked child."""
        if self._owner != os.getpid():
            return
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove_abandoned() -> None:
    """Remove the directories of this user's processes that were killed: nobody listens there."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            info = directory.lstat()
            is_new = time.time() - info.st_mtime < _START_SECONDS  # it may not listen yet
            if is_new or info.st_uid != os.geteuid() or not stat.S_ISDIR(info.st_mode):
                continue
            try:
                probe.connect(str(directory / "socket"))
            except (ConnectionRefusedError, FileNotFoundError):
                shutil.rmtree(directory, ignore_errors=True)


def _pass_input(client: socket.socket, shell: SandboxProcess) -> None:
    """Pass what a client types to its shell, until one of them is gone; then end the shell."""
    with suppress(OSError):
        while data := client.recv(CHUNK):
            shell.write(data)
    shell.close()
