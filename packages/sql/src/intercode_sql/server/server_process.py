"""The process that owns a private database server and ends with its last user.

It runs as a file in a bare interpreter and uses only the standard library. It copies a data
directory, starts the server on it under an unprivileged user id, and listens on a socket. Every
process that uses the server holds a connection to that socket. When the last connection ends, the
owner kills the server and deletes all files. If the owner itself is killed, the kernel ends the
server, and the next start removes the files (see ``remove_orphans``).

If the server crashes, its log names the connection of which a statement was the reason. The owner
passes this on to the clients as its last message.

Temporary files of all sessions are on a file system of a limited size, if this process may mount
one, in a mount namespace of its own. A client asks for the size of what one session keeps, and for
its part of the files that all sessions share.

    python -I owner.py '{"home": …, "source": …, "program": …, "arguments": […], "user": …,
                         "file_bytes": …, "session_bytes": …}'
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

with suppress(ImportError):  # absent on Windows, which may import this module but not run it
    import fcntl

_PR_SET_PDEATHSIG = 1  # PR_SET_PDEATHSIG
_START_SECONDS = 60.0
_LINGER_SECONDS = 3.0  # seconds that a released server waits for another user
_TEMPORARY_BYTES = 2 << 30  # for the temporary files of all sessions
_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER
_PRIVATE_MOUNTS = 1 << 18 | 1 << 14  # MS_PRIVATE | MS_REC
_FILES_ONLY = 2 | 4 | 8  # MS_NOSUID | MS_NODEV | MS_NOEXEC
_DETACH = 2  # MNT_DETACH
_RLIMIT_FSIZE = 1  # RLIMIT_FSIZE
CRASHED = b"crashed "
"""The beginning of the last message after a crash; the number of the connection follows."""
TEMPORARY_TABLES = "ibtmp1"
"""InnoDB's file of the temporary tables of all sessions, in the server's directory."""
_UNDO_LOGS = ("ibdata1", "undo001", "undo002", "undo003", "undo_001", "undo_002")
"""InnoDB's files, in the data, of what all open transactions could undo. MariaDB 10 has the first;
newer servers have others by default."""
_SHARED_SESSIONS = 2  # sessions that may use all their bytes of a shared file at once
_LOG_NAME = "log.err"  # the server appends the ending to any other name
_MAX_REPORT = 1 << 20  # bytes at the end of the log, which hold the report of a crash
_CRASH = re.compile(rb"^\d[-\d :TZ]+(\[ERROR\]|UTC -) \S+ got signal \d+", re.MULTILINE)
_CRASHED_CONNECTION = re.compile(rb"^Connection ID \(thread ID\): (\d+)", re.MULTILINE)


class ServerOwner:
    """Starts a server and serves until the last client disconnects."""

    def __init__(self, settings: dict[str, object]) -> None:
        self._home = Path(str(settings["home"]))
        self._data = self._home / "data"
        self._socket = self._home / "server"
        self._source = Path(str(settings["source"]))
        self._user = settings["user"]
        self._file_bytes = int(str(settings["file_bytes"]))
        files = (self._home / TEMPORARY_TABLES, *(self._data / name for name in _UNDO_LOGS))
        self._shared = [SharedFile(file, int(str(settings["session_bytes"]))) for file in files]
        arguments = settings["arguments"]
        assert isinstance(arguments, list)
        self._command = [
            str(settings["program"]),
            *map(str, arguments),
            f"--datadir={self._data}",
            f"--socket={self._socket}",
            f"--pid-file={self._home / 'pid'}",
            f"--tmpdir={self._home / 'tmp'}",
            f"--log-error={self._home / _LOG_NAME}",
            f"--secure-file-priv={self._home / 'none'}",
        ]
        self._server: subprocess.Popen[bytes] | None = None
        self._clients: list[socket.socket] = []
        self._last_release = 0.0

    def run(self) -> None:
        """Start the server, serve, and delete everything at the end."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(self._home / "control"))
            listener.listen(128)
            try:
                ready = self._start()
            except OSError as e:
                ready = {"error": f"its data directory could not be created: {e}"}
            # the process that started this one waits for this line
            print(json.dumps(ready), flush=True)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            if "error" not in ready:
                self._serve(listener)
        finally:
            if self._server is not None:
                self._server.kill()
                self._server.wait()
            crashed = _crashed_connection(self._home / _LOG_NAME)
            for user in self._clients:
                with suppress(OSError):
                    user.sendall(CRASHED + b"%d\n" % crashed if crashed else b"")
                user.close()  # clients notice the end before the files are gone
            ctypes.CDLL(None).umount2(os.fsencode(self._home / "tmp"), _DETACH)
            shutil.rmtree(self._home, ignore_errors=True)
            with suppress(OSError):
                self._home.parent.rmdir()  # fails if there are other servers

    def _start(self) -> dict[str, object]:
        shutil.copytree(self._source, self._data)
        for name in ("tmp", "none"):
            (self._home / name).mkdir(exist_ok=True)
        if self._user is not None:
            for path in (self._home, self._data, *self._data.rglob("*"), self._home / "tmp"):
                os.chown(path, int(str(self._user)), int(str(self._user)))
        _limit_directory(self._home / "tmp", _TEMPORARY_BYTES, self._user)
        self._server = subprocess.Popen(
            self._command,
            preexec_fn=self._confine,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._home,
        )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self._socket))
                except OSError:
                    time.sleep(0.01)
                else:
                    return {"socket": str(self._socket), "pid": self._server.pid}
        log = self._home / _LOG_NAME
        log_text = log.read_text("utf-8", "replace")[-2000:] if log.exists() else "nothing"
        who = "" if self._user is None else f" (can the user id {self._user} reach {self._home}?)"
        return {"error": f"the database server did not start{who}; it said: {log_text}"}

    def _confine(self) -> None:
        """Drop privileges and set limits, between fork and exec."""
        import resource

        os.setsid()
        resource.setrlimit(_RLIMIT_FSIZE, (self._file_bytes, self._file_bytes))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if self._user is not None:
            os.setgroups([])
            os.setgid(int(str(self._user)))
            os.setuid(int(str(self._user)))
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def _serve(self, listener: socket.socket) -> None:
        assert self._server is not None
        server = os.pidfd_open(self._server.pid)
        deadline = time.monotonic() + _START_SECONDS  # wait for the first client
        while self._clients or time.monotonic() < deadline:
            left = None if self._clients else max(0.0, deadline - time.monotonic())
            watched: list[socket.socket | int] = [listener, server, *self._clients]
            ready = select.select(watched, [], [], left)[0]
            if server in ready:
                return
            if listener in ready:
                self._clients.append(listener.accept()[0])
            for user in [u for u in self._clients if u in ready]:
                if not self._handle_message(user):
                    return
                if not self._clients:
                    deadline = self._last_release + _LINGER_SECONDS

    def _handle_message(self, user: socket.socket) -> bool:
        """Handle a client's message: ``size DATABASE CONNECTION SESSION THREAD``, ``save PATH``,
        ``bye``, or the end of its connection. Return False to stop serving."""
        try:
            message = user.recv(4096).decode()
        except OSError:
            message = ""
        if message.startswith("save "):
            self._save(Path(message[5:].strip()))
            user.sendall(b"saved\n")
            return False
        if message.startswith("size "):
            database, *numbers = message.split()[1:]
            connection, session, thread = map(int, numbers)
            part = sum(file.part(session, self._task(thread)) for file in self._shared)
            user.sendall(b"%d %d\n" % (self._size(database, connection), part))
            return True
        if message.startswith("bye"):
            self._last_release = time.monotonic()
        self._clients.remove(user)
        user.close()
        return True

    def _size(self, database: str, connection: int) -> int:
        """Return the bytes of the files of a database, and of a connection's temporary tables."""
        own = f"-{connection:x}-"
        files = [e for e in _entries(self._home / "tmp") if own in e.name]
        return sum(_bytes_of(e) for e in (*_entries(self._data / database), *files))

    def _task(self, thread: int) -> Path:
        assert self._server is not None
        return Path(f"/proc/{self._server.pid}/task/{thread}")

    def _save(self, path: Path) -> None:
        """Stop the server cleanly and copy its data to ``path``."""
        assert self._server is not None
        self._server.terminate()
        self._server.wait(_START_SECONDS)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        shutil.copytree(self._data, partial)
        partial.rename(path)


