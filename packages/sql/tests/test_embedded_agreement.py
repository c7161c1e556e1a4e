"""Faults that public reports and generated statements found, with the answers of a server."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pytest

from hostile.sql.statements_grammar import Statements
from hostile.sql.tables import DUMP
from intercode_sql import SqlSession, open_engine
from intercode_sql.embedded.compile import expressions
from intercode_sql.embedded.engine import EmbeddedEngine
from intercode_sql.types import DatabaseSpec
from support.sql_engines import engine_or_skip

D = Decimal
E = "Error executing query: "
SYNTAX = (
    E + "You have an error in your SQL syntax; check the manual that corresponds to your MySQL "
    "server version for the right syntax to use near '{}' at line {}"
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> DatabaseSpec:
    path: Path = tmp_path_factory.mktemp("d") / "d.sql"
    path.write_text(DUMP, "utf-8")
    return DatabaseSpec("mysql-dump", path, "d")


@pytest.fixture
def session(database: DatabaseSpec) -> Iterator[SqlSession]:
    engine = open_engine("embedded")
    opened = engine.open(database)
    yield opened
    opened.close()
    engine.close()


def answers(session: SqlSession, *statements: str) -> list[str]:
    return [session.run(code, 60.0).output for code in statements]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("e + 0", 1),
        ("e = 1", 1),
        ("e > 1", 0),
        ("IF(e, 'y', 'n')", "y"),
        ("CONCAT(e)", "low"),
        ("MAX(e) OVER ()", "low"),
        ("HOUR('10:11:12')", 10),
        ("SECOND('10:11:12')", 12),
        ("tm + INTERVAL 1 HOUR", datetime.timedelta(seconds=40272)),
        ("HOUR('100:00:00')", 100),
        ("TIMEDIFF('10:00:00', '11:00:00')", datetime.timedelta(hours=-1)),
        ("EXTRACT(DAY_SECOND FROM dt)", 3040506),
        ("CONCAT(dt3)", "2001-02-03 04:05:06.789"),
        ("SEC_TO_TIME(1e300)", datetime.timedelta(hours=838, minutes=59, seconds=59)),
        ("CAST('2020-06-15 junk' AS DATE)", datetime.date(2020, 6, 15)),
        ("CONCAT(bl, 'a')", b"ABa"),
        ("HEX(vbin)", "00FF"),
        ("LENGTH(vbin)", 2),
        ("UPPER(vbin)", b"\x00\xff"),
        ("bl = 'AB'", 1),
        ("bl = 'ab'", 0),
        ("0x41 + 0", 65),
        ("UNHEX('FF')", b"\xff"),
        ("CHAR(255)", b"\xff"),
        ("CAST('a' AS BINARY(3))", b"a\0\0"),
        ("GROUP_CONCAT(x'00FF')", b"\x00\xff"),
        ("i | -1", 18446744073709551615),
        ("~0", 18446744073709551615),
        ("CAST(-1 AS UNSIGNED)", 18446744073709551615),
        ("LENGTH(l)", 3),
        ("LOCATE('B', 'aba')", 2),
        ("LOCATE('B', CAST('aba' AS BINARY))", 0),
        ("LEFT('abc', 1.5)", "ab"),
        ("'2020-01-31' + INTERVAL 1 MONTH", "2020-02-29"),
        ("MAKEDATE(20, 1)", datetime.date(2020, 1, 1)),
    ],
)
def test_values(session: SqlSession, expression: str, value: object) -> None:
    result = session.run(f"SELECT {expression} FROM t WHERE id = 1", 60.0)
    assert result.rows == ((value,),)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("ub - 4", "BIGINT UNSIGNED value is out of range in '(`d`.`t`.`ub` - 4)'"),
        (
            "ub * 9223372036854775807",
            "BIGINT UNSIGNED value is out of range in '(`d`.`t`.`ub` * 9223372036854775807)'",
        ),
        ("POW(10, 400)", "DOUBLE value is out of range in 'pow(10,400)'"),
        ("DATE '2020-02-30'", "Incorrect DATE value: '2020-02-30'"),
        ("PERIOD_ADD(0, 1)", "Incorrect arguments to period_add"),
    ],
)
def test_errors(session: SqlSession, expression: str, message: str) -> None:
    assert answers(session, f"SELECT {expression} FROM t WHERE id = 1") == [E + message]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT e FROM t GROUP BY e HAVING COUNT(*) >= ALL (SELECT COUNT(*) FROM t GROUP BY e)",
            [("low",)],
        ),
        ("SELECT COUNT(*) > ANY (SELECT COUNT(*) FROM s GROUP BY i) FROM t", [(1,)]),
        ("SELECT COUNT(*) = ALL (SELECT 8 UNION SELECT NULL) FROM t", [(None,)]),
        (
            "SELECT e, SUM(SUM(k)) OVER () FROM s GROUP BY e ORDER BY e",
            [("b", D(21)), ("a", D(21)), ("c", D(21))],
        ),
        (
            "SELECT k, RANK() OVER (ORDER BY e) FROM s ORDER BY k",
            [(1, 1), (2, 3), (3, 5), (6, 3), (9, 1)],
        ),
        ("SELECT GROUP_CONCAT(DISTINCT e ORDER BY e) FROM s", [("b,a,c",)]),
        ("SELECT GROUP_CONCAT(k ORDER BY 1 DESC) FROM s", [("9,6,3,2,1",)]),
        ("SELECT k AS a, (SELECT a + 1) FROM s WHERE k = 1", [(1, 2)]),
        ("SELECT k FROM s WHERE e IN (2) ORDER BY k", [(2,), (6,)]),
        ("SELECT l FROM t WHERE id IN (2, 5, 8) ORDER BY l", [("bob",), ("x y",), ("Äpfel",)]),
        ("SELECT id FROM t WHERE dt NOT IN (SELECT v FROM s WHERE k < 3) AND id < 3", [(1,), (2,)]),
    ],
)
def test_rows(session: SqlSession, query: str, rows: list[tuple[object, ...]]) -> None:
    assert list(session.run(query, 60.0).rows or ()) == rows


def test_autocommit_and_read_only_transactions_have_an_effect(session: SqlSession) -> None:
    look = "SELECT COUNT(*) FROM s"
    assert answers(session, "SET autocommit=0", "DELETE FROM s", look, "ROLLBACK", look) == [
        "None",
        "None",
        "[(0,)]",
        "None",
        "[(5,)]",
    ]
    assert answers(session, "DELETE FROM s", "SET autocommit=1", "ROLLBACK", look)[-1] == "[(0,)]"
    refused = E + "Cannot execute statement in a READ ONLY transaction."
    begin = "START TRANSACTION READ ONLY"
    assert answers(session, begin, "INSERT INTO s (k) VALUES (5)", "COMMIT")[1] == refused
    set_mode = "SET SESSION TRANSACTION READ ONLY"
    assert answers(session, set_mode, "DELETE FROM t")[1] == refused


def test_a_rollback_keeps_settings_and_counters(session: SqlSession) -> None:
    answers(session, "BEGIN", "INSERT INTO t (v) VALUES ('x')", "SET @a = 5", "ROLLBACK")
    assert answers(session, "SELECT @a", "INSERT INTO t (v) VALUES ('y')") == ["[(5,)]", "None"]
    assert answers(session, "SELECT MAX(id) FROM t") == ["[(10,)]"]


def test_a_savepoint_without_a_transaction_ends_at_once(session: SqlSession) -> None:
    found = answers(session, "SAVEPOINT a", "DELETE FROM s", "ROLLBACK", "SELECT COUNT(*) FROM s")
    assert found[-1] == "[(0,)]"
    assert answers(session, "ROLLBACK TO a") == [E + "SAVEPOINT a does not exist"]


def test_auto_increment_follows_explicit_values_and_alter_table(session: SqlSession) -> None:
    answers(session, "CREATE TABLE z (id int AUTO_INCREMENT PRIMARY KEY, a int)")
    answers(session, "INSERT INTO z VALUES (7, 1)", "INSERT INTO z (a) VALUES (2)")
    answers(session, "ALTER TABLE z AUTO_INCREMENT = 50", "INSERT INTO z (a) VALUES (3)")
    assert answers(session, "SELECT id FROM z ORDER BY id") == ["[(7,), (8,), (50,)]"]


def test_an_enum_stores_the_word_of_a_number(session: SqlSession) -> None:
    answers(session, "INSERT INTO s (k, e) VALUES (20, 2), (21, '3'), (22, 'A')")
    found = answers(session, "SELECT e FROM s WHERE k >= 20 ORDER BY k")
    assert found == ["[('a',), ('c',), ('a',)]"]


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("SELECT id, FROM t", "FROM t"),
        ("SELECT id FROM t WHERE", ""),
        ("SELECT (id FROM t", "FROM t"),
        ("SELECT id FROM t ORDER id", "id"),
        ("SELECT id FROM t WHERE id IN ()", ")"),
        ("SELECT * v FROM t", "v FROM t"),
        ("SELECT CASE WHEN 1 THEN 2 FROM t", "FROM t"),
        ("SELECT id FROM t JOIN s ON", ""),
        ("SELECT id FROM t WHERE id == 1", "= 1"),
        ("SELECT COUNT() FROM t", ") FROM t"),
        ("SELECT id FROM t OFFSET 5", "5"),
        ("SET x", ""),
        ("SHOW TABLES FOO", "FOO"),
        ("WITH q (SELECT 1) SELECT * FROM q", "SELECT 1) SELECT * FROM q"),
        ("SELECT EXTRACT(FOO FROM da) FROM t", "FOO FROM da) FROM t"),
        ("CREATE TABLE z (a int,)", ")"),
        ("SELECT [id] FROM t", "[id] FROM t"),
        ("SELECT id FROM t FROM ORDER BY id", "FROM ORDER BY id"),
        ("SELECT id FROM t WHERE u SELECT IN (1)", "SELECT IN (1)"),
        ("SELECT id AS BY n FROM t", "BY n FROM t"),
        ("SELECT id AS 1 2 g FROM t", "1 2 g FROM t"),
        ("SELECT CASE WHEN id THEN 1 ELSE 0 , END FROM t", ", END FROM t"),
        ("SELECT id FROM t WHERE v IS NOT , NULL", ", NULL"),
        ("SELECT id FROM t WHERE v NOT BY IN (1)", "BY IN (1)"),
        ("SELECT id FROM t WHERE i BETWEEN 1 AND BY 2", "BY 2"),
        ("SELECT id FROM t ORDER = = BY id", "= = BY id"),
        ("SELECT , id FROM t", ", id FROM t"),
        ("SELECT id FROM t ORDER BY id ORDER DESC", "ORDER DESC"),
        ("SELECT id FROM t LEFT JOIN s SELECT ON t.i = s.i", "SELECT ON t.i = s.i"),
        ("SELECT id FROM (SELECT (1) + FROM t) q", "FROM t) q"),
        ("SELECT MAX(id) OVER (PARTITION id) FROM t", "id) FROM t"),
        ("UPDATE t SET i 1 WHERE id = 1", "1 WHERE id = 1"),
        ("INSERT INTO t (id) VALUES (1,)", ")"),
    ],
)
def test_a_syntax_error_quotes_the_text_at_which_mysql_stops(
    session: SqlSession, code: str, near: str
) -> None:
    assert answers(session, code) == [SYNTAX.format(near, 1)]


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("x"), SystemError("x")])
def test_a_fault_of_the_engine_ends_its_statement(
    database: DatabaseSpec, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(expressions, "compile_cast", fail)
        session = EmbeddedEngine(bounded=False).open(database)
        found = session.run(f"SELECT CAST({id(error)} AS SIGNED)", 60.0)
    assert found.exit_code == 1
    assert "The embedded engine cannot do this: this statement" in found.output
    assert session.run("SELECT 1", 60.0).output == "[(1,)]"
    session.close()


def test_generated_statements_end_in_rows_or_an_error(database: DatabaseSpec) -> None:
    session, grammar = EmbeddedEngine(bounded=False).open(database), Statements(7)
    for _ in range(150):
        for code in grammar.case():
            output = session.run(code, 60.0).output
            assert "this statement (" not in output or "SQLite says" in output, code
    session.close()


def _program(name: str) -> ModuleType:
    path = Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_limits_is_made_from_the_code() -> None:
    program = _program("embedded_limits")
    assert program.PAGE.read_text("utf-8") == program.page(), "run it with --write"


@pytest.mark.mysql
def test_generated_statements_agree_with_a_server() -> None:
    engine_or_skip("mysql").close()
    program = _program("sql_fuzz")
    tally = program.compare(120, Statements(11, enumerated=True))
    assert tally.agreed >= 0.9 * tally.generated, program.report(tally, 20)


def test_a_year_is_compared_with_what_the_column_would_hold(session: SqlSession) -> None:
    code = "SELECT y = '1', y = 1, y <> 'blue', y <=> '', y < 'ann', y < 0x41 FROM t WHERE id = 1"
    assert answers(session, code) == ["[(1, 1, 1, 0, 0, 1)]"]


@pytest.mark.parametrize("literal", ["b'101'", "B'00000101'", "0x05"])
def test_an_error_quotes_bits_in_hexadecimal(session: SqlSession, literal: str) -> None:
    (found,) = answers(session, f"SELECT {literal} * 9223372036854775807 * id FROM t")
    assert "0x05" in found
