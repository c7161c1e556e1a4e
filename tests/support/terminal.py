"""A command at a pseudo-terminal: tests press keys and read the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from typing import Self

PATIENCE = 120.0
"""Seconds until a test gives up waiting for a text."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b[^a-zA-Z=>]*$|\r")
_PROGRAM = "import sys; from intercode.cli import main; sys.exit(main())"
_WHERE = "\x1b[6n"  # the program requests the position of the cursor; a terminal answers


class Terminal:
    """Runs ``intercode`` with these words, at a terminal of 40 lines of 120 characters."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.seen = ""
        self._read = self._answered = 0
        self.pid, self._fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.environ.update(environment, TERM="xterm")
            os.execv(sys.executable, [sys.executable, "-c", _PROGRAM, *words])

    def send(self, keys: str) -> None:
        """Press keys; Enter is ``\\r``."""
        os.write(self._fd, keys.encode())

    def expect(self, text: str) -> str:
        """Wait until a text is on the screen, after the texts expected before; return the
        output."""
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            before, found, _ = self._shown[self._read :].partition(text)
            if found:
                self._read += len(before) + len(found)
                return before + found
            if not self._pump():
                break
        raise AssertionError(f"no {text!r} in:\n{self._shown[self._read :]}")

    def ask(self, keys: str, *texts: str) -> str:
        """Type a line; wait for each text."""
        self.send(keys + "\r")
        return "".join(self.expect(text) for text in texts)

    def insist(self, keys: str, text: str) -> None:
        """Press keys again and again until a text is on the screen, because the program may not be
        ready for them the first time."""
        ends = time.monotonic() + PATIENCE
        while text not in self._shown[self._read :] and time.monotonic() < ends:
            self.send(keys)
            again = time.monotonic() + 0.7
            while text not in self._shown[self._read :] and time.monotonic() < again:
                self._pump()
        self.expect(text)

    def wait(self) -> int:
        """Return the exit status, once the command has ended."""
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            self._pump()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it has not ended; the last it showed:\n{self.seen[-2000:]}")

    @property
    def _shown(self) -> str:
        """Return the whole output, without control sequences for cursor and colours."""
        return _CONTROL.sub("", self.seen)

    def _pump(self) -> bool:
        """Read the available output; return False at the end."""
        if not _has_input(self._fd):
            return True
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # Linux raises this when the other end is closed
            return False
        self.seen += data.decode("utf-8", "replace")
        while self._answered < self.seen.count(_WHERE):
            self._answered += 1
            os.write(self._fd, b"\x1b[1;1R")
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pid:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self._fd)


def _has_input(fd: int) -> bool:
    """Wait up to 50 ms for something to read. ``select`` refuses numbers of 1,024 and more."""
    wait = select.poll()
    wait.register(fd, select.POLLIN)
    return bool(wait.poll(50))
