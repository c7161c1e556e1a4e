"""Measures the processor time of this process and its descendants."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class ProcessorTime:
    """The processor time that this process and its descendants have used since the creation of this
    object. It does not depend on how busy the machine is."""

    def __init__(self) -> None:
        self._before = _used_by_family()

    def seconds(self) -> float:
        """Return the sum of all, with the processes that have ended."""
        return _used_by_family() - self._before


def _used_by_family() -> float:
    """Return the processor time of this process and of its descendants. A process has that of those
    that it has waited for (proc_pid_stat(5))."""
    family, ticks = [os.getpid()], 0
    for pid in family:
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    family += map(int, (task / "children").read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")
