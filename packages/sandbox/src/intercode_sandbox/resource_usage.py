"""What a sandbox uses of the machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceUsage:
    """What a sandbox uses now.

    ``cpu_seconds``: processor time since it was opened, without that of background processes which
    have ended after the process that started them. ``memory``: resident bytes of its processes,
    each with its share of shared pages. ``processes``: their number. ``disk``, ``files``: bytes
    and number of its own files and directories.
    """

    cpu_seconds: float
    memory: int
    processes: int
    disk: int
    files: int
