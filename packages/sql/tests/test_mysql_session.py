"""Sessions on a server: results, errors, the private copy and limits."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from intercode_sql import SqlEngine, SqlLimits, SqlSession, open_engine
from intercode_sql.errors import SqlDataError, SqlUsageError, UnknownEngineError
from intercode_sql.server.connection import ServerConnection
from intercode_sql.types import DatabaseSpec
from support.sandboxes import eventually
from support.shop import CUSTOMERS, SECRET
from support.sql_engines import shown

pytestmark = pytest.mark.mysql


def test_results_have_the_connectors_types(session: SqlSession) -> None:
    result = session.run("SELECT id, price, day FROM sale ORDER BY id", 60.0)
    assert result.rows == (
        (1, Decimal("9.50"), datetime.date(2024, 1, 2)),
        (2, Decimal("20.00"), datetime.date(2024, 2, 3)),
        (3, Decimal("9.50"), None),
    )
    assert result.output == str(list(result.rows))
    assert shown(session, "SELECT * FROM customer") == CUSTOMERS
    assert shown(session, "SELECT * FROM sale WHERE 1 = 0") == "[]"
    assert shown(session, "SELECT COUNT (*) FROM sale") == "[(3,)]"


def test_errors_have_the_servers_messages(session: SqlSession) -> None:
    result = session.run("SELECT * FROM nope", 60.0)
    assert result.output == "Error executing query: Table 'shop.nope' doesn't exist"
    assert (result.exit_code, result.rows) == (1, None)
    assert "error in your SQL syntax" in shown(session, "Which tables are there?")
    assert shown(session, " ") == "Error executing query: Query was empty"
    assert "error in your SQL syntax" in shown(session, "SELECT 1; DROP TABLE sale")


def test_the_first_write_makes_a_copy_under_the_same_names(session: SqlSession) -> None:
    assert session.changes() == []
    assert shown(session, "INSERT INTO customer (name) VALUES ('Cy')") == "None"
    assert shown(session, "SELECT id FROM shop.customer WHERE customer.name = 'Cy'") == "[(4,)]"
    assert shown(session, "SELECT DATABASE(), USER()") == "[('shop', 'agent@localhost')]"
    assert shown(session, "SELECT * FROM nope").endswith("Table 'shop.nope' doesn't exist")
    assert "('shop',)" in shown(session, "SHOW DATABASES")
    assert shown(session, "SHOW TABLES FROM shop") == "[('customer',), ('sale',), ('shop',)]"
    query = "SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop'"
    assert shown(session, query) == str([("shop",)] * 3)
    assert "REFERENCES `customer`" in shown(session, "SHOW CREATE TABLE sale")
    assert "foreign key constraint fails (`shop`.`sale`" in shown(
        session, "INSERT INTO sale (id, customer_id) VALUES (9, 99)"
    )
    assert session.changes() == ["table customer: changed"]


@pytest.mark.parametrize("before", ["SELECT 1", "BEGIN"], ids=["shared", "private"])
def test_a_syntax_error_quotes_the_statement_as_it_was_written(
    session: SqlSession, before: str
) -> None:
    shown(session, before)
    code = "SELECT 1 FROM (SELECT COUNT(*) FROM 1 2 sale GROUP BY id) q"
    assert "near '1 2 sale GROUP BY id) q' at line 1" in shown(session, code)


def test_changes_by_kind(session: SqlSession) -> None:
    session.run("CREATE TABLE fresh (a int)", 60.0)
    session.run("DROP TABLE sale", 60.0)
    session.run("CREATE VIEW bern AS SELECT * FROM customer WHERE city = 'Bern'", 60.0)
    session.run("SET sql_mode = 'ANSI_QUOTES'", 60.0)
    assert session.changes() == [
        "setting sql_mode",
        "table fresh: new",
        "table sale: gone",
        "view bern: new",
    ]


def test_changes_by_routines_and_blocks(session: SqlSession) -> None:
    def after(code: str) -> list[str]:
        assert session.run(code, 60.0).exit_code == 0, code
        return session.changes()

    made = "CREATE FUNCTION f() RETURNS int BEGIN INSERT INTO shop VALUES (7, 'x'); RETURN 1; END"
    assert after(made) == ["function f: new"]
    assert after("SELECT f()") == ["function f: new", "table shop: changed"]
    assert after("DELETE FROM shop WHERE id = 7") == ["function f: new"]
    assert after("DROP FUNCTION f") == []
    assert after("BEGIN NOT ATOMIC CREATE TABLE t (a int); END") == ["table t: new"]
    assert after("DROP TABLE t") == []
    trigger = "CREATE TRIGGER g AFTER DELETE ON sale FOR EACH ROW DELETE FROM shop"
    assert after(trigger) == ["trigger g: new"]
    assert after("DELETE FROM sale WHERE id = 1") == [
        "table sale: changed",
        "table shop: changed",
        "trigger g: new",
    ]
    assert after("SET @x = 1")[0] == "setting @x"
    assert after("SELECT @x")[0] == "setting @x"


def test_undone_changes_restore_the_state(
    mysql: SqlEngine, shop: DatabaseSpec, session: SqlSession
) -> None:
    other = mysql.open(shop)
    session.run("INSERT INTO shop VALUES (2, 'x')", 60.0)
    assert session.state_text() != other.state_text()
    session.run("DELETE FROM shop WHERE id = 2", 60.0)
    assert session.state_text() == other.state_text()
    other.close()


def test_other_databases_do_not_exist(session: SqlSession) -> None:
    unknown = "Error executing query: Unknown database 'vault'"
    for _ in "as reader, as writer":
        assert shown(session, "USE vault") == unknown
        assert shown(session, "SELECT * FROM vault.secrets") == unknown
        assert "vault" not in shown(session, "SHOW DATABASES")
        query = "SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'vault'"
        assert shown(session, query) == "[]"
        shown(session, "CREATE TABLE mine (a int)")
    assert SECRET not in shown(session, "CREATE VIEW v AS SELECT * FROM vault.secrets")
    assert session.run("CREATE DATABASE another", 60.0).exit_code == 1


def test_use(session: SqlSession) -> None:
    assert shown(session, "USE Shop") == "None"
    assert shown(session, "USE information_schema") == "None"
    assert session.database == "information_schema"
    assert shown(session, "SELECT COUNT(*) FROM shop.sale") == "[(3,)]"
    assert shown(session, "USE shop;") == "None"
    assert (session.database, shown(session, "SELECT COUNT(*) FROM sale")) == ("shop", "[(3,)]")


def test_variables_and_settings_persist_in_a_session(session: SqlSession) -> None:
    assert shown(session, "SELECT @x") == "[(None,)]"
    shown(session, "SET @x = 5, SESSION group_concat_max_len = 7")
    assert shown(session, "SELECT @x, @@group_concat_max_len") == "[(5, 7)]"
    shown(session, "SELECT SQL_CALC_FOUND_ROWS * FROM customer LIMIT 1")
    assert shown(session, "SELECT FOUND_ROWS()") == "[(3,)]"


def test_found_rows_after_the_first_write(session: SqlSession) -> None:
    shown(session, "SELECT SQL_CALC_FOUND_ROWS * FROM customer LIMIT 1")
    assert shown(session, "SELECT FOUND_ROWS()") == "[(3,)]"


@pytest.mark.parametrize(
    "code",
    [
        "SELECT SLEEP(1000000)",
        "SELECT BENCHMARK(1000000000, MD5('a'))",
        "SELECT COUNT(*) FROM information_schema.COLUMNS a, information_schema.COLUMNS b, "
        "information_schema.COLUMNS c",
        "DO SLEEP(1000000)",
        "UPDATE customer SET id = SLEEP(1000000)",
    ],
)
def test_the_time_limit_stops_a_statement(session: SqlSession, code: str) -> None:
    shown(session, "SET @x = 5")
    result = session.run(code, 0.5)
    assert (result.timed_out, result.exit_code) == (True, None)
    assert "maximum statement execution time exceeded" in result.output
    assert shown(session, "SELECT @x") == "[(5,)]"


def test_the_watchdog_kills_what_the_server_does_not_stop(
    session: SqlSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without a time limit of its own."""
    from intercode_sql.server.connection import ServerConnection

    monkeypatch.setattr(
        ServerConnection, "_limit_statement", lambda self, seconds: "SET @unlimited = 1"
    )
    shown(session, "CREATE TABLE mine (a int)")
    result = session.run("SELECT SLEEP(1000000)", 0.5)
    assert result.timed_out
    assert shown(session, "SELECT COUNT(*) FROM mine") == "[(0,)]"


