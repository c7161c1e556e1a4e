"""Builds the seccomp filter of sandboxes, a BPF program.

Most system calls are allowed. The filter refuses calls that change namespaces or mounts, trace
other processes, load code into the kernel, or reach beyond the network namespace. Changing a file's
owner reports success without effect, because a sandbox has only one user, and `tar` and `install`
must work.

Launcher and supervisors have the same filter. They may change mounts and namespaces, and trace
processes of a sandbox for checkpoints, because they pass a key of 64 random bits in a register that
those calls do not use. The key does not replace capabilities: processes in a sandbox have neither.

PID 1 has the same user as all other processes, and in a container it is the supervisor, so no
process may change its limits or priority.
"""

from __future__ import annotations

import errno
import struct

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _JEQ, _JSET, _JGE, _RET = 0x20, 0x15, 0x45, 0x35, 0x06
_NR, _ARCH, _ARG0, _ARG1, _ARG2 = 0, 4, 16, 24, 32
_KEY_LOW, _KEY_HIGH = 56, 60  # offsets of the halves of the sixth argument
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_TABLES: dict[str, dict[str, int]] = {
    "x86_64": dict(
        clone=56, clone3=435, socket=41, socketpair=53, unshare=272, setns=308, mount=165,
        umount2=166, pivot_root=155, move_mount=429, fsopen=430, fsconfig=431, fsmount=432,
        fspick=433, open_tree=428, mount_setattr=442, ptrace=101, process_vm_readv=310,
        process_vm_writev=311, kcmp=312, pidfd_getfd=438, process_madvise=440, keyctl=250,
        add_key=248, request_key=249, bpf=321, perf_event_open=298, io_uring_setup=425,
        io_uring_enter=426, io_uring_register=427, userfaultfd=323, init_module=175,
        finit_module=313, delete_module=176, kexec_load=246, kexec_file_load=320, reboot=169,
        swapon=167, swapoff=168, acct=163, quotactl=179, quotactl_fd=443, settimeofday=164,
        adjtimex=159, clock_settime=227, clock_adjtime=305, syslog=103, vhangup=153, iopl=172,
        ioperm=173, open_by_handle_at=304, name_to_handle_at=303, lookup_dcookie=212,
        fanotify_init=300, modify_ldt=154, open_tree_attr=467, statmount=457, listmount=458,
        listns=470, ioctl=16, chown=92, fchown=93, lchown=94, fchownat=260, prlimit64=302,
        fcntl=72, io_setup=206,
        sched_setaffinity=203, sched_setparam=142, sched_setscheduler=144, sched_setattr=314,
        setpriority=141, ioprio_set=251,
    ),
    "aarch64": dict(
        clone=220, clone3=435, socket=198, socketpair=199, unshare=97, setns=268, mount=40,
        umount2=39, pivot_root=41, move_mount=429, fsopen=430, fsconfig=431, fsmount=432,
        fspick=433, open_tree=428, mount_setattr=442, ptrace=117, process_vm_readv=270,
        process_vm_writev=271, kcmp=272, pidfd_getfd=438, process_madvise=440, keyctl=219,
        add_key=217, request_key=218, bpf=280, perf_event_open=241, io_uring_setup=425,
        io_uring_enter=426, io_uring_register=427, userfaultfd=282, init_module=105,
        finit_module=273, delete_module=106, kexec_load=104, kexec_file_load=294, reboot=142,
        swapon=224, swapoff=225, acct=89, quotactl=60, quotactl_fd=443, settimeofday=170,
        adjtimex=171, clock_settime=112, clock_adjtime=266, syslog=116, vhangup=58,
        open_by_handle_at=265, name_to_handle_at=264, lookup_dcookie=18, fanotify_init=262,
        open_tree_attr=467, statmount=457, listmount=458, listns=470, ioctl=29, fchown=55,
        fchownat=54, prlimit64=261, fcntl=25, io_setup=0, sched_setaffinity=122, sched_setparam=118,
        sched_setscheduler=119, sched_setattr=274, setpriority=140, ioprio_set=30,
    ),
}  # fmt: skip
_FAKED = ("chown", "fchown", "lchown", "fchownat")
_CHECKED = ("clone", "clone3", "ioctl", "fcntl", "socket", "socketpair")
_PROCESS_ARGUMENT = {
    "prlimit64": _ARG0, "sched_setaffinity": _ARG0, "sched_setparam": _ARG0,
    "sched_setscheduler": _ARG0, "sched_setattr": _ARG0, "setpriority": _ARG1, "ioprio_set": _ARG1,
}  # fmt: skip
"""Calls that change limits or priority of a process, and which argument is its number."""
_KEYED_CALLS = (
    "mount", "umount2", "pivot_root", "unshare", "mount_setattr", "open_tree", "move_mount",
    "ptrace",
)  # fmt: skip
_NEW_CALLS = ("open_tree_attr", "statmount", "listmount", "listns", "io_setup")
"""Programs fall back on others if these calls are not implemented. The kernel bounds the contexts
of io_setup(2) for the whole machine."""
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


