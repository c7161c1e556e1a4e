"""Validates options of agents, which users may give in any type."""

from __future__ import annotations

from intercode.core.errors import ConfigError


def check_integer(name: str, value: object, minimum: int = 1) -> None:
    """Raise ConfigError unless ``value`` is None or an integer of at least ``minimum``."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ConfigError(f"{name} is {value!r}; it must be an integer of at least {minimum}")


def check_bool(name: str, value: object) -> None:
    """Raise ConfigError unless ``value`` is true or false: a text such as ``no`` would count as
    true."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; it must be true or false")
