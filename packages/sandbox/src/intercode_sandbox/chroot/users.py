"""Claims user ids for sandboxes, so that no two sandboxes of this machine have the same."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from intercode_sandbox.errors import SandboxUnavailableError

FIRST_USER, LAST_USER = 60602, 61183
"""The user ids of sandboxes, in a range that Debian and systemd leave free. Each sandbox has two:
commands have the lower one, and the supervisor the one after it."""
_DIRECTORY = Path("/run/intercode/users")


def claim_user() -> tuple[int, int]:
    """Return a user id, and the descriptor of its lock: the id is taken while a copy of the
    descriptor is open. Raises SandboxUnavailableError."""
    try:
        for user in _candidates():
            lock = lock_user(user)
            if lock is not None:
                return user, lock
    except OSError as e:
        raise SandboxUnavailableError(f"no user id can be claimed in {_DIRECTORY}: {e}") from e
    raise SandboxUnavailableError(
        f"all user ids from {FIRST_USER} to {LAST_USER} are in use: close sandboxes, at most "
        f"{len(_candidates())} can be open"
    )


def lock_user(user: int) -> int | None:
    """Return the descriptor of a user id's lock, or None if the id is taken. Raises OSError."""
    _DIRECTORY.mkdir(mode=0o755, parents=True, exist_ok=True)
    lock = os.open(_DIRECTORY / str(user), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _candidates() -> list[int]:
    """Return the ids, in an order that differs between containers: they share the kernel, which
    counts processes by user id, but not the directory of locks. The upper half is first."""
    users = list(range(FIRST_USER, LAST_USER, 2))
    try:
        number = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        number = 0
    middle = len(users) // 2
    halves = users[middle:], users[:middle]
    return [half[(i + number) % len(half)] for half in halves for i in range(len(half))]