def _socket_rules() -> list[bytes]:
    """Allow sockets of the families and protocols in ``_PROTOCOLS`` only."""
    ops: list[bytes] = []
    for family, protocols in _PROTOCOLS.items():
        body = _allow_only(_ARG2, protocols, errno.EPROTONOSUPPORT)
        ops += [_op(_LOAD, _ARG0), *_if_number(family, body)]
    return [*ops, _refuse(errno.EAFNOSUPPORT)]


def _pipe_size_rules() -> list[bytes]:
    """Refuse pipes of more than their default size, because all sandboxes of a user share the
    kernel's budget for the buffers of pipes."""
    return [
        _op(_LOAD, _ARG1), _op(_JEQ, _SET_PIPE_SIZE, 0, 2),
        _op(_LOAD, _ARG2), _op(_JGE, _MAX_PIPE_SIZE + 1, 1, 0),
        _op(_RET, _ALLOW), _refuse(errno.EPERM),
    ]  # fmt: skip


def _require_key(key: int, code: int = errno.EPERM) -> list[bytes]:
    """Allow a call whose sixth argument is the key, and refuse others with an error number."""
    low, high = key & 0xFFFFFFFF, key >> 32
    return [
        _op(_LOAD, _KEY_LOW), _op(_JEQ, low, 0, 3), _op(_LOAD, _KEY_HIGH), _op(_JEQ, high, 0, 1),
        _op(_RET, _ALLOW), _refuse(code),
    ]  # fmt: skip


def build_filter(machine: str, key: int) -> bytes:
    """Build the filter for a machine as ``platform.machine()`` names it. ``key``: 64 bits, for the
    processes that set up sandboxes. Raises KeyError for an unknown machine."""
    table = _TABLES[machine]
    ops = [_op(_LOAD, _ARCH), _op(_JEQ, _AUDIT[machine], 1, 0), _refuse(errno.ENOSYS)]
    ops.append(_op(_LOAD, _NR))
    if machine == "x86_64":  # the x32 calls
        ops += [_op(_JGE, 0x40000000, 0, 1), _refuse(errno.ENOSYS)]
    ops += _if_number(table["clone3"], _require_key(key, errno.ENOSYS))  # its flags are not readable
    ops += _if_number(
        table["clone"],
        [
            _op(_LOAD, _ARG0),
            _op(_JSET, _NEW_NAMESPACES, 0, 1),
            _refuse(errno.EPERM),
            _op(_RET, _ALLOW),
        ],
    )
    ops += _if_number(table["ioctl"], _refuse_only(_ARG1, _TERMINAL_INPUT_IOCTLS, errno.EPERM))
    ops += _if_number(table["fcntl"], _pipe_size_rules())
    for name in ("socket", "socketpair"):
        ops += _if_number(table[name], _socket_rules())
    for name, argument in _PROCESS_ARGUMENT.items():
        ops += _if_number(table[name], _refuse_only(argument, (1,), errno.EPERM))
    for name in _KEYED_CALLS:
        ops += _if_number(table[name], _require_key(key))
    for name, number in table.items():
        if name not in _CHECKED and name not in _KEYED_CALLS and name not in _PROCESS_ARGUMENT:
            code = 0 if name in _FAKED else errno.ENOSYS if name in _NEW_CALLS else errno.EPERM
            ops += _if_number(number, [_refuse(code)])
    ops.append(_op(_RET, _ALLOW))
    return b"".join(ops)
