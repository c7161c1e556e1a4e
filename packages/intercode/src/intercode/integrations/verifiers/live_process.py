"""A program in a sandbox whose input and output the framework uses while it runs."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import suppress

from verifiers.v1.runtimes.base import RuntimeProcess

from intercode.core.errors import SandboxError
from intercode_sandbox.api.async_process import AsyncSandboxProcess
from intercode_sandbox.api.execution import Stream


class LiveProcess(RuntimeProcess):
    """A process of ``AsyncSandbox.spawn`` with the methods that verifiers calls."""

    def __init__(self, process: AsyncSandboxProcess) -> None:
        self._process = process
        self.stdout, self.stderr = self._read("stdout"), self._read("stderr")

    async def _read(self, stream: Stream) -> AsyncIterator[bytes]:
        while data := await self._process.read(stream):
            yield data

    async def write(self, data: bytes) -> None:
        """Write to the standard input of the program."""
        await self._process.write(data)

    async def wait(self) -> int:
        """Return the exit status; negative, the number of the signal that ended the program."""
        with suppress(SandboxError):  # the sandbox is gone
            if (status := await self._process.wait()) is not None:
                return status
        return -signal.SIGKILL

    async def poll(self) -> int | None:
        """Return the exit status, or None while the program runs."""
        try:
            return self._process.process.wait(0)
        except SandboxError:
            return -signal.SIGKILL

    async def terminate(self) -> None:
        """Ask the program to end."""
        await self._process.kill(signal.SIGTERM)

    async def kill(self) -> None:
        """Kill the program with its descendants."""
        await self._process.kill()
