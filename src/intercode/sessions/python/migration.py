"""Moves a fork of an interpreter to another box: the very objects go on there.

The keeper of its box makes a file of the process, memory and all, and the keeper of the other box
makes a process of that (sandbox/supervisor/c/checkpoint/checkpoint.c, planting.c). That one forks at once,
so that the C library learns of its new process number, and the fork is what goes on.
"""

from __future__ import annotations

import errno
import os
import socket

from intercode.core.errors import SandboxError
from intercode.sandbox.supervisor.client import SupervisedSandbox
from intercode.sessions.python.interpreter import (
    Interpreter,
    InterpreterEndedError,
    RefusedError,
    SharedDescriptor,
)

_BACKUP_FD, _CONTROL_FD = 61, 63  # descriptor numbers, as in python_box/host.py
_STANDARD_FDS = (0, 1, 2, _BACKUP_FD, _CONTROL_FD)
_PLACEHOLDER_PROGRAM = "import signal; signal.pause()"
_SECONDS = 30.0


class MigrationError(SandboxError):
    """No process can be moved on this machine, by this keeper, or this one is gone."""


def migrate_fork(fork: Interpreter, box: SupervisedSandbox, program: str) -> Interpreter:
    """A process in ``box`` that goes on where ``fork`` waits; that one goes on waiting. ``program``
    is the interpreter in the box.

    Raises RefusedError with what the process holds that cannot be moved (a socket, say), else
    CannotMoveError.
    """
    source = fork.sandbox
    assert isinstance(source, SupervisedSandbox)
    try:
        picture = source.checkpoint(fork.pid, _STANDARD_FDS)
        try:
            template = _restore_process(picture, box, program)
        finally:
            os.close(picture)
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
        raise MigrationError("the process did not go on where it was moved to") from e
    finally:
        template.close()
        template.exit_status(_SECONDS)


def _restore_process(picture: int, box: SupervisedSandbox, program: str) -> Interpreter:
    ours, theirs = socket.socketpair()
    output, written = os.pipe()
    os.set_blocking(output, False)
    fds = {1: written, 2: written, _BACKUP_FD: written, _CONTROL_FD: theirs.fileno()}
    try:
        process = box.spawn(
            [program, "-S", "-c", _PLACEHOLDER_PROGRAM], fds=fds, checkpoint=picture
        )
    except BaseException:
        ours.close()
        os.close(output)
        raise
    finally:
        theirs.close()
        os.close(written)
    return Interpreter(box, ours, SharedDescriptor(output), process)
