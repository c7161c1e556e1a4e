"""Values and errors of kinds in which generated statements differed from a server, or from MySQL's
manual where MariaDB differs from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from hostile.sql.tables import DUMP
from intercode_sql import SqlSession
from intercode_sql.dialect.parser import parse
from support.sql_engines import embedded_session

E = "Error executing query: "
CANNOT = E + "The embedded engine cannot do this"


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
    ("expression", "text"),
    [
        ("i NOT BETWEEN 5 AND 6", "(`d`.`t`.`i` not between 5 and 6)"),
        ("v NOT IN ('Ann', 'b')", "(`d`.`t`.`v` not in ('Ann','b'))"),
        ("v NOT LIKE '%'", "(not((`d`.`t`.`v` like '%')))"),
        ("NOT i", "(0 = `d`.`t`.`i`)"),
        ("i AND d = 0", "((0 <> `d`.`t`.`i`) and (`d`.`t`.`d` = 0))"),
        ("NOT i = 5", "(`d`.`t`.`i` <> 5)"),
        ("CHAR(48, 65)", "char(48,65)"),
        ("INSTR(v, 'zz')", "locate('zz',`d`.`t`.`v`)"),
        ("MID(v, 1, 2)", "substr(`d`.`t`.`v`,1,2)"),
        ("OCT(v)", "conv(`d`.`t`.`v`,10,8)"),
        ("POSITION('zz' IN v)", "locate('zz',`d`.`t`.`v`)"),
        ("ISNULL(i)", "(`d`.`t`.`i` is null)"),
        ("SUBSTRING(v FROM 1)", "substr(`d`.`t`.`v`,1)"),
        ("'a\\'b'", "'a\\'b'"),
        ("TRIM(LEADING 'A' FROM v)", "trim(leading 'A' from `d`.`t`.`v`)"),
        ("TIMESTAMPADD(DAY, 0, '0') AND 0", "((0 <> ('0' + interval 0 day)) and (0 <> 0))"),
        ("ROW(1, 2) = ROW(1, 3)", "((1,2) = (1,3))"),
    ],
)
def test_the_text_of_an_expression_in_an_error(
    session: SqlSession, expression: str, text: str
) -> None:
    output = session.run(f"SELECT COT({expression}) FROM t WHERE id = 1", 60.0).output
    assert output == f"{E}DOUBLE value is out of range in 'cot({text})'"


@pytest.mark.parametrize(
    ("expression", "rows", "value"),
    [
        ("HOUR(2147483647)", "id = 1", None),
        ("EXTRACT(HOUR FROM bi)", "id = 5", None),
        ("CAST(x AS TIME)", "id = 2", None),
        ("HOUR(8385959)", "id = 1", 838),
        ("HOUR(20200615123045)", "id = 1", 12),
        ("MONTH('0')", "id = 1", None),
        ("MONTH(0)", "id = 1", 0),
        ("EXTRACT(WEEK FROM 0)", "id = 1", 613566757),
        ("DATE_FORMAT(x, '%T.%f')", "id = 1", "00:00:00.100000"),
        ("DATE_FORMAT(0, '%X %x %r')", "id = 1", "0000 0001 12:00:00 AM"),
        ("DATE_FORMAT('0000-00-00', '%U %v %D')", "id = 1", "613566757 01 0th"),
        ("DATE_FORMAT(0, '%a')", "id = 1", None),
        ("DATE_FORMAT('100:00:00', '%X %x %u %w')", "id = 1", "0100 0100 613566752 1"),
        ("DATE_FORMAT('2001-00-05', '%j')", "id = 1", None),
        ("-'-1'", "id = 1", 1.0),
        ("TIME_FORMAT(tm, '%X')", "id = 1", None),
        ("CASE bi WHEN y THEN l ELSE UNHEX('C3A4') END", "id = 1", "\u00e4"),
        ("DATE_FORMAT(0.9999999, '%T.%f')", "id = 1", "00:00:01.000000"),
        ("DATE_FORMAT('11111100100', '%Y %k')", "id = 1", "2011 0"),
        ("CAST('20011' AS DATE)", "id = 1", dt.date(2020, 1, 1)),
        ("CAST('2020.06.15' AS DATE)", "id = 1", dt.date(2020, 6, 15)),
        ("CAST('2020-06-15-12-30' AS DATETIME)", "id = 1", dt.datetime(2020, 6, 15, 12, 30)),
        ("CAST('20200615T123045' AS DATETIME)", "id = 1", dt.datetime(2020, 6, 15, 12, 30, 45)),
        ("CAST('2001 02-03' AS DATE)", "id = 1", None),
        ("CAST('2020' AS DATE)", "id = 1", None),
        ("LOCATE('', '\u00c4pfel', 5)", "id = 1", 6),
        ("LOCATE('', '\u00c4pfel', 7)", "id = 1", 0),
        ("LOCATE('', 'abc', 4)", "id = 1", 4),
        ("SUBSTRING_INDEX(v, 'n', x)", "id = 2", ""),
        ("SUBSTRING_INDEX('a.b', '.', 1.7e100)", "id = 1", "b"),
        ("0 DIV 1e-81", "id = 1", 0),
        ("0 DIV 1e-82", "id = 1", None),
        ("CONCAT(i % tm2)", "id = 2", "0.00"),
        ("CONCAT(TIME('12:30:45.5') / 2)", "id = 1", "61522.75000"),
        ("CASE WHEN d0 THEN CONVERT(b1, SIGNED) ELSE (b1 > b1) END", "id = 1", 1),
        ("-bi >= CAST(ub AS CHAR)", "id = 2", 1),
        ("bi = '9223372036854775807'", "id = 5", 1),
        ("bi = '9'", "id = 5", 0),
    ],
)
def test_numbers_and_moments(
    session: SqlSession, expression: str, rows: str, value: object
) -> None:
    assert values(session, expression, rows) == [value]


@pytest.mark.parametrize(
    ("test", "ids"),
    [
        ("c BETWEEN vbin AND 0xff", [1, 3, 5, 6, 7, 8]),
        ("LEFT(c, 3) BETWEEN vbin AND 0x00ff", [3]),
        ("c IN (vbin, 0xff)", [3, 6, 7]),
        ("CASE c WHEN vbin THEN 1 WHEN 0xff THEN 2 END", [3, 6, 7]),
        ("bn <= ANY (SELECT s.v FROM s)", [1, 3, 6]),
        ("vbin < ALL (SELECT v FROM s WHERE k > 9)", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("vbin < ALL (SELECT v FROM s WHERE v > '')", [1, 2, 3, 5, 6, 7]),
        ("vbin >= ALL (SELECT s.v FROM s)", []),
    ],
)
def test_texts_beside_bytes_are_compared_as_bytes(
    session: SqlSession, test: str, ids: list[int]
) -> None:
    assert values(session, "id", test) == ids


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("JSON_EXTRACT('{\"a\": 7}', '$.a') = 7.0", 1),
        ("JSON_EXTRACT('[\"x\"]', '$[0]') = 'x'", 1),
        ("JSON_EXTRACT('[\"x\"]', '$[0]') IN ('y', 'x')", 1),
        ("js = '7'", 0),
        ("js > 5", 1),
        ("js IN (6, 7)", 1),
        ("NULLIF(js, 7.0)", None),
        ("CASE js WHEN 7 THEN 'a' END", "a"),
    ],
)
def test_documents_are_compared_by_type_and_value(
    session: SqlSession, expression: str, value: object
) -> None:
    """Comparison and Ordering of JSON Values (json.html)."""
    assert values(session, expression, "id = 5") == [value]


def test_the_order_of_documents_beside_numbers(session: SqlSession) -> None:
    assert values(session, "id", "js > 5") == [1, 2, 3, 5, 6, 7]  # not the document null
    assert values(session, "id", "js < 'zzz'") == [3, 5, 8]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc", 'Invalid value." at position 0'),
        ("", 'The document is empty." at position 0'),
        ("[1] 2", 'The document root must not be followed by other values." at position 4'),
    ],
)
def test_a_text_that_is_no_document(session: SqlSession, text: str, message: str) -> None:
    """json-function-reference.html"""
    for name, path in (("length", ""), ("extract", ", '$'")):
        output = session.run(f"SELECT JSON_{name}('{text}'{path})", 60.0).output
        want = f'Invalid JSON text in argument 1 to function json_{name}: "{message}.'
        assert output == E + want
    assert values(session, "JSON_UNQUOTE('abc')") == ["abc"]
    assert "Incorrect type for argument 1" in session.run("SELECT JSON_UNQUOTE(1)", 60.0).output


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("SELECT 'a' UNION SELECT CAST(NULL AS BINARY(4))", [b"a", None]),
        ("SELECT 1 UNION SELECT CAST(NULL AS CHAR)", ["1", None]),
        ("SELECT b1 FROM t WHERE id = 1 UNION SELECT CAST('Ab' AS BINARY)", [b"1", b"Ab"]),
        (
            "SELECT b1 FROM t WHERE id = 1 UNION SELECT COALESCE(vbin, 'a') FROM t WHERE id = 6",
            [b"1", b"10"],
        ),
        ("SELECT 'a' UNION SELECT ('2020x' / 20200615123045)", ["a", "9.999695492913828e-11"]),
        ("SELECT 'a' UNION SELECT 1.5e-7", ["a", "0.00000015"]),
        ("SELECT DISTINCT (ub && FALSE) FROM t ORDER BY 1", [0]),
        ("SELECT (ub AND 0) AS a FROM t WHERE id > 6 ORDER BY a", [0, 0]),
    ],
)
def test_columns_of_results(session: SqlSession, code: str, found: list[object]) -> None:
    assert column(session, code) == found


@pytest.mark.parametrize(
    "code",
    [
        "SELECT 1 AS a UNION SELECT COALESCE(bn, i) FROM t",
        "SELECT id, ub / tm FROM t",
        "SELECT f AS a FROM t EXCEPT SELECT CASE WHEN 5 THEN 0e0 ELSE bn END FROM t",
    ],
)
def test_what_has_a_width_or_digits_that_are_not_known_is_refused(
    session: SqlSession, code: str
) -> None:
    assert session.run(code, 60.0).output.startswith(CANNOT)


@pytest.mark.parametrize(
    "call",
    [
        "CONCAT(1, SELECT 2)",
        "COALESCE(SELECT 2)",
        "GREATEST(1, SELECT 2)",
        "COUNT(SELECT 2)",
    ],
)
def test_a_subquery_as_an_argument_has_brackets_of_its_own(session: SqlSession, call: str) -> None:
    output = session.run(f"SELECT {call} FROM t", 60.0).output
    assert "right syntax to use near 'SELECT 2) FROM t' at line 1" in output
    assert column(session, "SELECT CONCAT((SELECT 2), 1)") == ["21"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("LN(f)", "Invalid argument for logarithm"),
        ("LOG(2, i)", "Invalid argument for logarithm"),
        ("LOG(id, 2)", "Invalid argument for logarithm"),
        ("CONVERT(da, BINARY(4))", "Truncated incorrect BINARY(4) value: '2001-02-03'"),
        ("CAST(2 AS DATETIME)", "Incorrect datetime value: '2'"),
        ("CAST(d AS DATE)", "Incorrect datetime value: '1.500'"),
        ("HOUR(99999999)", "Truncated incorrect time value: '99999999'"),
        ("'99-12-31' + INTERVAL '1:2' SECOND", "Truncated incorrect DECIMAL value: '1:2'"),
    ],
)
def test_strict_statements_end_at(changed: SqlSession, expression: str, message: str) -> None:
    output = changed.run(f"CREATE TABLE z AS SELECT {expression} AS a FROM t", 60.0).output
    assert output == E + message
    assert changed.run(f"SELECT {expression} AS a FROM t", 60.0).ok


def test_a_double_in_a_column_of_bits_is_cut(changed: SqlSession) -> None:
    assert changed.run("UPDATE t SET b1 = f, bt = d WHERE id = 1", 60.0).ok
    assert values(changed, "CONCAT(b1 + 0, '-', bt + 0)") == ["1-2"]  # 1.5 and 1.500


def test_a_number_beyond_all_times_is_not_stored_as_zero(changed: SqlSession) -> None:
    assert changed.run("UPDATE IGNORE t SET tm2 = 1e20", 60.0).output.startswith(CANNOT)


def test_tables_are_renamed_all_or_none(session: SqlSession) -> None:
    def tables() -> list[object]:
        return column(session, "SHOW TABLES")

    assert session.run("RENAME TABLE t TO a, s TO b, d.a TO `c`", 60.0).ok
    assert tables() == ["b", "c"]
    assert session.run("RENAME TABLES c TO t, b TO s", 60.0).ok
    for code, message in (
        ("RENAME TABLE t TO a, s TO b, nope TO c", "Table 'd.nope' doesn't exist"),
        ("RENAME TABLE t TO a, s TO a", "Table 'a' already exists"),
        ("RENAME TABLE t TO nodb.t", "Unknown database 'nodb'"),
    ):
        assert session.run(code, 60.0).output == E + message
        assert tables() == ["s", "t"]
    for code, near in (
        ("RENAME TABLE t u", "u"),
        ("RENAME TABLE t TO u,", ""),
        ("RENAME t TO u", "t TO u"),
    ):
        assert f"right syntax to use near '{near}'" in session.run(code, 60.0).output


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("SELECT y + bi FROM t ORDER BY dt DESC, id LIMIT 2 OFFSET 1", [2024, 2032]),
        ("SELECT t.u - s.k FROM t JOIN s ON t.i = s.i ORDER BY t.id, s.k LIMIT 1", [2]),
        ("SELECT q.a + 1 FROM (SELECT bi AS a, id FROM t) q ORDER BY q.id LIMIT 1", [2]),
    ],
)
def test_columns_are_computed_of_the_rows_that_limit_leaves(
    session: SqlSession, code: str, found: list[object]
) -> None:
    """ORDER BY and LIMIT come first (limit-optimization.html)."""
    assert column(session, code) == found
    whole = session.run(code.partition(" LIMIT ")[0], 60.0).output
    assert "value is out of range" in whole


@pytest.mark.parametrize(
    ("windows", "over", "found"),
    [
        ("w AS (PARTITION BY e)", "(w ORDER BY id)", [1, 1, 1, 1, 2, 2, 2, 3]),
        (
            "w AS (PARTITION BY e), z AS (w ORDER BY id)",
            "(z ROWS 1 PRECEDING)",
            [1, 1, 1, 1, 2, 2, 2, 2],
        ),
        ("w AS (ORDER BY id ROWS 1 PRECEDING)", "w", [1, 2, 2, 2, 2, 2, 2, 2]),
    ],
)
def test_a_window_that_depends_on_another(
    session: SqlSession, windows: str, over: str, found: list[int]
) -> None:
    code = f"SELECT id, COUNT(*) OVER {over} FROM t WINDOW {windows} ORDER BY id"
    assert column(session, code) == found


@pytest.mark.parametrize(
    ("windows", "over", "message"),
    [
        ("w AS (ORDER BY e)", "nope", "Window name 'nope' is not defined."),
        ("w AS (w)", "w", "There is a circularity in the window dependency graph."),
        (
            "w AS (PARTITION BY e)",
            "(w PARTITION BY id)",
            "A window which depends on another cannot define partitioning.",
        ),
        (
            "w AS (ROWS 1 PRECEDING)",
            "(w ORDER BY id)",
            "Window 'w' has a frame definition, so cannot be referenced by another window.",
        ),
        (
            "w AS (ORDER BY e)",
            "(w ORDER BY id)",
            "Window '<unnamed window>' cannot inherit 'w' since both contain an ORDER BY clause.",
        ),
    ],
)
def test_a_window_that_cannot_depend_on_another(
    session: SqlSession, windows: str, over: str, message: str
) -> None:
    result = session.run(f"SELECT COUNT(*) OVER {over} FROM t WINDOW {windows}", 60.0)
    assert result.output == E + message


def test_a_moving_sum_of_large_integers_does_not_wrap(session: SqlSession) -> None:
    frame = "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"
    result = session.run(f"SELECT SUM(bi) OVER (ORDER BY b1 DESC, id {frame}) FROM t", 60.0)
    assert result.output.startswith(CANNOT)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("FROM_UNIXTIME(1700000000, '%Y %m %D')", "2023 11 14th"),
        ("DATE_FORMAT('2024-02-29', '')", None),
        ("TIME_FORMAT('10:00:00', '')", None),
        (
            "DATE_FORMAT('2006-06-00', '%d %Y %M %m %y %c %e %D %H')",
            "00 2006 June 06 06 6 0 0th 00",
        ),
        ("DATE_FORMAT('2006-00-07 10:11:12', '%d %T')", "07 10:11:12"),
        ("DATE_FORMAT('2006-00-07', '%M')", None),
        ("CONCAT(STR_TO_DATE('10:11:12.5', '%T.%f'))", "10:11:12.500000"),
        ("UNIX_TIMESTAMP(dt3)", Decimal("981173106.789")),
        ("UNIX_TIMESTAMP('2024-01-01 00:00:00.50')", Decimal("1704067200.50")),
        ("UNIX_TIMESTAMP('1969-12-31')", 0),
        ("UNIX_TIMESTAMP('9999-12-31')", 0),
        ("UNIX_TIMESTAMP('0000-00-00')", 0),
        ("UNIX_TIMESTAMP('x')", 0),
        ("UNIX_TIMESTAMP(NULL)", None),
        ("UNIX_TIMESTAMP('3001-01-18 23:59:59')", 32536771199),
        ("UNIX_TIMESTAMP('3001-01-19')", 0),
        ("{d '2024-02-29'}", dt.date(2024, 2, 29)),
        ("{ts '2024-02-29 10:11:12'}", dt.datetime(2024, 2, 29, 10, 11, 12)),
        ("{x 1 + 1}", 2),
        ("{fn CONCAT('a', {x (SELECT 1)})}", "a1"),
        ("LENGTH(CURRENT_TIMESTAMP(0))", 19),
        ("TIMESTAMPADD(SQL_TSI_DAY, 1, '2024-01-31')", "2024-02-01"),
        ("INTERVAL 1 MONTH + '2024-01-31'", "2024-02-29"),
        ("da + INTERVAL 1 DAY + 1", 20010205),
        ("CONCAT(dt + INTERVAL '1' SECOND)", "2001-02-03 04:05:07.000000"),
        ("CONCAT(dt + INTERVAL 1 SECOND)", "2001-02-03 04:05:07"),
        ("CONCAT(dt + INTERVAL e SECOND)", "2001-02-03 04:05:07"),
        ("da >= CONCAT('2001-02-03 12:30:45', '')", 0),
        ("NULLIF(TRUE, y)", None),
        ("CHAR(65 USING utf8mb4)", "A"),
        ("CHAR(228 USING latin1)", "ä"),
        ("CONVERT('é' USING ascii)", "?"),
        ("LENGTH(CONVERT('é' USING latin1))", 1),
        ("'Robert' SOUNDS LIKE 'Rupert'", 1),
        ("UPPER('ßé')", "ßÉ"),
        ("LOWER('ΑΣ')", "ασ"),
        ("ATAN2(1)", 0.7853981633974483),
        ("RAND(1)", 0.40540353712197724),
        ("js->'$.a.b'", "1"),
        ("js->>'$.c'", "x"),
        ("js->'$[last].a'", '{"b": 1}'),
        ("js->'$.\"it''s\"'", None),
        ("JSON_EXTRACT('{\"a\": [1, 2]}', '$.a[*]')", "[1, 2]"),
        ('JSON_EXTRACT(\'{"a": {"b": 3}, "b": 1}\', \'$**.b\')', "[1, 3]"),
        ("JSON_EXTRACT('[1, 2, 3]', '$[0]', '$[2]', '$[9]')", "[1, 3]"),
        ("JSON_EXTRACT('[1, 2, 3]', '$[last-1 to last]')", "[2, 3]"),
        ("JSON_EXTRACT('{\"a b\": 1}', '$.\"a b\"')", "1"),
        ("JSON_EXTRACT('{\"$a\": 1}', '$.$a')", "1"),
        ("JSON_VALID('{\"NaN\": NaN}')", 0),
        ("JSON_VALID('[-Infinity]')", 0),
        ("JSON_VALID('\"NaN\"')", 1),
        ("JSON_LENGTH('{\"a\": [1, 2]}', '$.a')", 2),
        ("REGEXP_LIKE('abc', 'B', 'c')", 0),
        ("REGEXP_REPLACE('abcabc', 'b', 'X', 1, 2)", "abcaXc"),
        ("REGEXP_REPLACE('abc', '(b)', '[$0$1$01$10]')", "a[bbbb0]c"),
        ("REGEXP_REPLACE('abc', 'b', '\\\\q\\\\$1\\\\\\\\1\\\\')", "aq$1\\1c"),
        ("REGEXP_REPLACE('abc', 'b', '\\\\u0041\\\\U0001F600')", "aA\U0001f600c"),
        ("REGEXP_REPLACE('abc', '(x)?b', '<$1>')", "a<>c"),
        ("REGEXP_REPLACE('abc', 'x', '$1')", "abc"),
        ("REGEXP_SUBSTR('abcabc', 'b.', 3)", "bc"),
        ("REGEXP_INSTR('abcabc', 'b', 1, 2, 1)", 6),
    ],
)
def test_values_of_functions(session: SqlSession, expression: str, value: object) -> None:
    assert values(session, expression) == [value]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("SELECT JSON_EXTRACT('[1]', '$x')", "Invalid JSON path expression. The error is around"),
        ("SELECT JSON_LENGTH('[1]', '')", "Invalid JSON path expression. The error is around"),
        (
            "SELECT JSON_EXTRACT('{\"NaN\":NaN}', '$')",
            'Invalid JSON text in argument 1 to function json_extract: "Invalid value." at '
            "position 7.",
        ),
        ("SELECT JSON_LENGTH('[1]', '$[*]')", "In this situation, path expressions may not"),
        ("SELECT REGEXP_INSTR('abc', 'b', 9)", "Index out of bounds in regular expression search."),
        (
            "SELECT REGEXP_REPLACE('abc', 'b', '$1')",
            "Index out of bounds in regular expression search.",
        ),
        ("SELECT REGEXP_REPLACE('abc', 'b', '$')", "A capture group has an invalid name."),
        ("SELECT REGEXP_LIKE('abc', 'b', 'q')", "Incorrect arguments to regexp_like"),
        ("SELECT NTILE(0) OVER () FROM t", "Incorrect arguments to ntile"),
        ("SELECT RAND(1, 2)", "Incorrect parameter count in the call to native function 'RAND'"),
        ("SELECT NOW(7)", "Too-big precision 7 specified for 'now'. Maximum is 6."),
        ("SELECT CURRENT_TIME(9)", "Too-big precision 9 specified for 'curtime'. Maximum is 6."),
        ("SELECT UTC_TIME(7)", "Too-big precision 7 specified for 'utc_time'. Maximum is 6."),
        (
            "SELECT CAST('10:00' AS TIME(7))",
            "Too-big precision 7 specified for 'CAST'. Maximum is 6.",
        ),
        ("SELECT NOW('a')", "You have an error in your SQL syntax"),
        ("SELECT id FROM t FORCE INDEX (nope)", "Key 'nope' doesn't exist in table 't'"),
        ("SELECT v COLLATE nope FROM t", "Unknown collation: 'nope'"),
        (
            "SELECT v COLLATE utf8mb4_bin = v COLLATE utf8mb4_general_ci FROM t",
            "The embedded engine cannot do this: the error of an illegal mix",
        ),
        (
            "SELECT 'a', 1 /* b",
            "You have an error in your SQL syntax; check the manual that corresponds to your MySQL "
            "server version for the right syntax to use near '/* b' at line 1",
        ),
        ("WITH a AS (SELECT 1), A AS (SELECT 2) SELECT 3", "Not unique table/alias: 'A'"),
        (
            "SELECT COT(d0 IN (0)) FROM t",
            "DOUBLE value is out of range in 'cot((`d`.`t`.`d0` = 0))'",
        ),
    ],
)
def test_errors(session: SqlSession, code: str, message: str) -> None:
    assert session.run(code, 60.0).output.startswith(E + message)


def test_a_constant_seed_gives_each_row_the_next_number(session: SqlSession) -> None:
    code = "SELECT RAND(3), RAND(3), RAND(id) FROM t WHERE id < 3 ORDER BY id"
    rows = session.run(code, 60.0).rows or ()
    assert [row[:2] for row in rows] == [(0.9057697559760601,) * 2, (0.37307905813034536,) * 2]
    assert rows[0][2] == 0.40540353712197724


def test_distinct_values_of_group_concat_are_sorted(session: SqlSession) -> None:
    assert column(session, "SELECT GROUP_CONCAT(DISTINCT e) FROM t") == ["low,mid,high"]
    assert column(session, "SELECT GROUP_CONCAT(DISTINCT i) FROM t") == ["-7,-1,0,5,10,2147483647"]


def test_indexes_that_a_query_names(session: SqlSession) -> None:
    code = "SELECT id FROM t FORCE INDEX (PRIMARY, v) USE INDEX () WHERE id < 3 ORDER BY id"
    assert column(session, code) == [1, 2]


def test_settings_of_a_session(tmp_path: Path) -> None:
    with embedded_session(tmp_path, DUMP, "d") as session:
        session.run("SET SESSION group_concat_max_len = 5, @a = 1, @b = @a", 60.0)
        assert column(session, "SELECT GROUP_CONCAT(v ORDER BY id) FROM t") == ["Ann,b"]
        assert column(session, "SELECT @b") == [None]
        session.run("SET sql_mode = 'NO_UNSIGNED_SUBTRACTION', group_concat_max_len = 9", 60.0)
        assert column(session, "SELECT GROUP_CONCAT(v ORDER BY id) FROM t") == ["Ann,bob,,"]
        assert column(session, "SELECT CAST(1 AS UNSIGNED) - 2") == [-1]


def test_a_row_is_stored_in_variables(session: SqlSession) -> None:
    session.run("SELECT i, da INTO @a, @B FROM t WHERE id = 1", 60.0)
    session.run("SELECT 'INTO @c' INTO @c", 60.0)
    session.run("SELECT 8 FROM t WHERE id = 1 FOR UPDATE INTO @d", 60.0)
    session.run("SELECT ((id)) FROM t WHERE id = 1 INTO @f FOR UPDATE", 60.0)
    session.run("SELECT 1 AS x UNION SELECT 9 ORDER BY x DESC LIMIT 1 INTO @e", 60.0)
    session.run("SELECT 7 FROM t WHERE id = 99 INTO @a", 60.0)  # no row changes nothing
    rows = session.run("SELECT @a, @b, @c, @d, @e, @f", 60.0).rows
    assert rows == ((5, "2001-02-03", "INTO @c", 8, 9, 1),)


def test_variables_with_quoted_names(session: SqlSession) -> None:
    session.run("""SELECT 1, 2, 3, 4 INTO @`My var`, @'it''s', @"q\\"r", @`a``b`""", 60.0)
    session.run("(SELECT 5 AS `into` INTO@`own`)", 60.0)
    rows = session.run("""SELECT @`my VAR`, @'it\\'s', @'q"r', @'a`b', @own""", 60.0).rows
    assert rows == ((1, 2, 3, 4, 5),)
    session.run("""SET @`my var` = 6, @'it''s' = @`my var`, @"x, y" = 7""", 60.0)
    assert session.run("""SELECT @'my var', @`it's`, @`x, y`""", 60.0).rows == ((6, 1, 7),)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("SELECT {d}", "near '}' at line 1"),
        ("SELECT {d }, 1", "near '}, 1' at line 1"),
        ("SELECT { 1 }", "near '1 }' at line 1"),
        ("SELECT {x 1 2}", "near '2}' at line 1"),
        ("SELECT CURRENT_DATE(3)", "near '3)' at line 1"),
        ("SELECT js->'' FROM t", "Invalid JSON path expression"),
        ("SELECT js->'$.a b' FROM t", "Invalid JSON path expression"),
    ],
)
def test_forms_and_paths_that_are_refused(session: SqlSession, code: str, message: str) -> None:
    assert message in session.run(code, 60.0).output


