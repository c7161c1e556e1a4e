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
OWN = "/dev/pts"
"""Where the nodes are mounted in the launcher's mount namespace: over the machine's terminals,
which no sandbox uses. Every user can reach it, wherever the cache is. It holds other directories of
the launcher, too."""
_NAMES = ("null", "zero", "full", "random", "urandom", "tty")
_SETS = 128  # a node takes about 1 KB of kernel memory


class DeviceNodes:
    """Directories of device nodes. All are ``SHARED`` unless this process may mount, in a mount
    namespace of its own, and make nodes."""

    def __init__(self, may_mount: bool) -> None:
        self._sets = [SHARED]
        self._next = 0
        self.are_own = False
        """Whether the nodes are not the machine's, so that ``OWN`` exists."""
        if may_mount:
            try:
                _mount_nodes()
            except OSError:
                return
            self.are_own = True
            self._sets = [f"{OWN}/{number}" for number in range(_SETS)]

    def take(self) -> str:
        """Return the directory of the next sandbox."""
        self._next = (self._next + 1) % len(self._sets)
        return self._sets[self._next]


def _mount_nodes() -> None:
    devices = [(name, os.stat(f"/dev/{name}").st_rdev) for name in _NAMES]
    flags = sys_.MS_NOSUID | sys_.MS_NOEXEC
    sys_.mount("devices", OWN, "tmpfs", flags, "mode=755,size=1m,nr_inodes=2k")
    old = os.umask(0)
    try:
        for number in range(_SETS):
            os.mkdir(f"{OWN}/{number}", 0o755)
            for name, device in devices:
                os.mknod(f"{OWN}/{number}/{name}", stat.S_IFCHR | 0o666, device)
    finally:
        os.umask(old)