class SharedFile:
    """A file of InnoDB that all sessions use and that never shrinks. Its growth is charged to the
    sessions, by the processor time that their threads have used since it last grew.

    If the file reached the limit of a file, InnoDB would abort the server. So growth costs more
    when the file is larger than ``_SHARED_SESSIONS`` sessions' bytes, and all the bytes of a
    session when one more session's bytes are used.
    """

    def __init__(self, path: Path, session_bytes: int) -> None:
        self._path, self._session_bytes = path, session_bytes
        self._first_size = self._size = 0
        self._charges: dict[int, int] = {}
        self._threads: dict[int, tuple[Path, int]] = {}

    def part(self, session: int, thread: Path) -> int:
        """Return the bytes that a session is charged for. ``thread`` is the directory of its
        connection's thread in ``/proc``."""
        size = _size_of(self._path)
        if not size:
            return 0
        if not self._first_size:
            self._first_size = self._size = size
        if self._threads.get(session, (None,))[0] != thread:
            self._forget_thread(thread)  # the server has given it to another connection
            self._threads[session] = thread, _processor_time(thread)
        if size > self._size:
            self._charge(size, session)
        else:  # what it has done until now has not made the file grow
            self._threads[session] = thread, _processor_time(thread)
        return self._charges.get(session, 0)

    def _forget_thread(self, thread: Path) -> None:
        for session in [s for s, (known, _) in self._threads.items() if known == thread]:
            del self._threads[session]

    def _charge(self, size: int, requesting: int) -> None:
        shares = {}
        for session, (thread, before) in self._threads.items():
            now = _processor_time(thread)
            shares[session] = max(0, now - before)
            self._threads[session] = thread, now
        total = sum(shares.values())
        if not total:
            shares, total = {requesting: 1}, 1
        left = self._first_size + (_SHARED_SESSIONS + 1) * self._session_bytes - size
        price = self._session_bytes / max(1, min(left, self._session_bytes))
        cost = min((size - self._size) * price, 2 * self._session_bytes)
        for session, share in shares.items():
            charge = self._charges.get(session, 0)
            self._charges[session] = charge + int(cost * share / total)
        self._size = size


