"""SQL sessions on a choice of engines.

``base`` defines engines, sessions and snapshots; ``engines`` finds engines by their names.
``dbapi`` is the interface of PEP 249. ``embedded`` behaves as MySQL 8 and needs no server,
``server`` uses a MySQL or MariaDB server, ``sqlite`` is SQLite with its own dialect.
"""

from __future__ import annotations

from intercode_sql.base import DatabaseSnapshot, SqlDeterminism, SqlEngine, SqlLimits, SqlSession
from intercode_sql.dbapi import connect
from intercode_sql.engines import engine_names, open_engine

EngineKind = str
"""The name of an engine."""

__all__ = [
    "DatabaseSnapshot",
    "EngineKind",
    "SqlDeterminism",
    "SqlEngine",
    "SqlLimits",
    "SqlSession",
    "connect",
    "engine_names",
    "open_engine",
]  # fmt: skip
