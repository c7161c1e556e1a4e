"""Aborting a session from another thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sql import SqlEngine
from intercode_sql.errors import ServerLostError
from intercode_sql.types import DatabaseSpec
from support.ending import ended
from support.sql_engines import engine_or_skip

SECONDS = 600.0
"""Time limit of a statement, far above the duration of a test."""
_ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r"
_LONG = {
    "sqlite": (_ENDLESS, f"INSERT INTO customer (id) {_ENDLESS}"),
    "embedded": (
        "SELECT SLEEP(600)",
        "UPDATE customer SET id = SLEEP(600)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 900) "
        "SELECT COUNT(*) FROM r a, r b, r c, r d WHERE a.n + b.n + c.n + d.n = 0",
    ),
    "mysql": ("SELECT SLEEP(600)", "UPDATE customer SET id = SLEEP(600)"),
}
CASES = [
    pytest.param(kind, code, marks=[pytest.mark.mysql] if kind == "mysql" else [])
    for kind, codes in _LONG.items()
    for code in codes
]


@pytest.fixture
def file(tmp_path: Path) -> DatabaseSpec:
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customer (id INTEGER)")
        connection.execute("INSERT INTO customer VALUES (1), (2), (3)")
    connection.close()
    return DatabaseSpec("sqlite", path, "shop")


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[SqlEngine]:
    opened = engine_or_skip(request.param)
    yield opened
    opened.close()


@pytest.mark.parametrize(("engine", "code"), CASES, indirect=["engine"])
def test_abort_stops_a_running_statement(
    engine: SqlEngine, code: str, shop: DatabaseSpec, file: DatabaseSpec
) -> None:
    database = file if engine.kind == "sqlite" else shop
    session, other = engine.open(database), engine.open(database)
    assert "aborted" in str(
        ended(lambda: session.run(code, SECONDS), session.abort, ServerLostError)
    )
    with pytest.raises(ServerLostError, match="aborted"):
        session.run("SELECT 1", 60.0)
    session.close()
    session.abort()
    for again in (other, engine.open(database)):
        assert again.run("SELECT COUNT(*) FROM customer", 60.0).rows == ((3,),)
        again.close()


@pytest.mark.parametrize("engine", ["sqlite", "embedded"], indirect=True)
def test_abort_before_the_first_statement(
    engine: SqlEngine, shop: DatabaseSpec, file: DatabaseSpec
) -> None:
    session = engine.open(file if engine.kind == "sqlite" else shop)
    session.abort()
    with pytest.raises(ServerLostError):
        session.run("SELECT 1", 60.0)
    session.close()
