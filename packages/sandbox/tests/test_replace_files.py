"""Replacing the files of a sandbox while its processes wait, and sending signals by number."""

from __future__ import annotations

import os
import signal

import pytest

from intercode_sandbox.errors import SandboxError
from support.sandboxes import eventually, open_test_sandbox

pytestmark = pytest.mark.sandbox


def test_waiting_processes_see_the_replaced_files() -> None:
    read, write = os.pipe()
    out, message = os.pipe()
    with open_test_sandbox() as sandbox, open_test_sandbox() as then:
        then.write("/tmp/f", b"then")
        then.write("/etc/of-then", b"")
        sandbox.write("/tmp/f", b"now")
        sandbox.write("/tmp/of-now", b"")
        waits = sandbox.spawn(
            ["/bin/sh", "-c", "read x; cat /tmp/f; ls /tmp /etc/of-then; echo new > /tmp/new"],
            fds={0: read, 1: message},
        )
        sandbox.replace_files(then)
        os.write(write, b"\n")
        assert waits.wait(20) == 0
        assert os.read(out, 1000) == b"then/etc/of-then\n\n/tmp:\nf\n"
        assert sandbox.changed_paths() == ["/etc/of-then", "/tmp/f", "/tmp/new"]
        assert sandbox.read("/tmp/new") == b"new\n"
        assert then.changed_paths() == ["/etc/of-then", "/tmp/f"]
    for fd in (read, write, out, message):
        os.close(fd)


def test_files_can_be_replaced_repeatedly() -> None:
    with open_test_sandbox() as sandbox, open_test_sandbox() as then:
        then.write("/tmp/f", b"then")
        for n in range(5):
            sandbox.write(f"/tmp/{n}", b"x")
            sandbox.replace_files(then)
            assert sandbox.changed_paths() == ["/tmp/f"]


@pytest.mark.namespace_only("in a container the look is files alone")
def test_a_sandbox_with_another_appearance_is_refused() -> None:
    with (
        open_test_sandbox(appearance="docker") as sandbox,
        open_test_sandbox() as then,
        pytest.raises(SandboxError, match="plain"),
    ):
        sandbox.replace_files(then)


def test_a_signal_reaches_its_process_and_never_pid_1() -> None:
    with open_test_sandbox() as sandbox:
        sleeps = sandbox.spawn(["/bin/sh", "-c", "sleep 60 & exec sleep 61"])
        eventually(lambda: len(sandbox.processes()) == 1, "a process in the background")
        (other,) = sandbox.processes()
        sandbox.signal(int(other.split("(")[1][:-1]), signal.SIGKILL)
        eventually(lambda: not sandbox.processes(), "it has ended")
        sandbox.signal(1, signal.SIGKILL)
        sandbox.signal(12345, signal.SIGKILL)
        assert sleeps.wait(0.1) is None
        sandbox.signal(sleeps.pid, signal.SIGTERM)
        assert sleeps.wait(20) == -signal.SIGTERM
