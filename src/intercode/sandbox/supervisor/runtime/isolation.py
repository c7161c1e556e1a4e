"""What a box needs that does not depend on what it will hold: namespaces, PID 1, /proc, /dev and
/sys. The launcher has it made ahead, so that a request only costs the layers and a change of root.
"""

from __future__ import annotations

import os
import signal
import socket
import struct

from . import mounts, processes
from . import syscalls as sys_
from .hardening import drop_capabilities

_NAMESPACES = (
    sys_.CLONE_NEWUSER | sys_.CLONE_NEWNS | sys_.CLONE_NEWPID | sys_.CLONE_NEWIPC
    | sys_.CLONE_NEWUTS | sys_.CLONE_NEWCGROUP
)  # fmt: skip


class Isolation:
    """A box without a root of its own. Raises OSError where it cannot be made.

    ``sacrifice`` is a descriptor of this process's oom_score_adj, ``fdinfo`` of its directory of
    descriptors in /proc: neither can be opened once the root is changed.
    """

    def __init__(self, stage: str, own_network: bool, plain: bool, program: int) -> None:
        self.fdinfo = os.open("/proc/self/fdinfo", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.oom_score_fd = _enter_namespaces(own_network)
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        if own_network:
            _bring_loopback_up()
        self.network = NetworkUsage(own_network)
        self.init = processes.start_init(plain, program)  # it keeps its capabilities, to count anew
        drop_capabilities()
        mounts.prepare_stage(stage, own_network)
        self.init.mount_proc(stage)


class NetworkUsage:
    """Tells by counters whether a box's own network was ever used: what that leaves behind (ports
    that wait, counts of packets) the next episode in the box would see."""

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
        """Whether it was, or is shared with the machine."""
        return not self._own or self._read() != self._initial


def _enter_namespaces(own_network: bool) -> int:
    uid, gid = os.geteuid(), os.getegid()
    sys_.prctl(sys_.PR_SET_DUMPABLE, 1)  # or the kernel would not let us write our own id map
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
