"""``Sandbox`` for asyncio: hundreds of sandboxes in one thread.

A command that runs holds no thread: the event loop watches its output and its end. Requests that
need the supervisor's answer, such as opening, starting a program, files and snapshots, take about a
millisecond and run in a bounded executor, because they can take longer.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from intercode_sandbox.api import snapshots
from intercode_sandbox.api.async_process import AsyncSandboxProcess
from intercode_sandbox.api.execution import (
    KILL_SECONDS,
    Execution,
    OutputCallback,
    begin,
    make_command,
)
from intercode_sandbox.api.forwarding import ForwardedPort
from intercode_sandbox.api.process import SandboxProcess, TerminalSize
from intercode_sandbox.api.request_threads import finish_in_executor, in_executor, obtain
from intercode_sandbox.api.results import Result
from intercode_sandbox.api.sandbox import DEFAULT_TIMEOUT, Files, Sandbox
from intercode_sandbox.contract import Capability, Limits
from intercode_sandbox.deprecation import renamed_arguments
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.types import Network
from intercode_sandbox.validation import check_timeout

P = ParamSpec("P")
T = TypeVar("T")


def _in_thread(
    method: Callable[Concatenate[Sandbox, P], T], release: Callable[[T], object] | None = None
) -> Callable[Concatenate[AsyncSandbox, P], Coroutine[Any, Any, T]]:
    """Return a method of ``AsyncSandbox`` that calls one of ``Sandbox`` in a thread. ``release``
    frees a result whose caller was cancelled meanwhile."""

    @wraps(method)
    async def call(self: AsyncSandbox, /, *values: P.args, **named: P.kwargs) -> T:
        work = partial(getattr(self.sandbox, method.__name__), *values, **named)
        return await (in_executor(work) if release is None else obtain(work, release))

    return call


class AsyncSandbox:
    """``Sandbox`` for asyncio, opened by ``async with`` or ``await AsyncSandbox.open(...)``.

    The methods are those of ``Sandbox``. Different sandboxes, and commands in one sandbox, run at
    the same time. A cancelled ``run`` kills its command.

    Args:
        image: The root file system; see ``Sandbox``, also for the other parameters.
        network: ``none``, ``host``, or rules.
        limits: Limits on what runs in it (None: the defaults of ``Limits``).
        env: Environment variables of all commands.
        files: What is written before the first command, by path.
        backend: The back end.
        users: Whether it has other users than root.
        mounts: Directories of this machine that it shows read-only, by their paths in it.
        secrets: Variables of commands whose values no record has.

    >>> import asyncio
    >>> from intercode_sandbox import AsyncSandbox
    >>> async def greet():
    ...     async with AsyncSandbox("host") as sandbox:
    ...         return (await sandbox.run("echo hi")).output
    >>> asyncio.run(greet())
    'hi\\n'
    """

    @renamed_arguments(back_end="backend")
    def __init__(
        self,
        image: str = "host",
        *,
        network: Network = "none",
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        files: Files | None = None,
        backend: str = "auto",
        users: bool = False,
        mounts: Mapping[str, str | Path] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._make: Callable[[], Sandbox] = lambda: Sandbox(
            image,
            network=network,
            limits=limits,
            env=env,
            files=files,
            backend=backend,
            users=users,
            mounts=mounts,
            secrets=secrets,
        )
        self._sandbox: Sandbox | None = None

    @classmethod
    def of(cls, sandbox: Sandbox) -> Self:
        """Return this interface for an open sandbox, which it then owns.

        Args:
            sandbox: The open sandbox.
        """
        made = cls.__new__(cls)
        made._sandbox = sandbox
        return made

    @classmethod
    async def open(cls, image: str = "host", **settings: object) -> Self:
        """Open a sandbox.

        Args:
            image: The root file system; see ``Sandbox``.
            **settings: The other parameters of ``Sandbox``.

        Raises:
            UsageError: The image does not exist, or a value is not of its form.
            SandboxError: No sandbox can be opened.
        """
        return await cls(image, **settings).__aenter__()  # type: ignore[arg-type]

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox with the same methods, which block.

        Raises:
            SandboxError: It is not opened yet.
        """
        if self._sandbox is None:
            raise SandboxError("the sandbox is not open: use `async with` or AsyncSandbox.open")
        return self._sandbox

    @property
    def image(self) -> str:
        """The name of the image."""
        return self.sandbox.image

    @property
    def limits(self) -> Limits:
        """The limits on what runs in the sandbox."""
        return self.sandbox.limits

    @property
    def tier(self) -> str:
        """The isolation tier; see ``Sandbox.tier``."""
        return self.sandbox.tier

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional features of the back end; see ``Sandbox.capabilities``."""
        return self.sandbox.capabilities

    @property
    def is_lost(self) -> bool:
        """Whether the sandbox is known to be gone."""
        return self.sandbox.is_lost

    # -------------------------------------------------------------------- commands
    async def run(
        self,
        command: str | Sequence[str],
        *,
        stdin: str | bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        merge_stderr: bool = False,
        on_output: OutputCallback | None = None,
    ) -> Result:
        """Run a command to its end and return its output; see ``Sandbox.run``, also for the errors.

        Args:
            command: A text for ``/bin/sh -c``, or a program and its arguments.
            stdin: The input of the command.
            cwd: Its directory (None: that of the image).
            env: Variables besides those of the sandbox.
            user: A name or number, if the sandbox has ``users`` (None: root).
            timeout: Seconds until the command is killed (None: no limit).
            merge_stderr: Whether stderr is part of stdout, in the order of writing.
            on_output: A function, not a coroutine function, that is called in the event loop with
                each piece of output and the name of its stream.
        """
        sandbox = self.sandbox

        check_timeout(timeout)

        @sandbox.secrets.redacted_errors()
        def start() -> Execution | Result:
            made = make_command(
                sandbox.base,
                command,
                stdin=stdin,
                cwd=cwd,
                env=env,
                user=user,
                merge_stderr=merge_stderr,
                secrets=sandbox.secrets,
            )
            return begin(sandbox.base, sandbox.live, made, on_output)

        execution = await obtain(start, _abandon, "commands")
        if isinstance(execution, Result):
            return execution
        try:
            ended = await _wait(execution, timeout)
            if not ended:
                await in_executor(execution.kill, "commands")
                await _wait(execution, KILL_SECONDS)
            execution.read_rest()
            result = await in_executor(lambda: execution.finish(timed_out=not ended), "commands")
        except BaseException:
            await finish_in_executor(lambda: _abandon(execution), "commands")
            raise
        execution.close()
        return result

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        merge_stderr: bool = False,
        terminal: bool | TerminalSize = False,
    ) -> AsyncSandboxProcess:
        """Start a program and return without waiting for it; see ``Sandbox.spawn``, also for the
        errors.

        Args:
            command: A text for ``/bin/sh -c``, or a program and its arguments.
            cwd: Its directory (None: that of the image).
            env: Variables besides those of the sandbox.
            user: A name or number, if the sandbox has ``users`` (None: root).
            merge_stderr: Whether stderr is part of stdout, in the order of writing.
            terminal: Whether it runs on a pseudo-terminal, or the rows and columns of one.
        """
        process = await obtain(
            lambda: self.sandbox.spawn(
                command, cwd=cwd, env=env, user=user, merge_stderr=merge_stderr, terminal=terminal
            ),
            SandboxProcess.close,
            "commands",
        )
        return AsyncSandboxProcess(process)

    # ----------------------------------------------------- files, processes, snapshots
    read = _in_thread(Sandbox.read)
    write = _in_thread(Sandbox.write)
    write_files = _in_thread(Sandbox.write_files)
    stat = _in_thread(Sandbox.stat)
    exists = _in_thread(Sandbox.exists)
    list_files = _in_thread(Sandbox.list_files)
    remove = _in_thread(Sandbox.remove)
    upload = _in_thread(Sandbox.upload)
    download = _in_thread(Sandbox.download)
    changes = _in_thread(Sandbox.changes)
    forward = _in_thread(Sandbox.forward, ForwardedPort.close)
    listen = _in_thread(Sandbox.listen, socket.socket.close)
    processes = _in_thread(Sandbox.processes)
    kill = _in_thread(Sandbox.kill)
    usage = _in_thread(Sandbox.usage)
    connections = _in_thread(Sandbox.connections)
    snapshot = _in_thread(Sandbox.snapshot, snapshots.Snapshot.close)
    restore = _in_thread(Sandbox.restore)
    save = _in_thread(Sandbox.save)
    detach = _in_thread(Sandbox.detach)

    @classmethod
    async def from_snapshot(
        cls, snapshot: snapshots.Snapshot, *, secrets: Mapping[str, str] | None = None
    ) -> Self:
        """Open a new sandbox with the files of a snapshot; see ``Sandbox.from_snapshot``.

        Args:
            snapshot: The snapshot.
            secrets: The secrets of the new sandbox (None: it has none).
        """
        opening = partial(Sandbox.from_snapshot, snapshot, secrets=secrets)
        return cls.of(await obtain(opening, Sandbox.close))

    async def fork(self, n: int = 1) -> list[Self]:
        """Return new sandboxes with copies of the files; see ``Sandbox.fork``.

        Args:
            n: The number of new sandboxes, at least 1.
        """
        forks = await obtain(lambda: self.sandbox.fork(n), _close_all)
        return [self.of(fork) for fork in forks]

    @classmethod
    async def attach(
        cls, identifier: str, backend: str, *, secrets: Mapping[str, str] | None = None
    ) -> Self:
        """Return the sandbox that ``detach`` has left running; see ``Sandbox.attach``.
        If it is cancelled, the sandbox is detached with the same id.

        Args:
            identifier: The id that ``detach`` returned.
            backend: The server, ``remote:URL``.
            secrets: The secrets of the sandbox, which the server does not keep.
        """
        opening = partial(Sandbox.attach, identifier, backend, secrets=secrets)
        return cls.of(await obtain(opening, Sandbox.detach))

    @classmethod
    async def load(cls, path: str | Path, image: str = "host", **settings: Any) -> Self:
        """Open a new sandbox with the files that ``save`` wrote; see ``Sandbox.load``.

        Args:
            path: The saved file.
            image: The image of the sandbox that was saved.
            **settings: The other parameters of ``Sandbox.load``.
        """
        return cls.of(await obtain(lambda: Sandbox.load(path, image, **settings), Sandbox.close))

    # ------------------------------------------------------------------------- end
    async def close(self, wait: bool = False) -> None:
        """End everything in the sandbox; see ``Sandbox.close``. May be called again.

        Args:
            wait: Return only after the last process has ended.
        """
        if self._sandbox is not None:
            await finish_in_executor(lambda: self.sandbox.close(wait))

    async def __aenter__(self) -> Self:
        if self._sandbox is None:
            self._sandbox = await obtain(self._make, Sandbox.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _abandon(execution: Execution | Result) -> None:
    """Kill a command whose caller is gone."""
    if isinstance(execution, Result):
        return
    with suppress(SandboxError):
        execution.kill()
    execution.close()


def _close_all(sandboxes: Sequence[Sandbox]) -> None:
    for sandbox in sandboxes:
        sandbox.close()


async def _wait(execution: Execution, timeout: float | None) -> bool:
    """Read output in the event loop until the process ends. Return False at the time limit, and if
    it is silent for too long."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    loop, process = asyncio.get_running_loop(), execution.process.fileno()
    ended: asyncio.Future[None] = loop.create_future()
    watched = [process, *execution.streams]

    def read(fd: int) -> None:
        execution.silence.begin()
        try:
            execution.read(fd)
        except BaseException as e:  # of the caller's function
            if not ended.done():
                ended.set_exception(e)
        if fd not in execution.streams:
            loop.remove_reader(fd)
            watched.remove(fd)

    def end() -> None:
        loop.remove_reader(process)
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(process, end)
    for fd in list(execution.streams):
        loop.add_reader(fd, read, fd)
    try:
        execution.silence.begin()
        while not ended.done() and (left := execution.silence.left(deadline)) > 0:
            await asyncio.wait([ended], timeout=None if left == math.inf else left)
        if ended.done():
            ended.result()  # raises what the caller's function has raised
        return ended.done()
    finally:
        for fd in watched:
            loop.remove_reader(fd)
