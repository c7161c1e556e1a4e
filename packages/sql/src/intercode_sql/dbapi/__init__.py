"""The DB-API 2.0 interface (PEP 249) of all engines.

    with intercode_sql.connect("shop.sql") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT name FROM customer WHERE city = %s", ["Bern"])
        print(cursor.fetchall())

A connection has a private copy of the data, which ends with it: nothing is written to the file.
"""

from __future__ import annotations

from intercode_sql.dbapi.connection import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Connection,
    Cursor,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    connect,
)
from intercode_sql.dbapi.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004
)

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not a connection."""
paramstyle = "pyformat"
"""``%s`` with a sequence of parameters is read as well."""

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
