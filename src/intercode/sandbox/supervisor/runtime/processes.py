"""Starts PID 1 and commands in a sandbox, and lists, signals and kills its processes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import time

from . import init_program, mounts
from . import syscalls as sys_

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ, signal.SIGCHLD)
_END_SECONDS, _PAUSE = 5.0, 0.001  # seconds for killed processes to end, and between checks
_PASSES = 100  # limit on scans of the process list, because a sandbox may start processes faster
_KILL_PASSES = 600  # limit on scans for killing; those after _PASSES pause first
_MAX_DESCRIPTORS = 4096
_SAFE_DESCRIPTOR = 400  # commands get only lower descriptor numbers
_MAX_MESSAGE = 1 << 20
_TIOCSPTLCK = 0x40045431  # unlocks a pseudo terminal


def start_init(plain: bool, program: int) -> Init:
    """Fork PID 1 of the sandbox and return its handle.

    ``plain``: PID 1 executes ``program``, a descriptor (see init_program.py), or does the same in
    this interpreter if ``program`` is -1. Otherwise PID 1 waits for ``Init.run_shell``.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _run_init(theirs, plain, program)
    theirs.close()
    return Init(pid, ours)


class Init:
    """The supervisor's handle of PID 1.

    PID 1 mounts /proc, which only a process of the namespace can do, and then collects orphans. If
    the supervisor ends, the kernel kills PID 1, and with it all processes of the sandbox.
    """

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid, self._control = pid, control

    def mount_proc(self, stage: str) -> None:
        """Mount /proc below ``stage``. Raises OSError on failure."""
        self._control.send(os.fsencode(stage))
        problem = self._control.recv(4096)
        if problem != b"ok":
            raise OSError(errno.EIO, f"PID 1: {problem.decode(errors='replace') or 'died'}")

    def run_shell(self, limits: dict[str, int], env: dict[str, str]) -> None:
        """Turn PID 1 into an idle ``/bin/bash`` on a terminal, as in a container started with one.
        The root must be mounted, and PID 1 must not be ``plain``."""
        with self._control:
            self._control.send(json.dumps([limits, env]).encode("utf-8", "surrogateescape"))

    def reset_pid_counter(self) -> None:
        """Restart the numbering of processes. Raises OSError if that is not possible."""
        self._command(init_program.RESET_COUNTER)

    def stop_others(self) -> None:
        """Stop every other process of the sandbox at once. Raises OSError if PID 1 is not
        ``plain``."""
        self._command(init_program.STOP)

    def _command(self, what: bytes) -> None:
        self._control.send(what)
        if self._control.recv(16) != b"ok":
            raise OSError(errno.EOPNOTSUPP, f"PID 1 cannot do this: {what.decode()}")


def _run_init(control: socket.socket, plain: bool, program: int) -> NoReturn:
    try:
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        counter = mounts.mount_proc(os.fsdecode(control.recv(4096)))
        control.send(b"ok")
        if plain:
            _run_idle(control, counter, program)
        elif message := control.recv(_MAX_MESSAGE):
            limits, env = json.loads(message.decode("utf-8", "surrogateescape"))
            os.chdir("/")
            sys_.set_limits(limits)
            _exec_shell(env)
    except OSError as e:
        control.send(str(e).encode())
    finally:
        os._exit(1)