def test_a_path_in_a_document_stays_as_it_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (item,) = parse("SELECT js->'$.it''s' FROM t").expressions
    assert item.expression.name == "$.it's"
    assert caplog.messages == []


MISPLACED = "Misplaced INTO clause, INTO is not allowed inside subqueries"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("SELECT id FROM t WHERE id IN (SELECT 1 INTO @n)", MISPLACED),
        ("SELECT * FROM (SELECT 1 INTO @n) x", MISPLACED),
        ("WITH x AS (SELECT 1 INTO @n) SELECT 2", MISPLACED),
        ("(SELECT 1 INTO @n) UNION SELECT 2", MISPLACED),
        ("SELECT 1 INTO @n UNION SELECT 2", MISPLACED),
        ("SELECT 1 FROM t INTO @n UNION SELECT 2", "near 'UNION SELECT 2' at line 1"),
        ("SELECT 1 FROM t WHERE id IN (SELECT id FROM t INTO @n)", "near 'INTO @n)' at line 1"),
        ("SELECT 1 FROM t INTO @n WHERE id = 1", "near 'WHERE id = 1' at line 1"),
        ("SELECT 1 INTO @@sql_mode", "near '@sql_mode' at line 1"),
        ("SELECT 1 INTO @ n", "near 'n' at line 1"),
        ("SELECT 1, 2 INTO @n, m", "Undeclared variable: m"),
        ("SELECT 1 INTO m", "Undeclared variable: m"),
        ("SELECT 1 INTO @n INTO @n", "Multiple INTO clauses in one query block."),
        ("SELECT 1 INTO @n FROM t INTO @n", "Multiple INTO clauses in one query block."),
        ("SELECT 1 FROM t INTO @n INTO @n", "near 'INTO @n' at line 1"),
        ("(SELECT 1 FROM t INTO @n) UNION SELECT 2", "You have an error in your SQL syntax"),
        ("INSERT INTO t (id) SELECT 9 INTO @n", MISPLACED),
        ("INSERT INTO t (id) SELECT id FROM t INTO @n", "near 'INTO @n' at line 1"),
    ],
)
def test_variables_that_a_query_cannot_store(session: SqlSession, code: str, message: str) -> None:
    assert message in session.run(code, 60.0).output
    assert column(session, "SELECT @n") == [None]


