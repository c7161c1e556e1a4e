"""Users of a sandbox other than root, by their names or numbers in its own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from intercode_sandbox.errors import MissingCapabilityError, UsageError
from intercode_sandbox.lines import split_lines

MAX_ID = 65535
_ROOT_NAMES = ("root", "0")


@dataclass(frozen=True, slots=True)
class User:
    """A user of a sandbox: the numbers of the user, the main group, and all groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    home: str = "/"

    @property
    def env(self) -> dict[str, str]:
        """The environment variables that name the user."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    @property
    def own_directories(self) -> list[str]:
        """The home directory if it is below /home, so that it belongs to nobody else."""
        return [self.home] if self.home.startswith("/home/") else []


class SandboxFiles(Protocol):
    """What a user is found by: the capabilities of a sandbox, and its files."""

    @property
    def capabilities(self) -> frozenset[Any]: ...

    def read(self, path: str, limit: int = ...) -> bytes: ...


def find_user(sandbox: SandboxFiles, user: str | int | None) -> User | None:
    """Return a user by the name or number that /etc/passwd of a sandbox gives it; None for root.

    ``USER:GROUP`` gives it that group alone. A number that the file does not have is a user without
    groups and a home directory. Raises MissingCapabilityError if the sandbox has no users besides
    root, UsageError for an unknown name and a number above 65535.
    """
    name, colon, group = ("root" if user is None else str(user)).partition(":")
    if name in _ROOT_NAMES:
        return None
    if "users" not in sandbox.capabilities:
        raise MissingCapabilityError(
            f"this sandbox has one user, root: it cannot run a command as {name!r}; leave out "
            "`user`, or open the sandbox with users=True (back end namespace)"
        )
    rows = _read_rows(sandbox, "/etc/passwd", 6)
    entry = next((row for row in rows if name in (row[0], row[2]) and _are_ids(row[2:4])), None)
    if entry is not None and int(entry[2]) == 0:
        return None
    groups = _read_rows(sandbox, "/etc/group", 4)
    if colon:
        numbers = [row[2] for row in groups if group in (row[0], row[2])] or [group]
    elif entry is not None:
        numbers = [entry[3], *(row[2] for row in groups if entry[0] in row[3].split(","))]
    else:
        numbers = [name]
    uid = name if entry is None else entry[2]
    if not _are_ids([uid, *numbers]):
        raise UsageError(
            f"no user {str(user)!r} in /etc/passwd and /etc/group of the sandbox: create it first, "
            f"or give a number up to {MAX_ID}"
        )
    gids = tuple(int(number) for number in numbers)
    if entry is None:
        return User(name, int(uid), gids[0], gids)
    return User(entry[0], int(uid), gids[0], gids, entry[5])


def _read_rows(sandbox: SandboxFiles, path: str, columns: int) -> list[list[str]]:
    try:
        text = sandbox.read(path, 1 << 20).decode(errors="replace")
    except OSError:
        return []
    rows = (line.split(":") for line in split_lines(text))
    return [row for row in rows if len(row) >= columns]


def _are_ids(texts: Sequence[str]) -> bool:
    return all(text.isascii() and text.isdigit() and int(text[:6]) <= MAX_ID for text in texts)
