"""Checks of what a user gives an agent as options, which may be of any type."""

from __future__ import annotations

from intercode.core.errors import ConfigError


def check_integer(name: str, value: object, least: int = 1) -> None:
    """Raises ConfigError for what is neither None nor a whole number of at least ``least``."""
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name} is {value!r}; it has to be a whole number of at least {least}")


def check_bool(name: str, value: object) -> None:
    """Raises ConfigError for what is neither true nor false: a text such as ``no`` would count as
    true."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; it has to be true or false")
