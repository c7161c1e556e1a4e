"""Running a program in a box as Inspect wants it: both streams apart, and alone at a time-out."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intercode.sandbox.output import Collector, communicate
from intercode.sandbox.supervisor.client import KeptSandbox
from intercode.sandbox.supervisor.connection import file_of
from intercode.sandbox.supervisor.runtime import protocol

_AFTERWARDS = 1.0  # seconds to read what was written before the time-out


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program printed; ``code`` is its exit status (128 + the signal that ended it), None at
    the time-out; ``cut``: a stream was longer than the limit, and is not whole."""

    stdout: bytes
    stderr: bytes
    code: int | None
    cut: bool


def run_apart(
    box: KeptSandbox,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes,
    timeout: float | None,
    limit: int,
) -> Ran:
    """Run a program to its end. At the time-out (seconds, None: never) it is killed with all that
    descends from it; what else runs in the box goes on.

    ``limit``: bytes that are kept of each stream. Raises OSError where it cannot be started.
    """
    out, out_w = os.pipe()
    err, err_w = os.pipe()
    streams = {out: Collector(limit), err: Collector(limit)}
    try:
        with file_of(stdin) as source:
            fds = {0: source.fileno(), 1: out_w, 2: err_w}
            process = box.spawn(argv, cwd=cwd, env={**box.env, **env}, fds=fds)
        protocol.close_all([out_w, err_w])
        out_w = err_w = -1
        ended = communicate(process, streams, timeout)
        if not ended:
            kill_tree(box, process.pid)
            communicate(process, streams, _AFTERWARDS)
        code = process.wait() if ended else None
        stdout, stderr = (streams[fd] for fd in (out, err))
    finally:
        protocol.close_all([fd for fd in (out, out_w, err, err_w) if fd >= 0])
    if code is not None and code < 0:
        code = 128 - code
    return Ran(stdout.bytes(), stderr.bytes(), code, bool(stdout.cut or stderr.cut))


def kill_tree(box: KeptSandbox, pid: int) -> None:
    """Kill a process of the box, by its number inside, and all that descends from it."""
    for _ in range(2):  # what was started in between is found the second time
        for member in box.descendants(pid):
            box.signal(member, signal.SIGKILL)
    box.signal(pid, signal.SIGKILL)
