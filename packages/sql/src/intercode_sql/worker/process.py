"""Starts workers, asks them and kills them.

A launcher process per owner, started when it is first needed, has all modules loaded and forks the
workers. Where it cannot, each worker is a new interpreter. All end with the owner: they read the
end of their sockets.
"""

from __future__ import annotations

import array
import os
import pickle
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, cast

from intercode_sql.base import SqlDeterminism
from intercode_sql.errors import EngineUnavailableError
from intercode_sql.host import run_after_fork
from intercode_sql.worker.service_start import PASSES_DESCRIPTORS, start_service

START_SECONDS = 60.0
"""Limit for the start of a worker."""
_MAX_IDLE_WORKERS = 4
_MAX_MESSAGE_BYTES = 1 << 20
"""Longest state within a message."""
_SERVICE = "intercode_sql.worker.service"
_HEADER = struct.Struct("=Q")
_VARIABLES = ("INTERCODE_CACHE", "XDG_CACHE_HOME", "HOME", "INTERCODE_SQL_TRANSLATIONS")


class WorkerLostError(Exception):
    """The worker ended, or it was killed because it did not answer in time (``late``)."""

    def __init__(self, late: bool) -> None:
        super().__init__("the worker is lost")
        self.late = late


# ---------------------------------------------------------------- messages
class Saved:
    """The state of a session as its worker has written it. The owner does not read it.

    A long one is an open file without a name, so that it takes no memory of the owner and nothing
    remains of it after the last process that holds it.
    """

    def __init__(self, content: bytes) -> None:
        self._content: bytes | None = content
        self.file: BinaryIO | None = None
        if len(content) > _MAX_MESSAGE_BYTES and PASSES_DESCRIPTORS:
            file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  # this holds it
            self._content, self.file = None, file
            self.file.write(content)
            self.file.flush()

    def content(self) -> bytes:
        """Return the state."""
        if self.file is None:
            return self._content or b""
        return os.pread(self.file.fileno(), os.fstat(self.file.fileno()).st_size, 0)

    def __getstate__(self) -> tuple[bytes | None]:
        return (self._content,)

    def __setstate__(self, state: tuple[bytes | None]) -> None:
        self._content, self.file = state[0], None


