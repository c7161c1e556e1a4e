"""Builds the library that controls the clock and random bytes of a deterministic sandbox.

No kernel namespace covers the time of day, so each program loads a library that replaces the calls.
libfaketime (0.9.10 of Debian 12) does not cover bash's own clock, nor ``statx`` and ``fstatat``,
with which `ls`, `stat` and `find` read dates, and it leaves files in /dev/shm. So this package has
a small library of its own, clock.c. It is compiled once per setting and cached. Programs that are
static, 32-bit, or linked against another C library than glibc do not load it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from intercode.core.errors import SandboxUnavailableError
from intercode.core.paths import cache_root
from intercode.sandbox.determinism import (
    REAL_CLOCK,
    Determinism,
    determinism_from_settings,
    parse_clock,
)
from intercode.sandbox.supervisor.programs import compile_into

_FLAGS = (
    "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-nostdlib", "-shared", "-fPIC",
    "-Os", "-s",
)  # fmt: skip
INSTALL_HINT = (
    "install a C compiler (Debian, Ubuntu: apt-get install gcc), or set the clock to 'real'"
)


def resolve_determinism(setting: bool | Mapping[str, Any] | Determinism) -> Determinism | None:
    """Return the settings that an environment uses, or None for False.

    With True, clock and random bytes stay real if there is no C compiler, and the returned settings
    say so. Settings given by name must be available. Raises SandboxUnavailableError if they are
    not.
    """
    if setting is False:
        return None
    if setting is True:
        best = Determinism()
        try:
            clock_library(best)
        except SandboxUnavailableError:
            return replace(best, clock=REAL_CLOCK, random="real")
        return best
    settings = setting if isinstance(setting, Determinism) else determinism_from_settings(setting)
    clock_library(settings)
    return settings


@functools.lru_cache(maxsize=64)
def clock_library(settings: Determinism) -> bytes | None:
    """Return the library, or None if the settings leave clock and random bytes real.

    Raises SandboxUnavailableError if it is not in the cache and cannot be compiled.
    """
    if settings.clock == REAL_CLOCK and settings.random == "real":
        return None
    fixed, seconds = parse_clock(settings.clock)
    source = files(__package__).joinpath("clock.c").read_bytes()
    macros_by_name = {
        "FIXED": int(fixed), "CLOCK": seconds if fixed else 0, "SHIFT": 0 if fixed else seconds,
        "CHANCE": int(settings.random == "seeded"), "SEED": settings.seed % 2**63,
    }  # fmt: skip
    name = hashlib.sha256(
        repr((source, sorted(macros_by_name.items()), os.uname().machine)).encode()
    )
    path = cache_root() / "clocks" / f"{name.hexdigest()[:24]}.so"
    if not path.exists():
        # older files belong to the image or the task, newer ones were written in the sandbox
        macros_by_name["SINCE"] = min(seconds, int(time.time())) if fixed else 0
        macros = [f"-D{name}={value}L" for name, value in macros_by_name.items()]
        try:
            compile_into(path, [*_FLAGS, *macros, "-x", "c", "-"], source)
        except SandboxUnavailableError as e:
            raise SandboxUnavailableError(
                f"the clock library cannot be built: {e}: {INSTALL_HINT}"
            ) from e
    return path.read_bytes()
