"""Sessions of the embedded engine: results, writes, DDL, transactions, snapshots and limits."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from intercode_sql import SqlEngine, SqlLimits, SqlSession, open_engine
from intercode_sql.embedded import EmbeddedEngine
from intercode_sql.embedded.catalog.catalog import Column
from intercode_sql.embedded.catalog.types import Type
from intercode_sql.embedded.execute import caches, connection
from intercode_sql.errors import SessionStateError, SqlDataError, SqlUsageError
from intercode_sql.types import DatabaseSpec
from support.shop import CUSTOMERS
from support.sql_engines import shown


@pytest.fixture(scope="module")
def engine() -> Iterator[SqlEngine]:
    opened = open_engine("embedded")
    yield opened
    opened.close()


@pytest.fixture
def sql(engine: SqlEngine, shop: DatabaseSpec) -> Iterator[SqlSession]:
    opened = engine.open(shop)
    yield opened
    opened.close()


def test_results_have_the_connectors_types(sql: SqlSession) -> None:
    result = sql.run("SELECT id, price, day FROM sale ORDER BY id", 60.0)
    assert result.rows == (
        (1, Decimal("9.50"), datetime.date(2024, 1, 2)),
        (2, Decimal("20.00"), datetime.date(2024, 2, 3)),
        (3, Decimal("9.50"), None),
    )
    assert result.output == str(list(result.rows))
    assert shown(sql, "SELECT * FROM customer") == CUSTOMERS
    assert shown(sql, "SELECT * FROM sale WHERE 1 = 0") == "[]"


def test_one_statement_at_a_time(sql: SqlSession) -> None:
    assert "error in your SQL syntax" in shown(sql, "SELECT 1; DROP TABLE sale")
    assert shown(sql, "SELECT ';' ;") == "[(';',)]"
    assert shown(sql, " ") == "Error executing query: Query was empty"


def test_writes_are_private(engine: SqlEngine, sql: SqlSession, shop: DatabaseSpec) -> None:
    assert sql.changes() == []
    assert shown(sql, "INSERT INTO customer (name) VALUES ('Cy'), ('Di')") == "None"
    assert shown(sql, "SELECT LAST_INSERT_ID(), ROW_COUNT()") == "[(4, 2)]"
    assert shown(sql, "UPDATE customer SET city = 'Chur' WHERE id = 5") == "None"
    assert shown(sql, "SELECT name, city FROM customer WHERE id > 3") == (
        "[('Cy', None), ('Di', 'Chur')]"
    )
    assert shown(sql, "DELETE FROM customer WHERE id = 4") == "None"
    assert sql.changes() == ["table customer: changed"]
    other = engine.open(shop)
    assert shown(other, "SELECT COUNT(*) FROM customer") == "[(3,)]"
    other.close()


def test_ddl(sql: SqlSession) -> None:
    for code in (
        "CREATE TABLE t (a int PRIMARY KEY AUTO_INCREMENT, b varchar(3) NOT NULL, "
        "c decimal(6,2) DEFAULT 1.5)",
        "INSERT INTO t (b) VALUES ('x'), ('y')",
        "ALTER TABLE t ADD COLUMN d date AFTER a, MODIFY b text, RENAME COLUMN c TO cc",
        "CREATE INDEX i ON t (cc)",
    ):
        assert shown(sql, code) == "None", code
    assert shown(sql, "SELECT * FROM t") == (
        "[(1, None, 'x', Decimal('1.50')), (2, None, 'y', Decimal('1.50'))]"
    )
    assert shown(sql, "DESCRIBE t cc") == "[('cc', 'decimal(6,2)', 'YES', 'MUL', '1.5', '')]"
    assert sql.changes() == ["table t: new"]
    assert (
        shown(sql, "CREATE TABLE u AS SELECT name n, COUNT(*) c FROM customer GROUP BY n") == "None"
    )
    assert shown(sql, "CREATE VIEW v AS SELECT n FROM u WHERE c = 1") == "None"
    assert shown(sql, "SELECT COUNT(*) FROM v") == "[(3,)]"
    assert shown(sql, "DROP TABLE t, u") == "None"
    assert shown(sql, "DROP VIEW v") == "None"
    assert sql.changes() == []


def test_an_enum_is_sorted_by_position(sql: SqlSession) -> None:
    for code in (
        "CREATE TABLE e (a enum('small', 'large') DEFAULT NULL)",
        "INSERT INTO e VALUES ('large'), ('SMALL'), (NULL)",
    ):
        assert shown(sql, code) == "None"
    assert shown(sql, "SELECT a FROM e ORDER BY a") == "[(None,), ('small',), ('large',)]"
    assert "Data truncated" in shown(sql, "INSERT INTO e VALUES ('huge')")


def test_transactions(sql: SqlSession) -> None:
    for code in ("BEGIN", "DELETE FROM sale", "SAVEPOINT s", "INSERT INTO sale (id) VALUES (9)"):
        shown(sql, code)
    assert shown(sql, "SELECT id FROM sale") == "[(9,)]"
    shown(sql, "ROLLBACK TO s")
    assert shown(sql, "SELECT COUNT(*) FROM sale") == "[(0,)]"
    shown(sql, "ROLLBACK")
    assert shown(sql, "SELECT COUNT(*) FROM sale") == "[(3,)]"
    assert sql.changes() == []


def test_a_failed_statement_changes_nothing(sql: SqlSession) -> None:
    assert "Duplicate entry '2' for key 'sale.PRIMARY'" in shown(
        sql, "INSERT INTO sale (id) VALUES (7), (8), (2)"
    )
    assert shown(sql, "SELECT COUNT(*) FROM sale") == "[(3,)]"


def test_snapshots_restore_everything(sql: SqlSession) -> None:
    for code in ("INSERT INTO sale (id) VALUES (7)", "SET @x = 5", "SET sql_mode = ''"):
        shown(sql, code)
    kept, told = sql.snapshot(), sql.state_text()
    shown(sql, "DROP TABLE sale")
    assert sql.state_text() != told
    first, second = kept.open(), kept.open_last()
    shown(first, "DELETE FROM sale")
    assert shown(second, "SELECT COUNT(*), @x, @@sql_mode FROM sale") == "[(4, 5, '')]"
    assert second.state_text() == told
    assert second.changes() == ["setting sql_mode", "table sale: changed"]
    first.close()
    second.close()


def test_cut_results_have_a_note(engine: SqlEngine, shop: DatabaseSpec) -> None:
    session = engine.open(shop, SqlLimits(rows=2, size=40, storage=1 << 20))
    result = session.run("SELECT id FROM sale", 60.0)
    assert (result.output, result.omitted_bytes > 0) == ("[(1,), (2,)]", True)
    assert "2 rows are shown, there are more" in result.note
    assert "characters" in session.run("SELECT REPEAT('x', 100)", 60.0).note
    for code in (
        "CREATE TABLE big (a longtext)",
        "INSERT INTO big VALUES (REPEAT('x', 400000))",
        "INSERT INTO big SELECT a FROM big",
    ):
        assert shown(session, code) == "None"
    assert "is full" in shown(session, "INSERT INTO big SELECT a FROM big")
    assert shown(session, "SELECT COUNT(*) FROM big") == "[(2,)]"
    session.close()


def test_open_rejects_bad_databases(engine: SqlEngine, tmp_path: Path, shop: DatabaseSpec) -> None:
    with pytest.raises(SqlDataError, match="no database 'nope'"):
        engine.open(DatabaseSpec("mysql-dump", shop.path, "nope"))
    with pytest.raises(SqlUsageError, match="engine=sqlite"):
        engine.open(DatabaseSpec("sqlite", shop.path, "shop"))
    with pytest.raises(SqlDataError, match="cannot be read"):
        engine.open(DatabaseSpec("mysql-dump", tmp_path / "none.sql", "shop"))
    session = engine.open(shop)
    session.close()
    session.close()
    with pytest.raises(SessionStateError, match="closed"):
        session.run("SELECT 1", 1.0)


def test_connections_are_pooled(shop: DatabaseSpec) -> None:
    opened = EmbeddedEngine(bounded=False)
    first = opened.open(shop)
    link = first.connection
    first.close()
    second = opened.open(shop)
    assert second.connection is link
    second.run("DELETE FROM sale", 60.0)
    second.close()
    third = opened.open(shop)
    assert third.connection is not link
    assert third.run("SELECT COUNT(*) FROM sale", 60.0).rows == ((3,),)
    third.close()
    opened.close()


def test_the_text_of_a_column_is_part_of_recorded_state_hashes() -> None:
    column = Column("id", Type("int", 10, nullable=False), "int", nullable=False)
    assert repr(column) == (
        "Column(name='id', type=Type(kind='int', precision=10, scale=0, unsigned=False, "
        "collation='uca', plain=0, strong=False, nullable=False, words=()), declared='int', "
        "nullable=False, default=None, computed=False, auto=False, collation=None, "
        "on_update=False, comment='', values=())"
    )


def test_the_cache_of_many_dumps_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task of a family has a dump of its own, and a trainer plays thousands."""
    monkeypatch.setattr(connection, "_MAX_IDLE_IN_ALL", 2)
    monkeypatch.setattr(caches, "MAX_DATABASES", 2)
    engine = EmbeddedEngine(bounded=False)
    for number in (0, 1, 2, 3, 4, 0):
        dump = tmp_path / f"{number}.sql"
        dump.write_text(
            f"CREATE DATABASE d; USE d; CREATE TABLE t (a int);INSERT INTO t VALUES ({number});"
        )
        session = engine.open(DatabaseSpec("mysql-dump", dump, "d"))
        assert session.run("SELECT a FROM t", 60.0).rows == ((number,),)
        session.close()
    assert [len(idle) for idle in engine._pool._idle.values()] == [1, 1]
    assert len(engine._caches._databases) == len(engine._caches._catalogs) == 2
    engine.close()