def _processor_time(thread: Path) -> int:
    """Return the ticks that a thread has run. 0 if it has ended."""
    try:
        fields = (thread / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])  # utime and stime


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # the server has not made it yet
        return 0


def _crashed_connection(log: Path) -> int:
    """Return the connection whose statement the server ran when it crashed. 0 if the log does not
    say so."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _MAX_REPORT))
            text = file.read()
    except OSError:
        return 0
    began = _CRASH.search(text)
    if began is None:
        return 0
    # the statement is quoted, and may contain such lines: some servers quote it before them
    before, _, after = text[began.end() :].partition(b"\nQuery (")
    named = _CRASHED_CONNECTION.findall(before)[:1] or _CRASHED_CONNECTION.findall(after)[-1:]
    return int(named[0]) if named else 0


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _bytes_of(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except OSError:  # it was deleted
        return 0


def _limit_directory(directory: Path, size: int, user: object) -> None:
    """Mount a file system in memory of ``size`` bytes over a directory, for this process and its
    children. Does nothing if the kernel does not allow it."""
    child = os.fork()
    if child == 0:  # a try: a process whose namespaces are half made could not go on
        os._exit(0 if _mount_limited(directory, size, user) else 1)
    if os.waitpid(child, 0)[1] == 0:
        _mount_limited(directory, size, user)


def _mount_limited(directory: Path, size: int, user: object) -> bool:
    libc, uid, gid = ctypes.CDLL(None), os.geteuid(), os.getegid()
    owner = uid if user is None else int(str(user))
    options = f"size={size},mode=700,uid={owner},gid={gid if user is None else owner}"
    try:
        if uid == 0:
            if libc.unshare(_NEW_MOUNTS):
                return False
        elif libc.unshare(_NEW_USERS | _NEW_MOUNTS):
            return False
        else:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    except OSError:
        return False
    return not (
        libc.mount(b"none", b"/", None, _PRIVATE_MOUNTS, None)
        or libc.mount(b"tmpfs", os.fsencode(directory), b"tmpfs", _FILES_ONLY, options.encode())
    )


@contextmanager
def starting(base: Path) -> Iterator[None]:
    """Keep other processes from removing the directory of an owner that starts, until it holds the
    lock on it."""
    fd = os.open(base, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


def remove_orphans(base: Path) -> None:
    """Delete the directories of owners that were killed, unless an owner is about to start. A
    living owner holds a lock on its own. ``base`` may be gone."""
    try:
        fd = os.open(base, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove_unlocked(base)
    except BlockingIOError:
        pass
    finally:
        os.close(fd)


def _remove_unlocked(base: Path) -> None:
    for home in base.glob("run-*"):
        try:
            fd = os.open(home, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(home, ignore_errors=True)
        except OSError:
            pass  # its owner is alive
        finally:
            os.close(fd)


def main() -> None:
    settings = json.loads(sys.argv[1])
    # these signals are for the client, whose end also ends the owner
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    home = os.open(settings["home"], os.O_RDONLY)
    fcntl.flock(home, fcntl.LOCK_EX)
    ServerOwner(settings).run()


if __name__ == "__main__":
    main()
