"""Files and devices of the machine that every sandbox shows: locks, watches and times of one stay
invisible to the machine and to other sandboxes."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator

import pytest

from intercode_sandbox.contract import BaseSandbox
from support.sandboxes import open_test_sandbox

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("an engine mounts the machine's own files"),
]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")

_LOCK = (
    "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, 6); print('locked', flush=True)"
)
_PROGRAM = os.path.realpath("/usr/bin/env")
_WATCH = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0x800)
for path in sys.argv[1:]:
    assert libc.inotify_add_watch(fd, path.encode(), 0xFFF) >= 0, path
print("watching", flush=True)
print(b"seen" if select.select([fd], [], [], 2)[0] else "quiet", flush=True)
"""


@pytest.fixture
def sandbox() -> Iterator[BaseSandbox]:
    with open_test_sandbox() as opened:
        yield opened


@pytest.fixture
def other() -> Iterator[BaseSandbox]:
    """A second sandbox."""
    with open_test_sandbox() as opened:
        yield opened


@pytest.mark.parametrize("path", [_PROGRAM, pytest.param("/dev/null", marks=needs_root)])
def test_a_lock_blocks_nobody_outside(path: str, sandbox: BaseSandbox, other: BaseSandbox) -> None:
    reader, writer = os.pipe()
    locking = ["python3", "-c", f"{_LOCK}; time.sleep(60)", path]
    process = sandbox.spawn(locking, fds={1: writer})
    os.close(writer)
    with open(reader, "rb") as output:
        assert output.readline() == b"locked\n"
        assert other.run(["python3", "-c", _LOCK, path], timeout=20).output == "locked\n"
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    process.kill()
    process.wait()


@pytest.mark.parametrize("path", [_PROGRAM, pytest.param("/dev/null", marks=needs_root)])
def test_a_watch_sees_nothing_outside(path: str, sandbox: BaseSandbox, other: BaseSandbox) -> None:
    reader, writer = os.pipe()
    process = sandbox.spawn(["python3", "-c", _WATCH, path, os.path.dirname(path)], fds={1: writer})
    os.close(writer)
    with open(reader, "rb") as output:
        assert output.readline() == b"watching\n"
        use = ["sh", "-c", f"cat {path} > /dev/null; {_PROGRAM} true"]
        assert other.run(use, timeout=20).ok
        subprocess.run(use, check=True)
        assert output.readline() == b"quiet\n"
    process.wait()


@pytest.mark.parametrize("name", ["null", "zero", "full", "random", "urandom", "tty"])
def test_times_of_devices_cannot_be_changed(name: str, sandbox: BaseSandbox) -> None:
    before = os.stat(f"/dev/{name}").st_mtime_ns
    assert not sandbox.run(["touch", "-d", "@1234567", f"/dev/{name}"]).ok
    assert not sandbox.run(["touch", f"/dev/{name}"]).ok
    assert os.stat(f"/dev/{name}").st_mtime_ns == before


def test_devices_can_be_written_to(sandbox: BaseSandbox) -> None:
    code = "echo x > /dev/null && echo x >> /dev/zero && head -c 4 /dev/urandom > /dev/null"
    assert sandbox.run(["sh", "-c", code]).ok
