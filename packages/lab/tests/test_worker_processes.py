"""Worker processes end with their owner, and on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.sandboxes import eventually
from support.traces import living, started

SCRIPT = r"""
import os
import signal
import socket
import time
from intercode_lab.proofs.worker_processes import worker_processes

def work():
    os.write(1, b"%d\n" % os.getpid())  # in one piece; two processes write to this pipe
    time.sleep(600)

if __name__ == "__main__":
    try:
        with worker_processes(2) as pool:
            for _ in range(4):
                pool.submit(work)
            reader, writer = socket.socketpair()
            writer.setblocking(False)
            signal.set_wakeup_fd(writer.fileno())
            os.write(1, b"submitted\n")
            reader.recv(1)  # waiting for a result could miss a signal that comes as it begins
    except KeyboardInterrupt:
        raise SystemExit(7) from None
"""

SPAWN = """
import os
from intercode_lab.proofs.worker_processes import worker_processes
if __name__ == "__main__":
    with worker_processes(2) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()
    assert "PYTHONSAFEPATH" not in os.environ
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with two workers, in a process group of its own. Nothing of it is left."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, str(script)],
        text=True,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def lines(owner: subprocess.Popen[str], count: int) -> list[str]:
    assert owner.stdout is not None
    return [owner.stdout.readline().strip() for _ in range(count)]


@pytest.mark.parametrize("seen", [1, 3], ids=["while they start", "while they work"])
def test_ctrl_c_ends_them_at_once_and_prints_nothing(
    owner: subprocess.Popen[str], seen: int
) -> None:
    lines(owner, seen)
    os.killpg(owner.pid, signal.SIGINT)
    _, errors = owner.communicate(timeout=60)  # until the last of them has closed its output
    assert (owner.returncode, errors) == (7, "")


def test_they_end_when_their_owner_is_killed(owner: subprocess.Popen[str]) -> None:
    pids = [int(line) for line in lines(owner, 3) if line != "submitted"]
    workers = tuple((pid, started(pid)) for pid in pids)
    owner.kill()
    owner.communicate(timeout=60)
    eventually(lambda: not living(workers), "both workers have ended")


def test_they_import_nothing_from_the_directory_in_which_they_start(tmp_path: Path) -> None:
    directory, script = tmp_path / "data", tmp_path / "spawn.py"
    directory.mkdir()
    for name in ("concurrent", "random", "selectors", "sitecustomize", "typing"):
        (directory / f"{name}.py").write_text("raise SystemExit('a file of the data is imported')")
    script.write_text(SPAWN)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=directory,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0 and "of the data" not in done.stderr, done.stderr