def test_variables_hold_the_digits_of_a_moment(session: SqlSession) -> None:
    session.run("SELECT dt3, tm2 INTO @a, @b FROM t WHERE id = 6", 60.0)
    session.run("SET @c = (SELECT dt3 FROM t WHERE id = 1), @d = CAST('100:00:00' AS TIME)", 60.0)
    rows = session.run("SELECT @a, @b, @c, @d", 60.0).rows
    moments = "2020-06-15 12:30:45.120", "01:02:03.00", "2001-02-03 04:05:06.789", "100:00:00"
    assert rows == (moments,)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("SELECT id INTO @a FROM t", "Result consisted of more than one row"),
        ("SELECT 1, 2 INTO @a", "The used SELECT statements have a different number of columns"),
        ("UPDATE t SET id = NULL WHERE id = 1", "Column 'id' cannot be null"),
    ],
)
def test_what_is_not_stored(changed: SqlSession, code: str, message: str) -> None:
    assert changed.run(code, 60.0).output == E + message


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT id, v FROM t WHERE id < 3", CANNOT),
        ("SELECT COUNT(*) AS v FROM t", E + "The target table z of the UPDATE is not updatable"),
        ("SELECT DISTINCT v FROM t", E + "The target table z of the UPDATE is not updatable"),
    ],
)
def test_a_view_that_is_written_to(tmp_path: Path, query: str, answer: str) -> None:
    with embedded_session(tmp_path, DUMP, "d") as session:
        session.run(f"CREATE VIEW z AS {query}", 60.0)
        assert session.run("UPDATE z SET v = 'x'", 60.0).output.startswith(answer)


