"""The pipe through which a shell gets the code of its actions."""

from __future__ import annotations

import os


class CodePipe:
    """The code of an action on its way to a shell, which opens the pipe by name and reads it to its
    end. Nobody else holds its writing end, and it has no name or content that an agent could see
    later. ``shells_end`` is the descriptor that the shell gets."""

    _MAX_READS = 100

    def __init__(self) -> None:
        self.shells_end, writer = os.pipe()
        os.close(writer)
        os.fchmod(self.shells_end, 0o644)  # for shells with another user id, which may only read
        own = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        self._reader = os.open(f"/proc/self/fd/{self.shells_end}", own)
        self._path = f"/proc/self/fd/{self._reader}"

    def fill(self, data: bytes) -> bool:
        """Write some code in place of what an earlier action left. Return whether it had room."""
        if not self._empty():
            return False
        writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            written = os.write(writer, data)
        finally:
            os.close(writer)
        if written < len(data):
            self._empty()  # a part of an action is not run
        return written == len(data)

    def _empty(self) -> bool:
        for _ in range(self._MAX_READS):  # a process of the agent may go on writing
            try:
                if not os.read(self._reader, 1 << 16):
                    return True
            except BlockingIOError:
                return True
        return False

    def close(self) -> None:
        os.close(self._reader)