def test_an_aborted_recursion_is_an_error(session: SqlSession) -> None:
    code = "WITH RECURSIVE a AS (SELECT 1 x UNION ALL SELECT x + 1 FROM a) SELECT * FROM a"
    assert "Recursive query aborted" in shown(session, code)
    assert shown(session, code.replace("FROM a)", "FROM a WHERE x < 3)")) == "[(1,), (2,), (3,)]"


def test_large_results_are_cut_with_a_note(mysql: SqlEngine, shop: DatabaseSpec) -> None:
    session = mysql.open(shop, SqlLimits(rows=4, size=1000))
    many = "SELECT a.id FROM sale a, sale b, sale c, sale d, sale e, sale f, sale g, sale h"
    result = session.run(many, 60.0)
    assert result.rows is not None
    assert len(result.rows) == 4
    assert "4 rows are shown" in result.note
    result = session.run("SELECT REPEAT('x', 5000)", 60.0)
    assert (len(result.output), result.omitted_bytes) == (1000, 4007)
    assert shown(session, "SELECT 1") == "[(1,)]"
    session.close()


@pytest.mark.parametrize("kind", ["InnoDB", "MyISAM"])
def test_storage_is_limited(mysql: SqlEngine, shop: DatabaseSpec, kind: str) -> None:
    session = mysql.open(shop, SqlLimits(storage=4 << 20))
    shown(session, f"CREATE TABLE big (a longtext) ENGINE={kind}")
    shown(session, "INSERT INTO big VALUES (REPEAT('x', 1000000))")
    seen = [shown(session, "INSERT INTO big SELECT a FROM big") for _ in range(5)]
    assert seen[0] == "None"
    assert "larger than 4194304 bytes: delete or drop something" in seen[-1]
    assert shown(session, "SELECT COUNT(*) > 1 FROM big") == "[(1,)]"
    assert shown(session, "DROP TABLE big") == "None"
    assert shown(session, "CREATE TABLE big (a int)") == "None"
    session.close()