@pytest.mark.parametrize(
    ("statements", "answer"),
    [
        (["SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 2", "SELECT FOUND_ROWS()"], "[(8,)]"),
        (["SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 9, 1", "SELECT FOUND_ROWS()"], "[(8,)]"),
        (["SELECT 'SQL_CALC_FOUND_ROWS' FROM t LIMIT 2", "SELECT FOUND_ROWS()"], "[(2,)]"),
        (
            ["SELECT SQL_CALC_FOUND_ROWS DISTINCT b1 FROM t LIMIT 1", "SELECT FOUND_ROWS()"],
            "[(3,)]",
        ),
        (["SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1 INTO @x"], "SQL_CALC_FOUND_ROWS with INTO"),
        (
            ["SELECT SQL_CALC_FOUND_ROWS id FROM t UNION SELECT 9 LIMIT 1"],
            "SQL_CALC_FOUND_ROWS in a part",
        ),
        (["SELECT 1 FROM t2", "SELECT @@error_count"], "cannot do this: @@error_count"),
        (["SELECT N'a' 'b'"], "[('ab',)]"),
        (["SELECT SUM(id) AS n FROM t GROUP BY 1"], E + "Can't group on 'n'"),
        (["SELECT 0 AND EXP(1000), 1 OR POW(10, 400)"], "[(0, 1)]"),
        (["SELECT JSON_VALID('{') AND JSON_EXTRACT('{', '$')"], "[(0,)]"),
        (
            ["SELECT id FROM t AS a JOIN t AS b JOIN t AS c USING (id)"],
            E + "Column 'id' in from clause is ambiguous",
        ),
        (["START TRANSACTION READ ONLY, READ WRITE"], "near '' at line 1"),
        (["COMMIT AND CHAIN RELEASE"], "near 'RELEASE' at line 1"),
        (["ROLLBACK AND CHAIN RELEASE"], "near 'RELEASE' at line 1"),
        (["SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'"], "cannot do this: sql_mode PAD_CHAR"),
        (
            ["SELECT 1 FROM t2", "SHOW WARNINGS"],
            "[('Error', 1146, \"Table 'd.t2' doesn't exist\")]",
        ),
        (["SELECT 1 FROM t2", "SHOW COUNT(*) ERRORS"], "[(1,)]"),
        (["SELECT id + 1 FROM t", "SHOW WARNINGS"], "[]"),
        (["SELECT 1/0", "SHOW WARNINGS"], "cannot do this: SHOW WARNINGS"),
        (["SELECT 1/0", "SHOW ERRORS"], "[]"),
        (
            ["SELECT v, COUNT(*), MAX(x) FROM t WHERE id IN (1, 2) GROUP BY v", "SHOW WARNINGS"],
            "[]",
        ),
        (["SELECT 1 FROM t2", "SHOW WARNINGS LIMIT 1, 1"], "[]"),
        (["SELECT 1 FROM t2", "SHOW WARNINGS LIMIT 0, 1"], "[('Error', 1146"),
        (["UPDATE IGNORE t SET u = '-3' WHERE id = 1", "SELECT u FROM t WHERE id = 1"], "[(0,)]"),
    ],
)
def test_what_a_session_remembers_and_refuses(
    changed: SqlSession, statements: list[str], answer: str
) -> None:
    *before, last = statements
    for code in before:
        changed.run(code, 60.0)
    assert answer in changed.run(last, 60.0).output


