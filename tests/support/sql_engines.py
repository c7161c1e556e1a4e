"""Engines for tests. A test is skipped, with the reason, if the machine lacks its engine."""

from __future__ import annotations

import pytest

from intercode.sql import SqlEngine, SqlSession, open_engine
from support import requirements

ENGINES = [
    pytest.param("mysql", marks=pytest.mark.mysql),
    "embedded",
]
"""Engines with MySQL's dialect."""


def engine_or_skip(kind: str, dsn: str | None = None) -> SqlEngine:
    """Return the engine of that name."""
    if kind == "mysql" and dsn is None:
        requirements.require("mysql")
    return open_engine(kind, dsn)


def shown(session: SqlSession, code: str, timeout: float = 10.0) -> str:
    """Return what an agent sees of a statement; ``timeout`` in seconds."""
    return session.run(code, timeout).output
