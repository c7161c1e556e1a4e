"""Reads the settings and variables of a connection and applies them to another one."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from intercode_sql.errors import ServerLostError
from intercode_sql.server.connection import (
    ServerConnection,
    ServerStatementError,
    StatementTimeoutError,
    decode_value,
)

_SESSION_VARIABLES = "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM {}.SESSION_VARIABLES"
_SCHEMA = {True: "information_schema", False: "performance_schema"}
_USER_VARIABLES = (
    "SELECT VARIABLE_NAME, VARIABLE_TYPE, HEX(VARIABLE_VALUE), VARIABLE_VALUE "
    "FROM information_schema.USER_VARIABLES"
)
_VOLATILE_SETTINGS = {
    "error_count",
    "warning_count",
    "identity",
    "insert_id",
    "last_insert_id",
    "in_transaction",
    "rand_seed1",
    "rand_seed2",
    "timestamp",
    "pseudo_thread_id",
    "last_gtid",
    "max_statement_time",
    "gtid_seq_no",
    "proxy_user",
    "external_user",
    "gtid_domain_id",
    "server_id",
}
"""Settings that change by themselves."""
_NUMERIC_TYPES = {"INT", "INT UNSIGNED", "DOUBLE", "DECIMAL"}

Settings = tuple[tuple[str, str], ...]
"""Left and right sides of the ``SET`` statements that reproduce a connection's settings."""


def read_settings(connection: ServerConnection) -> dict[str, Any]:
    """Return the settings of a connection."""
    rows, _ = connection.query(_SESSION_VARIABLES.format(_SCHEMA[connection.is_mariadb]))
    return {str(name).lower(): value for name, value in rows or ()}


def changed_settings(
    connection: ServerConnection, base: dict[str, Any], named: Iterable[str]
) -> Settings:
    """Return the settings of a connection that differ from ``base``, and its user variables. If the
    server does not list variables, those in ``named`` are read."""
    now = read_settings(connection)
    changed = [
        (f"SESSION {name}", _literal(str(value)))
        for name, value in sorted(now.items())
        if base.get(name) != value and name not in _VOLATILE_SETTINGS
    ]
    if connection.is_mariadb:
        rows, _ = connection.query(_USER_VARIABLES)
        for name, kind, digits, value in sorted(rows or (), key=lambda row: str(row[0])):
            plain = str(value) if kind in _NUMERIC_TYPES else _text_from_hex(decode_value(digits))
            changed.append((f"@`{name}`", "NULL" if digits is None else plain))
        return tuple(changed)
    for name in sorted(n.lstrip("@") for n in named if n.startswith("@") and n[1:2] != "@"):
        ((value,),) = connection.query(f"SELECT @`{name}`")[0] or [(None,)]
        numeric = isinstance(value, (int, float, Decimal))
        plain = str(value) if numeric else _text_from_hex(decode_value(value).encode().hex())
        changed.append((f"@`{name}`", "NULL" if value is None else plain))
    return tuple(changed)


def _text_from_hex(digits: str) -> str:
    return f"CONVERT(X'{digits}' USING utf8mb4)"


def apply_settings(connection: ServerConnection, settings: Settings) -> None:
    """Apply settings to a connection. A setting that cannot be set is skipped."""
    for left, right in settings:
        try:
            connection.query(f"SET {left} = {right}")
        except ServerStatementError:
            continue
        except StatementTimeoutError as e:
            raise ServerLostError(f"SET {left} did not end") from e


def _literal(value: str) -> str:
    if value.replace(".", "", 1).lstrip("-").isdigit():
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
