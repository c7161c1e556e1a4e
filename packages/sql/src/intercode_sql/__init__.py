"""SQL sessions on a choice of engines.

``base`` defines engines, sessions and snapshots. ``embedded`` behaves as MySQL 8 and needs no
server, ``server`` uses a MySQL or MariaDB server, ``sqlite`` is SQLite with its own dialect.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Literal

from intercode_sql.base import DatabaseSnapshot, SqlDeterminism, SqlEngine, SqlLimits, SqlSession
from intercode_sql.errors import SqlUsageError, UnknownEngineError

EngineKind = Literal["embedded", "mysql", "sqlite"]
"""The name of an engine."""

ENGINES = {
    "embedded": "intercode_sql.embedded",
    "mysql": "intercode_sql.server",
    "sqlite": "intercode_sql.sqlite",
}
"""The module of each engine, which has ``open_engine``. ``mysql`` takes a DSN or None."""

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

    Raises UnknownEngineError for an unknown name, SqlUsageError for a DSN or determinism with
    another engine, and EngineUnavailableError if this machine lacks what the engine needs.
    """
    if kind not in ENGINES:
        similar = difflib.get_close_matches(kind, ENGINES, n=1, cutoff=0.5)
        hint = f"did you mean {similar[0]!r}? " if similar else ""
        raise UnknownEngineError(f"unknown engine {kind!r}; {hint}known: {', '.join(ENGINES)}")
    if dsn is not None and kind != "mysql":
        raise SqlUsageError(f"the engine {kind!r} uses no server: leave out dsn, or take mysql")
    if determinism is not None and kind != "embedded":
        raise SqlUsageError(
            f"the engine {kind!r} uses the real clock: leave out deterministic, or take the engine "
            "'embedded'"
        )
    arguments = {"embedded": (determinism,), "mysql": (dsn,)}.get(kind, ())
    engine: SqlEngine = importlib.import_module(ENGINES[kind]).open_engine(*arguments)
    return engine