@pytest.mark.parametrize(
    "code",
    [
        "INSERT INTO big SELECT REPEAT('x', 60000) FROM {}",
        "CREATE TABLE more ENGINE=Aria AS SELECT REPEAT('x', 60000) a FROM {}",
        "CREATE TEMPORARY TABLE more ENGINE=Aria AS SELECT REPEAT('x', 60000) a FROM {}",
        "SET STATEMENT max_join_size=1000 FOR INSERT INTO big SELECT REPEAT('x', 60000) FROM {}",
    ],
)
def test_a_statement_that_makes_too_much_is_stopped_while_it_runs(
    mysql: SqlEngine, shop: DatabaseSpec, code: str
) -> None:
    session = mysql.open(shop, SqlLimits(storage=4 << 20))
    shown(session, "CREATE TABLE big (a longtext)")
    shown(session, "SET SESSION max_join_size = DEFAULT")
    many = "information_schema.COLUMNS a, information_schema.COLUMNS b"
    printed = session.run(code.format(many), 600.0).output
    assert re.search("(larger|grow by more) than 4194304 bytes", printed), printed
    assert shown(session, "DROP TABLE IF EXISTS big, more") == "None"
    assert shown(session, "CREATE TABLE big (a int)") == "None"
    session.close()


@pytest.mark.parametrize(
    "code",
    [
        "SELECT COUNT(*) FROM (SELECT DISTINCT CONCAT(REPEAT('x', 60000), a.ORDINAL_POSITION, "
        "RAND()) q FROM {0} a, {0} b) t",
        "SELECT LENGTH(MAX(q)) FROM (SELECT CONCAT(REPEAT(RAND(), 3000), RAND()) q "
        "FROM {0} a, {0} b ORDER BY q LIMIT 18446744073709551615) t",
        "CREATE TEMPORARY TABLE t ENGINE=InnoDB AS SELECT REPEAT('x', 60000) q FROM {0} a, {0} b",
    ],
    ids=["distinct", "sort", "temporary table"],
)
@pytest.mark.slow
def test_temporary_files_of_a_statement_are_bounded(session: SqlSession, code: str) -> None:
    printed = session.run(code.format("information_schema.COLUMNS"), 600.0).output
    assert re.search("is full|Error writing file|files grow by more than", printed), printed


