"""System calls that Python does not provide, with errors as OSError."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

# unshare(2) flags
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
CLONE_NEWNET = 0x40000000

# mount(2) flags
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE, MS_SLAVE = 4096, 16384, 1 << 18, 1 << 19

# prctl(2) options
PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 15, 36, 38

_SECCOMP_NUMBERS = {"x86_64": 317, "aarch64": 277}
ARCH = os.uname().machine
KEY = int.from_bytes(os.urandom(8), "little")
"""Key of the supervisors' system calls on mounts and namespaces (see seccomp.py)."""


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags),
        options.encode() or None,
    )  # fmt: skip
    _check(result, f"mount {kind or 'bind'} on {target}")


def prctl(option: int, value: int | bytes = 0) -> None:
    argument = value if isinstance(value, bytes) else ctypes.c_ulong(value)
    _check(_libc.prctl(option, argument, 0, 0, 0), f"prctl {option}")


def landlock_version() -> int:
    """Return the version of Landlock in this kernel. Raises OSError if it has none."""
    return _check(_libc.syscall(444, None, 0, 1), "landlock_create_ruleset")


def install_filter(program: bytes) -> None:
    """Install a seccomp BPF program for this thread and its children."""
    if ARCH not in _SECCOMP_NUMBERS:
        raise OSError(errno.ENOSYS, f"seccomp: no system call number known for {ARCH}")
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    _check(_libc.syscall(_SECCOMP_NUMBERS[ARCH], 1, 0, header), "seccomp")


def hide_command_line(name: bytes) -> None:
    """Replace what /proc/self/cmdline and comm show with ``name``."""
    with open("/proc/self/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end and len(name) < end - start:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, name, len(name))
    prctl(PR_SET_NAME, name[:15] + b"\0")
