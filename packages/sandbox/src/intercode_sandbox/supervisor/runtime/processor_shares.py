"""Divides the processors evenly between the control groups of sandboxes, so that one with many busy
processes leaves as much to another as one with few, and limits those of one group."""

from __future__ import annotations

import contextlib
import errno
import os

from .control_files import read_control_file, write_control_file

_WEIGHT_PER_PROCESSOR = 4
"""The weight of all sandboxes together, where 1 is that of a process beside them."""
_SETTINGS = (("cpu.shares", 1024, 1 << 18), ("cpu.weight", 100, 10_000))
"""The file with a group's weight, the weight of a process, and the largest one: of version 1 and
version 2."""


def enable_controllers(group: str, required: str) -> None:
    """Enable controllers for the groups below a version 2 group: the required ones, such as
    ``+memory +pids``, and if possible the one that divides the processors. Raises OSError."""
    file = f"{group}/cgroup.subtree_control"
    with contextlib.suppress(OSError):
        if "cpu" in read_control_file(f"{group}/cgroup.controllers").split():
            write_control_file(file, f"{required} +cpu")
            return
    write_control_file(file, required)


_PERIOD = 100_000
"""Microseconds in each of which a group may use its processors for a share of the time."""


def limit(group: str, processors: float | None) -> None:
    """Let a group use at most so many processors at one time; None: all. Raises OSError if the
    machine cannot limit them."""
    quota = int(processors * _PERIOD) if processors else 0
    for name, text in (
        ("cpu.cfs_quota_us", str(quota or -1)),
        ("cpu.max", f"{quota or 'max'} {_PERIOD}"),
    ):
        if group and os.path.exists(f"{group}/{name}"):
            try:
                write_control_file(f"{group}/{name}", text)
            except OSError as e:  # version 1 refuses more than the group above may use
                raise OSError(e.errno, f"cpus={processors} is refused: {e.strerror}") from e
            return
    if quota:
        raise OSError(errno.ENOENT, "the control groups here do not limit processors (cpus)")


def weigh(home: str) -> None:
    """Give the group of all sandboxes the weight of several processes, because it competes as one
    with the processes beside it."""
    weight = _WEIGHT_PER_PROCESSOR * (os.cpu_count() or 1)
    for name, one, most in _SETTINGS:
        if os.path.exists(f"{home}/{name}"):
            with contextlib.suppress(OSError):
                write_control_file(f"{home}/{name}", str(min(one * weight, most)))
