"""What makes two runs of the same actions print and leave behind the same."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from intercode.core.errors import ConfigError
from intercode.core.registry import unknown_name_error

DEFAULT_CLOCK = "2026-01-01 00:00:00"
REAL_CLOCK = "real"
_TIME_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_OFFSET = re.compile(r"([+-])(\d{1,9})([smhdw]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Determinism:
    """The settings of a deterministic episode.

    ``clock``: a time (UTC) at which the clock stands, such as ``2026-01-01 00:00:00``; how far it
    is off, such as ``+3d`` (units s, m, h, d, w); or ``real``. ``seed`` gives ``$RANDOM`` its
    values in every shell, Python and Perl the order of their hashes, and with ``random='seeded'``
    every program the bytes that it asks the C library for. ``random`` is ``real`` where that cannot
    be had.
    """

    clock: str = DEFAULT_CLOCK
    seed: int = 0
    random: Literal["seeded", "real"] = "seeded"
    locale: str = "C.UTF-8"
    timezone: str = "UTC"
    hostname: str = "intercode"
    machine_id: str = "c0de" * 8

    def __post_init__(self) -> None:
        parse_clock(self.clock)
        if self.random not in ("seeded", "real"):
            raise unknown_name_error("kind of random bytes", str(self.random), ["seeded", "real"])
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ConfigError(f"the seed {self.seed!r} has to be a whole number of at least 0")
        if not re.fullmatch("[0-9a-f]{32}", self.machine_id):
            raise ConfigError(f"the machine id {self.machine_id!r} has to be 32 hex digits")

    @property
    def fixed_time(self) -> int | None:
        """Where the clock stands, in seconds since the epoch; None where it runs."""
        stands, seconds = parse_clock(self.clock)
        return seconds if stands else None

    def random_seed_for(self, action: int) -> int:
        """What ``$RANDOM`` is seeded with at the start of an action: 1 … 2147483646."""
        mixed = (self.seed * 1_000_003 + action) * 0x9E3779B97F4A7C15 % 2**64
        return mixed % 2_147_483_646 + 1

    @property
    def environment(self) -> dict[str, str]:
        """The variables that every command finds."""
        return {
            "LANG": self.locale,
            "LC_ALL": self.locale,
            "TZ": self.timezone,
            "PYTHONHASHSEED": str(self.seed % 2**32),
            "PERL_HASH_SEED": str(self.seed),
            "PERL_RAND_SEED": str(self.seed),  # Perl 5.38; before, rand() stays random
            # a clock that stands hides from Python that a module has changed
            "PYTHONDONTWRITEBYTECODE": "1",
            "BASH_ENV": RANDOM_FILE,
        }


RANDOM_FILE = "/etc/random.bash"
"""What every bash that is no session reads first (its ``BASH_ENV``): it seeds ``$RANDOM``."""


def parse_clock(text: str) -> tuple[bool, int]:
    """(True, seconds since the epoch) for a time, (False, seconds) for how far a clock is off.

    Raises ConfigError for anything else.
    """
    if text == REAL_CLOCK:
        return False, 0
    if shift := _OFFSET.fullmatch(str(text)):
        sign, number, unit = shift.groups()
        return False, int(sign + number) * _UNITS[unit]
    for form in _TIME_FORMATS:
        try:
            return True, calendar.timegm(time.strptime(str(text), form))
        except ValueError:
            continue
    raise ConfigError(
        f"the clock {text!r} is neither a time such as {DEFAULT_CLOCK!r} nor an offset such as '+3d' "
        f"(s, m, h, d, w), nor {REAL_CLOCK!r}"
    )


def determinism_from_settings(values: Mapping[str, Any]) -> Determinism:
    """The settings in a mapping. Raises UnknownNameError for one that does not exist, ConfigError
    for a value of the wrong form."""
    known = [f.name for f in fields(Determinism)]
    for name in values:
        if name not in known:
            raise unknown_name_error("setting of determinism", name, known)
    return Determinism(**values)
