"""Engines for tests. A test is skipped, with the reason, if the machine lacks its engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from intercode_sql import SqlEngine, SqlSession, open_engine
from intercode_sql.types import DatabaseSpec
from support import requirements
from support.shop import write_shop

ENGINES = [
    pytest.param("mysql", marks=pytest.mark.mysql),
    "embedded",
]
"""Engines with MySQL's dialect."""


def engine_or_skip(kind: str, dsn: str | None = None) -> SqlEngine:
    """Return the engine of that name."""
    if kind == "mysql" and dsn is None:
        requirements.require("mysql")
    if kind == "duckdb":
        needs_duckdb()
    return open_engine(kind, dsn)


def needs_duckdb() -> None:
    """Skip the running test without the extra of the engine."""
    pytest.importorskip("duckdb", reason="pip install 'intercode-sql[duckdb]'")


def shop_in(folder: Path) -> DatabaseSpec:
    """Write the dump of the shop to a folder; return the database `shop` in it."""
    return DatabaseSpec("mysql-dump", write_shop(folder), "shop")


@contextmanager
def embedded_session(folder: Path, dump: str, name: str) -> Iterator[SqlSession]:
    """Open a session of the embedded engine on database ``name`` of a dump, which is written to a
    file in ``folder``."""
    path = folder / f"{name}.sql"
    path.write_text(dump, "utf-8")
    with (
        closing(open_engine("embedded")) as engine,
        closing(engine.open(DatabaseSpec("mysql-dump", path, name))) as session,
    ):
        yield session


def shown(session: SqlSession, code: str, timeout: float = 60.0) -> str:
    """Return what an agent sees of a statement; ``timeout`` in seconds."""
    return session.run(code, timeout).output
