"""Connects the user's terminal to a program in a new sandbox (``run --terminal``) or to a shell in
a live one (``attach``)."""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from intercode_sandbox import Sandbox, SandboxProcess
from intercode_sandbox.api.results import shell_status
from intercode_sandbox.api.terminal_server import SIZE
from intercode_sandbox.command.options import starting
from intercode_sandbox.errors import UsageError

_CHUNK = 1 << 16
_POLL_SECONDS = 0.2


def run_on_terminal(
    sandbox: Sandbox, command: str | Sequence[str], args: argparse.Namespace
) -> int:
    """Run a program on the user's terminal until it ends. Return its exit status."""
    env = {"TERM": os.environ.get("TERM", "dumb")}
    with starting():
        process = sandbox.spawn(
            command, cwd=args.cwd, env=env, user=args.user, terminal=_terminal_size()
        )
    with process:
        with _raw_terminal(), _passing_size(process):
            _pass_keys_and_output(process)
        return shell_status(process.wait() or 0)


def attach(args: argparse.Namespace) -> int:
    """Connect the user's terminal to a shell of a TerminalServer until the shell ends."""
    check_terminal()
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(args.socket)
        except OSError as e:
            raise UsageError(f"no live sandbox serves shells at {args.socket}: {e}") from e
        server.sendall(SIZE.pack(*_terminal_size()))
        with _raw_terminal(), suppress(OSError):  # one of the two ends is gone
            _relay(server)
    return 0


def _relay(server: socket.socket) -> None:
    """Connect the user's terminal to a connection until one of them is at its end."""
    poll = select.poll()
    for fd in (0, server.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            data = os.read(fd, _CHUNK)
            if not data:
                return
            if fd == 0:
                server.sendall(data)
            else:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()


def check_terminal() -> None:
    """Raise UsageError without a terminal."""
    if not (os.isatty(0) and os.isatty(1)):
        raise UsageError("a shell needs a terminal: use `intercode-sandbox run` without --terminal")


def _pass_keys_and_output(process: SandboxProcess) -> None:
    """Connect the two terminals until the program ends, or the user's terminal is closed."""
    poll = select.poll()
    for fd in (0, process.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll(_POLL_SECONDS * 1000)}
        has_ended = process.wait(0) is not None  # before its output is read: then none is missed
        if 0 in ready and not has_ended:
            keys = os.read(0, _CHUNK)
            if not keys:
                process.kill(signal.SIGHUP)
                return
            process.write(keys)
        try:
            output = process.read(timeout=0)
        except TimeoutError:
            if has_ended:  # what it has left in the background has the terminal
                return
            continue
        if not output:
            return
        sys.stdout.buffer.write(output)
        sys.stdout.buffer.flush()


def _terminal_size() -> tuple[int, int]:
    """Return the rows and columns of the user's terminal."""
    columns, rows = os.get_terminal_size(0)
    return (rows, columns) if rows > 0 and columns > 0 else (24, 80)


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Pass every key on as it is inside the ``with`` block."""
    import termios  # not on Windows
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # keeps what was typed already
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextmanager
def _passing_size(process: SandboxProcess) -> Iterator[None]:
    """Give the program's terminal each new size of the user's inside the ``with`` block."""

    def resize(*_: object) -> None:
        try:
            process.resize(*_terminal_size())
        except (OSError, UsageError):  # it is ending
            return

    before = signal.signal(signal.SIGWINCH, resize)
    try:
        resize()  # it may have changed before the handler was set
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
