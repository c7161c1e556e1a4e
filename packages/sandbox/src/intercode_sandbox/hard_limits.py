"""The hard limits of this process that are below what a sandbox gives its programs, and that it may
not raise. The supervisor refuses those of ``Limits`` (``require_limit`` in C) and keeps these."""

from __future__ import annotations

import sys
from pathlib import Path

_GIVEN = {
    "stack": ("RLIMIT_STACK", 8 << 20),
    "data": ("RLIMIT_DATA", None),
    "processor_time": ("RLIMIT_CPU", None),
    "locked_memory": ("RLIMIT_MEMLOCK", 1 << 20),
    "pending_signals": ("RLIMIT_SIGPENDING", 1024),
    "message_queues": ("RLIMIT_MSGQUEUE", 256 << 10),
}
"""What programs get, as the C code has it; None: no limit."""
_NOT_FROM_HERE = (
    "container/docker",
    "remote/",
)  # a daemon or another machine starts their programs
_CAP_SYS_RESOURCE = 24


def lowered_hard_limits(tier: str) -> dict[str, int]:
    """Return the hard limits of this process which programs in sandboxes of a tier have in place of
    the higher ones that they have elsewhere, such as ``{"stack": 1048576}`` after ``ulimit -Hs
    1024``. Sizes are in bytes, times in seconds. Most often there is none."""
    if sys.platform != "linux" or tier.startswith(_NOT_FROM_HERE) or _may_raise():
        return {}
    import resource

    found = {}
    for name, (number, given) in _GIVEN.items():
        hard = resource.getrlimit(getattr(resource, number))[1]
        if hard != resource.RLIM_INFINITY and (given is None or hard < given):
            found[name] = hard
    return found


def _may_raise() -> bool:
    status = Path("/proc/self/status").read_text()
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) >> _CAP_SYS_RESOURCE & 1)
