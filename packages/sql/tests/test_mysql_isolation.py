"""Concurrent sessions that write data, tables and settings do not see each other."""

from __future__ import annotations

import threading

import pytest

from intercode_sql import SqlEngine, SqlSession
from intercode_sql.errors import ServerLostError
from intercode_sql.server.connection import ServerConnection
from intercode_sql.server.engine import MysqlEngine
from intercode_sql.types import DatabaseSpec

pytestmark = pytest.mark.mysql
EPISODES = 8


def episode(session: SqlSession, number: int) -> list[str]:
    """The actions of an episode, and the results that it must see."""
    faults: list[str] = []

    def ask(code: str, expected: str) -> None:
        seen = session.run(code, 20.0).output
        if seen != expected:
            faults.append(f"{number}: {code} gives {seen}, not {expected}")

    ask("SELECT COUNT(*) FROM shop.customer", "[(3,)]")
    ask("SELECT @mine, @@group_concat_max_len > 100", "[(None, 1)]")
    ask(f"CREATE TABLE mine (a int DEFAULT {number})", "None")
    ask(f"SET @mine = {number}, group_concat_max_len = {10 + number}", "None")
    ask(f"INSERT INTO mine VALUES ({number})", "None")
    ask(f"UPDATE customer SET name = '{number}' WHERE id = 1", "None")
    ask("ALTER TABLE sale ADD COLUMN more int", "None")
    ask(f"CREATE VIEW seen AS SELECT {number} AS n", "None")
    ask("DROP TABLE shop", "None")
    ask("START TRANSACTION", "None")
    ask("DELETE FROM sale", "None")
    ask("SHOW TABLES", "[('customer',), ('mine',), ('sale',), ('seen',)]")
    ask(
        "SELECT a, @mine, @@group_concat_max_len, n FROM mine, seen",
        f"[({number}, {number}, {10 + number}, {number})]",
    )
    ask("SELECT name FROM customer WHERE id = 1", f"[('{number}',)]")
    ask("SELECT COUNT(*), COUNT(more) FROM sale", "[(0, 0)]")
    ask("ROLLBACK", "None")
    ask("SELECT COUNT(*) FROM sale", "[(3,)]")
    ask("SELECT COUNT(*) FROM information_schema.PROCESSLIST", "[(1,)]")
    return faults


def test_concurrent_sessions_are_isolated(mysql: SqlEngine, shop: DatabaseSpec) -> None:
    faults: list[str] = []

    def work(number: int) -> None:
        for _ in range(3):
            session = mysql.open(shop)
            try:
                faults.extend(episode(session, number))
            finally:
                session.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(EPISODES)]
    watcher = mysql.open(shop)
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):
        assert watcher.run("SELECT COUNT(*) FROM customer, sale", 20.0).output == "[(9,)]"
        assert watcher.run("SHOW TABLES", 20.0).output == "[('customer',), ('sale',), ('shop',)]"
    watcher.close()
    assert faults == []


def test_shared_readers_carry_no_state(mysql: SqlEngine, shop: DatabaseSpec) -> None:
    """Readers share connections, and must not see each other's state."""
    for code in (
        "SELECT SQL_CALC_FOUND_ROWS * FROM customer LIMIT 1",
        "SELECT * FROM nope",
        "SELECT 1/0",
        "SELECT @x := 5",
        "SELECT LAST_INSERT_ID(77)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SET @x = 5",
        "SET NAMES latin1",
        "SET sql_mode = 'ANSI_QUOTES'",
        "USE information_schema",
    ):
        first = mysql.open(shop)
        first.run(code, 60.0)
        first.close()
        second = mysql.open(shop)
        for question, expected in (
            (
                "SELECT @x, @@sql_mode LIKE '%ANSI%', @@character_set_client, DATABASE()",
                "[(None, 0, 'utf8mb4', 'shop')]",
            ),
            ("SELECT LAST_INSERT_ID(), ROW_COUNT() < 1", "[(0, 1)]"),
            ("SHOW WARNINGS", "[]"),
        ):
            assert second.run(question, 60.0).output == expected, (code, question)
        second.close()


def test_an_account_is_used_again_only_after_its_connections_ended(
    mysql: MysqlEngine, shop: DatabaseSpec
) -> None:
    first = mysql.open(shop)
    assert first.run("CREATE TABLE mine (a int)", 20.0).ok
    slot, server = first._private.account, first._server
    # a connection that does not end at once
    late = ServerConnection(server.address, slot.user, slot.password)
    first.close()
    with pytest.raises(ServerLostError):
        late.query("SELECT 1")
    second = mysql.open(shop)
    assert second.run("CREATE TABLE mine (a int)", 20.0).ok
    assert second._private.account == slot
    seen = second.run("SELECT COUNT(*) FROM information_schema.PROCESSLIST", 20.0)
    assert seen.output == "[(1,)]"
    second.close()
