"""Finds where this process may make control groups, in either version of them."""

from __future__ import annotations

import contextlib
import errno
import os

TYPE_CHECKING = False  # the module typing would double this process's memory
if TYPE_CHECKING:
    from collections.abc import Mapping

REQUIRED_CONTROLLERS = ("memory", "pids")
_OTHERS_GROUP = (
    "intercode-rest"  # version 2: where the other processes of a delegated group are put
)


def read_control_file(path: str) -> str:
    """A control file's text."""
    with open(path) as f:
        return f.read()


def write_control_file(path: str, text: str) -> None:
    """Write to a control file in one call. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def find_groups(mounts: str, own: str) -> dict[str, str]:
    """The directory of this process's group per controller, ``""`` for version 2, as the texts of
    /proc/self/mountinfo and /proc/self/cgroup have it."""
    groups = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            groups[name] = path
    found: dict[str, str] = {}
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            if name in groups and name not in found:
                below = os.path.relpath(groups[name], root)
                if not below.startswith(".."):
                    found[name] = os.path.normpath(f"{point}/{below}")
    return found


def own_groups() -> dict[str, str]:
    """``locate`` for this process."""
    with open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as own:
        return find_groups(mounts.read(), own.read())


def usable_parents(places: Mapping[str, str]) -> tuple[int, dict[str, str]]:
    """The version and the directories below which groups may be made.

    Raises OSError whose text says what is missing.
    """
    if all(name in places for name in REQUIRED_CONTROLLERS):
        names = [*REQUIRED_CONTROLLERS, *(["freezer"] if "freezer" in places else [])]
        version, parents = 1, {name: places[name] for name in names}
    elif "" in places:
        parent = places[""]
        if os.path.basename(parent) == _OTHERS_GROUP:
            parent = os.path.dirname(parent)
        version, parents = 2, {"": parent}
        lacking = set(REQUIRED_CONTROLLERS) - set(
            read_control_file(f"{parent}/cgroup.controllers").split()
        )
        if lacking:
            raise OSError(errno.ENOENT, f"{parent} has no controller {', '.join(sorted(lacking))}")
    else:
        raise OSError(errno.ENOENT, "no control groups for memory and pids are mounted")
    for parent in parents.values():
        if not os.access(parent, os.W_OK):
            raise OSError(errno.EACCES, f"{parent} is not writable")
    if version == 2 and not _may_delegate(parents[""]):
        raise OSError(errno.EBUSY, f"{parents['']} is not delegated to this process")
    return version, parents


def _may_delegate(parent: str) -> bool:
    """Whether a group of version 2 hands memory and pids on already, or is ours to be changed: one
    that systemd delegated, or the top of a container's own view."""
    if set(REQUIRED_CONTROLLERS) <= set(
        read_control_file(f"{parent}/cgroup.subtree_control").split()
    ):
        return True
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(parent, name) == b"1":
                return True
    mine = os.stat(parent).st_uid == os.geteuid() != 0
    with open("/proc/self/cgroup") as f:
        top = any(line.strip() in ("0::/", f"0::/{_OTHERS_GROUP}") for line in f)
    return mine or top


def delegate_controllers(parent: str) -> None:
    """Have a version 2 group hand its controllers on, for which it may hold no process itself."""
    if not set(REQUIRED_CONTROLLERS) <= set(
        read_control_file(f"{parent}/cgroup.controllers").split()
    ):
        return
    for _ in range(10):
        if set(REQUIRED_CONTROLLERS) <= set(
            read_control_file(f"{parent}/cgroup.subtree_control").split()
        ):
            return
        with contextlib.suppress(OSError):
            write_control_file(f"{parent}/cgroup.subtree_control", "+memory +pids")
            return
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{parent}/{_OTHERS_GROUP}")
        for pid in read_control_file(f"{parent}/cgroup.procs").split():
            with contextlib.suppress(OSError):
                write_control_file(f"{parent}/{_OTHERS_GROUP}/cgroup.procs", pid)
    raise OSError(errno.EBUSY, f"the processes of {parent} could not be put into a group below it")
