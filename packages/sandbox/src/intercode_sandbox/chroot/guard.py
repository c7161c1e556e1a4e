"""Starts the guard of a sandbox, which makes its files and starts its supervisor."""

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
from typing import Any

from intercode_sandbox.chroot.root_layout import RootLayout
from intercode_sandbox.chroot.shared_programs import open_programs
from intercode_sandbox.chroot.users import claim_user, lock_user
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.images.cache.remove_tree import remove_tree
from intercode_sandbox.platforms.forks import ForkSafeLock, own_socketpair, run_after_fork
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.supervisor import build, programs, root_files
from intercode_sandbox.supervisor.connection import SupervisorConnection
from intercode_sandbox.supervisor.recycling import RecyclableSupervisor
from intercode_sandbox.supervisor.runtime import protocol, seccomp, syscalls

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_UNIX, _NETWORK_FAMILIES = socket.AF_UNIX, (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
_LANDLOCK_WITH_SCOPES = 6
_START_SECONDS = 600.0  # to make the files, if the machine has many and is busy
_END_SECONDS = 60.0  # time to end the processes and to remove the files


@dataclass(frozen=True)
class GuardedRoot(RecyclableSupervisor):
    """A root directory in which a supervisor waits for requests. ``user``: the user id of commands.
    ``base_trees``: what the root was made of, the topmost first. ``grants``: takes directories that
    the supervisor may read with the guard's help."""

    user: int
    base_trees: tuple[str, ...]
    guard: subprocess.Popen[bytes]
    grants: socket.socket

    @contextmanager
    def granted(self, directory: int) -> Iterator[None]:
        """Let the supervisor copy files of any mode from a directory inside the ``with`` block."""
        with suppress(OSError):  # the guard has ended: the request will fail
            protocol.send(self.grants, {}, [directory])
        try:
            yield
        finally:
            with suppress(OSError):
                protocol.send(self.grants, {})

    def close(self, wait: bool = False) -> None:
        """End the sandbox; the guard removes its files. Call it once."""
        self.connection.close(wait)
        self.grants.close()
        _collect_later(self.guard)
        if wait:
            with suppress(subprocess.TimeoutExpired):
                self.guard.wait(_END_SECONDS)


_ended: list[subprocess.Popen[bytes]] = []
"""Guards that have been told to end."""
_ended_lock = ForkSafeLock()
run_after_fork(_ended.clear)  # they are the parent's


def _collect_later(guard: subprocess.Popen[bytes]) -> None:
    """Collect the exit status of a guard that is going to end, when another one does."""
    with _ended_lock:
        _ended[:] = [other for other in _ended if other.poll() is None]
        _ended.append(guard)


def roots_directory() -> Path:
    """Return the directory of all root directories, which only root can enter."""
    roots = cache_root() / "roots"
    roots.mkdir(mode=0o700, exist_ok=True)
    return roots


def _retained_directory() -> Path:
    """Return the directory in which guards keep directories for the next sandbox."""
    kept = cache_root() / "shared"
    kept.mkdir(mode=0o700, exist_ok=True)
    return kept


def start_guard(spec: SandboxSpec, layout: RootLayout) -> GuardedRoot:
    """Make a root directory and start a supervisor in it. Raises SandboxError."""
    opened = list[int]()
    ours, theirs = own_socketpair()
    grants, granted = own_socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    home = f"{os.getpid()}-{secrets.token_hex(6)}"
    guard = None
    try:
        with theirs, granted:
            guard = _start_program(theirs)
            # from here on the guard removes the directory, also if this process is killed
            opened.append(os.open(roots_directory(), _DIRECTORY))
            protocol.send(ours, {"home": home}, [*opened, granted.fileno()])
        message, base_trees = _prepare(spec, layout, home, opened)
        protocol.send(ours, message, opened[1:])
        connection = SupervisorConnection(ours, seconds=_START_SECONDS)
    except BaseException as e:
        ours.close()
        grants.close()
        if guard is not None:
            _collect_later(guard)
        if isinstance(e, OSError):
            raise SandboxError(f"the sandbox could not be set up: {e}") from e
        raise
    finally:
        protocol.close_all(opened)
    pid, user = connection.handshake["pid"], message["user"]
    return GuardedRoot(layout.recycle_key, connection, pid, user, base_trees, guard, grants)


def _start_program(connection: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [programs.find_program(build.SUPERVISOR), "chroot", str(connection.fileno())],
        pass_fds=[connection.fileno()],
        env={},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _prepare(
    spec: SandboxSpec, layout: RootLayout, name: str, opened: list[int]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Claim a user, and make the directory for a root. Return the second message to the guard,
    whose descriptors are appended to ``opened``, and the trees of which the root is made."""
    user, lock = claim_user()
    opened.append(lock)
    home = roots_directory() / name
    with _locked_roots(fcntl.LOCK_SH):
        home.mkdir(mode=0o700)
        opened.append(os.open(home, _DIRECTORY))
        fcntl.flock(opened[-1], fcntl.LOCK_EX)
    opened.append(os.open(_retained_directory(), _DIRECTORY))
    root_files.write_root_files(home / "names", root_files.owner_files(spec, user))
    trees = (home / "names", *layout.trees)
    for tree in trees:
        opened.append(os.open(tree, _DIRECTORY))
    has_programs = [False]
    for tree in layout.trees:
        linked = open_programs(tree)
        has_programs.append(linked is not None)
        opened += [] if linked is None else [linked]
    message = _setup_message(spec, layout, user)
    message["programs"] = has_programs
    return message, tuple(map(str, trees))


def _setup_message(spec: SandboxSpec, layout: RootLayout, user: int) -> dict[str, Any]:
    families = _address_families(spec)
    key = secrets.randbits(64)
    code = seccomp.build_filter(platform.machine(), key, families)
    return {
        "user": user,
        "shared": layout.shared,
        "hidden": layout.hidden,
        "limits": asdict(spec.limits),
        "filter": code.hex(),
        "key": str(key),
        "deterministic": spec.determinism is not None,
    }


def _address_families(spec: SandboxSpec) -> Sequence[int]:
    """Return the families of sockets that commands may open. Unix sockets may have abstract names,
    which are those of the machine, unless Landlock confines them to the sandbox."""
    families = list(_NETWORK_FAMILIES) if spec.network == "host" else []
    with suppress(OSError):
        if syscalls.landlock_version() >= _LANDLOCK_WITH_SCOPES:
            families.append(_UNIX)
    return families


def remove_leftovers() -> None:
    """Remove the root directories of guards that were killed, and end what still runs in them."""
    roots, held = roots_directory(), list[int]()
    try:
        with _locked_roots(fcntl.LOCK_EX) as at:
            left = [roots / name for name in os.listdir(at) if _try_lock(roots / name, held)]
        for home in left:
            with suppress(OSError):
                _end_user_of(home)
                remove_tree(home)
    finally:
        protocol.close_all(held)


def _try_lock(home: Path, held: list[int]) -> bool:
    """Lock a directory, unless its guard lives. Appends the descriptor."""
    try:
        held.append(os.open(home, _DIRECTORY))
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def _locked_roots(kind: int) -> Iterator[int]:
    """Lock the directory of all root directories, so that none is removed before its guard has
    locked it."""
    at = os.open(roots_directory(), _DIRECTORY)
    try:
        fcntl.flock(at, kind)
        yield at
    finally:
        os.close(at)


def _end_user_of(home: Path) -> None:
    """End the processes of the user to whom a root directory belongs, unless another sandbox has
    the user id by now: its guard has ended them."""
    with suppress(FileNotFoundError):
        user = (home / "root").stat().st_uid
        lock = lock_user(user) if user else None
        if lock is not None:
            try:
                program = programs.find_program(build.SUPERVISOR)
                subprocess.run([program, "end", str(user)], check=False, env={})
            finally:
                os.close(lock)
