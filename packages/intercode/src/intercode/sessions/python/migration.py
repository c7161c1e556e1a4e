"""Copies a fork of a Python interpreter, with all its objects, to another sandbox.

The supervisor of the first sandbox writes a checkpoint of the process, including its memory, to a
file. The supervisor of the second sandbox restores a process from the file
(sandbox/supervisor/c/checkpoint/). The restored process has another process id, which the C library
does not know. It therefore forks at once, and the session continues with its child.
"""

from __future__ import annotations

import errno

from intercode.core.errors import MissingCapabilityError, SandboxError
from intercode.sessions.python.interpreter import (
    CONTROL_FD,
    Interpreter,
    InterpreterEndedError,
    InterpreterRefusedError,
)
from intercode_sandbox.contract import BaseSandbox, Checkpoint
from intercode_sandbox.streams import BaseProcess

_BACKUP_FD = 61  # descriptor number, as in guest/server.py
_STANDARD_FDS = (0, 1, 2, _BACKUP_FD, CONTROL_FD)
_PLACEHOLDER_PROGRAM = "import signal; signal.pause()"
_SECONDS = 30.0


class MigrationError(SandboxError):
    """A process cannot be copied: the machine or supervisor cannot do it, or the process ended."""


def migrate_fork(fork: Interpreter, sandbox: BaseSandbox, program: str) -> Interpreter:
    """Return a copy of the process ``fork`` that runs in ``sandbox``. ``fork`` itself stays alive.

    ``program`` is the path of the Python interpreter in ``sandbox``. Raises InterpreterRefusedError
    if the process has something that cannot be copied, such as a socket, and MigrationError if the
    copy fails for another reason.
    """
    source = fork.sandbox
    try:
        checkpoint = source.checkpoint(fork.pid, _STANDARD_FDS)
        try:
            template = _restore_process(checkpoint, sandbox, program)
        finally:
            checkpoint.close()
    except MissingCapabilityError as e:
        raise MigrationError(str(e)) from e
    except OSError as e:
        if e.errno == errno.EBUSY:
            raise InterpreterRefusedError(e.strerror or str(e)) from e
        raise MigrationError(f"the process cannot be moved: {e.strerror}") from e
    try:
        template.loaded_modules = fork.loaded_modules
        if template.request("after_restore", timeout=_SECONDS) is None:
            raise MigrationError("the process does not answer in the new sandbox")
        return template.fork("any", _SECONDS)
    except InterpreterEndedError as e:
        raise MigrationError("the process did not continue in the new sandbox") from e
    finally:
        template.close()
        template.exit_status(_SECONDS)


def _restore_process(checkpoint: Checkpoint, sandbox: BaseSandbox, program: str) -> Interpreter:
    def spawn(fds: dict[int, int]) -> BaseProcess:
        argv = [program, "-S", "-c", _PLACEHOLDER_PROGRAM]
        return sandbox.spawn(argv, fds={**fds, _BACKUP_FD: fds[1]}, checkpoint=checkpoint)

    return Interpreter.connect(sandbox, spawn)
