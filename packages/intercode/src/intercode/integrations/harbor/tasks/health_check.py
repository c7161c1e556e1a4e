"""The settings of a health check in Harbor's format: a command that shows that a task is ready."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from intercode.core.errors import DataError
from intercode.integrations.harbor.tasks.values import Table, read_number, read_timeout

_MAX_RETRIES = 1000


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A command that has to end with 0 before the agent begins. Times are in seconds.

    It fails after ``retries`` failures in a row, ``interval`` apart. Those of the first
    ``start_period`` do not count, and are ``start_interval`` apart. ``timeout`` limits each run.
    """

    command: str
    interval: float = 5.0
    timeout: float = 30.0
    start_period: float = 0.0
    start_interval: float = 5.0
    retries: int = 3


def read_health_check(path: Path, parent: Table, where: str) -> HealthCheck | None:
    """Return the ``healthcheck`` of a table, if it has one. Raises DataError that names the
    setting."""
    table, where = parent.get("healthcheck"), f"{where}.healthcheck"
    if table is None:
        return None
    command = table.get("command") if isinstance(table, dict) else None
    if not isinstance(command, str) or not command.strip():
        raise DataError(f"{path}: [{where}] needs a command, not {command!r}")
    retries = read_number(path, table, where, "retries", 3)
    if not retries.is_integer() or retries > _MAX_RETRIES:
        raise DataError(f"{path}: [{where}] retries = {retries} is not a number up to 1000")
    return HealthCheck(
        command,
        read_number(path, table, where, "interval_sec", 5.0),
        read_timeout(path, table, where, 30.0),
        read_number(path, table, where, "start_period_sec", 0.0),
        read_number(path, table, where, "start_interval_sec", 5.0),
        int(retries),
    )
