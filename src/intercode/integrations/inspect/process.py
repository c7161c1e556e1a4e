"""Runs programs and shells in a sandbox for Inspect: separate streams, time limits, terminals."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from intercode.sandbox.contract import BaseSandbox
from intercode.sandbox.streams import Collector, Process, communicate, memory_file
from intercode.sandbox.users import User

_LOGIN_SHELL = "command -v bash >/dev/null && exec bash -l; exec sh -l"
_PROFILE = 'if [ -n "$BASH" ] && [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n'
_DRAIN_SECONDS = 1.0  # seconds to read what was written before the time-out


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The output of a program. ``code`` is its exit status (128 + the signal that ended it), or
    None at the time-out. ``truncated``: a stream exceeded the limit and is not complete."""

    stdout: bytes
    stderr: bytes
    code: int | None
    truncated: bool


def run_process(
    sandbox: BaseSandbox,
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes,
    timeout: float | None,
    output_limit: int,
    user: User | None = None,
) -> ProcessResult:
    """Run a program to its end. At the time-out (seconds; None: never) it is killed with all its
    descendants; other processes in the sandbox continue.

    ``output_limit`` is the number of bytes kept of each stream; ``user``: None for root.
    Raises OSError if the program cannot be started.
    """
    out, out_w = os.pipe()
    err, err_w = os.pipe()
    streams = {out: Collector(output_limit), err: Collector(output_limit)}
    try:
        with memory_file(stdin) as source:
            fds = {0: source.fileno(), 1: out_w, 2: err_w}
            variables = {**sandbox.env, **(user.env if user else {}), **env}
            start = partial(sandbox.spawn_as, user) if user else sandbox.spawn
            process = start(argv, cwd=cwd, env=variables, fds=fds)
        os.close(out_w)
        os.close(err_w)
        out_w = err_w = -1
        ended = communicate(process, streams, timeout)
        if not ended:
            kill_process_tree(sandbox, process.pid)
            communicate(process, streams, _DRAIN_SECONDS)
        code = process.wait() if ended else None
        stdout, stderr = (streams[fd] for fd in (out, err))
    finally:
        for fd in (out, out_w, err, err_w):
            if fd >= 0:
                os.close(fd)
    if code is not None and code < 0:
        code = 128 - code
    return ProcessResult(
        stdout.bytes(), stderr.bytes(), code, bool(stdout.dropped or stderr.dropped)
    )


def kill_process_tree(sandbox: BaseSandbox, pid: int) -> None:
    """Kill a process, by its pid inside the sandbox, and all its descendants."""
    for _ in range(2):  # the second round finds processes started during the first
        for member in sandbox.descendants(pid):
            sandbox.signal(member, signal.SIGKILL)
    sandbox.signal(pid, signal.SIGKILL)


def open_login_shell(
    sandbox: BaseSandbox, cwd: str, size: tuple[int, int], user: User | None = None
) -> tuple[Process, int]:
    """Start a login shell on a new terminal. Return it, and a descriptor of the terminal.

    Inspect's human agent configures the shell in .bashrc, which a login shell reads only if the
    profile says so, as Debian's does. An image without a profile gets one.
    """
    try:
        sandbox.read("/root/.profile")
    except FileNotFoundError:
        sandbox.write("/root/.profile", _PROFILE.encode())
    env = {**sandbox.env, **(user.env if user else {}), "TERM": os.environ.get("TERM", "xterm")}
    argv = ["/bin/sh", "-c", _LOGIN_SHELL]
    return sandbox.spawn_on_terminal(argv, cwd=cwd, env=env, size=size, user=user)


class error_filename:  # noqa: N801 - used like a function
    """Adds the name of the file to an OSError."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), self._file) from error
