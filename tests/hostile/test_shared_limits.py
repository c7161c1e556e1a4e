"""What the kernel counts for each user or for the whole machine: no sandbox can use it up for
another."""

from __future__ import annotations

import pytest

from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox

_CODE = """
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
io_setup = 0 if os.uname().machine == "aarch64" else 206
timer = ctypes.c_void_p()

def terminal():
    try: return os.openpty()
    except OSError: return None

def large_pipe():
    reader, writer = os.pipe()
    try: return fcntl.fcntl(writer, 1031, 1 << 20)
    except OSError: return None

take = {
    "inotify instances": lambda: libc.inotify_init() >= 0,
    "timers": lambda: libc.timer_create(0, None, ctypes.byref(timer)) == 0,
    "terminals": terminal,
    "contexts of asynchronous input and output":
        lambda: libc.syscall(io_setup, 100, ctypes.byref(ctypes.c_ulong(0))) == 0,
    "large pipes": large_pipe,
    "message queues": lambda: libc.msgget(0, 0o1600) >= 0,
}[WHAT]
taken = 0
while taken < MOST and take(): taken += 1
print(taken)
"""
_ALLOWED = {
    "inotify instances": 8, "timers": 1024, "terminals": 64,
    "contexts of asynchronous input and output": 0, "large pipes": 0, "message queues": 32,
}  # fmt: skip


@pytest.mark.namespace_only("the containers of a user share most of these counts")
@pytest.mark.parametrize("what", _ALLOWED)
def test_a_sandbox_gets_a_share_of_what_all_have_together(what: str) -> None:
    code = _CODE.replace("WHAT", repr(what)).replace("MOST", str(_ALLOWED[what] + 50))
    with open_test_sandbox() as sandbox:
        done = sandbox.run(["python3", "-c", code], timeout=30)
    assert done.ok and int(done.output) <= _ALLOWED[what], done.output


@pytest.mark.namespace_only("the shares of a recycled sandbox of namespaces")
def test_a_recycled_sandbox_has_the_same_share_of_message_queues() -> None:
    with open_test_sandbox() as sandbox:
        read = ["cat", "/proc/sys/kernel/msgmni", "/proc/sys/kernel/sem"]
        before = sandbox.run(read).output
        sandbox.recycle()
        assert sandbox.run(read).output == before
        assert not sandbox.run(["sh", "-c", "echo 9 > /proc/sys/kernel/msgmni"]).ok
