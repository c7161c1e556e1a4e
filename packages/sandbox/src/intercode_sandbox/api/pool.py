"""A pool of sandboxes that are opened before they are needed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Self
from weakref import WeakSet

from intercode_sandbox.api.async_sandbox import AsyncSandbox
from intercode_sandbox.api.request_threads import finish_in_executor, obtain
from intercode_sandbox.api.sandbox import Files, Sandbox
from intercode_sandbox.backends import open_sandbox
from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.deprecation import renamed_arguments
from intercode_sandbox.errors import SandboxError, UsageError
from intercode_sandbox.platforms.forks import give_up_after_fork
from intercode_sandbox.types import Network

_WORKERS = 2


class SandboxPool:
    """Keeps sandboxes ready, and opens another whenever one is taken.

    Any number can be taken at a time, from any thread; if none is ready, one is opened on the spot.
    Close the pool to end the sandboxes that wait in it. A forked child has a pool of its own, which
    opens its sandboxes with the first ``take``.

    Args:
        image: The root file system; see ``Sandbox``, also for the parameters after ``recycle``.
        size: The most sandboxes that are ready at a time, at least 1.
        recycle: Whether a sandbox that is given back is reset in place where the back end can do
            that, instead of opening another, which costs a fifth of the processor time; it keeps
            its user, process and network namespaces. Otherwise each is new.
        network: ``none``, ``host``, or rules.
        limits: Limits on what runs in each sandbox (None: the defaults of ``Limits``).
        env: Environment variables of all commands.
        files: What is written before the first command, by path.
        backend: The back end.
        users: Whether the sandboxes have other users than root.
        mounts: Directories of this machine that they show read-only, by their paths in them.
        secrets: Variables of commands whose values no record has.

    Raises:
        UsageError: ``size`` is less than 1, the image does not exist, or a value is not of its
            form.
        SandboxError: No sandbox can be opened.

    >>> from intercode_sandbox import SandboxPool
    >>> with SandboxPool("host", size=1) as pool, pool.sandbox() as sandbox:
    ...     sandbox.run("echo hi").output
    'hi\\n'
    """

    @renamed_arguments(back_end="backend")
    def __init__(
        self,
        image: str = "host",
        size: int = 2,
        *,
        recycle: bool = False,
        network: Network = "none",
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        files: Files | None = None,
        backend: str = "auto",
        users: bool = False,
        mounts: Mapping[str, str | Path] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        if size < 1:
            raise UsageError(f"a pool holds at least 1 sandbox, not {size}")
        self._size = size
        self._files, self._recycle, self._backend = files or {}, recycle, backend
        first = Sandbox(
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
        self._spec = first.base.spec  # the image is built or fetched now
        self._secrets = first.secrets
        self._is_closed = False
        self._start_empty()
        give_up_after_fork(self, SandboxPool._start_empty)
        done: Future[Sandbox] = Future()
        done.set_result(first)
        self._ready.append(done)
        for _ in range(size - 1):
            self._prewarm()

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._taken: WeakSet[Sandbox] = WeakSet()
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="intercode-pool")
        self._ready: deque[Future[Sandbox]] = deque()

    def _open(self) -> Sandbox:
        return self._write_files(
            Sandbox.from_base(open_sandbox(self._spec, self._backend), self._secrets)
        )

    def _write_files(self, sandbox: Sandbox) -> Sandbox:
        try:
            sandbox.write_files(self._files)
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def _prewarm(self, used: BaseSandbox | None = None) -> None:
        """Prepare a sandbox in the background, unless enough are ready: a given one that is reset,
        or a new one."""
        with self._lock:
            if not self._is_closed and len(self._ready) < self._size:
                self._ready.append(self._workers.submit(self._prepare, used))
                return
        if used is not None:
            used.close()

    def _prepare(self, used: BaseSandbox | None) -> Sandbox:
        if used is not None:
            try:
                used.recycle()
                return self._write_files(Sandbox.from_base(used, self._secrets))
            except SandboxError:  # it cannot be reset completely
                used.close()
        return self._open()

    def take(self) -> Sandbox:
        """Return a sandbox, which the caller closes or gives back.

        Raises:
            UsageError: The pool is closed.
            SandboxError: No sandbox can be opened.
        """
        with self._lock:
            if self._is_closed:
                raise UsageError("the pool is closed")
            waiting = self._ready.popleft() if self._ready else None
            # those that will be given back are ready again, unless their taker has closed them
            expected = sum(not s.is_lost for s in self._taken) + 1 if self._recycle else 0
            missing = self._size - len(self._ready) - expected
        for _ in range(missing):
            self._prewarm()
        sandbox = self._open() if waiting is None else waiting.result()
        if sandbox.is_lost:
            sandbox.close()
            sandbox = self._open()
        with self._lock:
            self._taken.add(sandbox)
        return sandbox

    def give_back(self, sandbox: Sandbox) -> None:
        """Take a sandbox back, which is then recycled or closed.

        It is closed for the caller, with its processes and its forwarded ports. In a forked child,
        nothing happens to a sandbox that the parent took.

        Args:
            sandbox: A sandbox that was taken from this pool.

        Raises:
            UsageError: It was not taken from this pool, or was given back already.
        """
        if sandbox._is_inherited:
            return
        with self._lock:
            if sandbox not in self._taken:
                raise UsageError(
                    "a sandbox is given back once, to the pool from which it was taken"
                )
            self._taken.remove(sandbox)
        if self._recycle and not sandbox.is_lost and "recycle" in sandbox.capabilities:
            self._prewarm(sandbox.release())
        else:
            sandbox.close()
            if self._recycle:
                self._prewarm()

    @contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        """Take a sandbox for the ``with`` block."""
        sandbox = self.take()
        try:
            yield sandbox
        finally:
            self.give_back(sandbox)

    @asynccontextmanager
    async def async_sandbox(self) -> AsyncIterator[AsyncSandbox]:
        """Take a sandbox for the ``async with`` block, as an AsyncSandbox."""
        sandbox = await obtain(self.take, self.give_back)
        try:
            yield AsyncSandbox.of(sandbox)
        finally:
            await finish_in_executor(lambda: self.give_back(sandbox))

    def close(self) -> None:
        """End the sandboxes that wait in the pool. Those that were taken continue. May be called
        again."""
        with self._lock:
            self._is_closed = True
            waiting, self._ready = list(self._ready), deque()
        for future in waiting:
            with suppress(Exception):  # it could not be opened
                future.result().close()
        self._workers.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
