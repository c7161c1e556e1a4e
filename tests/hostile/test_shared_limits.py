"""What the kernel counts for each user or for the whole machine: no sandbox can use it up for
another."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
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
    "inotify instances": 8,
    "timers": 1024,
    "terminals": 64,
    "contexts of asynchronous input and output": 0,
    "large pipes": 0,
    "message queues": 32,
}


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


_FILL = """
import fcntl, os, resource, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
for _ in range(3):
    if not os.fork():
        break
pipes = []
while len(pipes) < 480: pipes.append(os.pipe())
os.write(1, b"%d\\n" % fcntl.fcntl(pipes[-1][1], 1032))  # in one piece: four processes write
time.sleep(60)
"""
_USE = """
import ctypes, fcntl, os, subprocess, sys
libc = ctypes.CDLL(None)
print("pipe", fcntl.fcntl(os.pipe()[1], 1032))
print("inotify", sum(libc.inotify_init() >= 0 for _ in range(8)))
child = subprocess.Popen(["sh", "-c", "head -c 30000 /dev/zero"], stdout=subprocess.PIPE)
print("ended", child.wait(25))
"""
_ALL = "pipe 65536\ninotify 8\nended 0\n"


@pytest.fixture
def need_user_ids() -> None:
    if why := Launcher.get().user_ids_error:
        pytest.skip(f"all sandboxes have one user id and share these counts: {why}")


def start(sandbox: BaseSandbox, code: str, lines: int) -> list[str]:
    """Start a program, and return the lines that it prints first."""
    reader, writer = os.pipe()
    sandbox.spawn(["python3", "-c", code], fds={1: writer})
    os.close(writer)
    with open(reader) as output:
        return [output.readline() for _ in range(lines)]


@pytest.mark.namespace_only("the containers of a user share these counts")
@pytest.mark.usefixtures("need_user_ids")
def test_pipes_of_one_sandbox_take_nothing_from_another() -> None:
    """More than the kernel's budget for a user: a correct program in another sandbox then waited
    for ever, because its pipe held 8 KB instead of 64."""
    pages = int(Path("/proc/sys/fs/pipe-user-pages-soft").read_text())
    with open_test_sandbox() as greedy, open_test_sandbox() as other:
        sizes = {int(line) for line in start(greedy, _FILL, 4)}
        assert not 0 < pages <= 4 * 480 * 16 or min(sizes) < 1 << 16, "its own pipes are small"
        assert other.run(["python3", "-c", _USE], timeout=30).output == _ALL


@pytest.mark.namespace_only("the containers of a user share these counts")
@pytest.mark.usefixtures("need_user_ids")
def test_inotify_instances_of_all_sandboxes_take_nothing_from_another() -> None:
    """The kernel allows a user 128; sixteen sandboxes have as many."""
    code = _CODE.replace("WHAT", "'inotify instances'").replace("MOST", "8")
    opened: list[BaseSandbox] = []
    try:
        for _ in range(17):
            opened.append(open_test_sandbox())
            code_that_stays = code.replace("print(taken)", "print(taken, flush=True)")
            assert start(opened[-1], f"{code_that_stays}\nimport time; time.sleep(60)", 1) == [
                "8\n"
            ]
        with open_test_sandbox() as other:
            assert other.run(["python3", "-c", _USE], timeout=30).output == _ALL
    finally:
        for sandbox in opened:
            sandbox.close()


_SPIN = """
import os
import time
os.sched_setaffinity(0, [{processor}])
for _ in range({count}):
    if not os.fork():
        os.setsid()
        while True: pass
print("busy", flush=True)
"""


@pytest.mark.namespace_only("an engine divides the processors between containers")
def test_a_sandbox_with_busy_sessions_leaves_half_of_a_processor_to_another() -> None:
    """Without a group for each sandbox the kernel divides between sessions: 6 % were left."""
    with open_test_sandbox() as greedy, open_test_sandbox() as other:
        if not has_processor_groups():
            pytest.skip("needs control groups with the processor controller")
        processor = min(os.sched_getaffinity(0))
        for sandbox, count in ((greedy, 16), (other, 1)):
            code = _SPIN.format(processor=processor, count=count)
            assert start(sandbox, code, 1) == ["busy\n"]
        before = used_ticks(greedy), used_ticks(other)
        theirs = ours = 0
        while theirs + ours < 200:
            theirs, ours = used_ticks(greedy) - before[0], used_ticks(other) - before[1]
    assert ours > theirs / 3, (ours, theirs)


def has_processor_groups() -> bool:
    """Whether each sandbox has a control group that divides the processors."""
    directories = Launcher.get().cgroup_directories
    return any(
        Path(home, "idle", name).exists()
        for home in directories
        for name in ("cpu.shares", "cpu.weight")
    )


def used_ticks(sandbox: BaseSandbox) -> int:
    """The processor time of the sandbox's live processes."""
    assert isinstance(sandbox, NamespaceSandbox)
    total = 0
    for process in sandbox._list_processes():
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended after it was listed
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total
