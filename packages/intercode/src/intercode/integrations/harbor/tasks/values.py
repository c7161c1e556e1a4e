"""Reads values of a ``task.toml``: numbers, sizes, lists of tables, environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode_sandbox.sizes import parse_size

Table = Mapping[str, Any]

DEFAULT_SECONDS = 600.0
_MAX_SIZE = 1 << 60  # bytes


def read_table(path: Path, parent: Table, name: str, where: str = "") -> Table:
    """Return the table ``name`` of another table, empty if it is absent."""
    value = parent.get(name, {})
    if not isinstance(value, dict):
        raise DataError(f"{path}: [{where}{name}] must be a table, not {value!r}")
    return value


def read_tables(path: Path, parent: Table, name: str) -> Sequence[Table]:
    """Return the tables of a list such as ``[[steps]]``, none if it is absent."""
    value = parent.get(name) or []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise DataError(f"{path}: [[{name}]] must be a list of tables, not {value!r}")
    return value


def read_number(
    path: Path, table: Table, where: str, name: str, default: float, least: float = 0.0
) -> float:
    """Return a number from ``least`` to 1e7, such as a time in seconds."""
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e7:
        raise DataError(
            f"{path}: [{where}] {name} = {value!r} is not a number from {least:g} to 1e7"
        )
    return float(value)


def read_timeout(path: Path, table: Table, where: str, default: float = DEFAULT_SECONDS) -> float:
    """Return the ``timeout_sec`` of a table, which is more than 0."""
    value = table.get("timeout_sec", default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e7:
        raise DataError(f"{path}: [{where}] timeout_sec = {value!r} is not a number of seconds")
    return float(value)


def read_size(path: Path, table: Table, name: str, default: int) -> int:
    """Return a size in bytes: ``memory_mb = 2048``, or ``memory = "2G"`` in older files."""
    in_mb, text = table.get(f"{name}_mb"), table.get(name)
    if in_mb is None and text is None:
        return default
    given = str(text) if in_mb is None else f"{in_mb}M"
    try:
        size = parse_size(given)
    except UsageError:
        size = 0
    if not 0 < size < _MAX_SIZE:
        raise DataError(f"{path}: {name} is {given!r}, which is not a size")
    return size


def read_env(path: Path, table: Table, where: str) -> dict[str, str]:
    """Return the environment variables of a table.

    ``${NAME}`` would be replaced by a variable of this machine and is rejected;
    ``${NAME:-value}`` becomes ``value``.
    """
    given = table.get("env", {})
    if not isinstance(given, dict):
        raise DataError(f"{path}: [{where}] env must be a table, not {given!r}")
    variables = {}
    for key, value in given.items():
        text = str(value)
        reference = re.fullmatch(r"\$\{(\w+)(?::-(.*))?\}", text)
        if reference and reference[2] is None:
            raise DataError(
                f"{path}: [{where}] env would pass this machine's variable {reference[1]} to code "
                "of the task; to allow that, write its value instead"
            )
        variables[str(key)] = reference[2] if reference else text
    return variables


def read_user(path: Path, table: Table, where: str) -> str:
    """Return the ``user`` of a table, a name or a number, or an empty text for root."""
    user = table.get("user")
    if user is None or (isinstance(user, str | int) and not isinstance(user, bool)):
        text = "" if user is None else str(user)
        return "" if text in ("root", "0") else text
    raise DataError(f"{path}: [{where}] user = {user!r} is neither a name nor a number")


def read_optional_text(value: Any) -> str | None:
    """Return a value as a text, None if it is absent or empty."""
    return str(value) if value else None
