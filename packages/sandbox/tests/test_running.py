"""Programs in a sandbox: their output, their end, and timeouts."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.errors import SandboxLostError
from intercode_sandbox.supervisor.process_table import list_descendants
from intercode_sandbox.supervisor.supervised_process import SupervisedProcess
from support import backend
from support.sandboxes import end_waiting, eventually, open_test_sandbox

pytestmark = pytest.mark.sandbox


def sh(sandbox: BaseSandbox, code: str, timeout: float = 20.0) -> str:
    result = sandbox.run(["bash", "-c", code], timeout=timeout)
    assert not result.timed_out
    return result.output


def test_output_is_in_the_order_of_writing(sandbox: BaseSandbox) -> None:
    code = "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
    assert sh(sandbox, code) == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"


def test_no_sandbox_shares_its_variables_with_another() -> None:
    with open_test_sandbox() as first, open_test_sandbox() as second:
        first.env.update(OWN="1")  # type: ignore[attr-defined]
        assert first.run(["printenv", "OWN"]).output == "1\n"
        with open_test_sandbox() as third:
            assert "OWN" not in second.env and "OWN" not in third.env


@pytest.mark.parametrize(
    ("code", "status"), [("true", 0), ("exit 7", 7), ("kill -TERM $$", -15), ("nothere-x", 127)]
)
def test_exit_status(sandbox: BaseSandbox, code: str, status: int) -> None:
    result = sandbox.run(["bash", "-c", code])
    assert (result.exit_code, result.timed_out, result.ok) == (status, False, status == 0)


def test_stdin_directory_and_environment(sandbox: BaseSandbox) -> None:
    code = ["bash", "-c", "cat; pwd; echo $X-$HOME"]
    result = sandbox.run(code, stdin=b"given\n", cwd="/usr", env={"X": "1", "PATH": "/usr/bin"})
    assert result.output == "given\n/usr\n1-\n"
    assert sandbox.run(["cat"]).output == ""  # stdin is empty


def test_a_program_or_directory_that_is_not_there(sandbox: BaseSandbox) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        sandbox.run(["no-such-program"])
    with pytest.raises(FileNotFoundError, match="/no/such/dir"):
        sandbox.run(["true"], cwd="/no/such/dir")
    assert sandbox.run(["echo", "on"]).output == "on\n"


def test_long_output_is_cut_in_the_middle_with_a_note() -> None:
    with open_test_sandbox(limits=Limits(output=1000)) as sandbox:
        result = sandbox.run(["bash", "-c", "echo first; seq 10000; echo last"])
    assert result.omitted_bytes > 40_000
    assert result.output.startswith("first\n1\n") and result.output.endswith("last\n")
    assert f"[... {result.omitted_bytes} bytes left out ...]" in result.output


def test_decoding_never_fails(sandbox: BaseSandbox) -> None:
    assert sandbox.run(["printf", r"a\xff\xc3b\xe2\x82\xac"]).output == r"a\xff\xc3b€"


@pytest.mark.parametrize("code", ["yes", "yes &", "cat /dev/zero", "head -c 300000000 /dev/zero"])
def test_endless_and_huge_output_is_limited(sandbox: BaseSandbox, code: str) -> None:
    result = sandbox.run(["bash", "-c", code], timeout=1.0)
    assert len(result.output) <= sandbox.spec.limits.output + 100
    assert sandbox.run(["echo", "usable"]).output == "usable\n"


def test_background_processes_do_not_block_the_owner(sandbox: BaseSandbox) -> None:
    """A daemon keeps the output open: the command ends without waiting for it."""
    assert sh(sandbox, "sleep 600 & echo done") == "done\n"
    data, status, cut = sandbox.run_bytes(
        ["bash", "-c", "(sleep 0.3; echo late) & "], until_eof=True
    )
    assert (data, status, cut) == (b"late\n", 0, 0)


def test_many_sandboxes_in_threads() -> None:
    def one(i: int) -> str:
        with open_test_sandbox() as sandbox:
            sandbox.write("/tmp/mine", str(i).encode())
            return sandbox.run(["cat", "/tmp/mine"], timeout=60).output

    count = backend.some(50)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(count))) == [str(i) for i in range(count)]


@pytest.mark.slow
def test_no_descriptor_is_leaked() -> None:
    def count() -> int:
        end_waiting()
        return len(os.listdir("/proc/self/fd"))

    open_test_sandbox().close()
    before = count()
    for i in range(backend.some(200)):
        sandbox = open_test_sandbox()
        if i % 10 == 0:
            sandbox.run(["true"])
            sandbox.read("/etc/passwd")
            sandbox.fork().close()
        sandbox.close()
        sandbox.close()
    eventually(lambda: count() <= before, f"{before} descriptors before, now {count()}")


def test_a_process_with_a_name_that_is_no_text_does_not_hide_from_the_owner(
    sandbox: BaseSandbox,
) -> None:
    name = r"import ctypes, time; ctypes.CDLL(None).prctl(15, b'\xff'); time.sleep(600)"
    sandbox.spawn(["python3", "-c", name])

    def names() -> list[str]:
        return [m.name for m in list_descendants(sandbox.supervisor_pid)]

    eventually(lambda: "\udcff" in names(), "it is found by its name")


def test_an_empty_command_is_refused_and_harmless(sandbox: BaseSandbox) -> None:
    with pytest.raises((OSError, ValueError)):
        sandbox.run([])
    assert sandbox.run(["echo", "on"]).output == "on\n"


def test_a_late_answer_of_a_supervisor_ends_no_process(sandbox: BaseSandbox) -> None:
    sleeper = sandbox.spawn(["sleep", "600"])
    supervisor = sandbox.supervisor_pid
    os.kill(supervisor, signal.SIGSTOP)
    try:
        late = threading.Timer(1.0, os.kill, (supervisor, signal.SIGCONT))
        late.start()
        assert sandbox.run(["echo", "on"]).output == "on\n"
    finally:
        os.kill(supervisor, signal.SIGCONT)
        late.join()
    assert sleeper.wait(0.1) is None


def test_a_process_can_be_killed_while_another_thread_waits_for_it() -> None:
    sent: list[int] = []
    looks = threading.Event()

    class Process(SupervisedProcess):
        def _wait_readable(self, timeout: float | None) -> bool:
            if timeout == 0:  # ``kill`` looks whether the process has ended
                looks.set()
                time.sleep(0.2)  # the other thread reads the end if it may
            return super()._wait_readable(timeout)

    read, write = os.pipe()
    os.write(write, (7).to_bytes(4, "little"))
    os.close(write)
    process = Process(1, read, lambda number: sent.append(number), SandboxLostError)
    with ThreadPoolExecutor(1) as other:
        killed = other.submit(process.kill)
        assert looks.wait(60)
        assert process.wait() == 7
        killed.result(60)
    process.kill()
    assert sent == [] and process.wait() == process.wait(0) == 7


def test_the_loss_of_a_process_is_reported_each_time() -> None:
    read, write = os.pipe()
    os.close(write)
    process = SupervisedProcess(1, read, lambda number: None, SandboxLostError)
    for timeout in (None, 0, 5.0):
        with pytest.raises(SandboxLostError):
            process.wait(timeout)
