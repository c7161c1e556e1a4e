"""The engine for plain SQLite files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sql import SqlEngine, SqlLimits, SqlSession, open_engine
from intercode_sql.errors import SessionStateError, SqlDataError, SqlUsageError
from intercode_sql.types import DatabaseSpec
from support.sql_engines import shown


@pytest.fixture
def file(tmp_path: Path) -> DatabaseSpec:
    path = tmp_path / "pets & more.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT)")
        connection.executemany("INSERT INTO pet VALUES (?, ?)", [(1, "Rex"), (2, "Tom")])
    connection.close()
    return DatabaseSpec("sqlite", path, "pets")


@pytest.fixture
def engine() -> SqlEngine:
    return open_engine("sqlite")


@pytest.fixture
def session(engine: SqlEngine, file: DatabaseSpec) -> Iterator[SqlSession]:
    opened = engine.open(file)
    yield opened
    opened.close()


def test_results_and_errors_are_sqlites(session: SqlSession) -> None:
    assert shown(session, "SELECT name || '!' FROM pet") == "[('Rex!',), ('Tom!',)]"
    assert shown(session, "SELECT 'a' = 'A'") == "[(0,)]"
    assert shown(session, "SELECT nope") == "Error executing query: no such column: nope"
    assert shown(session, "SELECT 1; SELECT 2").startswith("Error executing query: ")
    assert "id" in shown(session, "PRAGMA table_info(pet)")


def test_writes_go_to_a_copy(engine: SqlEngine, session: SqlSession, file: DatabaseSpec) -> None:
    assert session.changes() == []
    assert shown(session, "INSERT INTO pet VALUES (3, 'Ada')") == "None"
    assert shown(session, "CREATE TABLE other (a)") == "None"
    assert session.changes() == ["table other: new", "table pet: changed"]
    fresh = engine.open(file)
    assert shown(fresh, "SELECT COUNT(*) FROM pet") == "[(2,)]"
    fresh.close()


def test_snapshots(session: SqlSession) -> None:
    before = session.snapshot()
    shown(session, "DELETE FROM pet WHERE id = 1")
    shown(session, "BEGIN")
    shown(session, "INSERT INTO pet VALUES (9, 'Bo')")
    kept, told = session.snapshot(), session.state_text()
    shown(session, "ROLLBACK")
    first, second, third = kept.open(), kept.open_last(), before.open_last()
    shown(first, "DROP TABLE pet")
    assert shown(second, "SELECT id FROM pet") == "[(2,), (9,)]"
    assert second.state_text() == told
    assert shown(third, "SELECT id FROM pet") == "[(1,), (2,)]"
    assert shown(session, "SELECT id FROM pet") == "[(2,)]"
    for opened in (first, second, third):
        opened.close()


@pytest.mark.parametrize(
    "code",
    [
        "ATTACH DATABASE '/tmp/x' AS x",
        "VACUUM INTO '/tmp/x'",
        "SELECT load_extension('x')",
        "PRAGMA journal_mode = WAL",
        "PRAGMA writable_schema = 1",
        "DETACH main",
        "SELECT readfile('/x')",
        "PRAGMA max_page_count = 1000000000",
        "PRAGMA temp_store_directory = '/tmp'",
    ],
)
def test_other_files_are_denied(session: SqlSession, code: str) -> None:
    assert session.run(code, 60.0).exit_code == 1
    assert shown(session, "SELECT COUNT(*) FROM pet") == "[(2,)]"


def test_size_limits(engine: SqlEngine, file: DatabaseSpec) -> None:
    session = engine.open(file, SqlLimits(rows=3, size=1 << 20, storage=1 << 20))
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT {} FROM r"
    assert session.run(endless.format("n"), 60.0).rows == ((1,), (2,), (3,))
    assert "too big" in session.run("SELECT length(zeroblob(1000000000))", 60.0).output
    fill = endless.format("hex(randomblob(100000))") + " LIMIT 100"
    assert "full" in session.run(f"CREATE TABLE big AS {fill}", 60.0).output
    assert shown(session, "SELECT COUNT(*) FROM pet") == "[(2,)]"
    session.close()
    with pytest.raises(SessionStateError, match="closed"):
        session.run("SELECT 1", 1.0)


def test_open_rejects_bad_databases(engine: SqlEngine, tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("no database, but long enough to be looked at" * 40)
    with pytest.raises(SqlDataError, match="not a database"):
        engine.open(DatabaseSpec("sqlite", path, "x"))
    with pytest.raises(SqlDataError, match="no such database file"):
        engine.open(DatabaseSpec("sqlite", tmp_path / "none", "x"))
    with pytest.raises(SqlUsageError, match="engine=embedded"):
        engine.open(DatabaseSpec("mysql-dump", path, "x"))
