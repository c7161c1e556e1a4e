"""Builds the seccomp filter of sandboxes, a BPF program.

Only the calls of an explicit list are allowed (syscall_numbers.py). Calls that change namespaces or
mounts, trace other processes, load code into the kernel, or reach beyond the network namespace are
forbidden; calls that the list does not know are answered as by a kernel without them. Changing a
file's owner reports success without effect in a sandbox with only one user, because `tar` and
`install` must work there.

Launcher and supervisors have the same filter. They may change mounts and namespaces, and trace
processes of a sandbox for checkpoints, because they pass a key of 64 random bits in a register that
those calls do not use. The key does not replace capabilities: processes in a sandbox have neither.

A sandbox with one user has no supplementary groups: those of an ordinary user, which it cannot
drop, are not shown. PID 1 has the same user as all other processes, and in a container it is the
supervisor, so no process may change its limits or priority.
"""

from __future__ import annotations

import errno
import struct

from . import syscall_numbers

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _AND, _JEQ, _JSET, _JGE, _RET = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_NR, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32
_KEY_LOW, _KEY_HIGH = 56, 60  # offsets of the halves of the sixth argument
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CHANGE_OWNER = ("chown", "fchown", "lchown", "fchownat")
_PROCESS_ARGUMENT = {
    "prlimit64": _ARG0,
    "sched_setaffinity": _ARG0,
    "sched_setparam": _ARG0,
    "sched_setscheduler": _ARG0,
    "sched_setattr": _ARG0,
    "setpriority": _ARG1,
    "ioprio_set": _ARG1,
}
"""Calls that change limits or priority of a process, and which argument is its number."""
_PRIORITY_OF_PROCESS = {"setpriority": 0, "ioprio_set": 1}
"""Calls whose first argument says whether the second is a process, and the value for that."""
_KEYED_CALLS = (
    "mount",
    "umount2",
    "pivot_root",
    "unshare",
    "mount_setattr",
    "open_tree",
    "move_mount",
    "ptrace",
)
_OWN_IDS = ("getuid", "geteuid", "getgid", "getegid")
_CHANGE_IDS = (
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
    "setfsuid",
    "setfsgid",
)
_SHARED_IPC = (
    "shmget",
    "shmat",
    "shmctl",
    "semget",
    "semop",
    "semtimedop",
    "semctl",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "mq_open",
    "mq_unlink",
)
_UNIX = 1
_TYPE_MASK, _CONNECTED_TYPES = 0xF, (1, 5)  # SOCK_STREAM and SOCK_SEQPACKET
_SET_PIPE_SIZE, _MAX_PIPE_SIZE = 1031, 1 << 16
_TERMINAL_INPUT_IOCTLS = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX insert terminal input
_PROTOCOLS = {
    1: (0,),  # AF_UNIX
    2: (0, 1, 6, 17, 255),  # AF_INET: any, ICMP, TCP, UDP, raw
    10: (0, 6, 17, 58, 255),  # AF_INET6: the same
    16: (0, 4),  # AF_NETLINK: routes and socket diagnostics
}
"""Allowed protocols by family. Others could make the kernel load a module."""


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


def _refuse(code: int) -> bytes:
    return _op(_RET, _ERRNO | code)


def _if_number(number: int, body: list[bytes]) -> list[bytes]:
    """Run ``body`` (which must return) if the call's number is ``number``."""
    return [_op(_JEQ, number, 0, len(body)), *body]


def _if_among(numbers: Iterable[int], answer: bytes) -> list[bytes]:
    """Answer a call whose number is among ``numbers``."""
    ops: list[bytes] = []
    for first, last in _ranges(sorted(numbers)):
        ops += [_op(_JGE, first, 0, 2), _op(_JGE, last + 1, 1, 0), answer]
    return ops


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _allow_only(argument: int, values: Sequence[int], code: int) -> list[bytes]:
    """Allow a call if the lower 32 bits of an argument are among ``values``; refuse others."""
    ops = [_op(_LOAD, argument)]
    ops += [_op(_JEQ, value, len(values) - i, 0) for i, value in enumerate(values)]
    return [*ops, _refuse(code), _op(_RET, _ALLOW)]


def _refuse_only(argument: int, values: Sequence[int], code: int) -> list[bytes]:
    """Refuse a call if the lower 32 bits of an argument are among ``values``; allow others."""
    ops = [_op(_LOAD, argument)]
    ops += [_op(_JEQ, value, len(values) - i, 0) for i, value in enumerate(values)]
    return [*ops, _op(_RET, _ALLOW), _refuse(code)]


def _socket_rules(families: Sequence[int] = tuple(_PROTOCOLS)) -> list[bytes]:
    """Allow sockets of these families only, with the protocols in ``_PROTOCOLS``."""
    ops: list[bytes] = []
    for family, protocols in _PROTOCOLS.items():
        if family not in families:
            continue
        body = _allow_only(_ARG2, protocols, errno.EPROTONOSUPPORT)
        ops += [_op(_LOAD, _ARG0), *_if_number(family, body)]
    return [*ops, _refuse(errno.EAFNOSUPPORT)]


def _socketpair_rules(reaches_paths: bool) -> list[bytes]:
    """Allow pairs of the family Unix. Unless ``reaches_paths``, refuse those whose ends can send to
    an address, which is the path of a socket anywhere."""
    if reaches_paths:
        return _socket_rules((_UNIX,))
    count = len(_CONNECTED_TYPES)
    types = [_op(_JEQ, kind, count - i, 0) for i, kind in enumerate(_CONNECTED_TYPES)]
    return [
        _op(_LOAD, _ARG1),
        _op(_AND, _TYPE_MASK),
        *types,
        _refuse(errno.EPROTONOSUPPORT),
        *_socket_rules((_UNIX,)),
    ]


