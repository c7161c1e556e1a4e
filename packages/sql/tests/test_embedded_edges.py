"""Edges of types and functions at which generated statements found other answers than a server's,
with the answers of the server."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from hostile.sql.tables import DUMP
from intercode_sql import SqlSession, open_engine
from intercode_sql.embedded.catalog.moments import read_time
from intercode_sql.embedded.compile.expressions import join_in_order
from intercode_sql.embedded.functions.strings import trim
from intercode_sql.types import DatabaseSpec

D = Decimal
REFUSED = "Error executing query: The embedded engine cannot do this: "


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SqlSession]:
    path = tmp_path / "d.sql"
    path.write_text(DUMP, "utf-8")
    engine = open_engine("embedded")
    opened = engine.open(DatabaseSpec("mysql-dump", path, "d"))
    yield opened
    opened.close()
    engine.close()


VALUES: dict[str, list[tuple[str, object]]] = {
    "numbers of few digits and of many": [
        ("d * u", D("4.500")),
        ("dt / b'1000001'", D("307849277546.2462")),
        ("20380119031407 / 65", D("313540292790.8769")),
        ("d % d", D("0.000")),
        ("-2.25 % 2.25", D("-0.00")),
        ("-2 % d0", D("0")),
        ("-2 % 2.0", D("-0.0")),
        ("CONCAT(-1 % 0.5)", "-0.0"),
        ("-(0.0)", D("0.0")),
        ("ROUND(-0.001, 2)", D("0.00")),
        ("(-1 % 0.5) + 0", D("0.0")),
        ("FORMAT(12.5e0, 0)", "12"),
        ("FORMAT(12.5, 0)", "13"),
        ("PERIOD_ADD(200001, -30000)", 35791344105),
        ("0 AND bi * ub * ub", 0),
        ("1 OR bi * ub * ub", 1),
        ("TRUNCATE(-1e20, 3)", -9.999999999999998e19),
        ("TRUNCATE(-0.5e0, 0)", 0.0),
        ("TRUNCATE(2.3e0, 1)", 2.3),
        ("TRUNCATE(x * 0 + 1.7e100, 3)", 1.7e100),
        ("u % 2 + 5", 6),
        ("CAST(u % 2 AS SIGNED) - 5", -4),
    ],
    "bytes": [
        ("i + CAST(0x3141 AS BINARY)", 6.0),
        ("i & CAST(0x3141 AS BINARY)", 1),
        ("COALESCE(l, 0xFF)", "Ann"),
        ("COALESCE(NULLIF(l, l), 0xFF, l)", b"\xff"),
        ("CASE WHEN 1 THEN 0xC3A4 ELSE l END", "ä"),
        ("IF(0, l, 0xFF)", "ÿ"),
        ("CAST(v AS CHAR) = 0x416E6E", 1),
        ("CONCAT(CAST(v AS CHAR), 0x41)", "AnnA"),
    ],
    "documents are compared byte by byte": [
        ("CONCAT(js, 'A') = CONCAT(js, 'a')", 0),
        ("js LIKE '%A%'", 0),
        ("LEAST(js, 'abc')", "abc"),
        ("STRCMP(js, 'ann')", 1),
        ("'{}' IN (js, 'NULL')", 0),
    ],
    "dates and times": [
        ("CONCAT(CAST(-0.005 AS TIME))", "00:00:00"),
        ("CAST('1e1' AS TIME)", None),
        ("CAST('12e' AS TIME)", datetime.timedelta(seconds=12)),
        ("TIMESTAMP(dt, '2023-02-30')", None),
        ("ADDTIME(dt, '2023-02-03')", None),
        ("TIMESTAMPADD(YEAR, 4294967295, '2020-06-15')", "2019-06-15"),
        ("TIMESTAMPADD(YEAR, 9223372036854775807, '2020-06-15')", "2019-06-15"),
        ("MINUTE('2024-02-29' + INTERVAL 1 MONTH)", 0),
        ("HOUR('2024-02-29' + INTERVAL 1 HOUR)", 1),
        ("DATE(ts) >= ('2001-02-03' + INTERVAL 1 HOUR)", 0),
        ("1 && CONVERT(0.1, DATETIME(3))", 1),
        ("TIME(d / 7)", datetime.timedelta(microseconds=214286)),
        ("1 = ANY (SELECT y FROM t)", 1),
        ("'70' IN (SELECT y FROM t)", 1),
        ("1 <> ALL (SELECT y FROM t WHERE y)", 0),
        ("1 IN (SELECT YEAR(da) FROM s WHERE da)", 0),
        ("y IN (1e0, TRUE)", 0),
        ("y IN (1e0, 99e0)", 1),
        ("y IN (1.0, '1')", 1),
        ("y IN (1, u)", 0),
        ("y IN (1, NULL)", 1),
        ("y NOT IN (1e0, TRUE)", 1),
        ("da + INTERVAL 0x31 SECOND", datetime.datetime(2001, 2, 3, 0, 0, 49)),
        ("da + INTERVAL b'1' DAY", datetime.date(2001, 2, 4)),
        ("tm + INTERVAL 0x31 SECOND", datetime.timedelta(seconds=36721)),
        ("tm + INTERVAL CAST('1.5' AS BINARY) SECOND", datetime.timedelta(seconds=36673.5)),
        ("tm - INTERVAL vbin HOUR", datetime.timedelta(seconds=36672)),
    ],
    "bytes with an introducer": [
        ("_utf8mb4 x'5c27'", "\\'"),
        ("_utf8mb4 0x4142", "AB"),
        ("_latin1 0xe9", "é"),
        ("_utf8mb4 b'1000001'", "A"),
        ("HEX(_latin1 x'e9')", "E9"),
        ("_utf8mb4 0x6142 = 'AB'", 1),
        ("_utf8mb4 0x31 + 1", 2.0),
        ("_binary 0x41 + 1", 1.0),
        ("_binary 'a' = 'A'", 0),
        ("_binary 'ab'", b"ab"),
        ("CONCAT(_binary 'A', 'é')", b"A\xc3\xa9"),
        ("_latin1 'a'", "a"),
    ],
    "spaces at the end in a binary collation": [
        ("STRCMP(vb, CONCAT(vb, ' '))", 0),
        ("STRCMP(CONCAT(vb, CHAR(9)), vb)", -1),
        ("STRCMP(x'41', x'4120')", -1),
        ("FIELD(CONCAT(vb, ' '), 'Ann')", 1),
        ("FIND_IN_SET(CONCAT(vb, ' '), 'Ann')", 0),
        ("FIND_IN_SET(CONCAT(v, ' '), 'ann,b')", 0),
        ("FIND_IN_SET(v, 'b,ann')", 2),
        ("REGEXP_LIKE(x'41', 'a')", 0),
    ],
    "a bit beside a text": [
        ("CASE id WHEN 2 THEN IF(id, b1, 'x') ELSE l END", b"Ann"),
        ("IFNULL(b1, v)", b"\x01"),
    ],
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_that_of_a_server(session: SqlSession, kind: str) -> None:
    for expression, value in VALUES[kind]:
        result = session.run(f"SELECT {expression} FROM t WHERE id = 1", 60.0)
        assert repr(result.rows) == repr(((value,),)), (expression, result.output)


def test_a_moving_sum_is_no_minus_zero(session: SqlSession) -> None:
    frame = "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"
    code = f"SELECT SUM(d) OVER (ORDER BY tx DESC, id {frame}) FROM t ORDER BY id"
    assert repr((session.run(code, 60.0).rows or ())[3]) == "(Decimal('0.000'),)"


ERRORS = {
    "SELECT (u % 2) - 5 FROM t": 1690,
    "SELECT (ub MOD '9') DIV -0.5e0 FROM t": 1690,
    "SELECT MOD(u, 2) * -1 FROM t WHERE id = 1": 1690,
    "SELECT 1 FROM (SELECT 1), q": 1248,
    "SELECT nocol FROM (SELECT 1)": 1248,
    "SELECT * FROM nosuch JOIN (SELECT 1 UNION SELECT 2)": 1248,
    "SELECT 1 WHERE EXISTS (SELECT * FROM ((SELECT 1)))": 1248,
    "SELECT 1 FROM (SELECT 1) AS a, q": 1146,
    "SELECT _utf8mb4 x'ff'": 1300,
    "SELECT _ucs2 x'0041'": 0,
    "SELECT _utf8mb4 x 'ff'": 1064,
    **dict.fromkeys(
        (
            "SELECT * FROM t PARTITION (p0)",
            "SELECT 1 FROM s JOIN t PARTITION (p0, p1) ON 1",
            "INSERT INTO s PARTITION (p0) VALUES (9)",
            "UPDATE t PARTITION (p0) SET i = 1",
            "DELETE FROM t PARTITION (p0)",
            "UPDATE s, t PARTITION (p0) SET s.i = 1",
        ),
        0,
    ),
}


@pytest.mark.parametrize("code", ERRORS)
def test_a_statement_has_the_error_of_a_server_or_is_refused(
    session: SqlSession, code: str
) -> None:
    result = session.run(code, 60.0)
    assert not result.ok
    assert result.info.error == ERRORS[code], result.output
    assert result.output.startswith(REFUSED) or ERRORS[code]


@pytest.mark.parametrize(
    "code",
    [
        "SELECT * FROM ((SELECT 1) AS a)",
        "SELECT * FROM ((SELECT 1 AS q)) AS a",
        "SELECT * FROM ((SELECT 1) UNION (SELECT 1)) AS a",
        "SELECT ((SELECT 1))",
    ],
)
def test_brackets_around_queries_of_from(session: SqlSession, code: str) -> None:
    assert session.run(code, 60.0).output == "[(1,)]"


OUT_OF_RANGE = {
    "(i BETWEEN -10 AND 100)": "(`d`.`t`.`i` between -10 and 100)",
    "(i IN (1, 2, 5))": "(`d`.`t`.`i` in (1,2,5))",
    "(v LIKE '%')": "(`d`.`t`.`v` like '%')",
    "(i IS NOT NULL)": "(`d`.`t`.`i` is not null)",
    "ROUND(i)": "round(`d`.`t`.`i`,0)",
    "EXTRACT(DAY FROM da)": "extract(day from `d`.`t`.`da`)",
    "(v REGEXP '.')": "(`d`.`t`.`v` regexp '.')",
    "DATEDIFF(da, '2000-01-01')": "(to_days(`d`.`t`.`da`) - to_days('2000-01-01'))",
}


def test_an_error_of_range_quotes_the_expression(session: SqlSession) -> None:
    for expression, text in OUT_OF_RANGE.items():
        code = f"SELECT 9223372036854775807 + {expression} FROM t WHERE id = 1"
        quoted = f"out of range in '(9223372036854775807 + {text})'"
        assert quoted in session.run(code, 60.0).output, expression
    result = session.run("SELECT POWER(bi, CAST('2001' AS CHAR(3))) FROM t", 60.0)
    assert "cast('2001' as char(3) charset utf8mb4)" in result.output
    assert (
        "in '(count(0) + 9"
        in session.run("SELECT COUNT(*) + 9223372036854775807 FROM t", 60.0).output
    )


@pytest.mark.parametrize(
    "code",
    [
        "SELECT d * d FROM t",
        "SELECT CONCAT(d * d) FROM t",
        "SELECT d + 10000000000.000001 FROM t",
        "SELECT v = CHAR(255) FROM t",
        "SELECT c FROM t UNION ALL SELECT CHAR(228)",
        "SELECT 0x00ff <= ALL (SELECT v FROM t) FROM t",
        "SELECT b1 FROM t EXCEPT SELECT c FROM t",
        "SELECT 'x' UNION SELECT d / 7 FROM t",
        "UPDATE t SET tx = (i / 3) + 1",
        "INSERT INTO t (id, tx) VALUES (90, 7 / 3)",
        "UPDATE t SET y = tm",
    ],
)
def test_what_would_be_inexact_is_refused(session: SqlSession, code: str) -> None:
    assert session.run(code, 60.0).output.startswith(REFUSED), code


STORED = [
    ("st = ' 7'", "st", "red,green,blue"),
    ("st = '+7'", "st", "red,green,blue"),
    ("e = ' 2'", "e", "mid"),
    ("e = '2 '", "e", "mid"),
    ("tx = i / 2", "tx", "2.500000000"),
    ("tx = (i - i) / 7", "tx", "0"),
    ("y = da", "y", 2001),
    ("y = dt", "y", 2001),
    ("i = 2.5e0", "i", 2),
    ("i = 2.5", "i", 3),
    ("i = '2.5e0'", "i", 3),
    ("i = -3.5e0", "i", -4),
    ("i = x * 25", "i", 2),
    ("i = TIME'-01:00:00'", "i", -10000),
    ("bn = 2.5e-3", "bn", b"0\0\0"),
]


def test_a_column_holds_what_a_server_stores(session: SqlSession) -> None:
    for assignment, column, value in STORED:
        result = session.run(f"UPDATE t SET {assignment} WHERE id = 1", 60.0)
        assert result.ok, (assignment, result.output)
        assert session.run(f"SELECT {column} FROM t WHERE id = 1", 60.0).rows == ((value,),)
    for assignment in ("b1 = TIME'00:00:00.5'", "bt = TIME'00:00:01'", "bt = tm", "st = '7 '"):
        assert not session.run(f"UPDATE t SET {assignment} WHERE id = 7", 60.0).ok, assignment


def test_without_a_strict_mode_the_nearest_value_is_stored(session: SqlSession) -> None:
    session.run("SET sql_mode = ''", 60.0)
    session.run("UPDATE t SET st = '10', vb = 0x41ff42 WHERE id = 6", 60.0)
    assert session.run("SELECT st, vb FROM t WHERE id = 6", 60.0).rows == (("green", "A"),)


def test_an_aggregate_is_no_new_value(session: SqlSession) -> None:
    for code in ("UPDATE t SET v = AVG(d)", "UPDATE t JOIN s ON t.id = s.k SET t.v = MAX(s.v)"):
        assert session.run(code, 60.0).output.endswith("Invalid use of group function"), code
    assert session.run("UPDATE t SET i = (SELECT MAX(k) FROM s) WHERE id = 99", 60.0).ok


def test_what_is_behind_a_decision_is_not_checked(session: SqlSession) -> None:
    create = "CREATE TABLE z AS SELECT id, ({}) AS a FROM t"
    assert session.run(create.format("TIME '01:02:03' OR v"), 60.0).ok
    error = session.run(create.replace(" z ", " w ").format("i OR v"), 60.0).output
    assert error.endswith("Truncated incorrect DOUBLE value: ''")


def test_a_table_of_texts_of_decimals_has_room_for_sign_and_point(session: SqlSession) -> None:
    assert session.run("CREATE TABLE z AS SELECT CONCAT(d / 7) AS a FROM t", 60.0).ok
    assert session.run("SELECT MAX(LENGTH(a)) FROM z", 60.0).rows == ((15,),)


def test_calls_inside_have_their_errors_first(session: SqlSession) -> None:
    for code, name in (("FIELD(ADDTIME(1))", "ADDTIME"), ("TIMEDIFF(FIELD(1))", "FIELD")):
        assert session.run(f"SELECT {code}", 60.0).output.endswith(f"function '{name}'")


def test_long_texts_of_blanks_are_read_once() -> None:
    """Each of them would take hours if it took the square of its length."""
    assert read_time(" " * 2_000_000 + "x") is None
    assert trim("x" * 2_000_000, "x", "BOTH") == ""


def test_a_condition_of_a_write_is_computed_once(session: SqlSession) -> None:
    """Random numbers would otherwise be drawn twice, and SQLite would use no index."""
    assert session.run("CREATE TABLE a (id int PRIMARY KEY)", 60).ok
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
    assert session.run(f"INSERT INTO a {numbers} SELECT i FROM n", 60).ok
    assert session.run("DELETE FROM a WHERE RAND() < 0.5 AND id + 0 >= 0", 60).ok
    ((left,),) = session.run("SELECT COUNT(*) FROM a", 60).rows or ()
    assert 400 < left < 600
    joined = join_in_order(["k = 1", "b", "mysql_divisor(c)"], "AND")
    assert (
        joined == "((k = 1 AND b) AND CASE WHEN NOT (k = 1 AND b) THEN 0 ELSE mysql_divisor(c) END)"
    )


def test_a_double_is_rounded_to_even_in_a_column_of_integers(session: SqlSession) -> None:
    code = "INSERT INTO s (k, i) VALUES (70, 2.5e0), (71, 2.5), (72, '2.5e0'), (73, -2.5e0)"
    assert session.run(code, 60.0).ok
    code = "INSERT INTO s (k, i) SELECT 80 + id, x FROM t WHERE id IN (6, 7)"
    assert session.run(code, 60.0).ok
    found = session.run("SELECT i FROM s WHERE k >= 70 ORDER BY k", 60.0).rows
    assert found == ((2,), (3,), (3,), (-2,), (12,), (0,))


@pytest.mark.parametrize(
    "code",
    [
        "INSERT INTO s (k, i) VALUES (1, {})",
        "REPLACE INTO s (k, i) SELECT 1, {}",
        "SELECT 1 -{}",
        "SELECT * FROM s WHERE i < {} LIMIT 1",
        "UPDATE s SET i = {}",
        "DO {}",
        "DELETE FROM s WHERE i IN (1, -{})",
        "CREATE TABLE z (x double DEFAULT {})",
        "SET @a = {}",
        "INSERT INTO s (k) VALUES (1) ON DUPLICATE KEY UPDATE i = {}",
        "SELECT i + {} FROM s",
        "CREATE VIEW w AS SELECT {} AS a",
        "ALTER TABLE s ADD z double DEFAULT {}",
    ],
)
def test_numbers_that_no_double_holds(session: SqlSession, code: str) -> None:
    for number in ("1e400", "1.8E+308", ".1e310", f"1{'0' * 309}e0"):
        result = session.run(code.format(number), 60.0)
        assert result.info.error == 1367
        message = f"Illegal double '{number[:192]}' value found during parsing"
        assert result.output.endswith(message)
    quoted = "SELECT '1e400', 0x1e400, `1e400` FROM (SELECT 1e-400 AS `1e400`) q -- 1e400"
    assert session.run(quoted, 60.0).rows == (("1e400", b"\x01\xe4\x00", 0.0),)
    text = "SELECT '-1e400' + 0, '1e400' * 1"
    assert session.run(text, 60.0).rows == ((-1.7976931348623157e308, 1.7976931348623157e308),)


READ: list[tuple[str, list[tuple[object, ...]]]] = [
    (
        "SELECT id FROM t WHERE (i, u) IN (SELECT i, u FROM t WHERE id < 3) ORDER BY id",
        [(1,), (2,)],
    ),
    (
        "SELECT (i, u) IN (SELECT i, u FROM t) FROM t WHERE id IN (3, 4) ORDER BY id",
        [(1,), (None,)],
    ),
    ("SELECT (1, 2) IN (SELECT 1, NULL), (1, 2) IN (SELECT 2, NULL)", [(None, 0)]),
    ("SELECT (1, 2) IN (SELECT i, u FROM t WHERE 0)", [(0,)]),
    ("SELECT UTC_DATE = UTC_DATE(), UTC_TIME <= UTC_TIMESTAMP", [(1, 1)]),
    ("SELECT _utf8mb4'a' 'b', _utf8'ab' COLLATE utf8_bin = 'AB'", [("ab", 0)]),
    ("SELECT _utf8mb3'ab' COLLATE utf8mb3_general_ci = 'AB'", [(1,)]),
    ("SELECT HEX(_latin1'é'), _latin1'é', CHAR_LENGTH(_latin1'é')", [("C3A9", "Ã©", 2)]),
    ("SELECT id FROM t WHERE y IN (1+0, 70) ORDER BY id", [(1,), (7,)]),
    ("SELECT y = 1+0, y = 2-1, y = 2*1 FROM t WHERE id = 1", [(1, 1, 0)]),
    ("SELECT b'1' = ANY (SELECT y FROM t)", [(1,)]),
    ("SELECT CAST(1 AS YEAR), CAST(70 AS YEAR), CAST(99.5 AS YEAR)", [(2001, 1970, None)]),
    ("SELECT CAST(da AS YEAR), CAST(1901 AS YEAR) FROM t WHERE id = 1", [(2001, 1901)]),
]


@pytest.mark.parametrize(("code", "rows"), READ)
def test_rows_are_those_of_a_server(
    session: SqlSession, code: str, rows: list[tuple[object, ...]]
) -> None:
    result = session.run(code, 60.0)
    assert result.rows == tuple(rows), result.output


@pytest.mark.parametrize(
    ("code", "number", "end"),
    [
        ("SELECT * FROM dual", 1096, "No tables used"),
        ("SELECT t.*", 1051, "Unknown table 't'"),
        ("INSERT INTO s (k) VALUES ()", 1136, "at row 1"),
        ("DROP VIEW s", 1347, "'d.s' is not VIEW"),
        ("DROP TABLE s s", 1064, "near 's' at line 1"),
        ("TRUNCATE s, t", 1064, "near ', t' at line 1"),
        ("START TRANSACTION NOW", 1064, "near 'NOW' at line 1"),
        ("SAVEPOINT a b", 1064, "near 'b' at line 1"),
        ("RELEASE a", 1064, "near 'a' at line 1"),
        ("SELECT DATE_ADD('2020-01-01', 1)", 1064, "near '1)' at line 1"),
        (
            "SELECT DATE_SUB(da, (INTERVAL 1 DAY)) FROM t",
            1064,
            "near '(INTERVAL 1 DAY)) FROM t' at line 1",
        ),
        ("SELECT _utf8'ab' COLLATE utf8mb4_bin", 1253, "for CHARACTER SET 'utf8mb3'"),
    ],
)
def test_errors_are_those_of_a_server(
    session: SqlSession, code: str, number: int, end: str
) -> None:
    result = session.run(code, 60.0)
    assert result.info.error == number
    assert end in result.output


def test_a_double_is_cut_in_a_column_of_years(session: SqlSession) -> None:
    assert session.run("CREATE TABLE z (y YEAR)", 60.0).ok
    assert session.run("INSERT INTO z VALUES (69.5e0), (69.5), (2.5e0), (2154.9e0)", 60.0).ok
    assert session.run("SELECT y FROM z", 60.0).rows == ((2069,), (1970,), (2002,), (2154,))
    assert session.run("INSERT INTO z VALUES (2155.4e0)", 60.0).info.error == 1264


def test_a_row_that_refers_to_itself_is_not_deleted(session: SqlSession) -> None:
    code = "CREATE TABLE z (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES z (id))"
    assert session.run(code, 60.0).ok
    assert session.run("INSERT INTO z VALUES (1, 1)", 60.0).ok
    assert session.run("DELETE FROM z", 60.0).info.error == 1451
    assert session.run("UPDATE z SET p = NULL", 60.0).ok
    assert session.run("DELETE FROM z", 60.0).ok


def test_definitions_are_refused_in_a_transaction_that_reads(session: SqlSession) -> None:
    assert session.run("START TRANSACTION READ ONLY", 60.0).ok
    for code in ("CREATE TABLE z (a INT)", "DROP TABLE s", "TRUNCATE s", "CREATE DATABASE z"):
        assert session.run(code, 60.0).info.error == 1792


def test_a_database_has_the_collation_that_its_definition_names(session: SqlSession) -> None:
    assert session.run("CREATE DATABASE z CHARACTER SET latin1", 60.0).ok
    found = session.run("SHOW CREATE DATABASE z", 60.0).output
    assert "CHARACTER SET latin1 COLLATE latin1_swedish_ci" in found


def test_show_and_information_schema_say_the_same(session: SqlSession) -> None:
    code = (
        "CREATE TABLE z (a VARCHAR(9), g INT AS (k + 1) STORED, k INT, b BLOB, "
        "u TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY x (a(3)))"
    )
    assert session.run(code, 60.0).ok
    code = "SELECT INDEX_NAME, SUB_PART FROM information_schema.STATISTICS WHERE TABLE_NAME = 'z'"
    assert session.run(code, 60.0).rows == (("x", 3),)
    code = (
        "SELECT COLUMN_NAME, EXTRA, GENERATION_EXPRESSION FROM information_schema.COLUMNS "
        "WHERE TABLE_NAME = 'z' AND EXTRA <> '' ORDER BY 1"
    )
    now = "DEFAULT_GENERATED on update CURRENT_TIMESTAMP"
    assert session.run(code, 60.0).rows == (("g", "STORED GENERATED", "k + 1"), ("u", now, ""))
    shown = session.run("SHOW FULL COLUMNS FROM z", 60.0).rows or ()
    assert [row[2] for row in shown] == ["utf8mb4_general_ci", None, None, None, None]
    assert shown[4][6] == now
