"""Provides the library that controls clock and random bytes of a deterministic sandbox.

No kernel namespace covers the time of day, so each program loads a library that replaces the calls.
libfaketime (0.9.10 of Debian 12) does not cover bash's own clock, nor ``statx`` and ``fstatat``,
with which `ls`, `stat` and `find` read dates, and it leaves files in /dev/shm. So intercode has
a small library of its own, clock.c. It is compiled once, when the package is installed, and the
settings are written into a copy of it. Programs that are static, 32-bit, or linked against another
C library than glibc do not load it.
"""

from __future__ import annotations

import functools
import struct
import time

from intercode_sandbox.determinism import REAL_CLOCK, Determinism, parse_clock
from intercode_sandbox.supervisor import build, programs

_MARK = b"intercode clock\0"
_SETTINGS = struct.Struct(f"={len(_MARK)}s6qQq64s")
"""The structure ``settings`` of clock.c."""
_DAY, _SECOND = 86400, 10**9


@functools.lru_cache(maxsize=64)
def clock_library(
    settings: Determinism | None, user: int = 0, hostname: str = "", unpacked: int = 0
) -> bytes | None:
    """Return the library, or None if the settings leave clock and random bytes real.

    ``user``: the id of programs in a sandbox without namespaces, which they see as 0, with the
    name ``hostname`` of their machine. ``unpacked``: when image and layers were unpacked, in
    nanoseconds since the epoch.

    Raises SandboxUnavailableError if it is not installed.
    """
    settings = settings or Determinism(clock=REAL_CLOCK, random="real")
    if settings.clock == REAL_CLOCK and settings.random == "real" and not user:
        return None
    library = bytearray(programs.find_program(build.CLOCK_LIBRARY).read_bytes())
    fixed, seconds = parse_clock(settings.clock)
    # Older files belong to the image or the task, newer ones were written in the sandbox. Where
    # they are of earlier days, the day keeps the library the same: few copies of it are cached.
    today = int(time.time()) // _DAY * _DAY * _SECOND
    since = min(seconds * _SECOND, max(today, unpacked + 1)) if fixed else 0
    values = (
        fixed,
        seconds if fixed else 0,
        0 if fixed else seconds,
        *divmod(since, _SECOND),
        settings.random == "seeded",
        settings.seed % 2**63,
        user,
        hostname.encode()[:63],
    )
    _SETTINGS.pack_into(library, library.index(_MARK), _MARK, *values)
    return bytes(library)