def send(channel: socket.socket, message: tuple[Any, ...], saved: Saved | None = None) -> None:
    """Send a tuple. ``saved`` is part of it."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    if saved is None or saved.file is None:
        channel.sendall(_HEADER.pack(len(content)) + content)
    else:
        socket.send_fds(channel, [_HEADER.pack(len(content))], [saved.file.fileno()])
        channel.sendall(content)


def receive(channel: socket.socket, ends: float | None = None) -> tuple[Any, ...] | None:
    """Return a tuple, or None at the end of the channel. Raises TimeoutError when the monotonic
    clock reaches ``ends``."""
    header, fds = b"", array.array("i")
    while len(header) < _HEADER.size:
        _wait(channel, ends)
        if not PASSES_DESCRIPTORS:
            part = channel.recv(_HEADER.size - len(header))
        else:
            part, ancillary, _, _ = channel.recvmsg(_HEADER.size - len(header), socket.CMSG_LEN(4))
            for _, _, raw in ancillary:
                fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
        if not part:
            return None
        header += part
    files = [os.fdopen(fd, "rb") for fd in fds]
    content = bytearray(_HEADER.unpack(header)[0])
    at = memoryview(content)
    while at:
        _wait(channel, ends)
        count = channel.recv_into(at)
        if not count:
            return None
        at = at[count:]
    message: tuple[Any, ...] = pickle.loads(content)
    for part in message if files else ():
        if isinstance(part, Saved):
            part.file = files[0]
    return message


def _wait(channel: socket.socket, ends: float | None) -> None:
    if ends is not None:
        channel.settimeout(max(0.001, ends - time.monotonic()))


# ---------------------------------------------------------------- workers
class EngineSource(NamedTuple):
    """An engine in a worker: its module and class, modules that it imports before, the variables
    that locate its caches, its determinism, and where its modules are, if not in this package."""

    opener: str
    modules: tuple[str, ...]
    environment: tuple[tuple[str, str | None], ...]
    determinism: SqlDeterminism | None
    search_path: tuple[str, ...]


def variables() -> tuple[tuple[str, str | None], ...]:
    """Return the variables of this moment that locate caches."""
    return tuple((name, os.environ.get(name)) for name in _VARIABLES)


class Worker:
    """A worker process. ``tenant`` says for which session it holds the state."""

    def __init__(
        self, channel: socket.socket, process: subprocess.Popen[bytes] | None = None
    ) -> None:
        self._channel, self._process = channel, process
        self._process_fd = -1
        self.tenant: Any = None
        hello = receive(channel, time.monotonic() + START_SECONDS)
        if hello is None:
            raise WorkerLostError(False)
        if process is None:
            # it lives until it reads the end of its socket, so that this is its own process id
            self._process_fd = os.pidfd_open(hello[0])

    def ask(self, request: tuple[Any, ...], seconds: float) -> tuple[Any, ...]:
        """Return the answer to a request. Raises WorkerLostError, and what the worker raised.

        A worker that does not answer within ``seconds`` is killed.
        """
        ends = time.monotonic() + seconds
        try:
            _wait(self._channel, ends)
            saved = request[-1] if isinstance(request[-1], Saved) else None
            send(self._channel, (seconds, *request), saved)
            answer = receive(self._channel, ends)
        except TimeoutError:
            self.kill()
            raise WorkerLostError(True) from None
        except OSError:
            answer = None
        if answer is None:
            self.kill()
            raise WorkerLostError(False)
        if isinstance(answer[0], Exception):
            raise answer[0]
        return answer[1:]

    def kill(self) -> None:
        """Kill the process. Can be called from any thread, more than once."""
        if self._process is not None:
            self._process.kill()
            return
        with suppress(OSError):
            signal.pidfd_send_signal(self._process_fd, signal.SIGKILL)

    def close(self) -> None:
        """Close the channel, at whose end an idle process ends."""
        self._channel.close()
        fd, self._process_fd = self._process_fd, -1
        if fd >= 0:
            os.close(fd)


class WorkerPool:
    """The launcher and the idle workers of this process. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._launcher: socket.socket | None = None
        self._workers: weakref.WeakSet[Worker] = weakref.WeakSet()

    def take(self, tenant: Any) -> Worker:
        """Return a worker, if possible one that holds the state for this ``tenant``."""
        with self._lock:
            for at, worker in enumerate(self._idle):
                if worker.tenant == tenant:
                    return self._idle.pop(at)
            if self._idle:
                return self._idle.pop(0)
            try:
                return self._launch()
            except (OSError, WorkerLostError):  # someone has ended the launcher
                self._close_launcher()
                try:
                    return self._launch()
                except (OSError, WorkerLostError) as e:
                    raise EngineUnavailableError(
                        f"no process for SQL statements can be started ({e})"
                    ) from e

    def give_back(self, worker: Worker) -> None:
        """Take back a worker that is idle."""
        with self._lock:
            if len(self._idle) < _MAX_IDLE_WORKERS:
                self._idle.append(worker)
                return
        worker.close()

    def _launch(self) -> Worker:
        if not hasattr(os, "pidfd_open"):
            process, channel = start_service(_SERVICE)
            threading.Thread(target=process.wait, daemon=True).start()
            worker = Worker(channel, process)
            self._workers.add(worker)
            return worker
        if self._launcher is None:
            self._launcher = _start_launcher()
        mine, other = socket.socketpair()
        with other:
            self._launcher.settimeout(START_SECONDS)
            socket.send_fds(self._launcher, [b"w"], [other.fileno()])
        worker = Worker(mine)
        self._workers.add(worker)
        return worker

    def _close_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def abandon(self) -> None:
        """Close the copies of all channels in a forked process, whose parent uses them."""
        self._close_launcher()
        for worker in list(self._workers):
            worker._channel.close()


def _start_launcher() -> socket.socket:
    process, mine = start_service(_SERVICE)
    threading.Thread(target=process.wait, daemon=True).start()
    return mine


_pool = WorkerPool()


def workers() -> WorkerPool:
    """Return the pool of this process."""
    return _pool


def _forget_workers() -> None:
    global _pool
    _pool.abandon()
    _pool = WorkerPool()


run_after_fork(_forget_workers)
