"""Programs in a box: what they print, how they end, and what happens to them at a time-out."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from intercode.sandbox.contract import Limits
from intercode.sandbox.supervisor.client import SupervisedSandbox
from support import back_end
from support.boxes import end_waiting, eventually, open_box

pytestmark = pytest.mark.sandbox


def sh(box: SupervisedSandbox, code: str, timeout: float = 20.0) -> str:
    result = box.run(["bash", "-c", code], timeout=timeout)
    assert not result.timed_out
    return result.output


def test_output_is_in_the_order_of_writing(box: SupervisedSandbox) -> None:
    code = "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
    assert sh(box, code) == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"


@pytest.mark.parametrize(
    ("code", "status"), [("true", 0), ("exit 7", 7), ("kill -TERM $$", -15), ("nothere-x", 127)]
)
def test_exit_status(box: SupervisedSandbox, code: str, status: int) -> None:
    result = box.run(["bash", "-c", code])
    assert (result.exit_code, result.timed_out, result.ok) == (status, False, status == 0)


def test_stdin_directory_and_environment(box: SupervisedSandbox) -> None:
    code = ["bash", "-c", "cat; pwd; echo $X-$HOME"]
    result = box.run(code, stdin=b"given\n", cwd="/usr", env={"X": "1", "PATH": "/usr/bin"})
    assert result.output == "given\n/usr\n1-\n"
    assert box.run(["cat"]).output == ""  # an empty stdin, at once


def test_a_program_or_directory_that_is_not_there(box: SupervisedSandbox) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        box.run(["no-such-program"])
    with pytest.raises(FileNotFoundError, match="/no/such/dir"):
        box.run(["true"], cwd="/no/such/dir")
    assert box.run(["echo", "on"]).output == "on\n"


def test_a_time_out_returns_what_was_printed_and_kills_the_tree(box: SupervisedSandbox) -> None:
    code = "echo before; (sleep 600 & setsid sleep 600 & sleep 600) & sleep 600"
    result = box.run(["bash", "-c", code], timeout=0.5)
    assert (result.output, result.exit_code, result.timed_out) == ("before\n", None, True)
    assert "sleep" not in sh(box, "cat /proc/[0-9]*/comm")


def test_a_time_out_spares_what_was_there_before(box: SupervisedSandbox) -> None:
    old = box.spawn(["sleep", "600"])
    time.sleep(0.05)  # the kernel tells ages in hundredths of a second
    assert box.run(["sleep", "600"], timeout=0.2).timed_out
    assert old.wait(0) is None
    old.kill()
    assert old.wait(10) == -9


def test_clipped_output_says_so_and_keeps_both_ends() -> None:
    with open_box(limits=Limits(output=1000)) as box:
        result = box.run(["bash", "-c", "echo first; seq 10000; echo last"])
    assert result.omitted_bytes > 40_000
    assert result.output.startswith("first\n1\n") and result.output.endswith("last\n")
    assert f"[... {result.omitted_bytes} bytes left out ...]" in result.output


def test_decoding_never_fails(box: SupervisedSandbox) -> None:
    assert box.run(["printf", r"a\xff\xc3b\xe2\x82\xac"]).output == r"a\xff\xc3b€"


@pytest.mark.parametrize("code", ["yes", "yes &", "cat /dev/zero", "head -c 300000000 /dev/zero"])
def test_endless_and_huge_output_are_held(box: SupervisedSandbox, code: str) -> None:
    result = box.run(["bash", "-c", code], timeout=1.0)
    assert len(result.output) <= box.spec.limits.output + 100
    assert box.run(["echo", "usable"]).output == "usable\n"


def test_processes_of_the_box_do_not_hold_the_owner_up(box: SupervisedSandbox) -> None:
    """A daemon that keeps the output open: the command is over when the command is over."""
    assert sh(box, "sleep 600 & echo done") == "done\n"
    data, status, cut = box.run_bytes(["bash", "-c", "(sleep 0.3; echo late) & "], until_eof=True)
    assert (data, status, cut) == (b"late\n", 0, 0)


def test_many_boxes_in_threads() -> None:
    def one(i: int) -> str:
        with open_box() as box:
            box.write_file("/tmp/mine", str(i).encode())
            return box.run(["cat", "/tmp/mine"], timeout=60).output

    count = back_end.some(50)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(count))) == [str(i) for i in range(count)]


@pytest.mark.slow
def test_no_descriptor_is_leaked() -> None:
    def count() -> int:
        end_waiting()
        return len(os.listdir("/proc/self/fd"))

    open_box().close()
    before = count()
    for i in range(back_end.some(200)):
        box = open_box()
        if i % 10 == 0:
            box.run(["true"])
            box.read_file("/etc/passwd")
            box.clone().close()
        box.close()
        box.close()
    eventually(lambda: count() <= before, f"{before} descriptors before, now {count()}")


def test_an_empty_command_is_refused_and_costs_nothing(box: SupervisedSandbox) -> None:
    with pytest.raises((OSError, ValueError)):
        box.run([])
    assert box.run(["echo", "on"]).output == "on\n"


def test_a_supervisor_that_answers_late_costs_nothing_that_runs(box: SupervisedSandbox) -> None:
    sleeper = box.spawn(["sleep", "600"])
    supervisor = box.supervisor_pid
    os.kill(supervisor, signal.SIGSTOP)
    try:
        late = threading.Timer(1.0, os.kill, (supervisor, signal.SIGCONT))
        late.start()
        assert box.run(["echo", "on"]).output == "on\n"
    finally:
        os.kill(supervisor, signal.SIGCONT)
        late.join()
    assert sleeper.wait(0.1) is None
