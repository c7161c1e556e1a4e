"""Memory that no process maps counts for the limit of a sandbox without a control group, too."""

from __future__ import annotations

import pytest

from hostile.cases import python
from support.sandboxes import eventually
from support.shells import shell

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("the tier without a control group"),
]
MIB = 1 << 20
SOCKETS = """import socket, os, time
for process in range(6):
    if os.fork() == 0:
        pairs = []
        try:
            while True:
                a, b = socket.socketpair(); a.setblocking(False); pairs.append((a, b))
                try:
                    while True: a.send(bytes(65536))
                except BlockingIOError: pass
                CLOSE
        except OSError: time.sleep(30)
time.sleep(30)"""
DATAGRAMS = """import socket, os, time
for process in range(8):
    if os.fork() == 0:
        sockets = []
        try:
            while True:
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
                sockets.append(s)
                for _ in range(200): s.sendto(bytes(60000), s.getsockname())
        except OSError: time.sleep(30)
time.sleep(30)"""
FILES = """import os, time
files = []
while True:
    files.append(os.memfd_create('x'))
    for _ in range(8): os.write(files[-1], bytes(1 << 20))
    if len(files) > 60: time.sleep(30)"""
SHARED_MEMORY = """import ctypes
l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p
for n in range(40):
    i = l.shmget(0, 16 << 20, 0o1666)
    if i < 0: print('refused after', n); break
    a = l.shmat(i, None, 0); ctypes.memset(a, 1, 16 << 20); l.shmdt(ctypes.c_void_p(a))"""


@pytest.mark.parametrize(
    "code",
    [SOCKETS.replace("CLOSE", ""), SOCKETS.replace("CLOSE", "a.close()"), DATAGRAMS, FILES],
    ids=["sockets", "closed-senders", "datagrams", "memory-files"],
)
def test_it_counts(code: str) -> None:
    with shell("namespace/2", memory=150 * MIB) as (_, session):
        result = session.run(python(code), 60)
        assert "over the memory limit" in result.note, result
        assert session.run("echo on", 60).output == "on\n"


def test_shared_memory_of_system_v_is_bounded() -> None:
    with shell("namespace/2", memory=150 * MIB) as (_, session):
        assert session.run(python(SHARED_MEMORY), 60).output == "refused after 4\n"


def test_memory_is_not_counted_twice() -> None:
    """A file in memory that is also mapped, and a pair of sockets in use."""
    mapped = """import mmap, os, socket, time
f = os.memfd_create('x'); os.ftruncate(f, 90 << 20); m = mmap.mmap(f, 90 << 20)
for at in range(0, 90 << 20, 4096): m[at] = 1
a, b = socket.socketpair(); a.send(bytes(4096)); time.sleep(1); print('done')"""
    with shell("namespace/2", memory=150 * MIB) as (sandbox, session):
        assert session.run(python(mapped), 60).output == "done\n"
        assert sandbox.limit_exceeded() == ""


def test_the_descriptor_is_closed_with_the_sandbox() -> None:
    with shell("namespace/2") as (sandbox, _):
        watch = sandbox._watch  # type: ignore[attr-defined]
        (sockets,) = watch.sockets
        assert sockets.total() >= 0
    eventually(lambda: sockets._socket.fileno() < 0, "it is closed")
