"""What the keeper does in the box's process namespace: PID 1, commands, signals."""

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
from .hardening import set_limits

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ, signal.SIGCHLD)
_END_SECONDS, _PAUSE = 5.0, 0.001  # for killed processes to be gone, on a busy machine
_PASSES = 100  # over the process list, before a box that starts faster is given up
_KILL_PASSES = 600  # the later ones apart: what was killed takes its time to go
_MOST_DESCRIPTORS = 4096
_SAFE_DESCRIPTOR = 400  # descriptor numbers that no command is given
_MAX_MESSAGE = 1 << 20
_TIOCSPTLCK = 0x40045431  # unlock a pseudo terminal


def start_init(plain: bool, program: int) -> Init:
    """Fork PID 1: see ``Init``. ``plain``: it goes on as the idle ``program``, a descriptor (-1: as
    this interpreter); else it waits for ``become_bash``."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _run_init(theirs, plain, program)
    theirs.close()
    return Init(pid, ours)


class Init:
    """PID 1 as the keeper sees it. It mounts /proc, which only a process of the box can, and then
    collects orphans. When it ends, so does the box, and it ends with the keeper."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid, self._control = pid, control

    def mount_proc(self, stage: str) -> None:
        """Have /proc mounted below ``stage``. Raises OSError where it cannot be."""
        self._control.send(os.fsencode(stage))
        problem = self._control.recv(4096)
        if problem != b"ok":
            raise OSError(errno.EIO, f"PID 1: {problem.decode(errors='replace') or 'died'}")

    def run_shell(self, limits: dict[str, int], env: dict[str, str]) -> None:
        """Have it be an idle ``/bin/bash`` on a terminal, as in a container that was started with
        one. The root is in place; it must not be ``plain``."""
        with self._control:
            self._control.send(json.dumps([limits, env]).encode("utf-8", "surrogateescape"))

    def reset_pid_counter(self) -> None:
        """Have the next process numbered as the first. Raises OSError where that cannot be."""
        self._command(init_program.RESET_COUNTER)

    def stop_others(self) -> None:
        """Have every other process of the box stopped, at once. Raises OSError where PID 1 is not
        ``plain``."""
        self._command(init_program.STOP)

    def _command(self, what: bytes) -> None:
        self._control.send(what)
        if self._control.recv(16) != b"ok":
            raise OSError(errno.EOPNOTSUPP, f"PID 1 cannot do this: {what.decode()}")


def _run_init(keeper: socket.socket, plain: bool, program: int) -> NoReturn:
    try:
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        counter = mounts.mount_proc(os.fsdecode(keeper.recv(4096)))
        keeper.send(b"ok")
        if plain:
            _run_idle(keeper, counter, program)
        elif told := keeper.recv(_MAX_MESSAGE):
            limits, env = json.loads(told.decode("utf-8", "surrogateescape"))
            os.chdir("/")
            set_limits(limits)
            _exec_shell(env)
    except OSError as e:
        keeper.send(str(e).encode())
    finally:
        os._exit(1)


def _run_idle(keeper: socket.socket, counter: int, program: int) -> None:
    """Be PID 1 until the keeper hangs up. Orphans are collected by the kernel, as SIGCHLD is
    ignored. See idle.py, which does the same in less memory."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    high = [keeper.fileno(), counter, *([program] if program >= 0 else [])]
    held = [os.dup2(fd, _SAFE_DESCRIPTOR + i) for i, fd in enumerate(high)]
    if program >= 0:
        program = os.dup2(held[2], init_program.COUNTER + 1, inheritable=False)
    os.dup2(held[0], init_program.CONTROL)
    os.dup2(held[1], init_program.COUNTER)
    os.closerange(init_program.COUNTER + 1 + (program >= 0), _MOST_DESCRIPTORS)
    if program >= 0:
        os.execve(program, ["init"], {})
    while told := os.read(init_program.CONTROL, 16):
        try:
            if told == init_program.STOP:
                os.kill(-1, signal.SIGSTOP)
            else:
                os.pwrite(
                    init_program.COUNTER, b"1", 0
                )  # elsewhere than at its start it would do nothing
            os.write(init_program.CONTROL, b"ok")
        except OSError:
            os.write(init_program.CONTROL, b"no")


def open_terminal() -> None:
    """Keep a terminal's master side open here, so that the shell on it never reads its end."""
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
    os.closerange(3, _MOST_DESCRIPTORS)


def _reset_signals() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def spawn(argv: list[str], cwd: str, env: dict[str, str], fds: dict[int, int]) -> int:
    """Start a program as a child of this process, in the box. Returns its pid out here.

    Not a fork: the kernel lends the child this process's memory until it executes. Raises OSError
    whose text begins with the directory or the program that cannot be used.
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
    """The program that a name means in the box. Raises FileNotFoundError."""
    if "/" in name:
        return name
    for directory in path.split(":"):
        candidate = f"{directory or '.'}/{name}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def kill_since(mark: int, keep: Sequence[int], init: Init) -> None:
    """Kill what started at ``mark`` (clock ticks since boot) or later. Out here the box's pids mean
    nothing: processes are reached through its /proc, so that nothing has to be started in the box
    for it. All are stopped first, where PID 1 can do that, so that they cannot multiply; then pass
    by pass, until one finds nothing."""
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
    """Kill every process of the box but PID 1, and wait for them. Returns those that do not end."""
    deadline = time.monotonic() + _END_SECONDS
    while True:
        kill_since(0, (), init)
        left = process_names(set())
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_PAUSE)


def stop_all() -> list[int]:
    """Stop every process of the box that is not stopped already, and tell which those were."""
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
    """``name (pid)`` of every process of the box but PID 1 and those in ``spared``."""
    return [f"{p.name} ({p.pid})" for p in _list_processes() if p.pid != 1 and p.pid not in spared]


def signal_process(pid: int, number: int) -> None:
    """Send a signal to the process with this number in the box, if there is one and it is not
    PID 1."""
    for process in _list_processes():
        if process.pid == pid != 1:
            process.signal(number)


def resume(pids: list[int]) -> None:
    """Let stopped processes go on."""
    for process in _list_processes():
        if process.pid in pids:
            process.signal(signal.SIGCONT)


class _Process:
    """A live process of the box, held by its directory in the box's /proc."""

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
        self.has_ended = (
            self.state in ("Z", "X") and int(fields[17]) <= 1
        )  # no other thread goes on

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            os.close(self._fd)


def _list_processes() -> list[_Process]:
    """The processes of the box that have not ended."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                found.append(_Process(int(name)))
    return [p for p in found if not p.has_ended]
