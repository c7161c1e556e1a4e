"""Values that an operator or a function takes for another type, with a server's answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from hostile.sql.tables import DUMP
from intercode_sql import SqlSession, open_engine
from intercode_sql.types import DatabaseSpec

D = Decimal


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    path: Path = tmp_path_factory.mktemp("d") / "d.sql"
    path.write_text(DUMP, "utf-8")
    engine = open_engine("embedded")
    opened = engine.open(DatabaseSpec("mysql-dump", path, "d"))
    yield opened
    opened.close()
    engine.close()


def value(session: SqlSession, query: str) -> object:
    found = session.run(query, 60.0)
    assert found.rows is not None, found.output
    return found.rows[0][0]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("IFNULL(bt, i)", D(5)),
        ("IFNULL(bt, d)", D("5.000")),
        ("IFNULL(bt, x)", 5.0),
        ("IFNULL(bt, y)", 5),
        ("IFNULL(bt, v)", b"\x00\x05"),
        ("IF(id, b1, bt)", 1),
        ("GREATEST(b1, i)", D(5)),
        ("COALESCE(bt, u)", 5),
        ("DATE(bt)", None),
        ("HOUR(b1)", None),
        ("bt + INTERVAL 1 DAY", None),
        ("CAST(bt AS CHAR(3))", "\0\x05"),
        ("DAY(0.1)", 0),
        ("ROUND(d0, 1)", D("1.0")),
        ("TRUNCATE(d, 5)", D("1.50000")),
        ("ROUND(d, -1)", D(0)),
        ("('2020-06-15' + INTERVAL 1 DAY) + 0", 20200616.0),
        ("FORMAT(0, 7)", "0.0000000"),
        ("CAST('2020-06-15' + INTERVAL 1 DAY AS SIGNED)", 2020),
        ("CONCAT(0 / da)", "0.0000"),
        ("SUBTIME('10:00:00', '11:0:0') + 0", -10000.0),
        ("DATE_FORMAT(0, '%Y-%m-%d')", "0000-00-00"),
        ("CASE 'x' WHEN y - 1 THEN 1 ELSE 0 END", 0),
        ("CONV(bt, 3, 7)", "5"),
        ("y = 'x' OR y = ''", 0),
        ("y = '1x'", 1),
        ("FORMAT(-0.005, 1)", "0.0"),
        ("QUOTE(bl)", b"'AB'"),
        ("ELT(2, bn, 12, v)", b"12"),
        ("HEX(-1e20)", "F" * 16),
        ("SHA2(1, NULL)", None),
        ("CONCAT_WS('', bl, CAST('Ä' AS CHAR), l)", "ABÄAnn".encode()),
    ],
)
def test_a_value_becomes_another_type(session: SqlSession, expression: str, wanted: object) -> None:
    found = value(session, f"SELECT {expression} FROM t WHERE id = 1")
    assert (type(found), found) == (type(wanted), wanted)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT MIN(tm - INTERVAL 20 HOUR) FROM t", timedelta(hours=-20)),
        ("SELECT MIN(tm - INTERVAL 20 HOUR) OVER () FROM t", timedelta(hours=-20)),
        ("SELECT GREATEST(tm, TIME '100:00:00') FROM t", timedelta(hours=100)),
        ("SELECT COUNT(*) FROM t WHERE y IN ('1', 20)", 2),
        ("SELECT CONCAT(bl, l) FROM t WHERE id = 5", b"\xc3\xa4\xc4pfel"),
        ("SELECT COUNT(*) FROM t WHERE 'x' IN (y, NULL)", 0),
        ("SELECT QUOTE(bl) FROM t WHERE id = 4", b"NULL"),
        ("SELECT MAX('2020-06-15' + INTERVAL 1 DAY) + 0", 2020.0),
        ("SELECT a + 0 FROM (SELECT '2020-06-15' + INTERVAL 1 DAY AS a) q", 2020.0),
        ("SELECT LEAST(da, DATE '2000-01-01') FROM t", date(2000, 1, 1)),
        ("SELECT GROUP_CONCAT(bt ORDER BY bt) FROM t", b"0,3,5,5,49,65,511"),
        ("SELECT GROUP_CONCAT(b1) FROM t WHERE id = 1", b"\x01"),
        ("SELECT bt FROM t UNION SELECT b1 FROM t", 5),
        ("SELECT bt FROM t UNION SELECT i FROM t", b"5"),
        ("SELECT CONCAT_WS(bl, l, l) FROM t WHERE id = 5", b"\xc4pfel\xc3\xa4\xc4pfel"),
    ],
)
def test_a_query_gives_a_value(session: SqlSession, query: str, wanted: object) -> None:
    found = value(session, query)
    assert (type(found), found) == (type(wanted), wanted)


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ("e = ANY (SELECT bt FROM t)", 1),
        ("e = ANY (SELECT k FROM s)", 0),
        ("e IN (SELECT k FROM s)", 0),
        ("st <= ALL (SELECT d0 FROM t)", 1),
        ("b'1' = ANY (SELECT f FROM t)", 1),
        ("e = ANY (SELECT 'low')", 1),
    ],
)
def test_the_left_side_of_any_and_all_is_cached_as_text(
    session: SqlSession, test: str, wanted: int
) -> None:
    assert value(session, f"SELECT {test} FROM t WHERE id = 1") == wanted


def test_an_enum_that_selects_rows_by_a_subquery_is_a_number(session: SqlSession) -> None:
    assert value(session, "SELECT COUNT(*) FROM t WHERE e IN (SELECT 1)") == 3


@pytest.mark.parametrize("value", ["id * ub", "IF(id, ~u, -1)", "COALESCE(~u, 1.5)"])
def test_a_number_that_may_need_64_bits_is_refused(session: SqlSession, value: str) -> None:
    found = session.run(f"SELECT {value} FROM t WHERE id = 2", 60.0).output
    assert "needs more than 63 bits" in found


def test_a_variable_holds_a_time_as_its_text(session: SqlSession) -> None:
    session.run("SET @x = TIME '01:02:03'", 60.0)
    assert value(session, "SELECT @x") == "01:02:03"


def test_json_quote_takes_strings_only(session: SqlSession) -> None:
    assert value(session, "SELECT JSON_QUOTE(v) FROM t WHERE id = 1") == '"Ann"'
    found = session.run("SELECT JSON_QUOTE(i) FROM t", 60.0).output
    assert found.endswith("Incorrect type for argument 1 in function json_quote.")
