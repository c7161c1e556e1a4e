"""The last output of a program that nobody reads."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from intercode_sandbox.api.forwarding import CHUNK, event_loop
from intercode_sandbox.api.process import SandboxProcess
from intercode_sandbox.errors import UsageError
from intercode_sandbox.platforms.forks import give_up_after_fork

_KEPT = 64 << 10
_PAUSE = 0.02  # seconds between two pieces, so that no program keeps the thread busy


class ProcessLog:
    """Reads what a program prints, on the thread that all forwarded ports share, and keeps the last
    64 KiB."""

    def __init__(self, process: SandboxProcess) -> None:
        self._kept, self._ended = bytearray(), threading.Event()
        self._owner, self._loop = os.getpid(), event_loop()
        try:
            self._fd = process.duplicate("stdout")
        except UsageError:  # it has ended already
            self._fd = -1
            self._ended.set()
            return
        give_up_after_fork(self, ProcessLog._close)
        self._loop.call_soon_threadsafe(self._watch)

    def text(self) -> str:
        """Return what is kept, with what no UTF-8 is as ``\\xNN``."""
        return bytes(self._kept).decode("utf-8", "backslashreplace")

    def _watch(self) -> None:
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        self._loop.remove_reader(self._fd)
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            data = None
        except OSError:
            data = b""
        if data == b"":
            self._close()
            return
        self._kept += data or b""
        del self._kept[:-_KEPT]
        self._loop.call_later(_PAUSE, self._watch)

    def wait(self, timeout: float) -> None:
        """Return when all output is read, or after ``timeout`` seconds."""
        self._ended.wait(timeout)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        self._ended.set()
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """Stop reading. May be called again. Does nothing in a forked child."""
        if self._owner == os.getpid() and not self._loop.is_closed():
            with suppress(RuntimeError):  # the interpreter ends
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
        self._close()
