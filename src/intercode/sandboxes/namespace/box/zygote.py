"""The launcher: one single-threaded process that forks a keeper per sandbox and waits for more.

It ends when its owner hangs up; its keepers end with it.
"""

from __future__ import annotations

import gc
import os
import signal
import socket

from . import keeper, wire
from . import syscalls as sys_

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from typing import Any


def main(fd: int) -> None:
    """Serve creation requests on an inherited socket until the owner hangs up."""
    owner = socket.socket(fileno=fd)
    sys_.hide_command_line(b"intercode")
    request, fds = wire.receive(owner)
    wire.close_all(fds)
    try:
        _start(request)
    except OSError as e:
        wire.send(owner, {"ok": False, "error": str(e)})
        return
    wire.send(owner, {"ok": True})
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are collected by the kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's to handle
    gc.disable()  # a fork shares what is not touched, and collecting touches everything
    gc.freeze()
    while True:
        try:
            request, fds = wire.receive(owner)
        except (EOFError, ConnectionError):
            return
        if os.fork() == 0:
            _become_keeper(owner, request, fds)
        wire.close_all(fds)


def _start(request: dict[str, Any]) -> None:
    """As root: put the shown directories where an ordinary id can reach them, then become one."""
    os.umask(0o022)
    if os.geteuid() != 0:
        return
    sys_.unshare(sys_.CLONE_NEWNS)
    sys_.mount("none", "/", flags=sys_.MS_REC | sys_.MS_PRIVATE)
    for source, target in request["prepare"]:
        os.makedirs(target, exist_ok=True)
        sys_.mount(source, target, flags=sys_.MS_BIND | sys_.MS_REC)
    os.setgroups([])
    os.setresgid(*[request["uid"]] * 3)
    os.setresuid(*[request["uid"]] * 3)


def _become_keeper(owner: socket.socket, request: dict[str, Any], fds: list[int]) -> None:
    owner.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    keeper.run(socket.socket(fileno=fds[0]), request, fds[1] if len(fds) > 1 else None)
