"""Makes device nodes for sandboxes, so that they do not share those of the machine.

Locks, watches and times belong to a node, not to its device, so a shared node lets a sandbox see
and block others. Only root can make nodes, and only outside of user namespaces. So the launcher
makes them before it drops root, and its sandboxes use them in turns.
"""

from __future__ import annotations

import os
import stat

from . import syscalls as sys_

SHARED = "/dev"
"""The directory of the machine's nodes, where root's are missing."""
_NAMES = ("null", "zero", "full", "random", "urandom", "tty")
_SETS = 128  # a node takes about 1 KB of kernel memory


class DeviceNodes:
    """Directories of device nodes. Without a ``directory`` to mount them on, or the rights to do
    so, all are ``SHARED``."""

    def __init__(self, directory: str = "") -> None:
        self._sets = [SHARED]
        self._next = 0
        if directory:
            try:
                _mount_nodes(directory)
            except OSError:
                return
            self._sets = [f"{directory}/{number}" for number in range(_SETS)]

    def take(self) -> str:
        """Return the directory of the next sandbox."""
        self._next = (self._next + 1) % len(self._sets)
        return self._sets[self._next]


def _mount_nodes(directory: str) -> None:
    devices = [(name, os.stat(f"/dev/{name}").st_rdev) for name in _NAMES]
    os.makedirs(directory, exist_ok=True)
    flags = sys_.MS_NOSUID | sys_.MS_NOEXEC
    sys_.mount("devices", directory, "tmpfs", flags, "mode=755,size=1m,nr_inodes=2k")
    old = os.umask(0)
    try:
        for number in range(_SETS):
            os.mkdir(f"{directory}/{number}", 0o755)
            for name, device in devices:
                os.mknod(f"{directory}/{number}/{name}", stat.S_IFCHR | 0o666, device)
    finally:
        os.umask(old)
