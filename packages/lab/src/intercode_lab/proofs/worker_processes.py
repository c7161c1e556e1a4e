"""Processes of ``multiprocessing`` that end with the process that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess

_SAFE_PATH = "PYTHONSAFEPATH"
_variables_lock = threading.Lock()


class _Process(SpawnProcess):
    """A process in which Ctrl-C has no effect, not even while it starts."""

    def start(self) -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            with _without_working_directory():
                super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Context(SpawnContext):
    Process = _Process


@contextmanager
def _without_working_directory() -> Iterator[None]:
    """Let the interpreters that start in the block import nothing from the working directory, which
    ``python -c`` would search first. They get the search path of this process."""
    with _variables_lock:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            del os.environ[_SAFE_PATH]
            if before is not None:
                os.environ[_SAFE_PATH] = before


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes. They end when this process is killed, and on Ctrl-C at once and
    without a message; what is submitted and has not begun by the end of the block never runs.

    A process imports the script that runs, so a script needs ``if __name__ == "__main__":``.
    """
    others = set(multiprocessing.active_children())
    with _without_working_directory():  # this starts a process that tracks resources
        pool = ProcessPoolExecutor(count, _Context(), initializer=_end_with_owner)
    try:
        yield pool
    except KeyboardInterrupt:  # they would finish what they do
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_owner() -> None:
    """Let this process end when the one that started it is killed, and do nothing on Ctrl-C."""

    def wait() -> None:
        owner = multiprocessing.parent_process()
        assert owner is not None
        owner.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    # a handler, because programs that this process starts would inherit that it is ignored
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
