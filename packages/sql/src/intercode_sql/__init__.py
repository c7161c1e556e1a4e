"""SQL sessions on a choice of engines.

``base`` defines engines, sessions and snapshots; ``engines`` finds engines by their names.
``dbapi`` is the interface of PEP 249. ``embedded`` behaves as MySQL 8 and needs no server,
``server`` uses a MySQL or MariaDB server, ``sqlite`` is SQLite with its own dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercode_sql.base import DatabaseSnapshot, SqlDeterminism, SqlEngine, SqlLimits, SqlSession
from intercode_sql.engines import engine_names, open_engine

if TYPE_CHECKING:
    from intercode_sql.dbapi import connect

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
]


def __getattr__(name: str) -> Any:
    """Return ``connect``. The interface is imported when it is first used: it loads the reader of
    dumps, which sessions in an environment do not need."""
    if name != "connect":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from intercode_sql.dbapi import connect

    return connect


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return __all__
