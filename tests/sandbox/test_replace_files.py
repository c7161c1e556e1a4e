"""A box that is given other files while what runs in it waits, and signals by number."""

from __future__ import annotations

import os
import signal

import pytest

from intercode.core.errors import SandboxError
from support.boxes import eventually, open_box

pytestmark = pytest.mark.sandbox


def test_what_waits_finds_the_files_of_then() -> None:
    read, write = os.pipe()
    out, told = os.pipe()
    with open_box() as box, open_box() as then:
        then.write_file("/tmp/f", b"then")
        then.write_file("/etc/of-then", b"")
        box.write_file("/tmp/f", b"now")
        box.write_file("/tmp/of-now", b"")
        waits = box.spawn(
            ["/bin/sh", "-c", "read x; cat /tmp/f; ls /tmp /etc/of-then; echo new > /tmp/new"],
            fds={0: read, 1: told},
        )
        box.replace_files(then)
        os.write(write, b"\n")
        assert waits.wait(20) == 0
        assert os.read(out, 1000) == b"then/etc/of-then\n\n/tmp:\nf\n"
        assert box.changed_paths() == ["/etc/of-then", "/tmp/f", "/tmp/new"]
        assert box.read_file("/tmp/new") == b"new\n"
        assert then.changed_paths() == ["/etc/of-then", "/tmp/f"]
    for fd in (read, write, out, told):
        os.close(fd)


def test_it_may_be_given_files_again_and_again() -> None:
    with open_box() as box, open_box() as then:
        then.write_file("/tmp/f", b"then")
        for n in range(5):
            box.write_file(f"/tmp/{n}", b"x")
            box.replace_files(then)
            assert box.changed_paths() == ["/tmp/f"]


@pytest.mark.namespace_only("in a container the look is files alone")
def test_a_box_of_another_kind_is_refused() -> None:
    with (
        open_box(appearance="docker") as box,
        open_box() as then,
        pytest.raises(SandboxError, match="plain"),
    ):
        box.replace_files(then)


def test_a_signal_reaches_the_process_of_that_number_and_never_the_first() -> None:
    with open_box() as box:
        sleeps = box.spawn(["/bin/sh", "-c", "sleep 60 & exec sleep 61"])
        eventually(lambda: len(box.processes()) == 1, "a process in the background")
        (other,) = box.processes()
        box.signal(int(other.split("(")[1][:-1]), signal.SIGKILL)
        eventually(lambda: not box.processes(), "it has ended")
        box.signal(1, signal.SIGKILL)
        box.signal(12345, signal.SIGKILL)
        assert sleeps.wait(0.1) is None
        box.signal(sleeps.pid, signal.SIGTERM)
        assert sleeps.wait(20) == -signal.SIGTERM