@pytest.mark.parametrize(
    "code",
    [
        "SELECT GROUP_CONCAT(v) FROM t",
        "INSERT INTO z VALUES (1.555)",
        "UPDATE z SET a = 1.555",
        "CREATE TABLE z2 (a INT, KEY b (a), KEY c (a))",
        "SET sql_mode = @@sql_mode",
        "SELECT SQL_NO_CACHE id FROM t",
        "SELECT !1",
        "SELECT ! 1 FROM t2",
        "SELECT UNIX_TIMESTAMP('x')",
        "SELECT CAST('x' AS CHAR(3))",
        "SELECT id FROM t WHERE id = 9 INTO @x",
        "SELECT * FROM y",
    ],
)
def test_statements_of_which_the_warnings_are_unknown(changed: SqlSession, code: str) -> None:
    changed.run("CREATE TABLE z (a DECIMAL(5,2))", 60.0)
    changed.run("CREATE OR REPLACE VIEW y AS SELECT GROUP_CONCAT(v) FROM t", 60.0)
    changed.run(code, 60.0)
    assert f"{CANNOT}: SHOW WARNINGS" in changed.run("SHOW WARNINGS", 60.0).output
    changed.run("DROP VIEW y", 60.0)
    changed.run("DROP TABLE IF EXISTS z2", 60.0)


DEFAULTS = "a INT DEFAULT 5, b VARCHAR(9) DEFAULT 'x', c BIT(3) DEFAULT b'101', d INT NOT NULL"


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("INSERT INTO z VALUES (DEFAULT(a) + 1, DEFAULT(b), DEFAULT(c), 1)", (6, "x", 5)),
        ("INSERT INTO z VALUES (1, 'y', 1, 1)", (1, "y", 1)),
        ("INSERT INTO z (d) SELECT DEFAULT(i) + 1 FROM t", None),
        ("INSERT INTO z (d) SELECT DEFAULT(id) + 1 FROM t LIMIT 1", (5, "x", 5)),
    ],
)
def test_the_default_of_a_column(changed: SqlSession, code: str, rows: object) -> None:
    changed.run(f"CREATE TABLE z ({DEFAULTS})", 60.0)
    changed.run(code, 60.0)
    found = changed.run("SELECT a, b, c FROM z", 60.0).rows
    assert found == ((rows,) if rows else ())
    changed.run("UPDATE z SET a = DEFAULT(a) * 2, b = DEFAULT, c = DEFAULT", 60.0)
    found = changed.run("SELECT a, b, c, DEFAULT(a), DEFAULT(b), DEFAULT(c) FROM z", 60.0).rows
    assert found == (((10, "x", 5, 5, "x", 5),) if rows else ())


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("SELECT DEFAULT(a) FROM z", E + "DEFAULT function cannot be used with default value"),
        ("INSERT INTO z (b) VALUES (DEFAULT(a))", E + "DEFAULT function cannot be used"),
        ("SELECT DEFAULT(m) FROM z", CANNOT),
        ("UPDATE z SET a = DEFAULT", "None"),
    ],
)
def test_the_default_of_a_column_that_is_an_expression(
    changed: SqlSession, code: str, answer: str
) -> None:
    defaults = "a INT DEFAULT (1 + 2), b INT, m DATETIME DEFAULT CURRENT_TIMESTAMP"
    changed.run(f"CREATE TABLE z ({defaults})", 60.0)
    assert changed.run(code, 60.0).output.startswith(answer)


def test_the_entry_that_a_primary_key_of_texts_finds_twice(changed: SqlSession) -> None:
    changed.run("CREATE TABLE z (a VARCHAR(5))", 60.0)
    changed.run("INSERT INTO z VALUES ('b'), ('a'), ('a')", 60.0)
    output = changed.run("ALTER TABLE z ADD PRIMARY KEY (a)", 60.0).output
    assert output == f"{E}Duplicate entry 'a' for key 'z.PRIMARY'"


@pytest.mark.parametrize(
    "code",
    [
        "CASE WHEN " * 3_900 + "1" + " THEN 1 END" * 3_900,
        "CASE WHEN " * 10_000 + "1" + " THEN 1 END" * 10_000,
        "1" + " BETWEEN 1 AND 1" * 60,
    ],
)
def test_a_long_chain_is_refused(session: SqlSession, code: str) -> None:
    assert session.run(f"SELECT {code}", 60.0).output.startswith(CANNOT)


