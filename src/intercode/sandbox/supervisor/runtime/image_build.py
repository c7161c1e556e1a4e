"""Runs a command of an image build in a sandbox with many user ids, for example to install
packages.

sandbox/images/build/multi_uid.py starts this as a process and maps the ids. The command is root of
a user namespace with the capabilities that Docker gives a build, with mounts and processes of its
own, on the machine's network. There is no seccomp filter, because the code comes from the person
who builds the image, not from an agent.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import sys

from . import mounts
from . import syscalls as sys_

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from typing import Any, NoReturn

_ALLOWED_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
"""Capabilities that the command keeps: for files and ids, chroot, mknod, raw sockets."""
_CAPABILITY_COUNT = 64
_NAMESPACES = sys_.CLONE_NEWUSER | sys_.CLONE_NEWPID | sys_.CLONE_NEWIPC | sys_.CLONE_NEWUTS
_RESOLVER = "/etc/resolv.conf"
_SET_ID = stat.S_ISUID | stat.S_ISGID


def main(fd: int) -> None:
    """Run the request that arrives on the inherited socket ``fd``. Answer with the exit status or
    an error."""
    owner = socket.socket(fileno=fd)
    owner.set_inheritable(False)
    request = json.loads(sys.stdin.buffer.read())
    try:
        _die_with_parent()
        sys_.unshare(_NAMESPACES)
        owner.sendall(b"M")
        if owner.recv(1) != b"G":
            return
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        _die_with_parent()
        status = _run_in_child(request, owner)
        if status >= 0:
            _normalize_owner(request["upper"] + "/upper")
            owner.sendall(b"S%d" % status)
    except OSError as e:
        owner.sendall(f"E{e}".encode())


def _die_with_parent() -> None:
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)


def _run_in_child(request: dict[str, Any], owner: socket.socket) -> int:
    """Fork PID 1 of the sandbox and wait for it. Return the command's exit status, or -1 if an
    error was sent."""
    child = os.fork()
    if child == 0:
        _run_init(request, owner)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended == 0:
        return int(_read_status(request["upper"]))
    if ended < 0:
        raise OSError(f"the build's first process ended by signal {-ended}")
    return -1


def _read_status(upper: str) -> str:
    with open(f"{upper}/status", "rb") as f:
        return f.read().decode()


def _run_init(request: dict[str, Any], owner: socket.socket) -> NoReturn:
    """Run as PID 1: mount the root, run the command, collect orphans, and write the exit status to
    a file."""
    try:
        _die_with_parent()
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        status = os.open(request["upper"] + "/status", flags, 0o600)
        sys_.unshare(sys_.CLONE_NEWNS)
        mounts.prepare_stage(request["stage"], own_network=False)
        mounts.mount_proc(".")
        for name, text in request["files"].items():
            with open(f"dev/shm/{name}", "w") as f:
                f.write(text)
        root = mounts.RootLayout(request, [], []).root
        mounts.change_root(root)
        created = _mount_resolver("/dev/shm/resolv.conf")
        command = os.fork()
        if command == 0:
            _exec_command(request)
        code = _reap(command)
        if created:
            sys_.umount(_RESOLVER)
            os.unlink(_RESOLVER)
        os.write(status, b"%d" % code)
        os._exit(0)
    except OSError as e:
        owner.sendall(f"E{e}".encode())
    finally:
        os._exit(1)


def _mount_resolver(source: str) -> bool:
    """Mount the machine's resolver configuration. Return whether a file had to be made for it."""
    if os.path.isdir("/etc"):
        created = not os.path.lexists(_RESOLVER)
        if created:
            os.close(os.open(_RESOLVER, os.O_WRONLY | os.O_CREAT, 0o644))
        if os.path.isfile(_RESOLVER):
            sys_.mount(source, os.path.realpath(_RESOLVER), flags=sys_.MS_BIND)
            return created
    return False


def _exec_command(request: dict[str, Any]) -> NoReturn:
    argv, env = request["argv"], request["env"]
    try:
        for number in set(range(_CAPABILITY_COUNT)) - _ALLOWED_CAPABILITIES:
            try:
                sys_.prctl(sys_.PR_CAPBSET_DROP, number)
            except OSError:  # the kernel has fewer capabilities
                break
        os.umask(0o022)
        os.chdir(request["cwd"])
        os.setsid()
        error = OSError(errno.ENOENT, "not found")
        for directory in [""] if "/" in argv[0] else env.get("PATH", "").split(":"):
            try:
                os.execve(os.path.join(directory, argv[0]), argv, env)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as e:
                error = e
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
    except OSError as e:
        os.write(2, f"{e}\n".encode())
    finally:
        os._exit(127)


def _reap(command: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _normalize_owner(top: str) -> None:
    """Give all written files to one user, and clear their set-id bits."""
    for folder, directories, files in os.walk(top):
        for name in (*directories, *files):
            path = f"{folder}/{name}"
            found = os.lstat(path)
            if found.st_uid or found.st_gid:
                os.lchown(path, 0, 0)
            if found.st_mode & _SET_ID and not stat.S_ISLNK(found.st_mode):
                os.chmod(path, stat.S_IMODE(found.st_mode) & ~_SET_ID)
