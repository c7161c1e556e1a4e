"""Builds the library that tells the programs of a deterministic box what time it is.

No kernel namespace fakes the time of day, so it is done in each program. libfaketime (0.9.10 of
Debian 12) does not reach bash's own clock, nor ``statx`` and ``fstatat``, by which `ls`, `stat` and
`find` read dates, and it leaves files in /dev/shm; so this is a small library of our own, clock.c.
It is compiled once per setting and kept in the cache. A program that is static, made for another
kind of machine (32-bit), or linked against another C library than glibc does not load it.
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
from intercode.sandbox.supervisor.compiler import compile_into

_FLAGS = (
    "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-nostdlib", "-shared", "-fPIC",
    "-Os", "-s",
)  # fmt: skip
INSTALL_HINT = (
    "install a C compiler (Debian, Ubuntu: apt-get install gcc), or set the clock to 'real'"
)


def resolve_determinism(asked: bool | Mapping[str, Any] | Determinism) -> Determinism | None:
    """The settings that an environment uses; None for False.

    True takes what this machine can give: without a compiler the clock and the random bytes are
    real, and the settings say so. What was asked for by name is given, or
    SandboxUnavailableError says what is missing.
    """
    if asked is False:
        return None
    if asked is True:
        best = Determinism()
        try:
            clock_library(best)
        except SandboxUnavailableError:
            return replace(best, clock=REAL_CLOCK, random="real")
        return best
    settings = asked if isinstance(asked, Determinism) else determinism_from_settings(asked)
    clock_library(settings)
    return settings


@functools.lru_cache(maxsize=64)
def clock_library(settings: Determinism) -> bytes | None:
    """The library as bytes, or None where the settings leave clock and random bytes real.

    Raises SandboxUnavailableError where it is not in the cache and cannot be compiled.
    """
    if settings.clock == REAL_CLOCK and settings.random == "real":
        return None
    stands, seconds = parse_clock(settings.clock)
    source = files(__package__).joinpath("clock.c").read_bytes()
    given = {
        "FIXED": int(stands), "CLOCK": seconds if stands else 0, "SHIFT": 0 if stands else seconds,
        "CHANCE": int(settings.random == "seeded"), "SEED": settings.seed % 2**63,
    }  # fmt: skip
    name = hashlib.sha256(repr((source, sorted(given.items()), os.uname().machine)).encode())
    path = cache_root() / "clocks" / f"{name.hexdigest()[:24]}.so"
    if not path.exists():
        # files of before are the image's and the tasks'; what is later was written in a box
        given["SINCE"] = min(seconds, int(time.time())) if stands else 0
        macros = [f"-D{name}={value}L" for name, value in given.items()]
        try:
            compile_into(path, [*_FLAGS, *macros, "-x", "c", "-"], source)
        except SandboxUnavailableError as e:
            raise SandboxUnavailableError(
                f"no clock of its own can be built: {e}: {INSTALL_HINT}"
            ) from e
    return path.read_bytes()