@pytest.mark.parametrize(
    ("rows", "entry"),
    [("(2), (2), (1), (1)", "2"), ("(1), (2), (2), (1)", "1"), ("(NULL), (NULL), (7), (7)", "7")],
)
def test_the_entry_that_a_new_key_finds_twice(changed: SqlSession, rows: str, entry: str) -> None:
    changed.run("CREATE TABLE z (a INT)", 60.0)
    changed.run(f"INSERT INTO z VALUES {rows}", 60.0)
    output = changed.run("ALTER TABLE z ADD UNIQUE (a)", 60.0).output
    assert output == f"{E}Duplicate entry '{entry}' for key 'z.a'"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("PI() * 2", 6.283185),
        ("CONCAT(PI())", "3.141593"),
        ("CONCAT(FLOOR(1.7e100))", "17" + 99 * "0"),
        ("TO_SECONDS('2020-01-01 10:00:00.5')", 63745092000),
        ("TO_SECONDS(950501)", 62966505600),
        ("UUID() LIKE '________-____-1___-____-____________' AND UUID() <> UUID()", 1),
        ("JSON_ARRAY(1, 'a', NULL, TRUE, 1.50, JSON_ARRAY())", '[1, "a", null, true, 1.50, []]'),
        ("JSON_ARRAY(1.5e-5, 1.5e-10, 1e15, 1e0)", "[0.000015, 0.00000000015, 1e15, 1.0]"),
        ("JSON_EXTRACT('[1.5e-5, 1e15]', '$')", "[0.000015, 1e15]"),
        ("JSON_ARRAY(JSON_ARRAY(1.50))", "[[1.50]]"),
        ("JSON_ARRAY(1 = 1, NOT 0, (id IS NULL), NULL = 1, id)", "[true, true, false, null, 1]"),
        ("JSON_ARRAY(CASE WHEN id = 1 THEN JSON_ARRAY(1) ELSE js END)", "[[1]]"),
        ("JSON_ARRAY(IF(id = 1, NULL, js))", "[null]"),
        ("JSON_ARRAY(1) = JSON_ARRAY(1.0)", 1),
        ("JSON_ARRAY(1) = JSON_ARRAY(TRUE)", 0),
        ("JSON_ARRAY(1) = JSON_ARRAY('1')", 0),
        ("JSON_ARRAY(0) IN (JSON_ARRAY(2), JSON_ARRAY(-0e0))", 1),
        ("JSON_OBJECT('a', 1, 'b', 2) = JSON_EXTRACT('{\"b\": 2.0, \"a\": 1}', '$')", 1),
        ("JSON_ARRAY(js, d, x)", '[{"a": {"b": 1}, "c": "x"}, 1.500, 0.1]'),
        ("JSON_OBJECT('cc', 1, 'b', 'x\"y', 'b', NULL)", '{"b": null, "cc": 1}'),
        ("JSON_EXTRACT(JSON_OBJECT('a', JSON_ARRAY(1, 2)), '$.a[1]')", "2"),
        ("TIMESTAMPADD(SECOND, dt, da)", None),
        ("'2020-01-01' + INTERVAL TIME'00:01:02' SECOND", "2020-01-01 00:01:42"),
        ("REPEAT('ab', FALSE ^ -2)", None),
        ("LEFT('ab', FALSE ^ -2)", "ab"),
        ("ADDDATE(CAST('1010' AS UNSIGNED), 1)", "2000-10-11"),
        ("ADDDATE(da, '1:2')", dt.date(2001, 2, 4)),
        ("SUBDATE(da, 'x')", dt.date(2001, 2, 3)),
        ("CAST(CAST('20200101' AS UNSIGNED) AS DATE)", dt.date(2020, 1, 1)),
    ],
)
def test_functions_and_numbers_of_generated_statements(
    session: SqlSession, expression: str, value: object
) -> None:
    assert values(session, expression) == [value]


@pytest.mark.parametrize(
    "expression",
    [
        "JSON_ARRAY(CASE WHEN id = 1 THEN 'x' ELSE js END)",
        "JSON_ARRAY(IF(id = 1, 'x', js))",
        "JSON_ARRAY(IF(id = 1, 'x', JSON_ARRAY()))",
        "JSON_ARRAY(COALESCE(v, js))",
        "JSON_OBJECT('a', COALESCE(1 = 1, 0))",
        "JSON_ARRAY((SELECT 1 = 1))",
        "JSON_ARRAY(1) < JSON_ARRAY(2)",
    ],
)
def test_a_document_of_which_the_engine_does_not_know_the_value(
    session: SqlSession, expression: str
) -> None:
    assert session.run(f"SELECT {expression} FROM t", 60.0).output.startswith(CANNOT)


def test_a_column_of_truth_values_holds_numbers(changed: SqlSession) -> None:
    changed.run("CREATE TABLE z AS SELECT id AS a FROM t WHERE id = 1", 60.0)
    changed.run("ALTER TABLE z ADD COLUMN b BOOL DEFAULT 1, ADD COLUMN c TINYINT(1)", 60.0)
    assert column(changed, "SELECT JSON_ARRAY(a, b, c) FROM z") == ["[1, 1, null]"]


def test_a_name_that_is_null_is_no_member(session: SqlSession) -> None:
    output = session.run("SELECT JSON_OBJECT(NULL, 1)", 60.0).output
    assert output == f"{E}JSON documents may not contain NULL member names."


def test_a_set_stores_the_number_of_a_quotient(changed: SqlSession) -> None:
    changed.run("UPDATE t SET st = 7 / 2 WHERE id = 1", 60.0)
    assert values(changed, "st + 0") == [3.0]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("SELECT id FROM t WHERE y > (2 > 1) ORDER BY id", [3, 5, 6]),
        ("SELECT id FROM t WHERE y IN (ABS(1), LENGTH('a')) ORDER BY id", [1]),
        ("SELECT id FROM t WHERE y > id AND id < 3 ORDER BY id", [1, 2]),
        ("SELECT id FROM t WHERE vb > ALL (SELECT s.v FROM s WHERE v > '') ORDER BY id", [5, 7, 8]),
        ("SELECT id FROM t WHERE bl BETWEEN bn AND da ORDER BY id", [1, 2, 3, 5, 6, 7, 8]),
        ("SELECT id FROM t ORDER BY COT(0), id DESC LIMIT 2", [8, 7]),
        ("SELECT id FROM t WHERE STRCMP(bl, l) = -1 AND bl = 0xc3a4", [5]),
        (
            "SELECT t.id FROM t JOIN s JOIN s r ON r.k = s.k ON t.i = s.i ORDER BY 1 DESC",
            [7, 7, 6, 2, 1, 1],
        ),
        ("SELECT r.k FROM t LEFT JOIN (s JOIN s r USING (v)) ON t.id = s.k WHERE t.id < 3", [1, 2]),
        ("SELECT DEFAULT(id) FROM t WHERE id = 1", [0]),
        ("SELECT LEAST(tm, ti) FROM t WHERE id = 5", ["12:30:45"]),
        ("SELECT FORMAT(i, 0) AS a FROM t WHERE id > 5 ORDER BY a", ["-1", "10", "5"]),
        ("SELECT id FROM t WHERE v = SPACE(2)", [3]),
        ("SELECT id FROM t WHERE c = RPAD('ab', 4, ' c') OR c = INSERT('b z', 3, 1, '')", [2]),
        ("SELECT MAX(DATE_FORMAT(dt, '%c:%d')) FROM t WHERE id IN (2, 7)", ["12:31"]),
        ("SELECT UNHEX('C3A4') AS a UNION SELECT e FROM t ORDER BY a LIMIT 2", [None, "\u00e4"]),
        ("SELECT INSTR(c, 'e') + 10 * LOCATE('\u00cb', c) FROM t WHERE id = 5", [30]),
        ("SELECT LOCATE('ss', 'a\u00df')", [2]),
        (
            "SELECT 0.5 AS a UNION SELECT bn FROM t WHERE id = 1 ORDER BY a DESC",
            [b"AB\0\0", b"0.5\0"],
        ),
        ("SELECT x FROM t WHERE id = 6 UNION SELECT tm FROM t WHERE id = 8", ["12.5", "12:00:00"]),
        (
            "SELECT x AS a FROM t UNION SELECT tm FROM t ORDER BY a DESC LIMIT 2",
            ["23:59:59", "12.5"],
        ),
        ("SELECT t.i + 1 FROM t WHERE id < 3 GROUP BY i + 1 ORDER BY 1", [-6, 6]),
        ("SELECT AVG(d) / 7 FROM t WHERE id IN (1, 2, 6)", [Decimal("0.44523809514")]),
        ("SELECT AVG(DISTINCT tm2) / 2 FROM t", [Decimal("25311.5685714285")]),
        ("SELECT ELT(id, 'a', v, EXP(12 * x)) FROM t WHERE id < 3", ["a", "bob"]),
    ],
)
def test_rows_of_generated_queries(session: SqlSession, query: str, ids: list[object]) -> None:
    assert column(session, query) == ids


