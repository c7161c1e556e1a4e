"""A program in a sandbox whose input and output an event loop uses while it runs."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

from verifiers.v1.runtimes.base import RuntimeProcess

from intercode.core.errors import SandboxError
from intercode.sandbox.api.execution import Stream
from intercode.sandbox.api.process import SandboxProcess

_WAITING_PIECES = 256  # of up to 64 KiB, of each stream, before the program is paused


class LiveProcess(RuntimeProcess):
    """Passes the output of a program from a thread, which reads it, to the event loop."""

    def __init__(self, process: SandboxProcess) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._pieces: dict[Stream, asyncio.Queue[bytes]] = {
            "stdout": asyncio.Queue(_WAITING_PIECES), "stderr": asyncio.Queue(_WAITING_PIECES)
        }  # fmt: skip
        self.stdout, self.stderr = self._read("stdout"), self._read("stderr")
        threading.Thread(target=self._pass_output, name="intercode-verifiers", daemon=True).start()

    def _pass_output(self) -> None:
        code: int | None = None
        with suppress(RuntimeError):  # the event loop is closed
            with suppress(SandboxError, OSError):  # the sandbox is gone
                for data, stream in self._process.chunks():
                    if data:
                        self._put(stream, data)
                code = self._process.wait()
            for stream in self._pieces:
                self._put(stream, b"")
            self._loop.call_soon_threadsafe(self._end, -signal.SIGKILL if code is None else code)

    def _put(self, stream: Stream, data: bytes) -> None:
        asyncio.run_coroutine_threadsafe(self._pieces[stream].put(data), self._loop).result()

    def _end(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)

    async def _read(self, stream: Stream) -> AsyncIterator[bytes]:
        while data := await self._pieces[stream].get():
            yield data

    async def write(self, data: bytes) -> None:
        """Write to the standard input of the program."""
        await asyncio.to_thread(self._process.write, data)

    async def wait(self) -> int:
        """Return the exit status; negative, the number of the signal that ended the program."""
        return await asyncio.shield(self._ended)

    async def poll(self) -> int | None:
        """Return the exit status, or None while the program runs."""
        return self._ended.result() if self._ended.done() else None

    async def terminate(self) -> None:
        """Ask the program to end."""
        await asyncio.to_thread(self._process.kill, signal.SIGTERM)

    async def kill(self) -> None:
        """Kill the program with its descendants."""
        await asyncio.to_thread(self._process.kill)
