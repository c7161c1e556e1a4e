"""MySQL's functions for SQLite: written in Python, registered with each connection."""

from __future__ import annotations

import sqlite3

from intercode.sql.embedded.functions import datetimes, numeric, patterns, runtime, strings
from intercode.sql.embedded.functions.aggregates import AGGREGATES
from intercode.sql.embedded.functions.runtime import ScalarFunction, wrap_function

_VOLATILE_FUNCTIONS = {"mysql_rand", "mysql_sleep", "mysql_raise"}


def register_functions(connection: sqlite3.Connection) -> None:
    """Make every function known to a connection."""
    tables: tuple[dict[str, ScalarFunction], ...] = (
        runtime.FUNCTIONS, strings.FUNCTIONS, numeric.FUNCTIONS, datetimes.FUNCTIONS,
        patterns.FUNCTIONS,
    )  # fmt: skip
    for table in tables:
        for name, function in table.items():
            whole = f"mysql_{name}"
            fixed = whole not in _VOLATILE_FUNCTIONS
            connection.create_function(whole, -1, wrap_function(function), deterministic=fixed)
    for name, kind in AGGREGATES.items():
        connection.create_aggregate(f"mysql_{name}", -1, kind)