def test_a_join_in_brackets_is_written_to(changed: SqlSession) -> None:
    changed.run("UPDATE t JOIN (s JOIN s r ON r.k = s.k) ON t.id = s.k SET s.v = t.id", 60.0)
    assert column(changed, "SELECT v FROM s ORDER BY k") == ["1", "2", "3", "6", ""]


def test_a_negative_number_has_one_more_digit(changed: SqlSession) -> None:
    changed.run("CREATE TABLE z AS SELECT -u AS a, -y AS b FROM t WHERE id = 3", 60.0)
    assert changed.run("SELECT a, b FROM z", 60.0).rows == ((-4294967295, -2024),)


@pytest.mark.parametrize("number", ["CRC32(v)", "INET_ATON('0.0.0.9')"])
def test_unsigned_numbers_of_functions(session: SqlSession, number: str) -> None:
    output = session.run(f"SELECT 3 - {number} FROM t WHERE id = 1", 60.0).output
    assert output.startswith(f"{E}BIGINT UNSIGNED value is out of range")


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("SELECT DEFAULT(b'1') FROM t", "b'1') FROM t"),
        ("SELECT 1 FROM x'41'", "x'41'"),
        ("CREATE VIEW w AS SELECT id, FROM t", "FROM t"),
        ("CREATE TABLE z AS SELECT id, FROM t", "FROM t"),
    ],
)
def test_the_text_from_a_syntax_error_on(session: SqlSession, code: str, near: str) -> None:
    assert session.run(code, 60.0).output.endswith(f"near '{near}' at line 1")


def test_a_column_of_texts_holds_the_digits_of_a_second(changed: SqlSession) -> None:
    made = "CAST(dt3 AS CHAR) AS a, CONCAT(tm2, 'x') AS b, IF(id > 3, dt3, 'a') AS c"
    changed.run(f"CREATE TABLE z AS SELECT id, {made} FROM t", 60.0)
    (row,) = changed.run("SELECT a, b, c FROM z WHERE id = 6", 60.0).rows or ()
    assert row == ("2020-06-15 12:30:45.120", "01:02:03.00x", "2020-06-15 12:30:45.120")


@pytest.mark.parametrize(
    "order",
    [
        "COUNT(*) / 6 DESC",
        "-COUNT(*)",
        "COUNT(*) + 1 DESC",
        "COUNT(*) DIV 2 DESC",
        "ROUND(COUNT(*) / 3, 2) DESC",
        "COUNT(*) > 1 DESC",
        "IFNULL(COUNT(*), 0) DESC",
        "SUM(1) + 0 DESC",
        "-BIT_XOR(1) DESC",
        "CONCAT(GROUP_CONCAT('a')) DESC",
    ],
)
def test_groups_are_ordered_by_an_expression_of_an_aggregate(
    session: SqlSession, order: str
) -> None:
    expected = [5, None, -7, -1, 0, 10, 2147483647]
    grouped = "FROM t GROUP BY i ORDER BY"
    assert column(session, f"SELECT i {grouped} {order}, i") == expected
    value = order.removesuffix(" DESC")
    named = f"SELECT {value} AS n, i {grouped} {order.replace(value, 'n')}, i"
    assert column(session, named) == expected


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("SELECT id FROM t ORDER BY -ROW_NUMBER() OVER (ORDER BY id) LIMIT 2", [8, 7]),
        ("SELECT id FROM t ORDER BY -(SELECT COUNT(*) FROM s WHERE k <= t.id), id LIMIT 2", [6, 7]),
        ("SELECT id / 6 AS share, id FROM t ORDER BY share DESC LIMIT 2", [8, 7]),
        ("SELECT MIN(id), i / 3 AS a FROM t WHERE id < 3 GROUP BY a ORDER BY 2 DESC", None),
        ("SELECT y FROM t GROUP BY y HAVING y > -COUNT(*) ORDER BY y LIMIT 2", [1970, 1999]),
        ("SELECT y FROM t GROUP BY y HAVING y > COUNT(*) * 50 ORDER BY y LIMIT 2", [1970, 1999]),
        ("SELECT DISTINCT CAST(255 AS UNSIGNED), id FROM t ORDER BY 1, 2 DESC LIMIT 2", [8, 7]),
    ],
)
def test_rows_in_the_order_of_what_varies(
    session: SqlSession, query: str, ids: list[object] | None
) -> None:
    assert column(session, query) == (ids or [Decimal("1.6667"), Decimal("-2.3333")])


YEARS = [1970, 1999, 2000, 2001, 2020, 2024, 2155]


@pytest.mark.parametrize(
    ("condition", "years"),
    [
        ("y >= YEAR('2024-01-01') - 125", YEARS),
        ("y > YEAR(NOW()) - 200", YEARS),
        ("y > FLOOR(18.9) * 100", YEARS),
        ("y > ROUND(1899.6)", YEARS),
        ("y <> ABS(-1800)", YEARS),
        ("y < ABS(-3000)", YEARS),
        ("y > -ABS(5)", YEARS),
        ("y > ABS(-100)", YEARS),
        ("y NOT IN (ABS(-3000), 1)", [year for year in YEARS if year != 2001]),
        ("y BETWEEN ABS(-1) AND ABS(-3000)", YEARS[3:]),
        ("y > SQRT(8)", YEARS[4:]),
        ("y = 1.9e0", [2001]),
        ("y = 0.6e0", []),
        ("y = 0.5", [2001]),
        ("y = '0.5'", [2001]),
        ("y = '-0.4'", []),
        ("y = 2000.6", [2001]),
        ("y = ABS(-2000.6)", [2001]),
        ("y = 2001.6e0", [2001]),
        ("y >= 2155.4e0", []),
        ("y >= 2155.4", [2155]),
        ("y IN (1.9e0, 70.6e0)", [1970, 2001]),
        ("y > RAND() * 0 + 1", YEARS),
        ("ABS(1) IN (SELECT r.y FROM t r) AND y < 1999", [1970]),
    ],
)
def test_a_year_beside_a_constant_of_a_call(
    session: SqlSession, condition: str, years: list[int]
) -> None:
    assert column(session, f"SELECT y FROM t WHERE {condition} ORDER BY y") == years


@pytest.mark.parametrize(
    ("value", "column", "stored"),
    [
        ("-0.001", "u", None),
        ("-0.4", "y", None),
        ("'-0.4'", "u", 0),
        ("-4e-1", "u", 0),
        ("'-0.5'", "u", None),
    ],
)
def test_an_unsigned_column_takes_no_negative_decimal(
    changed: SqlSession, value: str, column: str, stored: int | None
) -> None:
    result = changed.run(f"UPDATE t SET {column} = {value} WHERE id = 1", 60.0)
    if stored is None:
        assert result.output == f"{E}Out of range value for column '{column}' at row 1"
    else:
        assert values(changed, column) == [stored]


def test_a_year_of_the_beginning_of_a_text_is_rounded(changed: SqlSession) -> None:
    changed.run("UPDATE IGNORE t SET y = '70.5x' WHERE id = 1", 60.0)
    assert values(changed, "y") == [1971]


