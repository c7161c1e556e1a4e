"""Carries the streams of programs over a connection: both of its sides use the same class.

A program in a sandbox has pipes and sockets; the other ends are on another machine. Each side reads
what its end has, sends it, and writes what it receives. A reader sends at most WINDOW bytes more
than the other side has written, so neither side stores more of a stream, and a program that prints
faster than anybody reads waits as it does with a pipe.

Locally, a shell's output is in its pipe before its report is in its socket and before it ends. The
same holds here: a message of a socket, and the exit status of a process, wait for what the pipes of
the same program had to carry then (``Group``).
"""

from __future__ import annotations

import array
import asyncio
import errno
import fcntl
import itertools
import os
import socket
import stat
import struct
import termios
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from intercode_sandbox.remote.protocol import (
    CHUNK,
    MAX_FRAME,
    WINDOW,
    Kind,
    ProtocolError,
    frame,
    list_value,
    number_value,
    pack_message,
    parse_message,
)
from intercode_sandbox.streams import memory_file

MAX_FILE = 64 << 20
"""Size limit in bytes of a file that is given to a program as a descriptor."""
_STALL_SECONDS = 2.0  # after that, a message no longer waits for a pipe that nobody reads
_READ = 1 << 16
_TOO_MANY = "too many open streams to remote programs"
_MAX_PASSED = 16  # descriptors with one message
_MAX_IN_FLIGHT = 1024  # descriptors of a connection that wait for their socket


@dataclass(eq=False)
class Channel:
    """One stream: a pipe end that is read (``reads``) or written (``writes``), or a socket (both).

    ``waits``: what arrives waits for the pipes of the group. ``position``: the bytes of a pipe that
    were sent, or were written.
    """

    number: int
    fd: int
    reads: bool
    writes: bool
    group: Group
    waits: bool
    credit: int = WINDOW
    position: int = 0
    unreported: int = 0
    buffer: deque[tuple[bytes, list[int]]] = field(default_factory=deque)
    buffered: int = 0
    ending: bool = False  # its last frame has arrived
    ended: bool = False  # and everything before it may be written
    is_open: bool = True
    connection: socket.socket | None = None  # the same descriptor, for a socket


_Waits = list[tuple[Channel, int]]


