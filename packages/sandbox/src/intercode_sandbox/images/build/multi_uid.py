"""Runs build commands that need more than one user id, such as apt.

The supervisor's program (``supervisor/c/namespace/image_build.c``) runs the command.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from intercode_sandbox.errors import SandboxError
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.supervisor import build, programs
from intercode_sandbox.supervisor.runtime import protocol
from intercode_sandbox.supervisor.subordinate_ids import PROGRAMS, id_ranges

_LIMITS = {"disk": 64 << 20, "inodes": 10_000}  # only of the tmpfs; the build writes to disk
_ERROR_LINES = 20  # lines of output in an error
_MAX_LINE = 1 << 16  # bytes of output that are treated as one line
_TIMEOUT_STATUS = 124


def run_multi_uid(
    lowers: Sequence[Path],
    home: Path,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    files: Mapping[str, str],
    timeout: float,
    progress: Callable[[str], None],
) -> tuple[int, str]:
    """Run a command on trees (topmost first) and write its changes to ``home``/upper.

    ``files`` maps names of files in /dev/shm to their texts. Returns the exit status and the last
    lines of output. Raises SandboxError if a sandbox with several ids cannot be started.
    """
    stage = cache_root() / "stage"
    stage.mkdir(exist_ok=True)
    request = {
        "layers": [str(tree) for tree in lowers],
        "upper": str(home),
        "stage": str(stage),
        "argv": list(argv),
        "env": dict(env),
        "cwd": cwd,
        "files": {"resolv.conf": _read_text("/etc/resolv.conf"), **files},
        "limits": _LIMITS,
        "appearance": "docker",
        "targets": [1, 2],
    }
    local_socket, remote_socket = socket.socketpair()
    with local_socket, _start_process(remote_socket, timeout) as (process, output):
        protocol.send(local_socket, request)
        local_socket.settimeout(30)
        if _read_status(local_socket) == b"M":
            _write_id_maps(process.pid)
            local_socket.sendall(b"G")
        last: deque[str] = deque(maxlen=_ERROR_LINES)
        for line in iter(lambda: output.readline(_MAX_LINE), b""):
            text = line.decode("utf-8", "replace").rstrip()
            last.append(text)
            progress(text)
        process.wait()
        answer = local_socket.recv(1 << 16)
    printed = "\n".join(last)
    if answer[:1] == b"S":
        return int(answer[1:]), printed
    if process.returncode and process.returncode < 0:
        return _TIMEOUT_STATUS, f"{printed}\nended after {timeout:g} s"
    reason = answer[1:].decode("utf-8", "replace") or printed
    raise SandboxError(f"a sandbox with several user ids cannot be started here: {reason}")


def _read_status(local_socket: socket.socket) -> bytes:
    word = local_socket.recv(1)
    if word == b"E":
        raise SandboxError(
            "a sandbox with several user ids cannot be started here: "
            f"{local_socket.recv(4096).decode()}"
        )
    return word


@contextmanager
def _start_process(
    remote_socket: socket.socket, timeout: float
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start the process that runs the command; kill it after ``timeout`` seconds and on exit."""
    with remote_socket:
        process = subprocess.Popen(
            [programs.find_program(build.SUPERVISOR), "build", str(remote_socket.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[remote_socket.fileno()],
            env={},
            cwd="/",
        )
    clock = threading.Timer(timeout, process.kill)
    clock.daemon = True
    clock.start()
    assert process.stdout is not None
    try:
        yield process, process.stdout
    finally:
        clock.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def _write_id_maps(pid: int) -> None:
    """Write the id maps of a process's user namespace: root in it is the sandbox's user on this
    machine, and other users have subordinate ids."""
    for kind, (start, count) in id_ranges().items():
        rows = [(0, sandbox_uid(), 1), (1, start, count)]
        if os.geteuid() == 0:
            text = "".join(f"{a} {b} {c}\n" for a, b, c in rows)
            Path(f"/proc/{pid}/{kind}_map").write_text(text)
            continue
        words = [str(number) for row in rows for number in row]
        done = subprocess.run(
            [PROGRAMS[kind], str(pid), *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SandboxError(f"{PROGRAMS[kind]} {' '.join(words)}: {done.stderr.strip()}")


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
