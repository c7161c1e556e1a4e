"""Running a program in a box as Inspect wants it: both streams apart, and alone at a time-out."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from intercode.sandbox.output import Collector, communicate
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sandbox.supervisor.connection import memory_file
from intercode.sandbox.supervisor.runtime import protocol

_DRAIN_SECONDS = 1.0  # seconds to read what was written before the time-out


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What a program printed; ``code`` is its exit status (128 + the signal that ended it), None at
    the time-out; ``cut``: a stream was longer than the limit, and is not whole."""

    stdout: bytes
    stderr: bytes
    code: int | None
    truncated: bool


def run_process(
    sandbox: SupervisedSandbox,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes,
    timeout: float | None,
    output_limit: int,
) -> ProcessResult:
    """Run a program to its end. At the time-out (seconds, None: never) it is killed with all that
    descends from it; what else runs in the box goes on.

    ``limit``: bytes that are kept of each stream. Raises OSError where it cannot be started.
    """
    out, out_w = os.pipe()
    err, err_w = os.pipe()
    streams = {out: Collector(output_limit), err: Collector(output_limit)}
    try:
        with memory_file(stdin) as source:
            fds = {0: source.fileno(), 1: out_w, 2: err_w}
            process = sandbox.spawn(argv, cwd=cwd, env={**sandbox.env, **env}, fds=fds)
        protocol.close_all([out_w, err_w])
        out_w = err_w = -1
        ended = communicate(process, streams, timeout)
        if not ended:
            kill_process_tree(sandbox, process.pid)
            communicate(process, streams, _DRAIN_SECONDS)
        code = process.wait() if ended else None
        stdout, stderr = (streams[fd] for fd in (out, err))
    finally:
        protocol.close_all([fd for fd in (out, out_w, err, err_w) if fd >= 0])
    if code is not None and code < 0:
        code = 128 - code
    return ProcessResult(
        stdout.bytes(), stderr.bytes(), code, bool(stdout.dropped or stderr.dropped)
    )


def kill_process_tree(box: SupervisedSandbox, pid: int) -> None:
    """Kill a process of the box, by its number inside, and all that descends from it."""
    for _ in range(2):  # what was started in between is found the second time
        for member in box.descendants(pid):
            box.signal(member, signal.SIGKILL)
    box.signal(pid, signal.SIGKILL)
