"""SQL sessions on a choice of engines.

``base`` defines engines, sessions and snapshots. ``embedded`` behaves as MySQL 8 and needs no
server, ``server`` uses a MySQL or MariaDB server, ``sqlite`` is SQLite with its own dialect.
"""

from __future__ import annotations

from typing import Literal

from intercode.core.errors import UsageError
from intercode.sandbox.registry import Registry
from intercode.sql.base import (
    DatabaseSnapshot,
    SqlDeterminism,
    SqlEngine,
    SqlLimits,
    SqlSession,
)

EngineKind = Literal["embedded", "mysql", "sqlite"]
"""The name of an engine."""

ENGINES = Registry(
    "engine",
    {
        "embedded": "intercode.sql.embedded:open_engine",
        "mysql": "intercode.sql.server:open_engine",
        "sqlite": "intercode.sql.sqlite:open_engine",
    },
)
"""Functions that open an engine, by the engine's name. ``mysql`` takes a DSN or None."""

__all__ = [
    "DatabaseSnapshot",
    "EngineKind",
    "SqlDeterminism",
    "SqlEngine",
    "SqlLimits",
    "SqlSession",
    "open_engine",
]  # fmt: skip


def open_engine(
    kind: str, dsn: str | None = None, determinism: SqlDeterminism | None = None
) -> SqlEngine:
    """Open the engine of that name.

    ``dsn`` is the address of a server, for ``mysql`` only: ``mysql://user:password@host:port`` or
    ``mysql://user@/?unix_socket=/path``. Without it, ``mysql`` starts a private server.
    ``determinism`` fixes the time and the random numbers of statements, for ``embedded`` only.

    Raises UnknownNameError for an unknown name, UsageError for a DSN or determinism with another
    engine, and SandboxUnavailableError if this machine lacks what the engine needs.
    """
    if dsn is not None and kind in ENGINES and kind != "mysql":
        raise UsageError(f"the engine {kind!r} uses no server: leave out dsn, or take mysql")
    if determinism is not None and kind in ENGINES and kind != "embedded":
        raise UsageError(
            f"the engine {kind!r} uses the real clock: leave out deterministic, or take the engine "
            "'embedded'"
        )
    arguments = {"embedded": (determinism,), "mysql": (dsn,)}.get(kind, ())
    engine: SqlEngine = ENGINES.load(kind)(*arguments)
    return engine
