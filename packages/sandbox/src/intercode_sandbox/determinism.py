"""Settings that make the same actions give the same output and files in every run."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from intercode_sandbox.errors import ConfigError, UsageError
from intercode_sandbox.registry import unknown_name_error

DEFAULT_CLOCK = "2026-01-01 00:00:00"
REAL_CLOCK = "real"
_TIME_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_OFFSET = re.compile(r"([+-])(\d{1,9})([smhdw]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Determinism:
    """The settings of a deterministic episode.

    Attributes:
        clock: A fixed UTC time such as ``2026-01-01 00:00:00``, an offset such as ``+3d`` (units s,
            m, h, d, w), or ``real``.
        seed: What sets ``$RANDOM`` in every shell, the hash order of Python and Perl, and the
            random bytes of the C library if ``random`` is ``seeded``. At least 0.
        random: Whether the random bytes of the C library are ``seeded`` or ``real``.
        locale: The locale of every command.
        timezone: The time zone of every command.
        hostname: The name of the machine.
        machine_id: The id of the machine, 32 hex digits.

    Raises:
        UnknownNameError: ``random`` is neither of its values.
        ConfigError: Another setting has a wrong form.

    >>> from intercode_sandbox import Determinism, resolve_determinism
    >>> resolve_determinism({"clock": "2030-01-31 12:00:00"}) == Determinism("2030-01-31 12:00:00")
    True
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
            raise ConfigError(f"the seed {self.seed!r} must be a whole number of at least 0")
        if not re.fullmatch("[0-9a-f]{32}", self.machine_id):
            raise ConfigError(f"the machine id {self.machine_id!r} must be 32 hex digits")

    @property
    def fixed_time(self) -> int | None:
        """The fixed time in seconds since the epoch, or None if the clock runs."""
        stands, seconds = parse_clock(self.clock)
        return seconds if stands else None

    def random_seed_for(self, action: int) -> int:
        """Return the seed of ``$RANDOM`` for an action: 1 to 2147483646.

        Args:
            action: The number of the action in its episode.
        """
        mixed = (self.seed * 1_000_003 + action) * 0x9E3779B97F4A7C15 % 2**64
        return mixed % 2_147_483_646 + 1

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of every command."""
        return {
            "LANG": self.locale,
            "LC_ALL": self.locale,
            "TZ": self.timezone,
            "PYTHONHASHSEED": str(self.seed % 2**32),
            "PERL_HASH_SEED": str(self.seed),
            "PERL_RAND_SEED": str(self.seed),  # Perl 5.38 or later; older versions stay random
            # with a fixed clock, Python would not notice a changed module
            "PYTHONDONTWRITEBYTECODE": "1",
            "BASH_ENV": RANDOM_FILE,
        }


RANDOM_FILE = "/etc/random.bash"
"""Script that every bash other than the session's reads first (its ``BASH_ENV``). It seeds
``$RANDOM``."""


def parse_clock(text: str) -> tuple[bool, int]:
    """Parse a clock setting: (True, seconds since the epoch) for a time, (False, seconds) for an
    offset.

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
        f"the clock {text!r} is neither a time such as {DEFAULT_CLOCK!r} nor an offset such as "
        f"'+3d' (s, m, h, d, w), nor {REAL_CLOCK!r}"
    )


def determinism_from_settings(values: Mapping[str, Any]) -> Determinism:
    """Read the settings from a mapping.

    Raises UnknownNameError for an unknown setting, ConfigError for a value of the wrong form.
    """
    known = [f.name for f in fields(Determinism)]
    for name in values:
        if name not in known:
            raise unknown_name_error("setting of determinism", name, known)
    return Determinism(**values)


def resolve_determinism(setting: bool | Mapping[str, Any] | Determinism) -> Determinism | None:
    """Return the settings that an environment uses: None for False, the defaults for True.

    Args:
        setting: True, False, the settings, or some of them by name.

    Raises:
        UnknownNameError: There is no setting of that name.
        ConfigError: A setting has a wrong form.
        UsageError: ``setting`` is something else.

    >>> from intercode_sandbox import resolve_determinism
    >>> resolve_determinism(True).clock
    '2026-01-01 00:00:00'
    >>> resolve_determinism(False) is None
    True
    """
    if isinstance(setting, Mapping):
        return determinism_from_settings(setting)
    if isinstance(setting, Determinism):
        return setting
    if not isinstance(setting, bool):
        raise UsageError(
            f"deterministic is True, False, or settings such as {{'seed': 1}}, not {setting!r:.80}"
        )
    return Determinism() if setting else None