def _run_idle(control: socket.socket, counter: int, program: int) -> None:
    """Execute ``program``, or if it is -1, serve as PID 1 in this interpreter until the supervisor
    closes the connection.

    The interpreter does the same as init_program.py but takes more memory. SIGCHLD is ignored, so
    the kernel collects orphans.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    descriptors = [control.fileno(), counter, *([program] if program >= 0 else [])]
    duplicates = [os.dup2(fd, _SAFE_DESCRIPTOR + i) for i, fd in enumerate(descriptors)]
    if program >= 0:
        program = os.dup2(duplicates[2], init_program.COUNTER + 1, inheritable=False)
    os.dup2(duplicates[0], init_program.CONTROL)
    os.dup2(duplicates[1], init_program.COUNTER)
    os.closerange(init_program.COUNTER + 1 + (program >= 0), _MAX_DESCRIPTORS)
    if program >= 0:
        os.execve(program, ["init"], {})
    while message := os.read(init_program.CONTROL, 16):
        try:
            if message == init_program.STOP:
                os.kill(-1, signal.SIGSTOP)
            else:
                os.pwrite(init_program.COUNTER, b"1", 0)  # the kernel ignores other positions
            os.write(init_program.CONTROL, b"ok")
        except OSError:
            os.write(init_program.CONTROL, b"no")


def open_terminal() -> None:
    """Open a pseudo terminal and never close its master side. Otherwise the shell on the terminal
    would read the end of its input."""
    master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))


def _exec_shell(env: dict[str, str]) -> NoReturn:
    os.chdir("/")
    terminal = os.open("/dev/pts/0", os.O_RDWR)  # opening it makes it the controlling terminal
    for fd in (0, 1, 2):
        os.dup2(terminal, fd)
    _close_descriptors()
    _reset_signals()
    os.execve("/bin/bash", ["/bin/bash"], {**env, "TERM": "xterm"})


def _close_descriptors() -> None:
    os.closerange(3, _MAX_DESCRIPTORS)


def _reset_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def spawn(argv: list[str], cwd: str, env: dict[str, str], fds: dict[int, int]) -> int:
    """Start a program in the sandbox as a child of this process. Return its pid on the host.

    This uses posix_spawn instead of fork, so the child shares this process's memory until it
    executes the program. The message of an OSError begins with the directory or program that cannot
    be used.
    """
    if set(fds.values()) & set(fds):  # a source would be overwritten before it is copied
        moved = {
            n: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_DESCRIPTOR) for n, fd in fds.items()
        }
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
        program = _find_program(argv[0], env.get("PATH", ""))
        return os.posix_spawn(
            program, argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_SIGNALS
        )
    except OSError as e:
        code = e.errno or errno.EIO
        raise OSError(code, f"{what}: {os.strerror(code)}") from e
    finally:
        os.chdir("/")


def _find_program(name: str, path: str) -> str:
    """Return the path of the program ``name``, looked up in the directories of ``path``.

    Raises FileNotFoundError.
    """
    if "/" in name:
        return name
    for directory in path.split(":"):
        candidate = f"{directory or '.'}/{name}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def kill_since(mark: int, keep: Sequence[int], init: Init) -> None:
    """Kill every process that started at ``mark`` (clock ticks since boot) or later.

    Processes are signalled through the sandbox's /proc, because their numbers in the sandbox are
    not valid outside. If possible, PID 1 first stops all processes, so that they cannot fork. Then
    this scans the process list and kills what it finds, until a scan finds nothing.
    """
    before = {p.pid for p in _list_processes() if p.state == "T"}
    with contextlib.suppress(OSError):
        init.stop_others()
        kill = {
            p.pid: p for p in _list_processes() if p.start_ticks >= mark and p.pid not in (1, *keep)
        }
        for process in kill.values():
            process.signal(signal.SIGKILL)
        resume([p.pid for p in _list_processes() if p.pid not in kill and p.pid not in before])
    for number in range(_KILL_PASSES):
        left = [p for p in _list_processes() if p.start_ticks >= mark and p.pid not in (1, *keep)]
        if not left:
            return
        for process in left:
            process.signal(signal.SIGKILL)
        if number > _PASSES:
            time.sleep(_PAUSE)


def kill_all(init: Init) -> list[str]:
    """Kill every process of the sandbox except PID 1, and wait for some seconds.

    Returns ``name (pid)`` of those that are still alive.
    """
    deadline = time.monotonic() + _END_SECONDS
    while True:
        kill_since(0, (), init)
        left = process_names(set())
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_PAUSE)


def stop_all() -> list[int]:
    """Stop every running process of the sandbox except PID 1. Return their process numbers."""
    stopped: list[int] = []
    for _ in range(_PASSES):
        new = [
            p for p in _list_processes() if p.pid != 1 and p.pid not in stopped and p.state != "T"
        ]
        if not new:
            break
        for process in new:
            process.signal(signal.SIGSTOP)
            stopped.append(process.pid)
    return stopped


def process_names(spared: set[int]) -> list[str]:
    """Return ``name (pid)`` for every process of the sandbox except PID 1 and those in
    ``spared``."""
    return [f"{p.name} ({p.pid})" for p in _list_processes() if p.pid != 1 and p.pid not in spared]


def signal_process(pid: int, number: int) -> None:
    """Send a signal to a process by its number in the sandbox. PID 1 and unknown numbers are
    ignored."""
    for process in _list_processes():
        if process.pid == pid != 1:
            process.signal(number)


def resume(pids: list[int]) -> None:
    """Continue stopped processes."""
    for process in _list_processes():
        if process.pid in pids:
            process.signal(signal.SIGCONT)


class _Process:
    """A process of the sandbox, identified by an open descriptor of its directory in /proc."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fd = os.open("stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._fd)
            with open(fd, "rb") as f:
                head, _, tail = f.read().rpartition(b")")
        except BaseException:
            os.close(self._fd)
            raise
        fields = tail.split()
        self.name = head.partition(b"(")[2].decode(errors="replace")
        self.state, self.start_ticks = fields[0].decode(), int(fields[19])
        # a zombie with more than one thread has threads that still run
        self.has_ended = self.state in ("Z", "X") and int(fields[17]) <= 1

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)


def _list_processes() -> list[_Process]:
    """Return the processes of the sandbox that have not ended."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                found.append(_Process(int(name)))
    return [p for p in found if not p.has_ended]
