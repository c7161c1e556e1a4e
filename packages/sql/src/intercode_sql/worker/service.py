"""What the launcher and the workers execute; see ``service_start.py``."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from intercode_sql.base import SqlDeterminism
from intercode_sql.engines import preloaded_engines
from intercode_sql.errors import SqlError
from intercode_sql.worker.process import EngineSource, Saved, receive, send
from intercode_sql.worker.service_start import service_channel

_MEMORY_BYTES = 3 << 29
_SQLITE_HEAP_BYTES = 1 << 29
_FILE_BYTES = 1 << 30
_ORPHAN_SECONDS = 5.0
"""How long after its limit a request ends whose owner has died."""


def launch(control: socket.socket) -> None:
    """Fork a worker for each socket that arrives, until the owner ends."""
    for found in preloaded_engines():
        found(bounded=False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    while True:
        _, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not fds:
            return
        channel = socket.socket(fileno=fds[0])
        if os.fork() == 0:
            control.close()
            try:
                _limit_resources()
                serve(channel)
            finally:
                os._exit(1)
        channel.close()


def _engine(opener: str, determinism: SqlDeterminism | None) -> Any:
    module, _, name = opener.partition(":")
    return getattr(importlib.import_module(module), name)(bounded=False, determinism=determinism)


def _limit_resources() -> None:
    """Bound memory and files, and make this process the first that the system ends for memory."""
    with suppress(ImportError, OSError, ValueError):  # other systems have some of these limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    if sys.platform == "linux":
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    connection = sqlite3.connect(":memory:")
    connection.execute(f"PRAGMA hard_heap_limit = {_SQLITE_HEAP_BYTES}")
    connection.close()


def _set_alarm(seconds: float) -> Callable[[], Any]:
    """End this process after some seconds. Return a function that cancels this."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return lambda: signal.setitimer(signal.ITIMER_REAL, 0)
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
    return timer.cancel


def serve(channel: socket.socket) -> None:
    """Answer requests, until the owner closes the channel."""
    send(channel, (os.getpid(),))
    service = WorkerSession()
    while (request := receive(channel)) is not None:
        seconds, operation, *arguments = request
        alarm = _set_alarm(min(seconds, 1e6) + _ORPHAN_SECONDS)
        try:
            answer = getattr(service, operation)(*arguments)
        except MemoryError:
            return
        except SqlError as e:  # the owner raises it
            send(channel, (e,))
        except Exception as e:  # its class can be one that the owner does not load
            send(channel, (SqlError(f"a process for SQL failed: {type(e).__name__}: {e}"),))
        else:
            saved = answer[-1] if isinstance(answer[-1], Saved) else None
            send(channel, (None, *answer), saved)
        alarm()
    service.close()


class WorkerSession:
    """The session of a worker. The methods are the requests."""

    def __init__(self) -> None:
        self._engines: dict[EngineSource, Any] = {}
        self._session: Any = None

    def open(
        self, source: EngineSource, database: Any, limits: Any, saved: Saved | None
    ) -> tuple[None]:
        """Open a session, pristine or with a saved state, in place of the current one."""
        if self._session is not None:
            self._session.close()
            self._session = None
        engine = self._engines.get(source)
        if engine is None:
            for name, value in source.environment:
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            sys.path += [path for path in source.search_path if path not in sys.path]
            for module in source.modules:
                importlib.import_module(module)
            engine = self._engines[source] = _engine(source.opener, source.determinism)
        content = None if saved is None else pickle.loads(saved.content())
        self._session = engine.open(database, limits, content)
        return (None,)

    def run(self, code: str, timeout: float, values: Any) -> tuple[Any, ...]:
        """Run a statement. Return its result, whether the session differs from a pristine one,
        whether a transaction is open, what the owner copies, and the state if it has changed."""
        session = self._session
        session.values = values
        result = session.run(code, timeout)
        (saved,) = self.save() if session.take_change() else (None,)
        facts = session.dirty, session.in_transaction, session.database, session.values
        return result, *facts, session.cacheable, saved

    def save(self) -> tuple[Saved]:
        """Return the state, with an open transaction's changes."""
        return (Saved(pickle.dumps(self._session.saved(), pickle.HIGHEST_PROTOCOL)),)

    def close(self) -> None:
        """End the session, and write what the engines have cached."""
        if self._session is not None:
            self._session.close()
        for engine in self._engines.values():
            engine.close()

    def changes(self) -> tuple[list[str]]:
        """Return what the session has changed."""
        return (self._session.changes(),)

    def state_text(self) -> tuple[str]:
        """Return the state as text."""
        return (self._session.state_text(),)


def main() -> None:
    """Be the launcher, or a worker where workers cannot be forked."""
    channel = service_channel()
    if hasattr(os, "pidfd_open"):
        launch(channel)
        return
    _limit_resources()
    serve(channel)


if __name__ == "__main__":
    main()
