"""``SandboxProcess`` for asyncio: the event loop waits for its streams and its end."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Literal, Self

from intercode_sandbox.api.execution import CHUNK, Stream
from intercode_sandbox.api.process import SandboxProcess
from intercode_sandbox.api.request_threads import finish_in_executor, in_executor
from intercode_sandbox.errors import UsageError
from intercode_sandbox.streams import encode
from intercode_sandbox.validation import check_timeout

_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
_LAST_ROUNDS = 32  # of reading after the end, if background processes write without end


class AsyncSandboxProcess:
    """A program in a sandbox, as ``AsyncSandbox.spawn`` returns it.

    The methods are those of ``SandboxProcess``, except ``write_some``, ``fileno`` and
    ``duplicate``, which are for event loops; ``process`` is that one. Close it, or use it in an
    ``async with`` statement, to kill the program. One task at a time reads a stream; others may
    write and wait meanwhile.

    >>> import asyncio
    >>> from intercode_sandbox import AsyncSandbox
    >>> async def echo(text):
    ...     async with AsyncSandbox("host") as sandbox, await sandbox.spawn("cat") as process:
    ...         await process.write(text)
    ...         await process.close_input()
    ...         return await process.read(timeout=60)
    >>> asyncio.run(echo("text"))
    b'text'
    """

    def __init__(self, process: SandboxProcess) -> None:
        self.process = process

    @property
    def pid(self) -> int:
        """The number of the program in the sandbox."""
        return self.process.pid

    async def read(
        self, stream: Stream = "stdout", *, size: int = CHUNK, timeout: float | None = None
    ) -> bytes:
        """Return what the program has written since the last call; see ``SandboxProcess.read``.

        Args:
            stream: The stream to read.
            size: The most bytes to return.
            timeout: Seconds to wait for output (None: no limit).

        Raises:
            TimeoutError: Nothing arrives within ``timeout``.
        """
        check_timeout(timeout, may_be_over=True)
        async with asyncio.timeout(timeout):
            while (data := self._read_now(stream, size)) is None:
                await self._wait_for_any(stream)
            return data

    async def output(self, timeout: float | None = None) -> AsyncIterator[tuple[str, Stream]]:
        """Yield pieces of text as the program writes them; see ``SandboxProcess.output``.

        Args:
            timeout: Seconds until the program has to end (None: no limit).

        Raises:
            TimeoutError: The program has not ended within ``timeout``.
        """
        decoder = codecs.getincrementaldecoder("utf-8")
        decoders = {name: decoder("backslashreplace") for name in _STREAMS}
        async for data, name in self.chunks(timeout):
            if text := decoders[name].decode(data, final=not data):
                yield text, name

    async def chunks(self, timeout: float | None = None) -> AsyncIterator[tuple[bytes, Stream]]:
        """Yield what ``output`` does as bytes; no bytes at the end of a stream.

        Args:
            timeout: Seconds until the program has to end (None: no limit).

        Raises:
            TimeoutError: The program has not ended within ``timeout``.
        """
        check_timeout(timeout, may_be_over=True)
        names = list(_STREAMS)
        loop, rounds = asyncio.get_running_loop(), 0
        deadline = None if timeout is None else loop.time() + timeout
        while rounds < _LAST_ROUNDS:
            has_ended = self.process.wait(0) is not None  # before its last output is read
            rounds += has_ended
            pieces = [(name, self._read_now(name, CHUNK)) for name in names]
            for name, data in pieces:
                if data == b"":
                    names.remove(name)
                if data is not None:
                    yield data, name
            if has_ended and not any(data for _, data in pieces):
                return
            if not has_ended and all(data is None for _, data in pieces):
                async with asyncio.timeout_at(deadline):
                    await self._wait_for_any(*names, "exit")

    async def write(self, data: str | bytes, timeout: float | None = None) -> None:
        """Write to the standard input of the program.

        Args:
            data: What to write; a text is encoded as UTF-8.
            timeout: Seconds until the program has to have read it (None: no limit).

        Raises:
            TimeoutError: The program does not read it within ``timeout``.
            BrokenPipeError: The input of the program is closed.
        """
        check_timeout(timeout, may_be_over=True)
        rest = memoryview(encode(data) if isinstance(data, str) else data)
        async with asyncio.timeout(timeout):
            while rest := rest[self.process.write_some(rest) :]:
                await self._wait_for_any("stdin")

    async def close_input(self) -> None:
        """Close the standard input of the program; see ``SandboxProcess.close_input``."""
        await in_executor(self.process.close_input, "commands")

    async def resize(self, rows: int, columns: int) -> None:
        """Change the size of the terminal; see ``SandboxProcess.resize``.

        Args:
            rows: The number of rows.
            columns: The number of columns.

        Raises:
            UsageError: The program has no terminal, or a number is out of its range.
        """
        self.process.resize(rows, columns)

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end of the program; see ``SandboxProcess.wait``.

        Args:
            timeout: Seconds to wait (None: no limit).

        Returns:
            The exit status, or None if the time passes first.
        """
        check_timeout(timeout, may_be_over=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.process.wait(0) is None:
                    await self._wait_for_any("exit")
        return self.process.wait(0)

    async def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the program; see ``SandboxProcess.kill``.

        Args:
            number: The number of the signal.
        """
        await in_executor(lambda: self.process.kill(number), "commands")

    async def close(self) -> None:
        """Kill the program, if it runs, and free its streams. May be called again."""
        await finish_in_executor(self.process.close, "commands")

    def _read_now(self, stream: Stream, size: int) -> bytes | None:
        """Return what a stream has, no bytes at its end, or None if it has nothing."""
        try:
            return self.process.read(stream, size=size, timeout=0)
        except TimeoutError:
            return None

    async def _wait_for_any(self, *streams: Stream | Literal["stdin", "exit"]) -> None:
        """Wait until one of the streams can be read, or the input written, or one is closed.

        The event loop gets duplicates, because it knows one waiter for each descriptor, and another
        task or thread may close them meanwhile.
        """
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def notice() -> None:
            if not ready.done():
                ready.set_result(None)

        watched: list[int] = []
        try:
            for stream in streams:
                watched.append(self.process.duplicate(stream))
                watch = loop.add_writer if stream == "stdin" else loop.add_reader
                watch(watched[-1], notice)
            await ready
        except UsageError:  # one is closed: the caller looks again
            return
        finally:
            for fd in watched:
                loop.remove_reader(fd)
                loop.remove_writer(fd)
                os.close(fd)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
