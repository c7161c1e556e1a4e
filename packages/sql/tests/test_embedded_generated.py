"""Values and errors that generated statements found wrong, as MySQL 8 gives them.

Where MariaDB and MySQL 8 differ, the names of pages are those of MySQL 8's manual.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from hostile.sql.tables import DUMP
from intercode_sql import SqlSession
from support.sql_engines import embedded_session

CANNOT = "The embedded engine cannot do this"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    with embedded_session(tmp_path_factory.mktemp("d"), DUMP, "d") as opened:
        yield opened


@pytest.fixture
def changed(session: SqlSession) -> Iterator[SqlSession]:
    session.run("BEGIN", 60.0)
    yield session
    session.run("ROLLBACK", 60.0)
    session.run("DROP TABLE IF EXISTS z", 60.0)


def column(session: SqlSession, code: str) -> list[object]:
    result = session.run(code, 60.0)
    assert result.rows is not None, result.output
    return [row[-1] for row in result.rows]


def values(session: SqlSession, expression: str, rows: str = "id = 1") -> list[object]:
    return column(session, f"SELECT {expression} FROM t WHERE {rows} ORDER BY id")


@pytest.mark.parametrize(
    ("expression", "rows", "value"),
    [
        ("B'0' < l", "id = 3", 1),
        ("v > '\t'", "id = 3", 1),
        ("GREATEST(v, b'1')", "id = 3", ""),
        ("GREATEST(st, B'0')", "id = 3", ""),
        ("LEAST(vb, B'0')", "id = 3", "\0"),
        ("vb = 'Ann '", "id = 1", 1),
        ("vb IN ('ann ')", "id = 1", 0),
        ("vb < 'Ann '", "id = 1", 0),
        ("b'1' <= ALL (SELECT c FROM t)", "id = 1", None),
        ("st LIKE B'0'", "id = 3", 0),
        ("e < UNHEX('C3A4')", "id = 1", 0),
        ("tx < UNHEX('C3A4')", "id = 7", 0),
        ("('ann' COLLATE utf8mb4_general_ci) = vb", "id = 1", 1),
        ("('ann' COLLATE utf8mb4_general_ci) NOT IN (vb, '2.5x')", "id = 1", 0),
        ("v COLLATE utf8mb4_bin = 'ann'", "id = 1", 0),
        ("v BETWEEN vb AND c", "id = 7", 0),
        ("v BETWEEN vb AND c", "id = 1", 1),
        ("LEAST(l, 'BOB')", "id = 2", "bob"),
        ("LEAST('BOB', l)", "id = 2", "BOB"),
        ("LOCATE('a', v)", "id = 5", 0),
        ("JSON_QUOTE(c) = '\"b\"'", "id = 2", 0),
        ("SOUNDEX(bl)", "id = 2", b""),
    ],
)
def test_texts_are_compared(session: SqlSession, expression: str, rows: str, value: object) -> None:
    """Both sides are filled up with spaces (charset-binary-collations.html), which come behind
    control characters; COLLATE decides before columns, and columns before constants."""
    assert values(session, expression, rows) == [value]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("STR_TO_DATE('2020-06-15', '%Y-%m-%d %T')", dt.datetime(2020, 6, 15)),
        ("STR_TO_DATE('2020-06-15 10', '%Y-%m-%d %T')", dt.datetime(2020, 6, 15, 10)),
        ("STR_TO_DATE('', '%H:%i:%s')", dt.timedelta(0)),
        ("STR_TO_DATE('', '%Y-%m-%d')", None),
        ("STR_TO_DATE('2020', '%Y-%m')", None),
        ("STR_TO_DATE(' 2020 - 06-15', '%Y-%m-%d')", dt.date(2020, 6, 15)),
        ("STR_TO_DATE('06/2020', '%m/%d')", None),
        ("STR_TO_DATE('1:2', '%H:%i%H')", None),
        ("ELT(4294967297, 'x')", "x"),
        ("ELT(-1, 'x')", None),
        ("B'11' MOD (1 + 1)", 1),
        ("LEAST(v, '1e1') + 0", 0.0),
        ("GREATEST(v, '1e1') * 2", 20.0),
        ("! LEAST(v, '1e1')", 1),
        ("CAST(bl AS SIGNED)", 0),
        ("CAST(0x3130 AS SIGNED)", 12592),
    ],
)
def test_values(session: SqlSession, expression: str, value: object) -> None:
    assert values(session, expression) == [value]


def test_a_quotient_has_the_digits_of_its_type_in_groups_and_order(session: SqlSession) -> None:
    quotient = "SELECT COUNT(*), 100.00 / da AS q FROM t WHERE da < '2100-01-01' GROUP BY q"
    assert len(column(session, quotient)) == 1
    assert column(session, "SELECT id FROM t WHERE id < 4 ORDER BY 100.00 / da, id") == [1, 2, 3]
    derived = "SELECT COUNT(*) FROM (SELECT tm / ts AS a FROM t) q WHERE a IS NOT NULL GROUP BY a"
    assert column(session, derived) == [7]
    assert values(session, "i / 3 * 3 = 5") == [1]


def test_words_are_numbers_only_where_a_subquery_selects_rows(session: SqlSession) -> None:
    wanted = "SELECT k FROM s WHERE k IS NOT NULL"
    assert values(session, "id", f"e IN ({wanted})") == [1, 2, 3, 5, 6, 7, 8]
    assert values(session, "id", f"(e IN ({wanted})) AND id > 6") == [7, 8]
    assert values(session, "id", f"e IN ({wanted}) OR id = 7") == [7]
    assert values(session, "id", f"e NOT IN ({wanted}) AND id < 3") == [1, 2]


@pytest.mark.parametrize(
    ("other", "zero"),
    [
        ("bl", b"\0\0"),
        ("tx", b"\0\0"),
        ("v", b"0"),
        ("vbin", b"0"),
        ("i", b"0"),
        ("0x41", b"0"),
    ],
)
def test_a_bit_beside_text_in_a_set_operation(session: SqlSession, other: str, zero: bytes) -> None:
    code = f"SELECT bt FROM t WHERE id = 2 UNION ALL SELECT {other} FROM t WHERE id = 4"
    assert zero in column(session, code)


def test_numbers_fill_the_width_of_binary(session: SqlSession) -> None:
    code = "SELECT bn AS a FROM t WHERE id = 6 UNION SELECT ub FROM t WHERE id = 6"
    assert column(session, code) == [b"10".ljust(20, b"\0"), b"12".ljust(20, b"\0")]


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("DELETE FROM t LIMIT 1, 2", ", 2"),
        ("UPDATE t SET i = 1 LIMIT 1, 2", ", 2"),
        ("INSERT INTO s VALUE 1", "1"),
        ("INSERT INTO s VALUES (1, 2), 3", "3"),
        ("SELECT DATE_ADD(da, INTERVAL 1) FROM t", ") FROM t"),
        ("SELECT 1 > ALL (1)", "1)"),
        ("SELECT da + INTERVAL 1 FROM t", "FROM t"),
        ("SELECT LEFT('a') FROM = t", ") FROM = t"),
        ("SELECT YEAR(da, 1) FROM t", ", 1) FROM t"),
        ("SELECT DATABASE(1)", "1)"),
    ],
)
def test_what_is_no_statement_of_mysql(changed: SqlSession, code: str, near: str) -> None:
    """The numbers of arguments of some functions are in the grammar (Function Reference)."""
    assert f"right syntax to use near '{near}' at line 1" in changed.run(code, 60.0).output
    assert column(changed, "SELECT COUNT(*) FROM t") == [8]


def test_json_functions_take_documents(session: SqlSession) -> None:
    """Other types are an error (json-creation-functions.html)."""
    for name in ("da", "i"):
        result = session.run(f"SELECT JSON_LENGTH({name}) FROM t", 60.0)
        assert "Invalid data type for JSON data in argument 1 to function json_length" in (
            result.output
        )
    for call in ("JSON_QUOTE(bl)", "JSON_EXTRACT(bl, '$')", "JSON_UNQUOTE(bn)"):
        assert CANNOT in session.run(f"SELECT {call} FROM t", 60.0).output


def test_constant_bytes_of_a_subquery_beside_a_number(session: SqlSession) -> None:
    assert CANNOT in session.run("SELECT d <= ALL (SELECT 0x3130 FROM t) FROM t", 60.0).output


def test_a_literal_of_a_moment_is_one(session: SqlSession) -> None:
    for text in ("2020-06-15 1 2", "2020 06 15 12 30 45"):
        output = session.run(f"SELECT TIMESTAMP '{text}'", 60.0).output
        assert f"Incorrect DATETIME value: '{text}'" in output


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("CAST(d0 AS CHAR(3))", "Truncated incorrect CHAR(3) value: '999999'"),
        ("CAST('1e1' AS SIGNED)", "Truncated incorrect INTEGER value: '1e1'"),
        ("CAST(bl AS SIGNED)", "Truncated incorrect INTEGER value: 'AB'"),
        ("STR_TO_DATE('x', '%Y-%m-%d')", "Incorrect datetime value: 'x' for function str_to_date"),
        ("da + INTERVAL '1' DAY", "Datetime function: datetime field overflow"),
        ("CAST(i AS DECIMAL(5,1))", CANNOT),
    ],
)
def test_strict_statements_end_at(changed: SqlSession, expression: str, message: str) -> None:
    assert message in changed.run(f"CREATE TABLE z AS SELECT {expression} FROM t", 60.0).output
    assert CANNOT not in changed.run(f"SELECT {expression} FROM t", 60.0).output


def test_strict_statements_take_whole_values(changed: SqlSession) -> None:
    items = "CAST('10' AS SIGNED), da - INTERVAL 1 DAY, STR_TO_DATE('1/2/2020', '%d/%m/%Y')"
    made = changed.run(f"CREATE TABLE z AS SELECT {items}, CAST(d AS DECIMAL(9, 1)) FROM t", 60.0)
    assert made.ok, made.output


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("l", "UNHEX('C3A4')", "Ã¤"),
        ("l", "0x00ff", "\0ÿ"),
        ("tx", "bt", "\0\x05"),
        ("bl", "bt", b"\0\5"),
        ("v", "bt", "5"),
        ("v", "TIME'00:00:00.5'", "00:00:00.5"),
        ("bl", "TIME'00:00:00.50'", b"00:00:00.50"),
        ("v", "tm2", "10:11:12.34"),
    ],
)
def test_values_of_other_types_are_stored(
    changed: SqlSession, name: str, value: str, stored: object
) -> None:
    code = f"UPDATE t SET {name} = {value} WHERE id = 1"
    assert changed.run(code, 60.0).ok
    assert values(changed, name) == [stored]
    more = f"INSERT INTO t (id, {name}) SELECT 70, {value} FROM t WHERE id = 7"
    assert changed.run(more, 60.0).ok


def test_numbers_of_rows_that_could_not_be_written_are_used(changed: SqlSession) -> None:
    """InnoDB takes no reserved number back (innodb-auto-increment-handling.html)."""
    assert not changed.run("INSERT INTO t (id, ti) SELECT k + 200, i FROM s", 60.0).ok
    changed.run("INSERT INTO t (d0) VALUES (3)", 60.0)
    assert column(changed, "SELECT LAST_INSERT_ID()") == [203]
    assert not changed.run("INSERT INTO t (bt) VALUES (1), (9999999)", 60.0).ok
    assert column(changed, "SELECT LAST_INSERT_ID()") == [204]


def test_an_interval_in_the_text_of_an_error(session: SqlSession) -> None:
    output = session.run("SELECT POWER(tm2 - INTERVAL -1 HOUR, i) FROM t", 60.0).output
    assert "'pow((`d`.`t`.`tm2` - interval -1 hour),`d`.`t`.`i`)'" in output
