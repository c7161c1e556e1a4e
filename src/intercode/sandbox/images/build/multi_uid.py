"""Commands of an image's build that need more than one user id, such as apt: see box/wide.py."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from intercode.core.errors import SandboxError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.sandbox import supervisor

_BOOT = "import os,sys;sys.path.insert(0,sys.argv[1]);from runtime.image_build import main;" \
    "main(int(sys.argv[2]))"  # fmt: skip
_ROOT_RANGE_START, _RANGE_SIZE = 0x70000000, 65535
"""Ids that systemd's list of ranges leaves unused; root may take them without being asked."""
_NAMESPACE_DIRECTORY = Path(supervisor.__file__).parent
_LIMITS = {"disk": 64 << 20, "inodes": 10_000}  # of the mount points: what is written goes to disk
_ERROR_LINES = 20  # lines of output that an error shows
_MAX_LINE = 1 << 16  # bytes that are taken for a line, however many come without an end
_TIMEOUT_STATUS = 124


def subordinate_ids(sub_ids: Path = Path("/etc/subuid")) -> tuple[int, int]:
    """Return the first of the machine's ids that may be root's companions in a box, and their
    number: 0 where there are none."""
    if os.geteuid() == 0:
        return _ROOT_RANGE_START, _RANGE_SIZE
    me = {str(os.geteuid()), _user_name()}
    for line in sub_ids.read_text().splitlines() if sub_ids.is_file() else ():
        name, _, rest = line.partition(":")
        start, _, count = rest.partition(":")
        if name in me and start.isdigit() and count.isdigit():
            return int(start), min(int(count), _RANGE_SIZE)
    return 0, 0


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def unavailable_reason() -> str:
    """What is in the way of boxes with several ids here, and the way out; empty if nothing is."""
    if subordinate_ids()[1] and subordinate_ids(Path("/etc/subgid"))[1]:
        if os.geteuid() == 0 or shutil.which("newuidmap"):
            return ""
        return "newuidmap is not here: `apt-get install uidmap`"
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
    """Run a command on trees (the topmost first) and leave what it changes in ``home``/upper.

    ``files`` are texts that it finds in /dev/shm by name. Returns its exit status and the last
    lines that it printed. Raises SandboxError where such a box cannot be made.
    """
    stage = cache_root() / "stage"
    stage.mkdir(exist_ok=True)
    request = {
        "layers": [str(tree) for tree in lowers], "upper": str(home), "stage": str(stage),
        "argv": list(argv), "env": dict(env), "cwd": cwd,
        "files": {"resolv.conf": _read_text("/etc/resolv.conf"), **files},
        "limits": _LIMITS, "binds": [], "anonymous_mounts": [], "appearance": "docker",
    }  # fmt: skip
    ours, theirs = socket.socketpair()
    with ours, _start_process(theirs, request, timeout) as (process, output):
        ours.settimeout(30)
        if _read_status(ours) == b"M":
            _write_id_maps(process.pid)
            ours.sendall(b"G")
        last: deque[str] = deque(maxlen=_ERROR_LINES)
        for line in iter(lambda: output.readline(_MAX_LINE), b""):
            text = line.decode("utf-8", "replace").rstrip()
            last.append(text)
            progress(text)
        process.wait()
        answer = ours.recv(1 << 16)
    printed = "\n".join(last)
    if answer[:1] == b"S":
        return int(answer[1:]), printed
    if process.returncode and process.returncode < 0:
        return _TIMEOUT_STATUS, f"{printed}\nended after {timeout:g} s"
    why = answer[1:].decode("utf-8", "replace") or printed
    raise SandboxError(f"a box with several ids cannot be made here: {why}")


def _read_status(ours: socket.socket) -> bytes:
    word = ours.recv(1)
    if word == b"E":
        raise SandboxError(
            f"a box with several ids cannot be made here: {ours.recv(4096).decode()}"
        )
    return word


@contextmanager
def _start_process(
    theirs: socket.socket, request: Mapping[str, object], timeout: float
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """The far side, killed after ``timeout`` seconds and when this is left."""
    with theirs:
        process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _BOOT,
                str(_NAMESPACE_DIRECTORY),
                str(theirs.fileno()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            env={},
            cwd="/",
        )
    clock = threading.Timer(timeout, process.kill)
    clock.daemon = True
    clock.start()
    assert process.stdin is not None and process.stdout is not None
    try:
        with process.stdin as stdin:
            stdin.write(json.dumps(request).encode())
        yield process, process.stdout
    finally:
        clock.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def _write_id_maps(pid: int) -> None:
    """Give a process's user namespace the box's id as root, and a range as the others."""
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