def _own_priority_rules(name: str) -> list[bytes]:
    """Allow a call that changes limits or priority for the process itself only."""
    own = _allow_only(_PROCESS_ARGUMENT[name], (0,), errno.EPERM)
    if name not in _PRIORITY_OF_PROCESS:
        return own
    kind = _PRIORITY_OF_PROCESS[name]  # of others, 0 is all processes of the group or of the user
    return [_op(_LOAD, _ARG0), _op(_JEQ, kind, 1, 0), _refuse(errno.EPERM), *own]


def _pipe_size_rules() -> list[bytes]:
    """Refuse pipes of more than their default size, because all sandboxes of a user share the
    kernel's budget for the buffers of pipes."""
    return [
        _op(_LOAD, _ARG1),
        _op(_JEQ, _SET_PIPE_SIZE, 0, 2),
        _op(_LOAD, _ARG2),
        _op(_JGE, _MAX_PIPE_SIZE + 1, 1, 0),
        _op(_RET, _ALLOW),
        _refuse(errno.EPERM),
    ]


def _clone_rules() -> list[bytes]:
    """Refuse new namespaces."""
    return [
        _op(_LOAD, _ARG0),
        _op(_JSET, _NEW_NAMESPACES, 0, 1),
        _refuse(errno.EPERM),
        _op(_RET, _ALLOW),
    ]


def _require_key(key: int, code: int = errno.EPERM) -> list[bytes]:
    """Allow a call whose sixth argument is the key, and refuse others with an error number."""
    low, high = key & 0xFFFFFFFF, key >> 32
    return [
        _op(_LOAD, _KEY_LOW),
        _op(_JEQ, low, 0, 3),
        _op(_LOAD, _KEY_HIGH),
        _op(_JEQ, high, 0, 1),
        _op(_RET, _ALLOW),
        _refuse(code),
    ]


def _rules(key: int, has_users: bool) -> dict[str, list[bytes]]:
    """Return the rules of the calls whose arguments decide."""
    change_owner = _op(_RET, _ALLOW) if has_users else _refuse(0)
    return {
        "clone": _clone_rules(),
        "clone3": _require_key(key, errno.ENOSYS),  # its flags are not readable
        "ioctl": _refuse_only(_ARG1, _TERMINAL_INPUT_IOCTLS, errno.EPERM),
        "fcntl": _pipe_size_rules(),
        "socket": _socket_rules(),
        "socketpair": _socket_rules(),
        **{
            name: _refuse_only(argument, (1,), errno.EPERM)
            for name, argument in _PROCESS_ARGUMENT.items()
        },
        **{name: _require_key(key) for name in _KEYED_CALLS},
        **{name: [change_owner] for name in _CHANGE_OWNER},
        **({} if has_users else {"getgroups": [_refuse(0)]}),
    }


def _rules_without_namespaces(
    key: int, families: Sequence[int], shows_root: bool
) -> dict[str, list[bytes]]:
    """Return the rules that replace namespaces of networks, of processes and of IPC.

    If ``shows_root``, programs are root by what the calls about their user answer. Changing the
    user does nothing.
    Objects of System V and POSIX queues would be shared with the machine, and a watched file of a
    program, which is a hard link, would tell when other sandboxes run it. A process may only change
    its own priority: the kernel would allow it to change that of the supervisor.
    """
    own_priority = {name: _own_priority_rules(name) for name in _PROCESS_ARGUMENT}
    return {
        **{name: [_refuse(errno.ENOSYS)] for name in _SHARED_IPC},
        "inotify_add_watch": [_refuse(errno.ENOSPC)],
        **own_priority,
        **({name: [_refuse(0)] for name in _OWN_IDS} if shows_root else {}),
        **{name: _require_key(key, 0) for name in _CHANGE_IDS},
        "socket": _socket_rules(families),
        "socketpair": _socketpair_rules(_UNIX in families),
    }


def build_filter(
    machine: str,
    key: int,
    families: Sequence[int] | None = None,
    shows_root: bool = True,
    has_users: bool = False,
) -> bytes:
    """Build the filter for a machine as ``platform.machine()`` names it. ``key``: 64 bits, for the
    processes that set up sandboxes. ``families``: the sandbox has no namespaces, and may open
    sockets of these address families; ``shows_root``: its programs see their user as root.
    ``has_users``: it has users besides root, so that files can change their owners. Raises
    KeyError for an unknown machine."""
    ops = [_op(_LOAD, _ARCH), _op(_JEQ, _AUDIT[machine], 1, 0), _refuse(errno.ENOSYS)]
    ops.append(_op(_LOAD, _NR))
    rules = _rules(key, has_users)
    numbers = syscall_numbers.checked_calls(machine)
    if families is not None:
        rules |= _rules_without_namespaces(key, families, shows_root)
    allowed_numbers = syscall_numbers.allowed_calls(machine)
    numbers |= {name: allowed_numbers[name] for name in rules if name in allowed_numbers}
    for name, number in numbers.items():
        ops += _if_number(number, rules[name])
    allowed = syscall_numbers.allowed_calls(machine).values()
    ops += _if_among(allowed, _op(_RET, _ALLOW))
    forbidden = syscall_numbers.forbidden_calls(machine).values()
    ops += _if_among(forbidden, _refuse(errno.EPERM))
    ops.append(_refuse(errno.ENOSYS))  # also the x32 calls
    return b"".join(ops)


def refused_calls(machine: str) -> list[str]:
    """Return the names of the calls that processes in a sandbox are refused, sorted."""
    missing = syscall_numbers.unimplemented_calls(machine)
    return sorted({*syscall_numbers.forbidden_calls(machine), *missing, *_KEYED_CALLS, "clone3"})
