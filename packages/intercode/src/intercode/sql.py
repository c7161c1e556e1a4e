"""The engines of SQL, which are the package ``intercode_sql``, under the name of this package."""

from __future__ import annotations

from intercode_sql import (
    DatabaseSnapshot,
    EngineKind,
    SqlDeterminism,
    SqlEngine,
    SqlLimits,
    SqlSession,
    connect,
    engine_names,
    open_engine,
)

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
]
