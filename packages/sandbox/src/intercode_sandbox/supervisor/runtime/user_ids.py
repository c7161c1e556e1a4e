"""Gives each sandbox a user id of its own, so that none can use up what the kernel counts for each
user: inotify instances, the budget for pipes, and the like.

Layers belong to the user id that all sandboxes share. A sandbox with an id of its own sees them
through mounts that show this owner as its own, which a user namespace describes. Only root can make
such mounts, on most file systems, for an overlay since Linux 5.19.

A sandbox with several users has a range of ids: root inside has the first, and the user N the Nth
after it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat

from . import syscalls as sys_
from .control_files import write_control_file

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_ID = 0x70010000
"""The first id of sandboxes, in a range that systemd leaves unused, after the ids of image builds
(images/build/multi_uid.py)."""
_BLOCK, _BLOCKS = 1024, 256
FIRST_RANGE, RANGE_SIZE = 0x71000000, 1 << 16
"""The first id of sandboxes with several users, and how many each has."""
_RANGE_BLOCK, _RANGE_BLOCKS = 64, 56
_LOOKED_AT = 4  # ids of ended sandboxes that are looked at before an unused one is taken
_LOCKS = "/run/intercode-user-ids"
"""Locked files in it say which blocks of ids the launchers of this machine use."""
INNER_ROOT = 0
"""The owner, as a sandbox's own file system stores it, of the files that the sandbox wrote."""
_CREATED = b"created"
_MAX_DESCRIPTORS = 1 << 16


class UserIds:
    """The user ids of one launcher, and the mounts that show files to them. ``shared``: the owner
    of layers. ``has_users``: each id is the first of a range, for a sandbox with several users.
    Raises OSError if root can have none here."""

    def __init__(self, shared: int, locks: str = _LOCKS, has_users: bool = False) -> None:
        self.shared, self._locks = shared, locks
        self._prefix, self._first, self._step = "", FIRST_ID, 1
        self._block, self._blocks = _BLOCK, _BLOCKS
        if has_users:
            self._prefix, self._first, self._step = "range-", FIRST_RANGE, RANGE_SIZE
            self._block, self._blocks = _RANGE_BLOCK, _RANGE_BLOCKS
        self._held: list[int] = []  # descriptors of locked files, one for each block
        self._claimed = 0  # blocks that were tried
        self._unused: list[int] = []  # the next one last
        self._released: list[int] = []  # the oldest first
        self._owners: dict[tuple[int, int], int] = {}  # stored and shown owner: a user namespace
        self._hold: Callable[[socket.socket], int] = hold_namespace
        self._collects_holders = True
        self._claim_block()

    def start_holders_with(self, hold: Callable[[socket.socket], int]) -> None:
        """Try this function before ``hold_namespace``, which is still used if it returns 0. From
        now on the caller collects the processes of both when they end."""
        self._hold = hold
        self._collects_holders = False

    def take(self) -> int:
        """Return an id that no process of the machine has. Raises OSError if there is none."""
        for uid in self._released[:_LOOKED_AT]:  # an id that was used has its user namespaces
            if not _has_processes(uid):
                self._released.remove(uid)
                return uid
        while True:
            if not self._unused:
                self._claim_block()
            uid = self._unused.pop()
            if not _has_processes(uid):
                return uid

    def release(self, uid: int) -> None:
        """Let another sandbox have an id, as soon as the last process with it has ended."""
        self._released.append(uid)

    def clone_layer(self, path: str, uid: int) -> int:
        """Return a descriptor of a mount of a directory that belongs to the shared id, for the
        sandbox with this id. Raises OSError if its file system cannot be mounted so."""
        mount = sys_.clone_mount(path)
        try:
            self.map_mount(mount, self.shared, uid)
        except BaseException:
            os.close(mount)
            raise
        return mount

    def map_mount(self, mount: int, stored: int, uid: int) -> None:
        """Show the files of a mount, which is not attached yet, to the sandbox with this id.
        ``stored``: their owner as the file system stores it. Raises OSError."""
        if (stored, uid) not in self._owners:
            count = self._step if stored == INNER_ROOT else 1
            self._owners[stored, uid] = self._create_user_namespace(stored, uid, count)
        sys_.map_owners(mount, self._owners[stored, uid])

    def check_overlay(self, directory: str, stage: str) -> None:
        """Raise OSError if the kernel cannot show this directory to a sandbox with an own id by an
        overlay, or a file system in memory. ``stage``: a directory in memory, in which directories
        can be made."""
        os.close(self.clone_layer(stage, self._unused[-1]))
        lower, root = f"{stage}/lower", f"{stage}/root"
        mount = self.clone_layer(directory, self._unused[-1])
        try:
            for path in (lower, root):
                os.mkdir(path)
            sys_.attach_mount(mount, lower)
        finally:
            os.close(mount)
        sys_.mount("overlay", root, "overlay", options=f"lowerdir={lower}:{root}")
        for path in (root, lower):
            sys_.unmount(path)
            os.rmdir(path)

    def _create_user_namespace(self, inside: int, outside: int, count: int) -> int:
        """Return a descriptor of a user namespace that maps ids, as users and as groups. Raises
        ChildProcessError if no process can make one."""
        ours, pid = _start_holder(self._hold)
        try:
            with ours:
                answer = ours.recv(4096)
                if answer != _CREATED:
                    why = answer.decode() or "no user namespace can be made"
                    raise ChildProcessError(errno.ECHILD, why)
                for name in ("uid_map", "gid_map"):
                    write_control_file(f"/proc/{pid}/{name}", f"{inside} {outside} {count}")
                return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            if self._collects_holders:
                os.waitpid(pid, 0)

    def _claim_block(self) -> None:
        """Lock a block of ids that no other launcher uses."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._locks, 0o700)
        info = os.lstat(self._locks)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid or info.st_mode & 0o022:
            raise OSError(errno.EPERM, "not a directory of root alone", self._locks)
        while self._claimed < self._blocks:
            block, self._claimed = self._claimed, self._claimed + 1
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.open(f"{self._locks}/{self._prefix}{block}", flags, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            self._held.append(lock)
            ids = range(self._block * block, self._block * (block + 1))
            self._unused += [self._first + self._step * number for number in reversed(ids)]
            return
        raise OSError(errno.EAGAIN, "other launchers use all user ids for sandboxes")


def _has_processes(uid: int) -> bool:
    try:
        os.getpriority(os.PRIO_USER, uid)
    except ProcessLookupError:
        return False
    return True


def _start_holder(hold: Callable[[socket.socket], int]) -> tuple[socket.socket, int]:
    """Start a process in a user namespace by ``hold``, or by ``hold_namespace`` if that returns 0.
    Return the connection to the process and its pid."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            pid = hold(theirs)
    except BaseException:
        ours.close()
        raise
    if pid:
        return ours, pid
    ours.close()
    return _start_holder(hold_namespace)


def hold_namespace(connection: socket.socket) -> int:
    """Start a process in a user namespace of its own. Return its pid. It sends ``created``, or what
    went wrong, and ends when the other side closes the connection."""
    pid = os.fork()
    if pid == 0:
        try:
            number = connection.fileno()  # the child has inherited the other side, too
            os.closerange(0, number)
            os.closerange(number + 1, _MAX_DESCRIPTORS)
            try:
                sys_.unshare(sys_.CLONE_NEWUSER)
                connection.send(_CREATED)
            except OSError as e:
                connection.send(str(e).encode())
            connection.recv(1)
        finally:
            os._exit(0)
    return pid
