"""Reads values of a ``task.toml``: numbers, sizes, lists of tables, environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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


# Every setting of Harbor's ``task.toml``, and what becomes of it here (see docs/harbor.md).
DONE, INFORMATION, NAMED, REFUSED = "done", "information", "named", "refused"
_NETWORK = {"network_mode": DONE, "allowed_hosts": NAMED}
SETTINGS: dict[str, dict[str, str]] = {
    "": {
        "version": INFORMATION,
        "schema_version": INFORMATION,
        "source": INFORMATION,
        "task": INFORMATION,
        "metadata": INFORMATION,
        "agent": DONE,
        "verifier": DONE,
        "environment": DONE,
        "solution": DONE,
        "multi_step_reward_strategy": DONE,
        "steps": DONE,
        "artifacts": DONE,
    },
    "agent": {"timeout_sec": NAMED, "user": DONE, **_NETWORK},
    "verifier": {
        "timeout_sec": DONE,
        "env": DONE,
        "user": DONE,
        "network_mode": NAMED,
        "allowed_hosts": NAMED,
        "environment_mode": DONE,
        "environment": DONE,
        "collect": DONE,
        "service": REFUSED,
    },
    "environment": {
        "docker_image": DONE,
        "env": DONE,
        "workdir": DONE,
        "memory_mb": DONE,
        "memory": DONE,
        "storage_mb": DONE,
        "storage": DONE,
        "allow_internet": DONE,
        **_NETWORK,
        "build_timeout_sec": NAMED,
        "cpus": NAMED,
        "gpu_types": NAMED,
        "skills_dir": NAMED,
        "healthcheck": DONE,
        "os": REFUSED,
        "gpus": REFUSED,
        "tpu": REFUSED,
        "tpus": REFUSED,
        "mcp_servers": REFUSED,
    },
    "solution": {"env": DONE},
    "steps": {
        "name": DONE,
        "min_reward": DONE,
        "agent": DONE,
        "verifier": DONE,
        "healthcheck": DONE,
        "artifacts": DONE,
    },
    "healthcheck": dict.fromkeys(
        (
            "command",
            "interval_sec",
            "timeout_sec",
            "retries",
            "start_period_sec",
            "start_interval_sec",
        ),
        DONE,
    ),
    "artifacts": {
        "source": DONE,
        "exclude": DONE,
        "destination": INFORMATION,
        "service": REFUSED,
    },
    "collect": {"command": DONE, "timeout_sec": DONE, "service": REFUSED, "user": DONE},
}
"""What becomes of each setting, by the name of its table (empty: the root).

``done``: it applies. ``information``: it has no effect in Harbor either. ``named``: it has no
effect, and the dataset's warnings name it. ``refused``: a value that would change the task is an
error; values that change nothing, such as ``gpus = 0``, are not.
"""


def named_settings(table: Table, kind: str = "", path: str = "") -> Iterator[str]:
    """Yield the names of the settings in a ``task.toml`` that have no effect, with those that
    ``SETTINGS`` lacks."""
    for key, value in table.items():
        treatment = SETTINGS[kind].get(key, NAMED)
        if treatment == NAMED:
            yield f"{path}{key}"
        elif key in SETTINGS:
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, dict):
                    yield from named_settings(inner, key, f"{path}{key}.")


def reject_unsupported(path: Path, environment: Table) -> None:
    """Raise DataError for settings of an environment that would change the task if they were
    ignored."""
    reasons = {
        f"the system {environment.get('os')!r}": (
            str(environment.get("os", "linux")).lower() != "linux"
        ),
        "GPUs": bool(environment.get("gpus")),
        "TPUs": bool(environment.get("tpu") or environment.get("tpus")),
        "MCP servers": bool(environment.get("mcp_servers")),
    }
    for what, unsupported in reasons.items():
        if unsupported:
            raise DataError(f"{path} asks for {what}, which is not supported")
