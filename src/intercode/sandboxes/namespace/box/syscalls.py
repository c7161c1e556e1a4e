"""System calls that Python does not offer, with errors as OSError."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

# unshare(2) and clone(2) flags
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x00020000, 0x02000000, 0x04000000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x08000000, 0x10000000, 0x20000000
CLONE_NEWNET = 0x40000000

# mount(2) and umount2(2) flags
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

# prctl(2) options
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME, PR_CAPBSET_DROP = 1, 4, 15, 24
PR_SET_NO_NEW_PRIVS = 38

# openat2(2) resolve flags
RESOLVE_NO_MAGICLINKS, RESOLVE_IN_ROOT = 0x02, 0x10
_AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 0x8000, 1

_NUMBERS = {
    "x86_64": {"pivot_root": 155, "openat2": 437, "mount_setattr": 442, "seccomp": 317},
    "aarch64": {"pivot_root": 41, "openat2": 437, "mount_setattr": 442, "seccomp": 277},
}
ARCH = os.uname().machine


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _number(name: str) -> int:
    try:
        return _NUMBERS[ARCH][name]
    except KeyError:
        raise OSError(errno.ENOSYS, f"{name}: no system call number known for {ARCH}") from None


def unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        source.encode() or None,
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, f"mount {kind or 'bind'} on {target}")


def umount(target: str, flags: int = MNT_DETACH) -> None:
    _check(_libc.umount2(target.encode(), flags), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    _check(_libc.syscall(_number("pivot_root"), new.encode(), old.encode()), "pivot_root")


def read_only(target: str) -> None:
    """Make a mount and all mounts below it read-only."""
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    number = _number("mount_setattr")
    result = _libc.syscall(number, -100, target.encode(), _AT_RECURSIVE, attributes, 32)
    _check(result, f"mount_setattr {target}")


def prctl(option: int, value: int | bytes = 0) -> None:
    argument = value if isinstance(value, bytes) else ctypes.c_ulong(value)
    _check(_libc.prctl(option, argument, 0, 0, 0), f"prctl {option}")


def open_inside(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open ``path`` as a process whose root directory is ``root`` would, without magic links."""
    if "\0" in path:
        raise OSError(errno.EINVAL, "a path cannot hold a NUL byte", path)
    resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
    how = struct.pack("=3Q", flags | os.O_CLOEXEC, mode, resolve)
    result = _libc.syscall(_number("openat2"), root, os.fsencode(path), how, len(how))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return int(result)


def landlock_version() -> int:
    """The version of Landlock that this kernel has. Raises OSError where it has none."""
    return _check(_libc.syscall(444, None, 0, 1), "landlock_create_ruleset")


def install_filter(program: bytes) -> None:
    """Install a seccomp BPF program on this thread and its children to come."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    _check(_libc.syscall(_number("seccomp"), 1, 0, header), "seccomp")


def hide_command_line(name: bytes) -> None:
    """Replace what /proc/self/cmdline and comm show by ``name``."""
    with open("/proc/self/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end and len(name) < end - start:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, name, len(name))
    prctl(PR_SET_NAME, name[:15] + b"\0")
