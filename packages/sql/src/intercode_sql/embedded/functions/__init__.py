"""MySQL's functions, written in Python and registered with each SQLite connection.

To add a function, decorate it with ``registry.scalar`` in one of the modules imported here.
"""

from __future__ import annotations

import sqlite3

from intercode_sql.embedded.functions import (  # noqa: F401  # registers the functions
    aggregates,
    datetimes,
    internal,
    intervals,
    json_functions,
    numeric,
    patterns,
    strings,
)
from intercode_sql.embedded.functions.registry import SQLITE_AGGREGATES, SQLITE_FUNCTIONS


def register_functions(connection: sqlite3.Connection) -> None:
    """Register every function with a connection."""
    for name, (function, deterministic) in SQLITE_FUNCTIONS.items():
        connection.create_function(name, -1, function, deterministic=deterministic)
    for name, cls in SQLITE_AGGREGATES.items():
        connection.create_aggregate(name, -1, cls)
