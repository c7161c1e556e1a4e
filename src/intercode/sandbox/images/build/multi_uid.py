"""Runs build commands that need more than one user id, such as apt.

The supervisor's program (``supervisor/c/namespace/image_build.c``) runs the command.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from intercode.core.errors import SandboxError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.sandbox.supervisor import build, programs
from intercode.sandbox.supervisor.runtime import protocol

_ROOT_RANGE_START, _RANGE_SIZE = 0x70000000, 65535
"""The range of ids that builds use if this process is root. systemd leaves it unused, and root
needs no entry in /etc/subuid."""
_LIMITS = {"disk": 64 << 20, "inodes": 10_000}  # only of the tmpfs; the build writes to disk
_ERROR_LINES = 20  # lines of output in an error
_MAX_LINE = 1 << 16  # bytes of output that are treated as one line
_TIMEOUT_STATUS = 124


def subordinate_ids(sub_ids: Path = Path("/etc/subuid")) -> tuple[int, int]:
    """Return the first id and the number of ids for users other than root; (0, 0) if none."""
    if os.geteuid() == 0:
        return _ROOT_RANGE_START, _RANGE_SIZE
    user_keys = {str(os.geteuid()), _user_name()}
    for line in sub_ids.read_text().splitlines() if sub_ids.is_file() else ():
        name, _, rest = line.partition(":")
        start, _, count = rest.partition(":")
        if name in user_keys and start.isdigit() and count.isdigit():
            return int(start), min(int(count), _RANGE_SIZE)
    return 0, 0


def _user_name() -> str:
    import pwd  # Windows has none

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def unavailable_reason() -> str:
    """Return why a build cannot use several user ids and what to do; empty if it can."""
    if subordinate_ids()[1] and subordinate_ids(Path("/etc/subgid"))[1]:
        if os.geteuid() == 0 or shutil.which("newuidmap"):
            return ""
        return "newuidmap is not installed: `apt-get install uidmap`"
    return (
        f"{_user_name() or os.geteuid()} has no ranges of ids in /etc/subuid and /etc/subgid: "
        f"`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {_user_name()}` as root"
    )


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
        "layers": [str(tree) for tree in lowers], "upper": str(home), "stage": str(stage),
        "argv": list(argv), "env": dict(env), "cwd": cwd,
        "files": {"resolv.conf": _read_text("/etc/resolv.conf"), **files},
        "limits": _LIMITS, "appearance": "docker", "targets": [1, 2],
    }  # fmt: skip
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
    for kind in ("uid", "gid"):
        start, count = subordinate_ids(Path(f"/etc/sub{kind}"))
        rows = [(0, sandbox_uid(), 1), (1, start, count)]
        if os.geteuid() == 0:
            text = "".join(f"{a} {b} {c}\n" for a, b, c in rows)
            Path(f"/proc/{pid}/{kind}_map").write_text(text)
            continue
        words = [str(number) for row in rows for number in row]
        done = subprocess.run(
            [f"new{kind}map", str(pid), *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SandboxError(f"new{kind}map {' '.join(words)}: {done.stderr.strip()}")


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
