"""Forwards a port of this machine to a server in a sandbox.

The supervisor opens each connection inside the sandbox and passes it out, so this works without a
network, and nothing in the sandbox can reach this machine through it. One thread, which all
forwarded ports of the process share, copies the data.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Self

from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import SandboxError, SandboxLostError, UsageError
from intercode_sandbox.platforms.forks import ForkSafeLock, give_up_after_fork

CHUNK = 1 << 16
_MAX_CONNECTIONS = 128


class ForwardedPort:
    """A port of this machine that leads to a server in a sandbox; see ``Sandbox.forward``.

    Close it, or use it in a ``with`` or ``async with`` statement, to end it with its connections.
    ``host`` and ``port`` are its address on this machine.

    >>> from intercode_sandbox import Sandbox
    >>> with Sandbox("host") as sandbox, sandbox.forward(8000) as forwarded:
    ...     print(forwarded.host)  # and forwarded.port: where a server of the sandbox is reached
    127.0.0.1
    """

    def __init__(self, base: BaseSandbox, target: int | str, host: str, port: int) -> None:
        self._base, self._target = base, _check_target(target)
        if base.is_lost:
            raise SandboxLostError("the sandbox is closed")
        if "connect" not in base.capabilities:
            base.connect(target)  # raises the error that says what is missing
        self._owner, self._listener = os.getpid(), socket.create_server((host, port))
        give_up_after_fork(self._listener, socket.socket.close)
        self.host, self.port = self._listener.getsockname()[:2]
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = event_loop()
        self.on_close: Callable[[ForwardedPort], object] = lambda _: None
        self._server = run(self._serve(), self._loop)

    def __repr__(self) -> str:
        return f"<ForwardedPort {self.host}:{self.port} to {self._target!r}>"

    async def _serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, sock=self._listener)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= _MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            inside = await self._loop.run_in_executor(None, self._base.connect, self._target)
            await _exchange(reader, writer, inside)
        except (OSError, SandboxError):  # no server listens there, or the sandbox is gone
            writer.transport.abort()
        except asyncio.CancelledError:  # by `close`; asyncio would print it
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()

    def close(self) -> None:
        """Close the port and its connections. May be called again. Does nothing in a forked
        child."""
        if self._owner != os.getpid():
            return
        run(self._close(), self._loop)
        self.on_close(self)

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, inside: socket.socket
) -> None:
    """Copy data between a client and a connection into the sandbox until both have ended."""
    inside.setblocking(False)
    inner_reader, inner_writer = await asyncio.open_connection(sock=inside)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(copy(reader, inner_writer))
            tasks.create_task(copy(inner_reader, writer))
    except* OSError:  # one side has broken the connection
        writer.transport.abort()
    finally:
        inner_writer.close()


async def copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    count: Callable[[int], object] = lambda _: None,
) -> None:
    """Copy data until it ends. ``count`` is called with the number of bytes before they are
    sent."""
    while data := await reader.read(CHUNK):
        count(len(data))
        writer.write(data)
        await writer.drain()
    with suppress(OSError):
        writer.write_eof()


_lock = ForkSafeLock()
_current: asyncio.AbstractEventLoop | None = None
_owner_pid = 0


def event_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of the thread that copies data, and start it if necessary."""
    global _current, _owner_pid
    with _lock:
        if _current is None or _owner_pid != os.getpid():  # a forked child has no such thread
            _current, _owner_pid = asyncio.new_event_loop(), os.getpid()
            threading.Thread(
                target=_current.run_forever, name="intercode-forward", daemon=True
            ).start()
        return _current


def run(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Run a coroutine on the loop, from another thread, and return its result. Does nothing while
    the interpreter ends, because the thread of the loop is gone then."""
    if sys.is_finalizing():
        work.close()
        return None
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def _check_target(target: int | str) -> int | str:
    if isinstance(target, str):
        if not target.startswith("/"):
            raise UsageError(f"a Unix socket has an absolute path in the sandbox, not {target!r}")
    elif not isinstance(target, int) or not 0 < target < 1 << 16:
        raise UsageError(f"a port is a whole number from 1 to 65535, not {target!r}")
    return target
