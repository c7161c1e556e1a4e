"""Starts the guard of a sandbox, which starts its supervisor; removes what killed guards left."""

from __future__ import annotations

import fcntl
import os
import platform
import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.landlock import layout
from intercode_sandbox.platforms.forks import ForkSafeLock, own_socketpair, run_after_fork
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.supervisor import build, programs, root_files
from intercode_sandbox.supervisor.connection import SupervisorConnection
from intercode_sandbox.supervisor.runtime import protocol, seccomp

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NETWORK_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_END_SECONDS = 60.0  # time to end the processes and to remove the files


@dataclass(frozen=True)
class GuardedDirectory:
    """A directory with a supervisor. ``path``: without links. ``trees``: of what it was made, the
    topmost first."""

    path: str
    trees: tuple[str, ...]
    connection: SupervisorConnection
    guard: subprocess.Popen[bytes]

    def end(self, wait: bool) -> None:
        """Wait until the guard has removed the directory, or let it end in the background. The
        connection is closed already."""
        if wait:
            with suppress(subprocess.TimeoutExpired):
                self.guard.wait(_END_SECONDS)
        with _ended_lock:
            _ended.append(self.guard)
            statuses = [guard.poll() for guard in _ended]
            _ended[:] = [
                guard for guard, status in zip(_ended, statuses, strict=True) if status is None
            ]
        if any(statuses):  # it was killed, and could remove nothing
            with suppress(OSError):
                remove_leftovers()


_ended: list[subprocess.Popen[bytes]] = []
"""Guards that have been told to end."""
_ended_lock = ForkSafeLock()
run_after_fork(_ended.clear)  # they are the parent's


def _all_directories() -> Path:
    """Return the directory of all sandboxes' directories, which only this user can enter."""
    top = cache_root().resolve() / "private"
    top.mkdir(mode=0o700, exist_ok=True)
    return top


def start_guard(spec: SandboxSpec) -> GuardedDirectory:
    """Make a directory and start a supervisor for it. Raises SandboxError."""
    opened, home, guard = list[int](), None, None
    trees = [
        root_files.cached_root_files(layout.skeleton()),
        *(layer.root for layer in reversed(spec.layers)),
    ]
    ours, theirs = own_socketpair()
    try:
        with theirs:
            home = _make_home(opened)
            layout.fill_directory(opened[-1], trees)
            opened += [os.open(tree, _DIRECTORY) for tree in trees]
            guard = subprocess.Popen(
                [programs.find_program(build.SUPERVISOR), "landlock", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        key = secrets.randbits(64)
        families = _NETWORK_FAMILIES if spec.network == "host" else ()
        message = {
            "home": home.name,
            "limits": asdict(spec.limits),
            "key": str(key),
            "own_network": spec.network != "host",
            "filter": _filter(key, families).hex(),
            "process_limit": _processes_of_user() + 4 * spec.limits.processes,
            **layout.command_rules(spec),
        }
        protocol.send(ours, message, opened)
    except BaseException as e:
        ours.close()
        if home is not None and guard is None:  # such as a full disk during the copy
            with suppress(OSError):
                remove_tree(home)
        if isinstance(e, OSError):
            raise SandboxError(f"the sandbox could not be set up: {e}") from e
        raise
    finally:
        protocol.close_all(opened)
    connection = SupervisorConnection(ours)
    return GuardedDirectory(str(home), tuple(map(str, trees)), connection, guard)


def _filter(key: int, families: Sequence[int]) -> bytes:
    return seccomp.build_filter(platform.machine(), key, families, shows_root=False)


def _processes_of_user() -> int:
    """Return the number of threads of this user, which the kernel counts together."""
    uid, count = os.geteuid(), 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def _make_home(opened: list[int]) -> Path:
    """Make a directory for a sandbox. Appends the descriptors of the directory that holds it, and
    its own, with a lock."""
    top = _all_directories()
    home = top / f"{os.getpid()}-{secrets.token_hex(6)}"
    with _locked(top, fcntl.LOCK_SH):
        home.mkdir(mode=0o700)
        opened.append(os.open(top, _DIRECTORY))
        opened.append(os.open(home, _DIRECTORY))
        fcntl.flock(opened[-1], fcntl.LOCK_EX)
    return home


def remove_leftovers() -> None:
    """Remove the directories of guards that were killed."""
    top = _all_directories()
    with _locked(top, fcntl.LOCK_EX):
        for home in top.iterdir():
            with suppress(OSError):
                at = os.open(home, _DIRECTORY)
                try:
                    fcntl.flock(at, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(home)
                finally:
                    os.close(at)


@contextmanager
def _locked(top: Path, kind: int) -> Iterator[None]:
    """Lock the directory of all, so that none is removed before it is locked."""
    at = os.open(top, _DIRECTORY)
    try:
        fcntl.flock(at, kind)
        yield
    finally:
        os.close(at)
