"""Starts and addresses the launcher process of this process."""

from __future__ import annotations

import atexit
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from intercode_sandbox.errors import SandboxError, SandboxUnavailableError
from intercode_sandbox.platforms.forks import own_socketpair, run_after_fork
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid
from intercode_sandbox.supervisor import build, programs, subordinate_ids
from intercode_sandbox.supervisor.root_files import python_home
from intercode_sandbox.supervisor.runtime import cgroups, protocol
from intercode_sandbox.supervisor.runtime.start import copy_to_memory

_BOOTSTRAP = (
    "import os,sys;a=os.read(0,9999).decode().split('\\0');sys.path.insert(0,a[0]);"
    "from runtime.launcher import main;main(int(a[1]))"
)
ERRORS: int | None = subprocess.DEVNULL
"""Where the launcher's messages go. None: to standard error, which a test reads."""
_START_SECONDS = 30.0
_MAX_DESCRIPTORS = 1 << 16
_END_SECONDS, _POLL_SECONDS = 1.0, 0.01  # time for the launcher to notice that a supervisor ended


class Launcher:
    """A running launcher. Use ``Launcher.get()``; a forked child gets its own. ``users``: its
    sandboxes have several users, and it another filter of system calls."""

    _current: ClassVar[dict[bool, Launcher]] = {}
    _lock = threading.Lock()

    def __init__(self, users: bool = False) -> None:
        program = programs.find_program(build.SUPERVISOR)
        ranges = _id_ranges() if users and os.geteuid() != 0 else {}
        _raise_descriptor_limit()
        ours, theirs = own_socketpair()
        with theirs:
            self._process = _start_process(program, theirs)
            assert self._process.stdin is not None
            here = str(Path(protocol.__file__).resolve().parents[1])
            with self._process.stdin as stdin:
                stdin.write(f"{here}\0{theirs.fileno()}".encode())
        self._socket = ours
        self.pid = self._process.pid
        ours.settimeout(_START_SECONDS)
        try:
            with program.open("rb") as f:
                request = {
                    "uid": sandbox_uid(),
                    "users": users,
                    "id_ranges": ranges,
                    "cache": str(cache_root()),
                    "binds": [list(b) for b in required_binds()],
                }
                protocol.send(ours, request, [f.fileno()])
            answer, _ = protocol.receive(ours)
        except (OSError, EOFError) as e:
            raise SandboxError(f"the sandbox launcher did not start: {e}") from e
        if not answer["ok"]:
            raise SandboxUnavailableError(f"the sandbox launcher cannot work: {answer['error']}")
        ours.settimeout(None)
        self.cgroup_directories: list[str] = answer["cgroups"]
        self.cgroups_error: str = answer["cgroups_error"]
        self.user_ids_error: str = answer["user_ids_error"]
        """Why all sandboxes have the same user id; empty if they do not."""

    @classmethod
    def get(cls, users: bool = False) -> Launcher:
        """Return the launcher of this process. Starts one if there is none or it has ended."""
        with cls._lock:
            current = cls._current.get(users)
            if current is None or current._process.poll() is not None:
                current = cls._current[users] = cls(users)
            return current

    def create(self, spec: dict[str, Any], given: Sequence[int]) -> socket.socket:
        """Request a sandbox. Its supervisor answers on the returned socket."""
        ours, theirs = own_socketpair()
        with theirs, self._lock:
            fds = [theirs.fileno(), *given]
            try:
                protocol.send(self._socket, spec, fds)
            except OSError as e:
                ours.close()
                raise SandboxError(f"the sandbox launcher is gone: {e}") from e
        return ours

    @property
    def has_user_ids(self) -> bool:
        """Whether sandboxes have user ids of their own."""
        return not self.user_ids_error

    def map_path(self, path: Path, user: int) -> int:
        """Return a descriptor of a directory with files of the shared user id, as the sandbox with
        this user id may read them. Raises SandboxError."""
        return self._map({"map_for": user, "path": str(path.resolve())}, ())

    def map_mount(self, mount: int, user: int) -> int:
        """Return a descriptor of a mount of a sandbox's upper layer, as the sandbox with this user
        id may read it. Raises SandboxError."""
        return self._map({"map_for": user}, (mount,))

    def _map(self, request: dict[str, Any], given: Sequence[int]) -> int:
        with self.create(request, given) as answer_socket:
            answer_socket.settimeout(_START_SECONDS)
            try:
                answer, mounts = protocol.receive(answer_socket)
            except (OSError, EOFError) as e:
                raise SandboxError(f"the sandbox launcher is gone: {e}") from e
        if not answer["ok"]:
            raise SandboxError(f"the files cannot be shown to the sandbox: {answer['error']}")
        return mounts[0]

    def was_killed_for_memory(self, supervisor_pid: int) -> bool:
        """Return whether the kernel killed a supervisor because its sandbox exceeded the memory
        limit. Waits for a moment if it is still ending."""
        deadline = time.monotonic() + _END_SECONDS
        while self._process.poll() is None:
            try:
                with self.create({"ended": supervisor_pid}, ()) as answer_socket:
                    answer_socket.settimeout(_END_SECONDS)
                    answer, _ = protocol.receive(answer_socket)
            except (OSError, EOFError, SandboxError):
                return False
            if answer["ended"] or time.monotonic() > deadline:
                return bool(answer["memory"])
            time.sleep(_POLL_SECONDS)
        return False

    @classmethod
    def stop(cls) -> None:
        """End the launcher and all sandboxes of this process."""
        with cls._lock:
            current, cls._current = cls._current, {}
        for launcher in current.values():
            launcher._socket.close()
            launcher._process.wait(timeout=_START_SECONDS)
            cgroups.remove_directories(launcher.cgroup_directories)


