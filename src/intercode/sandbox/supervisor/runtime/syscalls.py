"""System calls that Python does not provide, with errors as OSError."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
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
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38

# openat2(2) resolve flags
RESOLVE_NO_MAGICLINKS, RESOLVE_IN_ROOT = 0x02, 0x10
_AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 0x8000, 1
_ADDR_NO_RANDOMIZE = 0x0040000
_AT_FDCWD, _AT_EMPTY_PATH, _OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = -100, 0x1000, 1, 4

_NUMBERS = {
    "x86_64": {"pivot_root": 155, "openat2": 437, "mount_setattr": 442, "seccomp": 317,
               "mount": 165, "umount2": 166, "unshare": 272, "open_tree": 428, "move_mount": 429},
    "aarch64": {"pivot_root": 41, "openat2": 437, "mount_setattr": 442, "seccomp": 277,
                "mount": 40, "umount2": 39, "unshare": 97, "open_tree": 428, "move_mount": 429},
}  # fmt: skip
ARCH = os.uname().machine
KEY = int.from_bytes(os.urandom(8), "little")
"""Key of the system calls on mounts and namespaces (see seccomp.py)."""


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


def _keyed_call(name: str, *arguments: bytes | int | None) -> int:
    """Make a call of at most five arguments for which the filter requires the key."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    words += [None] * (5 - len(words))
    return _check(_libc.syscall(_number(name), *words, ctypes.c_ulong(KEY)), name)


def unshare(flags: int) -> None:
    _keyed_call("unshare", flags)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    try:
        _keyed_call(
            "mount", source.encode() or None, target.encode(), kind.encode() or None, flags,
            options.encode() or None,
        )  # fmt: skip
    except OSError as e:
        raise OSError(e.errno, f"mount {kind or 'bind'} on {target}: {e.strerror}") from e


def umount(target: str, flags: int = MNT_DETACH) -> None:
    _keyed_call("umount2", target.encode(), flags)


def pivot_root(new: str, old: str) -> None:
    _keyed_call("pivot_root", new.encode(), old.encode())


def make_read_only(target: str) -> None:
    """Make a mount and all mounts below it read-only."""
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    _keyed_call(
        "mount_setattr", _AT_FDCWD, target.encode(), _AT_RECURSIVE, attributes, len(attributes)
    )


def clone_mount(fd: int) -> int:
    """Return a detached mount of an open directory of this mount namespace."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH
    return _keyed_call("open_tree", fd, b"", flags)


def attach_mount(fd: int, target: str) -> None:
    """Attach a detached mount, of any namespace, to a directory."""
    _keyed_call("move_mount", fd, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH)


def prctl(option: int, value: int | bytes = 0) -> None:
    argument = value if isinstance(value, bytes) else ctypes.c_ulong(value)
    _check(_libc.prctl(option, argument, 0, 0, 0), f"prctl {option}")


def open_in_root(root: int, path: str, flags: int, mode: int = 0) -> int:
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


def disable_address_randomization() -> None:
    """Start programs from this process at the same addresses each time."""
    _check(_libc.personality(ctypes.c_ulong(_ADDR_NO_RANDOMIZE)), "personality")


def landlock_version() -> int:
    """Return the version of Landlock in this kernel. Raises OSError if it has none."""
    return _check(_libc.syscall(444, None, 0, 1), "landlock_create_ruleset")


def install_filter(program: bytes) -> None:
    """Install a seccomp BPF program for this thread and its children."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    _check(_libc.syscall(_number("seccomp"), 1, 0, header), "seccomp")


def set_limits(limits: dict[str, int]) -> None:
    """Set the resource limits that children inherit, for good."""
    for name, value in (
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_FSIZE, limits["file_size"]),
        (resource.RLIMIT_AS, limits["address_space"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 1 << 20),
    ):
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))


def hide_command_line(name: bytes) -> None:
    """Replace what /proc/self/cmdline and comm show with ``name``."""
    with open("/proc/self/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end and len(name) < end - start:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, name, len(name))
    prctl(PR_SET_NAME, name[:15] + b"\0")