def test_the_bound_of_temporary_tables_cannot_be_raised(session: SqlSession) -> None:
    bound = "SELECT @@tmp_disk_table_size <= 256 << 20"
    assert shown(session, bound) == "[(1,)]"
    shown(session, "SET SESSION tmp_disk_table_size = 1 << 40")
    assert shown(session, bound) == "[(1,)]"


def test_a_statement_after_its_settings_is_seen(session: SqlSession) -> None:
    """SET STATEMENT … FOR changes what its statement changes, and hides none."""
    prefix = "SET STATEMENT max_join_size = 1000000 FOR "
    assert shown(session, f"{prefix}CREATE TABLE mine (a int)") == "None"
    assert session.changes() == ["table mine: new"]
    assert shown(session, f"{prefix}DROP TABLE mine") == "None"
    assert session.changes() == []
    assert shown(session, f"{prefix}SELECT COUNT(*) FROM customer") == "[(3,)]"
    for code in ("KILL 5", "SET PASSWORD = ''", "XA START 'a'", "USE information_schema"):
        assert "is not allowed here" in shown(session, prefix + code)
    assert shown(session, "SELECT DATABASE()") == "[('shop',)]"


REFUSED_BY_THE_SERVER = [
    "GRANT ALL ON *.* TO me",
    "GRANT SELECT ON shop.* TO me",
    "SHUTDOWN",
    "SET GLOBAL max_connections = 1",
    "SET @@global.max_connections = 1",
    "SET sql_mode = '', GLOBAL max_connections = 1",
    "SET sql_log_bin = 0",
    "SELECT 1 INTO OUTFILE '/tmp/x'",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE customer",
    "DROP ROLE r",
    "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM sale",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')",
    "INSTALL SONAME 'x'",
    "FLUSH TABLES WITH READ LOCK",
    "FLUSH PRIVILEGES",
    "RESET MASTER",
    "START SLAVE",
    "CHANGE MASTER TO MASTER_HOST = 'h'",
    "PURGE BINARY LOGS TO 'x'",
    "CREATE DATABASE other",
    "CREATE FUNCTION u RETURNS INTEGER SONAME 'x.so'",
    "BEGIN NOT ATOMIC SET GLOBAL max_connections = 1; END",
    "SET STATEMENT max_join_size = 1000000 FOR FLUSH TABLES",
]


@pytest.mark.parametrize("code", REFUSED_BY_THE_SERVER)
def test_the_server_refuses_what_harms_others(session: SqlSession, code: str) -> None:
    for _ in range(2):
        result = session.run(code, 60.0)
        assert result.info.error in (1044, 1045, 1049, 1142, 1227, 1577), result.output
        assert "agent" in result.output or "@" not in result.output
        session.run("INSERT INTO customer (name) VALUES ('Cy')", 60.0)