def _start_process(program: Path, connection: socket.socket) -> subprocess.Popen[bytes]:
    """Start the launcher by the supervisor's program, which resets what processes inherit."""

    def start(executable: str, fds: Sequence[int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["supervisor", "start", sys.executable, "-I", "-S", "-c", _BOOTSTRAP],
            executable=executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=ERRORS,
            pass_fds=[connection.fileno(), *fds],
            env={},
            cwd="/",
            start_new_session=True,
        )

    try:
        return start(str(program), ())
    except PermissionError:  # it is on a file system mounted with noexec
        with program.open("rb") as file:
            copy = copy_to_memory(file.fileno())
        try:
            return start(f"/proc/self/fd/{copy}", (copy,))
        finally:
            os.close(copy)


def _id_ranges() -> dict[str, tuple[str, int, int]]:
    """Return this user's subordinate ids for other users of sandboxes, with the programs that map
    them. Raises SandboxUnavailableError, with the remedy, if it has too few."""
    if reason := subordinate_ids.unavailable_reason(subordinate_ids.RANGE_SIZE):
        raise SandboxUnavailableError(reason)
    return {
        kind: (str(shutil.which(subordinate_ids.PROGRAMS[kind])), start, count)
        for kind, (start, count) in subordinate_ids.id_ranges().items()
    }


def _raise_descriptor_limit() -> None:
    """Raise the soft limit of open files, up to the hard limit and at most to 65,536. A sandbox
    takes up to nine descriptors of its owner, so the usual 1024 suffice for about 110."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    maximum = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < maximum:
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, hard))


def required_binds() -> list[tuple[str, str]]:
    """Return the directories that root's launcher has to bind to other paths before it drops
    root."""
    home = python_home()
    return [home] if home and home[0] != home[1] else []


atexit.register(Launcher.stop)


def _reset_after_fork() -> None:
    """Forget the parent's launchers, and the lock, which another thread may have held."""
    Launcher._lock, Launcher._current = threading.Lock(), {}


run_after_fork(_reset_after_fork)
