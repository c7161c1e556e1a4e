"""The state of an embedded session, and the system variables that a session starts with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from intercode_sql.embedded.catalog.catalog import Catalog

MYSQL_VERSION = "8.0.33"
MYSQL_VERSION_NUMBER = 80033  # as executable comments write it
DEFAULT_MODES = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)
"""MySQL 8's default modes."""
DEFAULT_SETTINGS: dict[str, Any] = {
    "sql_mode": f"{DEFAULT_MODES},IGNORE_SPACE",
    "autocommit": 1,
    "foreign_key_checks": 1,
    "unique_checks": 1,
    "group_concat_max_len": 1024,
    "max_execution_time": 0,
    "sql_safe_updates": 0,
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "character_set_results": "utf8mb4",
    "character_set_server": "utf8mb4",
    "character_set_database": "utf8mb4",
    "collation_connection": "utf8mb4_0900_ai_ci",
    "collation_server": "utf8mb4_0900_ai_ci",
    "collation_database": "utf8mb4_0900_ai_ci",
    "time_zone": "SYSTEM",
    "system_time_zone": "UTC",
    "tx_isolation": "REPEATABLE-READ",
    "transaction_isolation": "REPEATABLE-READ",
    "transaction_read_only": 0,
    "tx_read_only": 0,
    "lower_case_table_names": 1,
    "max_allowed_packet": 67108864,
    "wait_timeout": 28800,
    "interactive_timeout": 28800,
    "sql_notes": 1,
    "sql_select_limit": 18446744073709551615,
    "cte_max_recursion_depth": 1000,
    "hostname": "mysql",
    "port": 3306,
    "version_comment": "MySQL Community Server - GPL",
    "warning_count": 0,
    "error_count": 0,
    "last_insert_id": 0,
    "identity": 0,
    "auto_increment_increment": 1,
    "auto_increment_offset": 1,
    "div_precision_increment": 4,
    "default_storage_engine": "InnoDB",
    "license": "GPL",
    "protocol_version": 10,
    "sql_big_selects": 1,
    "sql_quote_show_create": 1,
}
"""System variables and their values at the start of a session."""


@dataclass(frozen=True, slots=True)
class EmbeddedState:
    """Everything a session has changed, except the content of its databases.

    ``settings`` and ``variables`` hold the values that differ from the start. ``table_changes``
    maps (database, table) to ``new``, ``gone`` or ``changed``. ``session_values`` holds the results
    of functions such as LAST_INSERT_ID.
    """

    catalog: Catalog
    database: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    table_changes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    session_values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavedState:
    """A copy of a session's state. ``contents`` holds the databases that the session has written
    to."""

    state: EmbeddedState
    contents: Mapping[str, bytes]
