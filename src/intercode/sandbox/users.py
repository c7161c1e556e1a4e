"""Users of a sandbox other than root, by their names or numbers in its own files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from intercode.core.errors import MissingCapabilityError, UsageError

if TYPE_CHECKING:
    from intercode.sandbox.contract import BaseSandbox

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


def find_user(sandbox: BaseSandbox, user: str | int | None) -> User | None:
    """Return a user by the name or number that /etc/passwd of a sandbox gives it; None for root.

    A number that the file does not have is a user without groups and a home directory. Raises
    MissingCapabilityError if the sandbox has no users besides root, UsageError for an unknown name
    and a number above 65535.
    """
    name = "root" if user is None else str(user)
    if name in _ROOT_NAMES:
        return None
    if "users" not in sandbox.capabilities:
        raise MissingCapabilityError(
            f"this sandbox has one user, root: it cannot run a command as {name!r}; leave out "
            "`user`, or open the sandbox with users=True (back end namespace, as root)"
        )
    for fields in _read_rows(sandbox, "/etc/passwd", 6):
        if name in (fields[0], fields[2]) and _is_id(fields[2]) and _is_id(fields[3]):
            uid, gid = int(fields[2]), int(fields[3])
            groups = [
                int(row[2])
                for row in _read_rows(sandbox, "/etc/group", 4)
                if fields[0] in row[3].split(",") and _is_id(row[2])
            ]
            return User(fields[0], uid, gid, (gid, *groups), fields[5]) if uid else None
    if not _is_id(name):
        raise UsageError(
            f"no user {name!r} in /etc/passwd of the sandbox: create it first, or give a number up "
            f"to {MAX_ID}"
        )
    return User(name, int(name), int(name))


def _read_rows(sandbox: BaseSandbox, path: str, columns: int) -> list[list[str]]:
    try:
        text = sandbox.read(path, 1 << 20).decode(errors="replace")
    except OSError:
        return []
    rows = (line.split(":") for line in text.splitlines())
    return [row for row in rows if len(row) >= columns]


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text[:6]) <= MAX_ID