def test_the_rights_of_a_session_are_none_that_reach_others(session: SqlSession) -> None:
    rights = shown(session, "SHOW GRANTS")
    assert "GRANT USAGE ON *.*" in rights and "EXECUTE" in rights
    assert not any(word in rights for word in ("EVENT", "LOCK TABLES", "ALL PRIVILEGES"))


def test_files_of_the_server_are_not_read(session: SqlSession) -> None:
    assert shown(session, "SELECT LOAD_FILE('/etc/passwd')") == "[(None,)]"


@pytest.mark.parametrize("security", ["", "DEFINER", "INVOKER"])
def test_what_writes_when_it_is_read_runs_on_a_copy(
    mysql: SqlEngine, tmp_path: Path, security: str
) -> None:
    """A function of a dump, and with ``security`` a view that calls it."""
    view = f"CREATE SQL SECURITY {security} VIEW latest AS SELECT counted() AS n;\n"
    dump = tmp_path / "counted.sql"
    dump.write_text(
        "CREATE DATABASE counted; USE counted; CREATE TABLE calls (n int);\n"
        "DELIMITER //\n"
        "CREATE FUNCTION counted() RETURNS int DETERMINISTIC\n"
        "BEGIN INSERT INTO calls VALUES (1); RETURN (SELECT COUNT(*) FROM calls); END//\n"
        "DELIMITER ;\n" + (view if security else "")
    )
    database = DatabaseSpec("mysql-dump", dump, "counted")
    for _ in range(2):
        one = mysql.open(database)
        assert shown(one, "SELECT COUNT(*) FROM calls") == "[(0,)]"
        read = "SELECT n FROM latest" if security else "SELECT counted()"
        assert shown(one, read) == "[(1,)]"
        assert one.changes() == ["table calls: changed"]
        one.close()


def test_values_equal_those_of_the_client(session: SqlSession) -> None:
    """We convert rows by column, the client value by value. A SET is the text that the server
    sends: the client's set shows its words in an order that changes with each process."""
    code = (
        "SELECT 1, -2, 1.50, 1e300, 0.1 + 0.2, CAST(0.1 AS FLOAT), NULL, 'ä', '', b'101', x'00ff', "
        "BINARY 'a', DATE '2024-02-29', TIME '-25:00:01.5', TIMESTAMP '2024-01-02 03:04:05.000006',"
        " YEAR('2024-01-01'), JSON_OBJECT('a', 1), CAST('a,b' AS CHAR), a.* FROM odd a"
    )
    made = (
        "CREATE TABLE odd (t tinyint, u bigint unsigned, s set('x','y'), e enum('p','q'), i bit(9),"
        " m mediumblob, l longtext, d datetime(3), f float, n decimal(20,10), y year, c char(3),"
        " v varbinary(4), z date, g tinyint(1))"
    )
    rows = (
        "INSERT INTO odd VALUES (-128, 18446744073709551615, 'x,y', 'q', b'100000001', x'fe00', "
        "'long', '2024-01-01', 1.1, 3.14, 1999, 'c  ', x'00', '2024-12-31', 1), (NULL, NULL, NULL, "
        "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (0, 0, '', 'p', "
        "0, '', '', '0001-01-01', -0.0, 0, 1901, '', '', '1000-01-01', 0)"
    )
    assert [shown(session, made), shown(session, rows)] == ["None", "None"]
    link: Any = session._private.connection  # type: ignore[attr-defined]
    cursor = link._connection.cursor()
    cursor.execute(code)
    expected = [
        tuple(",".join(sorted(v)) if isinstance(v, set) else v for v in row)
        for row in cursor.fetchall()
    ]
    cursor.close()
    ours = session.run(code, 60.0).rows
    assert ours is not None
    assert repr(list(ours)) == repr(expected)


