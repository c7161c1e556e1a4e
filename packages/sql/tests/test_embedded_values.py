"""Values of expressions that generated statements found wrong, as a server gives them.

The names of pages are those of MySQL 8's manual, where it and MariaDB differ.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from hostile.sql.tables import DUMP
from intercode_sql import SqlSession
from support.sql_engines import embedded_session

D = Decimal
E = "Error executing query: "


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    with embedded_session(tmp_path_factory.mktemp("d"), DUMP, "d") as opened:
        yield opened


def values(session: SqlSession, expression: str, rows: str = "id = 1") -> list[object]:
    result = session.run(f"SELECT {expression} FROM t WHERE {rows} ORDER BY id", 60.0)
    assert result.rows is not None, result.output
    return [row[0] for row in result.rows]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(i / 7) * 1000000", D("714285.7140")),
        ("1 / dt IS TRUE", 0),
        ("1 / 30000 IS TRUE", 1),
        ("i / 30000000", D("0.0000")),
        ("CONCAT(i / -30000000)", "0.0000"),
        ("d % 0.005", D("0.000")),
        ("1e20 DIV y", 49975012493753123),
        ("i DIV d", 3),
        ("ROUND(9223372036854775807, 2)", 9223372036854775807),
        ("TRUNCATE(9223372036854775807, -1)", 9223372036854775800),
        ("LOG2(3)", 1.5849625007211563),
        ("CONCAT(1e15)", "1e15"),
        ("CONCAT(1e-7)", "0.0000001"),
        ("CONCAT(9.9e-16)", "9.9e-16"),
        ("CONCAT(123456789012345678e0)", "1.2345678901234568e17"),
        ("FORMAT(2.5, 4294967295)", "3"),
        ("FIELD('0x', 5, 0)", 2),
        ("FIELD(NULL, NULL)", 0),
        ("FIELD('B', 'a', 'b')", 2),
        ("FIELD(vbin, 'x', vbin)", 2),
        ("SOUNDEX('äpfel')", "ä140"),
        ("JSON_EXTRACT('\"text\"', '$[0]')", '"text"'),
        ("JSON_EXTRACT('[1]', '$[3]')", None),
        ("JSON_EXTRACT('{\"a\": null}', '$.a')", "null"),
        ("WEEK('2020-06-15', NULL)", 24),
        ("YEARWEEK('2020-06-15', NULL)", 202024),
    ],
)
def test_numbers(session: SqlSession, expression: str, value: object) -> None:
    assert values(session, expression) == [value]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("ti - y", "BIGINT UNSIGNED value is out of range in '(`d`.`t`.`ti` - `d`.`t`.`y`)'"),
        ("-2.25 DIV u", "BIGINT UNSIGNED value is out of range in '(-2.25 DIV `d`.`t`.`u`)'"),
        ("x DIV d0", "BIGINT value is out of range in '(`d`.`t`.`x` DIV `d`.`t`.`d0`)'"),
        ("7 - 0x3130", "BIGINT UNSIGNED value is out of range in '(7 - 0x3130)'"),
        ("POWER(x, 0x00FF)", "DOUBLE value is out of range in 'pow(`d`.`t`.`x`,0x00ff)'"),
        (
            "bi + DATE '2024-12-31'",
            "BIGINT value is out of range in '(`d`.`t`.`bi` + DATE'2024-12-31')'",
        ),
        (
            "COT(CAST(v AS UNSIGNED))",
            "DOUBLE value is out of range in 'cot(cast(`d`.`t`.`v` as unsigned))'",
        ),
        ("tx <> 0x00ff", "Invalid utf8mb4 character string: 'FF'"),
    ],
)
def test_errors(session: SqlSession, expression: str, message: str) -> None:
    assert session.run(f"SELECT {expression} FROM t", 60.0).output == E + message


def test_bits_of_aggregates_are_those_of_whole_numbers(session: SqlSession) -> None:
    found = session.run("SELECT BIT_OR(tx), BIT_AND(x), BIT_XOR(tm), BIT_OR(d) FROM t", 60.0)
    assert found.rows == ((2030, 0, 131312, 18446744073709551614),)


def test_null_makes_doubles_and_dates_take_times(session: SqlSession) -> None:
    assert session.run("SELECT NULL MOD 5 UNION SELECT 7", 60.0).rows == ((None,), (7.0,))
    query = "SELECT dt FROM t WHERE id = 1 UNION SELECT tm FROM t WHERE id = 1"
    rows = session.run(query, 60.0).rows
    assert rows is not None and [type(row[0]) for row in rows] == [dt.datetime] * 2
    assert values(session, "ts > tm") == [0]  # date-and-time-type-conversion.html
    assert values(session, "CASE WHEN i THEN dt ELSE tm END = dt") == [1]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST(127 AS DATE)", dt.date(2000, 1, 27)),
        ("YEAR(127)", 2000),
        ("MONTH(0)", 0),
        ("127 + INTERVAL 1 DAY", "2000-01-28"),
        ("TO_DAYS(127)", 730511),
        ("TIME(20200615)", None),
        ("HOUR(9223372036854775807)", None),
        ("YEAR('2020-00-00')", 2020),
        ("QUARTER('2020-00-10')", 0),
        ("DAY('2020-05-00')", 0),
        ("EXTRACT(YEAR_MONTH FROM '2020-00-00')", 202000),
        ("YEAR('2020-02-30')", None),
        ("CONCAT(FROM_DAYS(5))", "0000-00-00"),
        ("FROM_DAYS(5) IS NULL", 0),
        ("MAKETIME(10, 12.5e0, 0)", dt.timedelta(hours=10, minutes=12)),
        ("CONCAT(SEC_TO_TIME(1.5))", "00:00:01.5"),
        ("CONCAT(SEC_TO_TIME('1'))", "00:00:01.000000"),
        ("CONCAT(FROM_UNIXTIME(1.5))", "1970-01-01 00:00:01.5"),
        ("TIMEDIFF(da, DATE '2001-02-02')", dt.timedelta(days=1)),
        ("TIMEDIFF(da, tm)", None),
        ("TIMEDIFF(da, 255)", None),
        ("TIMESTAMP(dt, dt)", None),
        ("DATE '2024-02-29' - INTERVAL '1:2' YEAR_MONTH", dt.date(2022, 12, 29)),
        ("'2001-02-03' NOT BETWEEN '99-12-31' AND da", 0),
        ("'10' BETWEEN '9' AND 11", 1),
        ("y >= dt3", 0),
        ("dt3 > 20010203040506", 1),
        ("dt + INTERVAL 1.5 YEAR", dt.datetime(2003, 2, 3, 4, 5, 6)),
        ("dt + INTERVAL '1.5' YEAR", dt.datetime(2002, 2, 3, 4, 5, 6)),
        ("dt + INTERVAL 2.5e0 DAY", dt.datetime(2001, 2, 5, 4, 5, 6)),
        ("CONCAT(TIME '00:00:00.5')", "00:00:00.5"),
        ("tm + TIME '00:00:00.5'", D("101112.5")),
        ("CONCAT(TIMESTAMP '2020-01-01 10:00:00.25')", "2020-01-01 10:00:00.25"),
        ("tm < '100:00:00'", 1),
        ("tm > '-01:00:00'", 1),
        ("tm2 BETWEEN tm AND '100:00:00'", 1),
        ("TIMEDIFF(tm, '12:00:00') < '00:00:00'", 1),
        ("y = 1", 1),
        ("y > 2.5", 0),
        ("y < '50%'", 1),
        ("y BETWEEN 1 AND 30", 1),
        ("y IN (1, 99)", 1),
        ("INSTR(l, 'n')", 2),
        ("INSTR(CAST('Äb' AS CHAR), 'a')", 0),
    ],
)
def test_dates_and_times(session: SqlSession, expression: str, value: object) -> None:
    assert values(session, expression) == [value]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CONCAT(tx, 0x41)", "some textA"),
        ("CONCAT(bl, tx)", b"ABsome text"),
        ("CONCAT(0x41, 'a')", b"Aa"),
        ("CONCAT(UNHEX('C3A4'), v)", "äAnn"),
        ("CONCAT(CAST('a' AS BINARY), v)", b"aAnn"),
        ("COALESCE(0xC3A4, tx)", "ä"),
        ("IFNULL(0x41, 'a')", b"A"),
        ("e = 0x4c4f57", 1),
        ("0x41 = 'a'", 0),
        ("LOCATE(0x4e, v)", 2),
        ("TRIM(LEADING 0x41 FROM v)", "nn"),
        ("TRIM(LEADING 0x61 FROM 'AaB')", b"AaB"),
        ("bl LIKE '%a%'", 0),
        ("CAST(ti AS BINARY(4)) LIKE '%'", 1),
        ("v LIKE 0x4125", 1),
        ("REGEXP_INSTR(vb, 'a')", 0),
        ("REGEXP_INSTR(v, 'a')", 1),
        ("REGEXP_REPLACE('BOB', '', 'x')", "BOB"),
        ("REGEXP_REPLACE(vb, 'a', 'x')", "Ann"),
    ],
)
def test_bytes_and_character_sets(session: SqlSession, expression: str, value: object) -> None:
    """A constant takes the character set of a column (charset-collation-coercibility.html)."""
    assert values(session, expression) == [value]


def test_latin1_is_compared_in_unicode(session: SqlSession) -> None:
    assert values(session, "l <= c", "id = 5") == [1]


def test_a_constant_is_no_position_in_order_by(session: SqlSession) -> None:
    rows = session.run("SELECT DISTINCT e, FALSE FROM t WHERE id < 3 ORDER BY 1, 2", 60.0).rows
    assert rows == (("low", 0), ("high", 0))


def test_words_of_an_enum_are_texts_in_the_least_of_a_subquery(session: SqlSession) -> None:
    assert values(session, "id", "id < ANY (SELECT s.e FROM s)") == []
    assert values(session, "id < ANY (SELECT s.e FROM s)") == [1]


def test_an_average_of_64_bit_integers_keeps_their_digits(session: SqlSession) -> None:
    rows = session.run("SELECT AVG(bi) FROM t WHERE id IN (2, 5, 6)", 60.0).rows
    assert rows == ((D("4.0000"),),)


@pytest.mark.parametrize(
    ("other", "width"),
    [
        ("id", 11),
        ("ti", 4),
        ("d", 12),
        ("da", 10),
        ("dt3", 23),
        ("y", 4),
        ("c", 20),
        ("0", 3),
        ("v", 3),
        ("0x41", 3),
        ("vbin", 3),
        ("NULL", 3),
    ],
)
def test_a_set_operation_fills_binary_strings(session: SqlSession, other: str, width: int) -> None:
    query = f"SELECT bn FROM t WHERE id = 1 UNION ALL SELECT {other} FROM t WHERE id = 1 LIMIT 1"
    assert session.run(query, 60.0).rows == ((b"AB".ljust(width, b"\0"),),)


def test_negative_times_are_in_order(session: SqlSession) -> None:
    assert values(session, "INSTR(l, 'a')", "id = 5") == [0]  # latin1_swedish_ci
    query = "SELECT id, TIMEDIFF(tm, '12:00:00') AS a FROM t WHERE id < 4 ORDER BY a"
    assert [row[0] for row in session.run(query, 60.0).rows or ()] == [3, 1, 2]


def test_a_sum_of_doubles_is_a_text_of_the_digits_that_it_needs(tmp_path: Path) -> None:
    """So answers MySQL 8 in the published logs (spider/903); MariaDB writes the column's digits."""
    dump = (
        "CREATE DATABASE d; USE d; CREATE TABLE t (f float(10,2));"
        "INSERT INTO t VALUES (24709388), (17370008), (0.5);"
    )
    with embedded_session(tmp_path, dump, "d") as session:
        code = "SELECT CONCAT('(', SUM(f), ',)'), SUM(f), CONCAT(MAX(f)) FROM t WHERE f >= {}"
        assert session.run(code.format(1), 60.0).rows == (
            ("(42079396,)", 42079396.0, "24709388.00"),
        )
        assert session.run(code.format(0), 60.0).rows == (
            ("(42079396.5,)", 42079396.5, "24709388.00"),
        )