class _HeldActions:
    """Actions in their order, each of which waits until pipes have reached a position."""

    def __init__(self) -> None:
        self._queue: deque[tuple[_Waits, Callable[[], None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waits: _Waits, action: Callable[[], None]) -> None:
        """Do something once the pipes have reached their positions."""
        self._queue.append((waits, action))
        self.advance()

    def advance(self) -> None:
        """Do what need not wait any longer."""
        while self._queue and all(
            not pipe.is_open or pipe.position >= position for pipe, position in self._queue[0][0]
        ):
            self._queue.popleft()[1]()
        if self._queue and self._timer is None:
            positions = [pipe.position for pipe, _ in self._queue[0][0]]
            self._timer = asyncio.get_running_loop().call_later(
                _STALL_SECONDS, self._check_stall, self._queue[0], positions
            )

    def _check_stall(self, head: tuple[_Waits, Callable[[], None]], positions: list[int]) -> None:
        self._timer = None
        if (
            self._queue
            and self._queue[0] is head
            and positions == [pipe.position for pipe, _ in head[0]]
        ):
            self._queue[0] = ([], head[1])
        self.advance()


class Group:
    """The streams of one program and of those that share its sockets. ``sandbox``: the number of
    their sandbox."""

    def __init__(self, sandbox: int) -> None:
        self.sandbox = sandbox
        self.pipes: set[Channel] = set()
        self.sending, self.receiving = _HeldActions(), _HeldActions()


class Relay:
    """The streams of one connection. All methods run in its event loop, unless they say otherwise.

    ``send`` sends a frame. ``passes_descriptors``: read the descriptors that come with data of a
    local socket. Without it, as for sockets whose other end is in a sandbox, they are discarded.
    ``max_channels`` bounds the streams at one time.
    """

    def __init__(
        self, send: Callable[[bytes], None], passes_descriptors: bool, max_channels: int
    ) -> None:
        self._send, self._passes, self._max = send, passes_descriptors, max_channels
        self._channels: dict[int, Channel] = {}
        self._numbers = itertools.count(1)
        self._in_flight = 0

    # ------------------------------------------------------- descriptors to streams
    def describe(self, fds: Sequence[int]) -> tuple[list[list[Any]], list[tuple[int, int]], bytes]:
        """Return what the other side needs to know of descriptors that a program receives; their
        copies with the numbers of their streams; and the contents of files. Any thread may call it.

        Descriptors of the same pipe become one stream, so that what is written keeps its order.
        """
        rows: list[list[Any]] = []
        contents: list[bytes] = []
        known: dict[tuple[int, int, int], tuple[int, int]] = {}  # numbers and descriptors
        for fd in fds:
            info = os.fstat(fd)
            access = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
            if stat.S_ISREG(info.st_mode):
                contents.append(_rest_of_file(fd, info.st_size))
                rows.append(["file", 0, len(contents[-1])])
                continue
            if not (stat.S_ISFIFO(info.st_mode) or stat.S_ISSOCK(info.st_mode)):
                raise OSError(9, "only pipes, sockets and files can be given to a remote program")
            key = (info.st_dev, info.st_ino, access)
            if key not in known:
                known[key] = next(self._numbers), fd
            kinds = {os.O_RDONLY: "read", os.O_WRONLY: "write"}
            kind = "socket" if stat.S_ISSOCK(info.st_mode) else kinds.get(access, "write")
            rows.append([kind, known[key][0], 0])
        copies = [(number, os.dup(fd)) for number, fd in known.values()]  # nothing else can fail
        return rows, copies, b"".join(contents)

    def describe_status(self) -> tuple[int, tuple[int, int]]:
        """Open the pipe of an exit status. Return its reading end, and its writing end with the
        number of its stream, for ``adopt``. Any thread may call it."""
        status, end = os.pipe()
        return status, (next(self._numbers), end)

    def adopt(self, rows: list[list[Any]], copies: list[tuple[int, int]], group: Group) -> None:
        """Carry the streams of descriptors that ``describe`` has described, and take them out of
        ``copies``. Those that ``rows`` lack are exit statuses."""
        kinds = {number: kind for kind, number, _ in rows}
        for number, fd in take_out(copies):
            kind = kinds.get(number, "status")
            self._add(number, fd, kind in ("read", "socket"), kind != "read", group, kind)

    def create(self, rows: Any, body: bytes, group: Group) -> tuple[list[int], bytes]:
        """Create the descriptors that ``describe`` described on the other side, for a program.

        Returns them, for the caller to close, and the rest of ``body`` after the contents of files.
        """
        created: list[int] = []
        known: dict[int, int] = {}
        try:
            if len(list_value(rows)) > 64:
                raise ProtocolError("too many descriptors for one program")
            for row in rows:
                kind, number, size = list_value(row)
                number_value(number, 2**32 - 1)
                if kind == "file":
                    size = number_value(size, min(MAX_FILE, len(body)))
                    with memory_file(body[:size]) as file:
                        created.append(os.dup(file.fileno()))
                    body = body[size:]
                elif number in known:
                    created.append(os.dup(known[number]))
                else:
                    created.append(self._create_stream(kind, number, group))
                    known[number] = created[-1]
        except (ValueError, TypeError, ProtocolError, OSError) as e:
            for fd in created:
                os.close(fd)
            self.drop(list(known))
            raise e if isinstance(e, OSError) else ProtocolError("invalid descriptors") from e
        return created, body

    def replace_pipe(self, number: int, reader: int, ends: tuple[int, int]) -> None:
        """Let ``reader``, which reads the stream with this number, read another pipe instead. Its
        ``ends`` are closed, and what has arrived already is moved there. Raises OSError."""
        try:
            for fd in (reader, ends[1]):
                os.set_blocking(fd, False)
            data = b""
            with suppress(BlockingIOError):  # nothing has arrived
                data = os.read(reader, WINDOW)
            if os.write(ends[1], data) < len(data):
                raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
            os.dup2(ends[0], reader, inheritable=False)
            os.set_blocking(reader, True)
            if (channel := self._channels.get(number)) is not None:
                asyncio.get_running_loop().remove_writer(channel.fd)
                os.dup2(ends[1], channel.fd, inheritable=False)
                self._write(channel)
        finally:
            for fd in ends:
                os.close(fd)

    def _create_stream(self, kind: Any, number: int, group: Group) -> int:
        if number in self._channels:
            raise ProtocolError("a stream whose number is in use")
        if len(self._channels) >= self._max:
            raise OSError(24, _TOO_MANY)
        if kind == "socket":
            ours, theirs = (end.detach() for end in socket.socketpair())
            self._add(number, ours, True, True, group)
            return theirs
        if kind not in ("read", "write"):
            raise ProtocolError("a descriptor of an unknown kind")
        read, write = os.pipe()
        own, other = (write, read) if kind == "read" else (read, write)
        self._add(number, own, kind == "write", kind == "read", group)
        return other

    def _add(
        self, number: int, fd: int, reads: bool, writes: bool, group: Group, kind: str = ""
    ) -> None:
        if len(self._channels) >= self._max:
            os.close(fd)
            raise OSError(24, _TOO_MANY)
        os.set_blocking(fd, False)
        channel = Channel(number, fd, reads, writes, group, kind == "status" or (reads and writes))
        if reads and writes:
            channel.connection = socket.socket(fileno=fd)
        elif not channel.waits:
            group.pipes.add(channel)
        self._channels[number] = channel
        self._watch(channel)

    def _watch(self, channel: Channel) -> None:
        """Read from a channel exactly while that is allowed."""
        loop = asyncio.get_running_loop()
        if channel.is_open and channel.reads and channel.credit > 0:
            read = self._read_socket if channel.connection is not None else self._read_pipe
            loop.add_reader(channel.fd, read, channel)
        elif channel.is_open:
            loop.remove_reader(channel.fd)

    # ------------------------------------------------------------------- sending
    def _read_pipe(self, channel: Channel, most: int = _READ) -> None:
        try:
            data = os.read(channel.fd, min(most, channel.credit))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._send(frame(Kind.END, channel.number))
            self._close(channel)
            return
        channel.credit -= len(data)
        channel.position += len(data)
        self._send(frame(Kind.DATA, channel.number, data))
        if channel.credit <= 0:
            self._watch(channel)
        channel.group.sending.advance()

    def _read_socket(self, channel: Channel) -> None:
        assert channel.connection is not None
        most, passed = min(_READ, channel.credit), list[int]()
        try:
            if self._passes:
                data, passed = _receive_message(channel.connection, most)
            else:
                data = channel.connection.recv(most)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.after_output(channel.group, lambda: self._send(frame(Kind.END, channel.number)))
            self._close(channel)
            return
        channel.credit -= len(data)
        try:
            message = frame(Kind.DATA, channel.number, data)
            if passed:
                message = self._passing_frame(channel, data, passed)
        except OSError:  # something that cannot be passed on: the session finds its socket closed
            message = frame(Kind.END, channel.number)
            self._close(channel)
        self.after_output(channel.group, lambda: self._send(message))
        if channel.credit <= 0:
            self._watch(channel)

    def _passing_frame(self, channel: Channel, data: bytes, passed: list[int]) -> bytes:
        try:
            rows, copies, contents = self.describe(passed)
        finally:
            for fd in passed:
                os.close(fd)
        if len(contents) + len(data) > MAX_FRAME - _READ:
            for _, fd in copies:
                os.close(fd)
            raise OSError(27, "the files are too large to be passed over a socket")
        self.adopt(rows, copies, channel.group)
        return frame(Kind.PASSING, channel.number, pack_message({"fds": rows}, contents + data))

    def after_output(self, group: Group, action: Callable[[], None]) -> None:
        """Send something after what the group's pipes hold now."""
        waits: _Waits = []
        for pipe in [p for p in group.pipes if p.reads]:
            available = _available(pipe.fd)
            position = pipe.position + available
            while pipe.is_open and pipe.credit > 0 and pipe.position < position:
                before = pipe.position
                self._read_pipe(pipe, position - pipe.position)
                if pipe.position == before:
                    break
            if pipe.is_open and pipe.position < position:
                waits.append((pipe, position))
        group.sending.add(waits, action)

    # ----------------------------------------------------------------- receiving
    def receive(self, kind: Kind, number: int, payload: bytes) -> int:
        """Handle a frame of a stream, and return the number of its sandbox. Frames of streams that
        were closed are ignored: 0."""
        channel = self._channels.get(number)
        if channel is None:
            return 0
        if kind is Kind.CREDIT:
            try:
                (more,) = struct.unpack(">I", payload)
            except struct.error as e:
                raise ProtocolError("credit that is not a number") from e
            channel.credit = min(channel.credit + more, WINDOW)
            self._watch(channel)
        elif kind is Kind.REFUSED:
            self._close(channel)
        elif not channel.writes or channel.ending:
            raise ProtocolError("data for a stream that takes none")
        else:
            self._receive_data(channel, kind, payload)
        return channel.group.sandbox

    def _receive_data(self, channel: Channel, kind: Kind, payload: bytes) -> None:
        fds: list[int] = []
        if kind is Kind.PASSING:
            if self._passes or channel.connection is None:
                raise ProtocolError("descriptors for a stream that takes none")
            header, body = parse_message(payload)
            rows = list_value(header.get("fds"))
            if self._in_flight + len(rows) > _MAX_IN_FLIGHT or len(rows) > _MAX_PASSED:
                raise ProtocolError("more descriptors than may be on their way")
            try:
                fds, payload = self.create(rows, body, channel.group)
            except OSError:  # too many files or streams are open: the stream ends
                self._send(frame(Kind.REFUSED, channel.number))
                self._close(channel)
                return
            self._in_flight += len(fds)
        channel.ending = kind is Kind.END
        channel.buffered += len(payload)
        if (not payload and kind is not Kind.END) or channel.buffered > WINDOW + _READ:
            self._close_passed(fds)
            raise ProtocolError("data of no bytes, or more than the stream has credit for")
        if not channel.waits:
            self._accept(channel, kind, payload, [])
            return
        pipes = [(p, p.position + p.buffered) for p in channel.group.pipes if p.buffered]
        channel.group.receiving.add(pipes, lambda: self._accept(channel, kind, payload, fds))

    def _accept(self, channel: Channel, kind: Kind, payload: bytes, fds: list[int]) -> None:
        if not channel.is_open:
            self._close_passed(fds)
            return
        channel.buffer.append((payload, fds))
        channel.ended = kind is Kind.END
        self._write(channel)

    def _write(self, channel: Channel) -> None:
        """Write as much as the descriptor takes."""
        loop = asyncio.get_running_loop()
        try:
            while channel.is_open and channel.buffer:
                data, fds = channel.buffer[0]
                if not data:
                    channel.buffer.popleft()
                    continue
                count = _write_some(channel, data, fds)
                self._close_passed(fds)
                channel.buffer[0] = (data[count:], [])
                if count == len(data):
                    channel.buffer.popleft()
                channel.buffered -= count
                channel.position += count
                channel.unreported += count
        except BlockingIOError:
            loop.add_writer(channel.fd, self._write, channel)
        except OSError:
            self._send(frame(Kind.REFUSED, channel.number))
            self._close(channel)
        else:
            if channel.is_open:
                loop.remove_writer(channel.fd)
            if channel.ended:
                self._close(channel)
        if channel.is_open and channel.unreported >= WINDOW // 4:
            credit = struct.pack(">I", channel.unreported)
            channel.unreported = 0
            self._send(frame(Kind.CREDIT, channel.number, credit))
        channel.group.receiving.advance()

    # ------------------------------------------------------------------------ end
    def _close(self, channel: Channel) -> None:
        if not channel.is_open:
            return
        loop = asyncio.get_running_loop()
        loop.remove_reader(channel.fd)
        loop.remove_writer(channel.fd)
        channel.is_open = False
        self._channels.pop(channel.number, None)
        channel.group.pipes.discard(channel)
        for _, fds in channel.buffer:
            self._close_passed(fds)
        channel.buffer.clear()
        if channel.connection is None:
            os.close(channel.fd)
        else:
            channel.connection.close()
        channel.group.sending.advance()
        channel.group.receiving.advance()

    def _close_passed(self, fds: list[int]) -> None:
        """Close this process's copies of descriptors that came with data."""
        self._in_flight -= len(fds)
        for fd in fds:
            os.close(fd)

    def drop(self, numbers: Sequence[int]) -> None:
        """Close streams by their numbers, without a word to the other side."""
        for number in numbers:
            if (channel := self._channels.get(number)) is not None:
                self._close(channel)

    def close_sandbox(self, sandbox: int) -> None:
        """Close all streams of a sandbox."""
        self.drop([n for n, c in self._channels.items() if c.group.sandbox == sandbox])

    def close(self) -> None:
        """Close all streams."""
        self.drop(list(self._channels))


def take_out(copies: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Remove the copies of descriptors from their list, which another thread may do at the same
    time: whoever takes one out closes it."""
    with suppress(IndexError):  # the list is empty
        while True:
            yield copies.pop()


def _write_some(channel: Channel, data: bytes, fds: list[int]) -> int:
    if channel.connection is None:
        return os.write(channel.fd, data)
    flags = getattr(socket, "MSG_NOSIGNAL", 0)
    if not fds:
        return channel.connection.send(data, flags)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    return channel.connection.sendmsg([data], rights, flags)


def _receive_message(connection: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """Read from a socket of a session, with the descriptors that came with the first byte.

    The kernel may join them with data before them. So a session sends descriptors only after all
    that it sent before was answered.
    """
    space = socket.CMSG_SPACE(4 * _MAX_PASSED)
    data, extra, _, _ = connection.recvmsg(most, space, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    fds = array.array("i")
    for level, kind, rights in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(rights[: len(rights) - len(rights) % fds.itemsize])
    return data, list(fds)


def _available(fd: int) -> int:
    """Return the number of bytes that a pipe holds."""
    with suppress(OSError):
        return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0])
    return 0


def _rest_of_file(fd: int, size: int) -> bytes:
    """Return the content of a file from the current position of its descriptor."""
    start = os.lseek(fd, 0, os.SEEK_CUR)
    if size - start > MAX_FILE:
        raise OSError(27, f"a file given to a remote program may have {MAX_FILE} bytes")
    parts = []
    while part := os.pread(fd, CHUNK, start):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
