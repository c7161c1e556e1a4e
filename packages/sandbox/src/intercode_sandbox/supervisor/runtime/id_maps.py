"""Lets an ordinary user map its subordinate ids into sandboxes.

``newuidmap`` and ``newgidmap``, which may map them, are set-user-ID programs and cannot run below
the filter of system calls. So the launcher enters a user namespace in which each of these ids is
itself, and lets the two programs map them there once. Its supervisors then map the ids from there
into the user namespaces of their sandboxes, for which CAP_SETUID and CAP_SETGID of the launcher's
namespace suffice.
"""

from __future__ import annotations

import errno
import os

from . import syscalls as sys_

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Mapping

    Ranges = Mapping[str, tuple[str, int, int]]
    """For each kind of id, ``uid`` and ``gid``: the program that maps them, the first subordinate
    id, and their number."""


def enter_user_namespace(ranges: Ranges) -> dict[str, str]:
    """Enter a user namespace with the subordinate ids, without groups and with the two capabilities
    only. Return the maps for the sandboxes, ``uid_map`` and ``gid_map``, in which root is this
    user. Raises OSError if the ids cannot be mapped."""
    own = {"uid": os.geteuid(), "gid": os.getegid()}
    pid = os.getpid()
    entered, errors = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
    mapper = os.fork()
    if mapper == 0:
        status = 1
        try:
            os.close(entered[1])
            if os.read(entered[0], 1):
                status = max(_map(pid, own[kind], *ranges[kind], errors[1]) for kind in own)
        finally:
            os._exit(status)
    try:
        os.close(errors[1])
        sys_.unshare(sys_.CLONE_NEWUSER)
        os.write(entered[1], b"\0")
        if os.waitpid(mapper, 0)[1]:
            text = os.read(errors[0], 4096).decode(errors="replace").strip()
            raise OSError(errno.EPERM, text or "the subordinate ids cannot be mapped")
    finally:
        for fd in (*entered, errors[0]):
            os.close(fd)
    os.setgroups([])
    sys_.keep_capabilities(sys_.CAP_SETGID, sys_.CAP_SETUID, is_root=False)
    return {
        f"{kind}_map": f"0 {own[kind]} 1\n1 {start} {count}"
        for kind, (_, start, count) in ranges.items()
    }


def _map(pid: int, own: int, program: str, start: int, count: int, errors: int) -> int:
    """Map each id of a process's user namespace to itself. Return the status of the program."""
    words = [program, pid, own, own, 1, start, start, count]
    actions = [(os.POSIX_SPAWN_DUP2, errors, 2)]
    child = os.posix_spawn(program, [str(word) for word in words], {}, file_actions=actions)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
