"""What the keeper does in the box's process namespace: PID 1, commands, signals."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any, NoReturn

from . import mounts
from . import syscalls as sys_
from .hardening import harden

_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ, signal.SIGCHLD)
_CALL_SECONDS = 2.0
_ABOVE = 400  # descriptor numbers that no command is given
_TIOCSPTLCK = 0x40045431  # unlock a pseudo terminal


def start_init(root: str, spec: dict[str, Any]) -> Init:
    """Fork PID 1, which mounts /proc, waits until it is told that the root is in place, and then
    serves. Raises OSError where it cannot.

    With ``look='docker'`` it becomes an idle ``/bin/bash`` on a terminal instead, as in a container
    that was started with one.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _be_init(root, spec, theirs)
    theirs.close()
    problem = ours.recv(4096)
    if problem != b"ok":
        raise OSError(errno.EIO, f"PID 1: {problem.decode(errors='replace') or 'died'}")
    if spec["look"] == "docker":
        _open_terminal(root)
    return Init(pid, ours, spec["look"] != "docker")


class Init:
    """PID 1 as the keeper sees it. The box cannot stop or kill it, and it needs no further
    process, so it is what reaches the box's processes even where no process can be started."""

    def __init__(self, pid: int, control: socket.socket, serves: bool) -> None:
        self.pid, self._control, self._serves = pid, control, serves

    def go(self) -> None:
        """The root is in place."""
        self._control.send(b"go")
        if not self._serves:
            self._control.close()

    def do(self, what: str, *arguments: Any) -> None:
        """Run one of ``_DEEDS`` in the box. Raises OSError where it did not end well."""
        if not self._serves:
            call(lambda: _DEEDS[what](*arguments))
            return
        self._control.send(json.dumps([what, *arguments]).encode())
        ready = select.select([self._control], [], [], _CALL_SECONDS)[0]
        if not ready or self._control.recv(4096) != b"ok":
            raise OSError(errno.EIO, "the box did not let its processes be reached")


def _be_init(root: str, spec: dict[str, Any], keeper: socket.socket) -> NoReturn:
    try:
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        mounts.mount_proc(root)
        keeper.send(b"ok")
    except BaseException as e:
        keeper.send(f"{type(e).__name__}: {e}".encode())
        os._exit(1)
    try:
        keeper.recv(16)
        harden(spec["limits"])
        if spec["look"] == "docker":
            _become_bash(spec["env"])
        _serve(keeper)
    finally:
        os._exit(1)


def _serve(keeper: socket.socket) -> NoReturn:
    """Do what the keeper asks. Orphans are collected by the kernel, as SIGCHLD is ignored."""
    os.chdir("/")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    moved = keeper.detach()
    os.dup2(moved, 3)
    os.closerange(4, 4096)
    keeper = socket.socket(fileno=3)
    while True:
        message = keeper.recv(1 << 20)
        if not message:
            os._exit(0)
        what, *arguments = json.loads(message)
        try:
            _DEEDS[what](*arguments)
            keeper.send(b"ok")
        except OSError as e:
            keeper.send(str(e).encode())


def _open_terminal(root: str) -> None:
    """Keep a terminal's master side open here, so that the shell on it never reads its end."""
    master = os.open(f"{root}/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))


def _become_bash(env: dict[str, str]) -> NoReturn:
    os.chdir("/")
    terminal = os.open("/dev/pts/0", os.O_RDWR)  # opening it makes it the controlling terminal
    for fd in (0, 1, 2):
        os.dup2(terminal, fd)
    _forget_descriptors()
    _default_signals()
    os.execve("/bin/bash", ["/bin/bash"], {**env, "TERM": "xterm"})


def _forget_descriptors() -> None:
    os.closerange(3, 4096)


def _default_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def spawn(argv: list[str], cwd: str, env: dict[str, str], fds: dict[int, int]) -> int:
    """Start a program as a child of this process, in the box. Returns its pid out here.

    Not a fork: the kernel lends the child this process's memory until it executes. Raises OSError
    whose text begins with the directory or the program that cannot be used.
    """
    if set(fds.values()) & set(fds):  # a source would be overwritten before it is copied
        moved = {n: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for n, fd in fds.items()}
        try:
            return spawn(argv, cwd, env, moved)
        finally:
            for fd in moved.values():
                os.close(fd)
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, fd, n) for n, fd in fds.items()]
    for number in (0, 1, 2):
        if number not in fds:
            actions.append((os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0))
    what = cwd
    try:
        os.chdir(cwd)
        what = argv[0]
        program = _find(argv[0], env.get("PATH", ""))
        return os.posix_spawn(
            program, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_SIGNALS
        )
    except OSError as e:
        code = e.errno or errno.EIO
        raise OSError(code, f"{what}: {os.strerror(code)}") from e
    finally:
        os.chdir("/")


def _find(name: str, path: str) -> str:
    """The program that a name means in the box. Raises FileNotFoundError."""
    if "/" in name:
        return name
    for directory in path.split(":"):
        candidate = f"{directory or '.'}/{name}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def call(work: Callable[[], None]) -> None:
    """Do something as a process of the box (its pids are not valid out here), and wait for it.

    The box can stop or kill that process too: it is given two seconds. Raises OSError where it
    did not end well.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    pidfd = os.pidfd_open(pid)
    try:
        if not select.select([pidfd], [], [], _CALL_SECONDS)[0]:
            os.kill(pid, signal.SIGKILL)
        if os.waitpid(pid, 0)[1]:
            raise OSError(errno.EIO, "the box did not let its processes be reached")
    finally:
        os.close(pidfd)


def signal_all(number: int) -> None:
    """Send a signal to every process of the box but PID 1 and the caller."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, number)


def kill_since(mark: int, keep: list[int]) -> None:
    """Kill what started at ``mark`` (clock ticks since boot) or later; again until none is left."""
    spared = {1, os.getpid(), *keep}
    for _ in range(50):
        victims = [pid for pid in _pids() if pid not in spared and _started(pid) >= mark]
        if not victims:
            return
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _started(pid: int) -> int:
    """When a process started, in clock ticks since boot; -1 for one that is gone or dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])


_DEEDS: dict[str, Callable[..., None]] = {"kill_since": kill_since, "signal_all": signal_all}
