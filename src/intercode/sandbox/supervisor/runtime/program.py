"""Starts the keeper that is a program of its own. It takes what follows at fixed descriptors."""

from __future__ import annotations

import fcntl
import os

from . import syscalls as sys_

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_LAUNCHER, _PROGRAM, _INHERITED = 3, 4, 5
_SAFE_DESCRIPTOR = 100  # all of these


def start_program(compiled: int, connection: int, program: int, fds: Sequence[int]) -> int:
    """Execute the file behind ``compiled``, with a connection to the launcher, the program of PID 1
    (-1: there is none) and descriptors that could not be sent. Returns its process id; raises
    OSError where it may not be executed."""
    given = {_LAUNCHER: connection, _PROGRAM: program}
    given |= {_INHERITED + i: fd for i, fd in enumerate(fds)}
    high = {
        target: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_DESCRIPTOR)
        for target, fd in {**given, -1: compiled}.items()
        if fd >= 0
    }
    itself = f"/proc/self/fd/{high[-1]}"
    actions = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in high.items() if target >= 0]
    try:
        return os.posix_spawn(itself, ["intercode"], {}, file_actions=actions, setsid=True)
    finally:
        for fd in high.values():
            os.close(fd)


def first_message(
    stage: str, kind: tuple[bool, bool], program: int, request: dict[str, Any] | None,
    fds: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """What it is told first: what the blank is to be, and the request where ``fds`` could not be
    sent with one."""
    own_network, plain = kind
    order = {
        "stage": stage, "own_network": own_network, "plain": plain, "program": program >= 0,
        "key": str(sys_.KEY),
    }  # fmt: skip
    return order if request is None else {**order, "request": request, "inherited": len(fds)}
