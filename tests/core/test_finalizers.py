"""What was collected is closed by another thread, which may need locks of any other."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

from intercode.core.finalizers import close_when_collected
from support.sandboxes import eventually


class Owner:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_an_owner_is_collected_where_a_lock_is_held() -> None:
    lock, closed = threading.Lock(), threading.Event()

    def close() -> None:
        with lock:
            closed.set()

    owner = Owner()
    close_when_collected(owner, close)
    with lock:
        del owner
        gc.collect()
        assert not closed.is_set()
    eventually(closed.is_set, "closed when the lock was free")


def test_an_error_ends_no_other_close() -> None:
    closed = threading.Event()
    for close in (lambda: 1 / 0, closed.set):
        close_when_collected(Owner(), close)
    gc.collect()
    eventually(closed.is_set, "closed after the error")


def test_a_forked_process_closes_its_own() -> None:
    close_when_collected(Owner(), int)
    gc.collect()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            close_when_collected(Owner(), lambda: os.write(writer, b"closed"))
            gc.collect()
            threading.Event().wait(60)
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, "rb", buffering=0) as pipe:
        assert pipe.read(6) == b"closed"
    os.kill(child, 9)
    os.waitpid(child, 0)


def test_what_is_left_is_closed_at_the_end() -> None:
    code = (
        "from intercode.core.finalizers import close_when_collected\n"
        "class Owner: pass\n"
        "owner = Owner()\n"
        "close_when_collected(owner, lambda: print('closed', flush=True))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "closed\n" and "Exception" not in done.stderr, done.stderr
