"""SQL sessions: one statement after another, on an engine that is chosen by name.

``base`` says what an engine and a session are; ``embedded`` answers as MySQL does with nothing
installed, ``mysql`` is a real server, ``sqlite`` plain SQLite with its own dialect.
"""

from __future__ import annotations

from typing import Literal

from intercode.core.errors import UsageError
from intercode.core.registry import Registry
from intercode.sql.base import DatabaseSnapshot, SqlEngine, SqlLimits, SqlSession

EngineKind = Literal["embedded", "mysql", "sqlite"]

ENGINES = Registry(
    "engine",
    {
        "embedded": "intercode.sql.embedded:open_engine",
        "mysql": "intercode.sql.server:open_engine",
        "sqlite": "intercode.sql.sqlite:open_engine",
    },
)
"""Names to functions that open an engine; that of ``mysql`` takes a DSN or None."""

__all__ = [
    "ENGINES",
    "DatabaseSnapshot",
    "EngineKind",
    "SqlEngine",
    "SqlLimits",
    "SqlSession",
    "open_engine",
]  # fmt: skip


def open_engine(kind: str, dsn: str | None = None) -> SqlEngine:
    """The engine of that name. ``dsn``: the server to use, for ``mysql`` alone
    (``mysql://user:password@host:port`` or ``mysql://user@/?unix_socket=/path``); without one it
    starts a server of its own.

    Raises UnknownNameError for another name, UsageError for a DSN where none is used,
    SandboxUnavailableError where this machine lacks what the engine needs.
    """
    if dsn is not None and kind in ENGINES and kind != "mysql":
        raise UsageError(f"the engine {kind!r} uses no server: leave out dsn, or take mysql")
    opener = ENGINES.load(kind)
    engine: SqlEngine = opener(dsn) if kind == "mysql" else opener()
    return engine