def test_a_number_in_brackets_is_a_position(session: SqlSession) -> None:
    assert column(session, "SELECT id FROM t ORDER BY ((1)) DESC LIMIT 1") == [8]
    assert column(session, "SELECT e, COUNT(*) FROM t WHERE i > 9 GROUP BY (1)") == [1, 1]
    output = session.run("SELECT id FROM t ORDER BY (2)", 60.0).output
    assert output == f"{E}Unknown column '2' in 'order clause'"


def test_an_enum_or_a_set_beside_null_keeps_its_order(session: SqlSession) -> None:
    code = "SELECT {} FROM t WHERE id < 5 UNION SELECT NULL ORDER BY 1"
    assert column(session, code.format("e")) == [None, "low", "mid", "high"]
    assert column(session, code.format("st")) == [None, "", "red", "red,blue"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("FIND_IN_SET('blue', st)", [3, 3, 3]),
        ("FIND_IN_SET(CONCAT('BL', 'ue'), st)", [3, 3, 3]),
        ("FIND_IN_SET(CONCAT(RIGHT(st, 4)), st)", [2, 2, 1]),
        ("FIND_IN_SET('blue', CONCAT(st))", [2, 2, 1]),
        ("FIND_IN_SET('x', st)", [0, 0, 0]),
        ("INTERVAL(id, 2, 6, 6.5)", [1, 2, 3]),
        ("INTERVAL(NULL, 1)", [-1, -1, -1]),
        ("CONVERT_TZ('2012-01-01', '+00:00', '+05:30')", [dt.datetime(2012, 1, 1, 5, 30)] * 3),
        (
            "CONVERT_TZ('2012-01-01 12:00:00.5', '-03:00', '+0:00')",
            [dt.datetime(2012, 1, 1, 15, 0, 0, 500000)] * 3,
        ),
        ("CONVERT_TZ('2012-01-01', '+15:00', '+00:00')", [None] * 3),
        ("CONVERT_TZ('1969-01-01', '+00:00', '+01:00')", [dt.datetime(1969, 1, 1)] * 3),
    ],
)
def test_functions_of_sets_intervals_and_zones(
    session: SqlSession, expression: str, found: list[object]
) -> None:
    assert values(session, expression, "id IN (2, 6, 7)") == found


@pytest.mark.parametrize(
    ("quotient", "value"),
    [
        ("1 / 3", 0.333333333),
        ("SUM(id) / 7", 5.142857142),
        ("ROUND(1 / 3, 4)", 0.3333),
        ("(SELECT 1 / 3)", 0.333333333),
    ],
)
def test_a_quotient_beside_a_double_has_more_digits(
    session: SqlSession, quotient: str, value: float
) -> None:
    assert column(session, f"SELECT {quotient} FROM t UNION SELECT 9e0")[0] == value


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("SHOW FULL TABLES WHERE Table_type = 'VIEW'", []),
        ("SHOW TABLES WHERE Table_type LIKE 'BASE%'", ["s", "t"]),
        ("SHOW INDEX FROM t WHERE Key_name = 'ti'", ["t"]),
        ("SHOW COLUMNS FROM s WHERE Type = 'date'", ["da"]),
        ("SHOW COLUMNS FROM s WHERE `Default` LIKE '%'", []),
    ],
)
def test_what_where_of_show_selects(session: SqlSession, statement: str, names: list[str]) -> None:
    result = session.run(statement, 60.0)
    assert result.rows is not None, result.output
    assert [row[0] for row in result.rows] == names


def test_a_check_is_of_no_counter(changed: SqlSession) -> None:
    code = "CREATE TABLE z (id int AUTO_INCREMENT PRIMARY KEY, CHECK (id > 0))"
    message = "Check constraint 'z_chk_1' cannot refer to an auto-increment column."
    assert changed.run(code, 60.0).output == f"{E}{message}"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("-1e10", b"-1e"),
        ("-123e0", b"-1e"),
        ("-0.5e0", b"0\0\0"),
        ("0.05e0", b"0.1"),
        ("1.7e100", b"2e1"),
        ("12.5e0", b"12\0"),
    ],
)
def test_a_double_that_does_not_fit_is_cut(changed: SqlSession, number: str, text: bytes) -> None:
    changed.run(f"INSERT IGNORE INTO t (id, bn) VALUES (20, {number})", 60.0)
    assert values(changed, "bn", "id = 20") == [text]


def test_a_remainder_of_more_digits_than_a_double_is_refused(session: SqlSession) -> None:
    assert session.run("SELECT MOD(ub / ti, 3) FROM t", 60.0).output.startswith(CANNOT)


@pytest.mark.parametrize("call", ["MONTHNAME('100:00:00')", "DATE_FORMAT('2001-00-00', '%Y')"])
def test_functions_of_parts_take_incomplete_dates_in_strict_statements(
    changed: SqlSession, call: str
) -> None:
    assert changed.run(f"CREATE TABLE z AS SELECT {call} AS a FROM t", 60.0).ok


def test_the_type_of_a_decimal_in_a_document_is_refused(session: SqlSession) -> None:
    code = "SELECT JSON_TYPE(JSON_EXTRACT(JSON_ARRAY({}), '$[0]')) FROM t WHERE id = 1"
    for name in ("d", "da", "dt", "tm"):
        assert session.run(code.format(name), 60.0).output.startswith(CANNOT)
    assert column(session, code.format("i")) == ["INTEGER"]
    assert column(session, "SELECT JSON_TYPE(JSON_ARRAY(d)) FROM t WHERE id = 1") == ["ARRAY"]


@pytest.mark.parametrize(
    "document",
    [
        "a FROM (SELECT JSON_ARRAY(d) AS a FROM t) x",
        "a FROM (SELECT JSON_OBJECT('k', da) AS a FROM t UNION SELECT js FROM t) x",
        "IF(i, js, JSON_ARRAY(tm)) FROM t",
        "JSON_REMOVE(JSON_SET(js, '$.z', d), '$.a') FROM t",
        "JSON_ARRAYAGG(dt) FROM t",
        "JSON_OBJECTAGG(i, d) FROM t WHERE i = 5",
    ],
)
def test_the_type_of_a_date_in_a_document_of_another_query_is_refused(
    session: SqlSession, document: str
) -> None:
    made, _, source = document.partition(" FROM ")
    code = f"SELECT JSON_TYPE(JSON_EXTRACT({made}, '$[0]')) FROM {source}"
    assert session.run(code, 60.0).output.startswith(CANNOT)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("IF(v = 'date', js, js)", "OBJECT"),
        ("JSON_EXTRACT(JSON_OBJECT('date', 1, da, 2), '$.date')", "INTEGER"),
        ("JSON_SET(js, '$.a', 'decimal')", "OBJECT"),
        ("JSON_OBJECT('k', d)", "OBJECT"),
    ],
)
def test_a_word_in_a_document_is_no_type(session: SqlSession, document: str, expected: str) -> None:
    assert column(session, f"SELECT JSON_TYPE({document}) FROM t WHERE id = 1") == [expected]


@pytest.mark.parametrize("pattern", ["[\\\\w-z]", "[a-\\\\d]"])
def test_a_range_of_a_class_is_refused(session: SqlSession, pattern: str) -> None:
    assert session.run(f"SELECT '-' REGEXP '{pattern}'", 60.0).output.startswith(CANNOT)


def test_a_range_in_the_wrong_order_is_an_error(session: SqlSession) -> None:
    for pattern in ("[z-a]", "[\u00e9-a]"):
        answer = session.run(f"SELECT 'b' REGEXP '{pattern}'", 60.0).output
        assert "[x-y] character range where x comes after y" in answer


def test_a_long_part_is_searched_in_a_long_text_in_one_pass(session: SqlSession) -> None:
    part = "a" * 3000 + "\u00e9"
    code = f"SELECT LOCATE('{part}', CONCAT(REPEAT('a', 400000), '\u00c9', 'z'))"
    assert column(session, code) == [397_001]