def test_a_lost_connection_is_a_result(mysql: SqlEngine, shop: DatabaseSpec) -> None:
    session = mysql.open(shop)
    shown(session, "SET @x = 1")
    number = session.run("SELECT CONNECTION_ID()", 60.0).rows
    assert number is not None
    session._server.kill(number[0][0])  # type: ignore[attr-defined]
    lost = session.run("SELECT 1 FROM sale FOR UPDATE", 60.0)
    assert lost.exit_code == 1 and "Lost connection" in lost.output and "settings" in lost.note
    assert shown(session, "SELECT @x, COUNT(*) FROM sale") == "[(None, 3)]"
    session.close()


ENDS_ITS_CONNECTION = {
    "time-out": ["CREATE TABLE mine (a int)", "SET SESSION wait_timeout=1", None, "SELECT 1"],
    "transaction": [
        "CREATE TABLE mine (a int)",
        "SET SESSION idle_transaction_timeout=1",
        "START TRANSACTION",
        None,
        "SELECT 1",
    ],
    "utf32": ["CREATE TABLE mine (a int)", "SET character_set_results=utf32", "SELECT 'é'"],
    "packet": ["SELECT '" + "x" * 20_000_000 + "'"],
    "surrogate": ["SELECT '\ud800'"],
}
"""Statements after which no connection can go on. None waits until the server has ended it."""


@pytest.mark.parametrize("name", ENDS_ITS_CONNECTION)
def test_a_session_stays_usable_after_statements_that_end_its_connection(
    mysql: SqlEngine, shop: DatabaseSpec, name: str
) -> None:
    session: Any = mysql.open(shop)
    for code in ENDS_ITS_CONNECTION[name]:
        if code is None:
            account = session._private.account.user
            query = f"SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{account}'"
            with session._server.admin() as admin:
                eventually(lambda: not admin.query(query)[0], "the server ends it")  # noqa: B023
        else:
            result = session.run(code, 60.0)
    assert result.exit_code == 1 and result.output.startswith("Error executing query: ")
    assert shown(session, "SELECT COUNT(*) FROM sale") == "[(3,)]"
    session.close()


def test_open_rejects_bad_databases(mysql: SqlEngine, shop: DatabaseSpec, tmp_path: object) -> None:
    with pytest.raises(SqlDataError, match="has no database 'nope'; it has shop, vault"):
        mysql.open(DatabaseSpec("mysql-dump", shop.path, "nope"))
    with pytest.raises(SqlUsageError, match="sqlite"):
        mysql.open(DatabaseSpec("sqlite", shop.path, "shop"))
    broken = shop.path.with_name("broken.sql")
    broken.write_text("CREATE DATABASE a; USE a; CREATE TABLE t (a nonsense);", "utf-8")
    with pytest.raises(SqlDataError, match="CREATE TABLE t"):
        mysql.open(DatabaseSpec("mysql-dump", broken, "a"))
    with pytest.raises(SqlUsageError, match="mysql://"):
        open_engine("mysql", "localhost:3306")
    with pytest.raises(UnknownEngineError, match="did you mean 'mysql'"):
        open_engine("mysq1")
    with pytest.raises(SqlUsageError, match="leave out dsn"):
        open_engine("sqlite", "mysql://localhost")


def test_a_transaction_that_has_not_ended_does_not_hold_the_database(
    mysql: SqlEngine, shop: DatabaseSpec
) -> None:
    session: Any = mysql.open(shop)
    assert session.run("INSERT INTO customer (name) VALUES ('Cy')", 60.0).ok
    server, account = session._server, session._private.account
    other = ServerConnection(server.address, account.user, account.password, account.name)
    other.query("BEGIN")
    other.query("SELECT * FROM customer")
    session.close()
    with server.admin() as admin:
        names, _ = admin.query("SHOW DATABASES")
    assert (account.name,) not in (names or [])
    other.close()
