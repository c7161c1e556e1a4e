"""System calls that Python does not provide, with errors as OSError."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from typing import Any

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

# prctl(2) options on capabilities, and capabilities
PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 24, 47, 2
CAP_DAC_OVERRIDE, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN = 1, 5, 6, 7, 21
_CAPABILITY_VERSION = 0x20080522

_SECCOMP_NUMBERS = {"x86_64": 317, "aarch64": 277}
_UNSHARE_NUMBERS = {"x86_64": 272, "aarch64": 97}
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # on every machine
_PIDFD_GETFD = 438
_AT_FDCWD = -100
_OPEN_TREE_CLONE, _AT_EMPTY_PATH, _FROM_DESCRIPTOR, _IDMAP = 1, 0x1000, 4, 0x100000
ARCH = os.uname().machine
KEY = int.from_bytes(os.urandom(8), "little")
"""Key of the supervisors' system calls on mounts and namespaces (see seccomp.py)."""


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _call(number: int, what: str, *arguments: Any) -> int:
    """Make a system call with the key of the filter as its sixth argument."""
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    given += [ctypes.c_long(0)] * (5 - len(given))
    return _check(_libc.syscall(ctypes.c_long(number), *given, ctypes.c_ulong(KEY)), what)


def unshare(flags: int) -> None:
    if ARCH not in _UNSHARE_NUMBERS:
        raise OSError(errno.ENOSYS, f"unshare: no system call number known for {ARCH}")
    _call(_UNSHARE_NUMBERS[ARCH], "unshare", flags)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, f"mount {kind or 'bind'} on {target}")


def unmount(target: str) -> None:
    _check(_libc.umount2(target.encode(), 2), f"umount2 {target}")


def clone_mount(path: str) -> int:
    """Return a descriptor of a new mount, not attached anywhere, of what a path shows."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC
    return _call(_OPEN_TREE, f"open_tree {path}", _AT_FDCWD, path.encode(), flags)


def map_owners(mount: int, namespace: int) -> None:
    """Show the owners of files as a user namespace maps them, through a mount that is not attached
    yet."""
    changes = struct.pack("QQQQ", _IDMAP, 0, 0, namespace)
    _call(
        _MOUNT_SETATTR,
        "mount_setattr",
        mount,
        b"",
        _AT_EMPTY_PATH,
        ctypes.create_string_buffer(changes, len(changes)),
        len(changes),
    )


def attach_mount(mount: int, target: str) -> None:
    _call(
        _MOVE_MOUNT,
        f"move_mount {target}",
        mount,
        b"",
        _AT_FDCWD,
        target.encode(),
        _FROM_DESCRIPTOR,
    )


def get_descriptor(pidfd: int, number: int) -> int:
    """Return a duplicate of a descriptor of another process, which this process may trace."""
    return _check(_libc.syscall(_PIDFD_GETFD, pidfd, number, 0), "pidfd_getfd")


def keep_capabilities(*retained: int, is_root: bool = True) -> None:
    """Lose all other capabilities, also for programs that this process executes. Programs of
    another user than root (``is_root``) get the retained ones only as ambient capabilities."""
    for capability in range(64):
        if capability not in retained and _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # the kernel knows no more
    bits = sum(1 << capability for capability in retained)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    passed_on = (0, 0) if is_root else (low, high)
    sets = low, low, passed_on[0], high, high, passed_on[1]
    _check(_libc.capset(header, struct.pack("6I", *sets)), "capset")
    for capability in () if is_root else retained:
        raised = _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)
        _check(raised, f"capability {capability}")


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
