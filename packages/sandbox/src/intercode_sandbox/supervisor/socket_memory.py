"""Measures memory of a sandbox that no process maps: buffers of sockets and files in memory.

The watchdog adds it to the memory of the processes, where no control group counts it.
"""

from __future__ import annotations

import functools
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

_TCP, _UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP
_DIAGNOSED = (
    (socket.AF_UNIX, 0),
    (socket.AF_INET, _TCP),
    (socket.AF_INET6, _TCP),
    (socket.AF_INET, _UDP),
    (socket.AF_INET6, _UDP),
)
# of linux/sock_diag.h, unix_diag.h and inet_diag.h
_BY_FAMILY, _DUMP_REQUEST, _DONE, _ERROR = 20, 0x301, 3, 2
_UNIX_QUEUE, _UNIX_MEMORY, _UNIX_SHOWN, _INET_MEMORY = 4, 5, 0x30, 7
_UNIX_HEAD, _INET_HEAD, _MESSAGE_HEAD = 16, 72, 16
_ANY = 0xFFFFFFFF
_RECEIVED, _BUFFER, _SENT, _FORWARD, _QUEUED, _OPTIONS = 0, 1, 2, 4, 5, 6  # members of the memory
_PART = 1 << 16


class SocketMemory:
    """The sockets of one network namespace, through a descriptor of its socket diagnostics."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.settimeout(1.0)

    def total(self) -> int:
        """Return the bytes in the buffers of all sockets; 0 if the kernel does not tell."""
        with suppress(OSError, KeyError, struct.error):
            return sum(self._family_total(*each) for each in _DIAGNOSED)
        return 0

    def close(self) -> None:
        """Close the descriptor. May be called again."""
        self._socket.close()

    def _family_total(self, family: int, protocol: int) -> int:
        is_unix = family == socket.AF_UNIX
        if is_unix:
            body = struct.pack("=BBHIIIII", family, 0, 0, _ANY, 0, _UNIX_SHOWN, _ANY, _ANY)
        else:
            shown = 1 << (_INET_MEMORY - 1)
            body = struct.pack("=BBBBI", family, protocol, shown, 0, _ANY) + bytes(48)
        size = _MESSAGE_HEAD + len(body)
        self._socket.send(struct.pack("=IHHII", size, _BY_FAMILY, _DUMP_REQUEST, 1, 0) + body)
        count = _unix_bytes if is_unix else _inet_bytes
        total = 0
        for message in self._messages(is_unix):
            total += count(dict(_attributes(message)))
        return total

    def _messages(self, is_unix: bool) -> Iterator[bytes]:
        """Yield the attributes of each socket."""
        head = _MESSAGE_HEAD + (_UNIX_HEAD if is_unix else _INET_HEAD)
        while True:
            part = self._socket.recv(_PART)
            while part:
                length, kind = struct.unpack_from("=IH", part)
                if kind in (_DONE, _ERROR) or length < _MESSAGE_HEAD:
                    return
                yield part[head:length]
                part = part[_aligned(length) :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind, data[4:length]
        data = data[max(4, _aligned(length)) :]


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _unix_bytes(attributes: dict[int, bytes]) -> int:
    """Return the bytes that a Unix socket has sent and nobody has read. What a closed socket has
    sent counts as a full buffer of the receiver."""
    numbers: tuple[int, ...] = struct.unpack("=9I", attributes[_UNIX_MEMORY][:36])
    waiting = int.from_bytes(attributes[_UNIX_QUEUE][:4], sys.byteorder)
    return numbers[_SENT] + (max(numbers[_BUFFER], waiting) if waiting else 0)


def _inet_bytes(attributes: dict[int, bytes]) -> int:
    if _INET_MEMORY not in attributes:  # a connection that is being opened or closed
        return 0
    numbers: tuple[int, ...] = struct.unpack("=9I", attributes[_INET_MEMORY][:36])
    return sum(numbers[i] for i in (_RECEIVED, _SENT, _FORWARD, _QUEUED, _OPTIONS))


@dataclass
class OpenFiles:
    """What processes hold through descriptors: the sizes of files in memory by inode, and the
    number of sockets. ``by_process``: the bytes and the sockets of each process."""

    files: dict[int, int] = field(default_factory=dict)
    by_process: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, pids: Iterable[int]) -> OpenFiles:
        """Inspect processes. Those that have ended, or whose files this process may not see, hold
        nothing."""
        found = cls()
        for pid in pids:
            with suppress(OSError):
                found._inspect(pid)
        return found

    def _inspect(self, pid: int) -> None:
        own: dict[int, int] = {}
        sockets = 0
        for kind, inode, size in _open_files(pid):
            if kind == "socket":
                sockets += 1
            else:
                own[inode] = size
        self.files |= own
        self.by_process[pid] = sum(own.values()), sockets

    @property
    def total(self) -> int:
        """The bytes of all files in memory."""
        return sum(self.files.values())


_Kind = Literal["socket", "memory"]


def _open_files(pid: int) -> Iterator[tuple[_Kind, int, int]]:
    """Yield the sockets and the files in memory that a process has open: kind, inode and bytes.
    Raises OSError."""
    try:
        entries = os.scandir(f"/proc/{pid}/fd")
    except PermissionError:  # another user of a sandbox of this user, who may trace the process
        yield from _files_of_other_user(pid)
        return
    with entries:
        for entry in entries:
            with suppress(OSError):
                info = entry.stat()
                if stat.S_ISSOCK(info.st_mode):
                    yield "socket", info.st_ino, 0
                elif info.st_dev == _own_files().device:
                    yield "memory", info.st_ino, info.st_blocks * 512


def _files_of_other_user(pid: int) -> Iterator[tuple[_Kind, int, int]]:
    """Do the same for a process whose directory of descriptors is closed: recognize files by their
    mounts, and take duplicates of those in memory. The end of a duplicate of a socket could block.
    """
    # not on Windows, which imports this module for remote sandboxes
    from intercode_sandbox.supervisor.runtime.syscalls import get_descriptor

    own = _own_files()
    process = os.pidfd_open(pid)
    try:
        for number in os.listdir(f"/proc/{pid}/fdinfo"):
            with suppress(OSError, ValueError):
                mount = _mount_of(pid, number)
                if mount == own.socket_mount:
                    yield "socket", 0, 0
                elif mount == own.memory_mount:
                    descriptor = get_descriptor(process, int(number))
                    try:
                        info = os.fstat(descriptor)
                    finally:
                        os.close(descriptor)
                    if info.st_dev == own.device:  # it may be another file by now
                        yield "memory", info.st_ino, info.st_blocks * 512
    finally:
        os.close(process)


def _mount_of(pid: int | str, descriptor: int | str) -> int:
    """Return the number of the mount that a file is on. Raises OSError or ValueError."""
    with open(f"/proc/{pid}/fdinfo/{descriptor}") as file:
        return int(file.read().partition("mnt_id:")[2].split()[0])


@dataclass(frozen=True)
class _OwnFiles:
    """The device of files in memory, and the kernel's mounts of these and of sockets."""

    device: int
    memory_mount: int
    socket_mount: int


@functools.cache
def _own_files() -> _OwnFiles:
    descriptor = os.memfd_create("intercode", os.MFD_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            device = os.fstat(descriptor).st_dev
            return _OwnFiles(device, _mount_of("self", descriptor), _mount_of("self", one.fileno()))
    finally:
        os.close(descriptor)
