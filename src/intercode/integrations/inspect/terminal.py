"""Connects a terminal of this machine to a shell in a live sandbox, for ``connection()``.

The process with the sandbox serves shells on a Unix socket that only this user can open. The client
is this file as a program, with the path of the socket; it uses the standard library only.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import socket
import struct
import sys
import tempfile
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

LOGIN_SHELL = "command -v bash >/dev/null && exec bash -l; exec sh -l"
"""The command of a shell for a person."""
PROFILE = 'if [ -n "$BASH" ] && [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n'
"""The profile of an image that has none. Inspect's human agent configures the shell in .bashrc,
which a login shell reads only if the profile says so, as Debian's does."""
_SIZE = struct.Struct("!HH")  # what a client sends first: the rows and columns of its terminal
_CHUNK = 1 << 16


class Shell(Protocol):
    """A shell on a terminal: ``intercode.sandbox.SandboxProcess``."""

    def chunks(self) -> Iterator[tuple[bytes, str]]: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class TerminalServer:
    """Serves shells in a sandbox. ``open_shell`` starts one on a new terminal of a number of rows
    and columns."""

    def __init__(self, open_shell: Callable[[tuple[int, int]], Shell]) -> None:
        self._open_shell = open_shell
        self._directory = tempfile.mkdtemp(prefix="intercode-terminal-")  # mode 0700
        self.path = os.path.join(self._directory, "socket")
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(self.path)
            self._listener.listen()
        except OSError:
            self.close()
            raise
        threading.Thread(target=self._accept, name="intercode-terminal", daemon=True).start()

    @property
    def command(self) -> str:
        """The shell command that connects a terminal."""
        return shlex.join([sys.executable, "-I", os.path.abspath(__file__), self.path])

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            greeting = client.recv(_SIZE.size, socket.MSG_WAITALL)
            if len(greeting) < _SIZE.size:
                return
            try:
                shell = self._open_shell(_SIZE.unpack(greeting))
            except Exception as e:  # the person at the terminal reads it
                client.sendall(f"no shell in this sandbox: {e}\r\n".encode())
                return
            threading.Thread(target=_pass_input, args=(client, shell), daemon=True).start()
            try:
                for data, _ in shell.chunks():
                    client.sendall(data)
            finally:
                shell.close()
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)  # wakes the thread that receives

    def close(self) -> None:
        """Stop serving. Shells end with the sandbox. May be called again."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def _pass_input(client: socket.socket, shell: Shell) -> None:
    """Pass what a client types to its shell, until one of them is gone; then end the shell."""
    with suppress(OSError):
        while data := client.recv(_CHUNK):
            shell.write(data)
    shell.close()


def relay(targets: dict[int, int]) -> None:
    """Copy what each descriptor receives to its target, until one of them ends."""
    while True:
        for source in select.select(list(targets), [], [])[0]:
            try:
                data = os.read(source, _CHUNK)
                if not data:
                    return
                while data:
                    data = data[os.write(targets[source], data) :]
            except OSError:  # a terminal whose programs have ended
                return


def main(path: str) -> None:
    """Connect this terminal to a shell, until the shell ends."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        on_terminal = sys.stdin.isatty()
        columns, rows = os.get_terminal_size(0) if on_terminal else (0, 0)
        server.sendall(_SIZE.pack(rows or 24, columns or 80))  # some terminals have no size
        saved = termios.tcgetattr(0) if on_terminal else None
        try:
            if on_terminal:
                tty.setraw(0)
            relay({0: server.fileno(), server.fileno(): 1})
        finally:
            if saved is not None:
                termios.tcsetattr(0, termios.TCSADRAIN, saved)


if __name__ == "__main__":
    main(sys.argv[1])
