"""Creates the parts of a sandbox that do not depend on the request: namespaces, PID 1, /proc, /dev
and /sys. The launcher prepares them ahead of time, so a request only has to mount the layers and
change the root."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct

from . import mounts, processes
from . import syscalls as sys_

_NAMESPACES = (
    sys_.CLONE_NEWUSER | sys_.CLONE_NEWNS | sys_.CLONE_NEWPID | sys_.CLONE_NEWIPC
    | sys_.CLONE_NEWUTS | sys_.CLONE_NEWCGROUP
)  # fmt: skip


class Isolation:
    """A sandbox without a root of its own. Raises OSError if it cannot be created.

    ``oom_score_fd`` is a descriptor of this process's oom_score_adj, and ``fdinfo`` of its
    directory of descriptors in /proc. Neither can be opened after the change of root.
    """

    def __init__(self, stage: str, own_network: bool, plain: bool, program: int) -> None:
        self.fdinfo = os.open("/proc/self/fdinfo", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.oom_score_fd = _enter_namespaces(own_network)
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        if own_network:
            _bring_loopback_up()
        self.network = NetworkUsage(own_network)
        # before capabilities are dropped, because it needs them to reset the pid counter
        self.init = processes.start_init(plain, program)
        drop_capabilities()
        mounts.prepare_stage(stage, own_network)
        self.init.mount_proc(stage)


class NetworkUsage:
    """Detects whether a sandbox's own network was used. Its traces, such as waiting ports and
    packet counters, would be visible to the next episode."""

    _COUNTERS = ("dev", "snmp", "snmp6", "netstat")

    def __init__(self, own: bool) -> None:
        self._own = own
        self._directory = os.open("/proc/self/net", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._initial = self._read()

    def _read(self) -> list[bytes]:
        texts = []
        for name in self._COUNTERS if self._own else ():
            try:
                fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory)
            except FileNotFoundError:  # no IPv6
                continue
            texts.append(os.read(fd, 1 << 16))
            os.close(fd)
        return texts

    def was_used(self) -> bool:
        """Return whether the network was used, or is that of the machine."""
        return not self._own or self._read() != self._initial


def _enter_namespaces(own_network: bool) -> int:
    uid, gid = os.geteuid(), os.getegid()
    sys_.prctl(sys_.PR_SET_DUMPABLE, 1)  # required to write the id maps
    sys_.unshare(_NAMESPACES | (sys_.CLONE_NEWNET if own_network else 0))
    for name, text in (
        ("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1"),
    ):  # fmt: skip
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)  # open() would touch a hundred pages
        os.write(fd, text.encode())
        os.close(fd)
    sacrifice = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    sys_.prctl(sys_.PR_SET_DUMPABLE, 0)
    return sacrifice


def _bring_loopback_up() -> None:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH14x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(s, 0x8914, request)  # SIOCSIFFLAGS


# CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE NET_RAW SYS_CHROOT
# AUDIT_WRITE SETFCAP: those of a container's root, without those that reach further
_ALLOWED_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 10, 13, 18, 29, 31}


def drop_capabilities() -> None:
    """Remove capabilities from everything that this process and its children execute, for good."""
    capability = 0
    with contextlib.suppress(OSError):  # the first number that this kernel does not know
        while True:
            if capability not in _ALLOWED_CAPABILITIES:
                sys_.prctl(sys_.PR_CAPBSET_DROP, capability)
            capability += 1
