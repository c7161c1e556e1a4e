"""Moves a fork of an interpreter to another sandbox, with all its objects.

The supervisor of its sandbox writes a checkpoint of the process, memory included, to a file. The
supervisor of the other sandbox restores a process from it (sandbox/supervisor/c/checkpoint/). That
process forks at once, so that the C library learns its new process number, and the session
continues with the fork.
"""

from __future__ import annotations

import errno
import os
import socket

from intercode.core.errors import SandboxError
from intercode.sandbox.contract import Sandbox
from intercode.sessions.python.interpreter import (
    Interpreter,
    InterpreterEndedError,
    RefusedError,
    SharedDescriptor,
)

_BACKUP_FD, _CONTROL_FD = 61, 63  # descriptor numbers, as in guest/server.py
_STANDARD_FDS = (0, 1, 2, _BACKUP_FD, _CONTROL_FD)
_PLACEHOLDER_PROGRAM = "import signal; signal.pause()"
_SECONDS = 30.0


class MigrationError(SandboxError):
    """The machine or the supervisor cannot move processes, or the process is gone."""


def migrate_fork(fork: Interpreter, sandbox: Sandbox, program: str) -> Interpreter:
    """Return a process in ``sandbox`` that continues where ``fork`` waits. ``fork`` keeps waiting.

    ``program`` is the interpreter in the sandbox. Raises RefusedError where the process holds
    something that cannot be moved, such as a socket, else MigrationError.
    """
    source = fork.sandbox
    try:
        checkpoint = source.checkpoint(fork.pid, _STANDARD_FDS)
        try:
            template = _restore_process(checkpoint, sandbox, program)
        finally:
            os.close(checkpoint)
    except OSError as e:
        if e.errno == errno.EBUSY:
            raise RefusedError(e.strerror or str(e)) from e
        raise MigrationError(f"the process cannot be moved: {e.strerror}") from e
    try:
        template.loaded_modules = fork.loaded_modules
        if template.request("after_restore", timeout=_SECONDS) is None:
            raise MigrationError("the process does not answer where it was moved to")
        return template.fork("any", _SECONDS)
    except InterpreterEndedError as e:
        raise MigrationError("the process did not continue where it was moved to") from e
    finally:
        template.close()
        template.exit_status(_SECONDS)


def _restore_process(checkpoint: int, sandbox: Sandbox, program: str) -> Interpreter:
    local, remote = socket.socketpair()
    output, output_end = os.pipe()
    os.set_blocking(output, False)
    fds = {1: output_end, 2: output_end, _BACKUP_FD: output_end, _CONTROL_FD: remote.fileno()}
    try:
        process = sandbox.spawn_checkpoint(
            checkpoint, [program, "-S", "-c", _PLACEHOLDER_PROGRAM], fds=fds
        )
    except BaseException:
        local.close()
        os.close(output)
        raise
    finally:
        remote.close()
        os.close(output_end)
    return Interpreter(sandbox, local, SharedDescriptor(output), process)
