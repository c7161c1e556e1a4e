"""Functions that make, search and change JSON documents, with the answers of a server, and of MySQL
8's manual (Functions That Create, Search and Modify JSON Values) where MariaDB's are others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode_sql import SqlSession
from support.sql_engines import embedded_session

DUMP = """
CREATE DATABASE d;
USE d;
CREATE TABLE t (id int PRIMARY KEY, dept varchar(9), pay decimal(9,2), at datetime, doc json);
INSERT INTO t VALUES (1,'IT',9000,'2020-01-02 03:04:05','{"rating": 5, "by": ["Young", "Mo"]}'),
(2,'IT',70.5,NULL,'[]'),(3,'HR',NULL,NULL,NULL);
"""
VALUES = [
    ("""JSON_SET('{"a": 1}', '$.b', 2, '$.a', 'x')""", '{"a": "x", "b": 2}'),
    ("""JSON_INSERT('{"a": 1}', '$.a', 5, '$.c', true)""", '{"a": 1, "c": true}'),
    ("""JSON_REPLACE('{"a": 1}', '$.a', NULL, '$.b', 2)""", '{"a": null}'),
    ("JSON_SET('5', '$[1]', 6)", "[5, 6]"),
    ("JSON_SET('[1, 2]', '$[0]', 1.50, '$[7]', 1e20)", "[1.50, 2, 1e20]"),
    (
        """JSON_SET('{"a": {"b": 1}}', '$.a.c', JSON_ARRAY(1, 'é'))""",
        '{"a": {"b": 1, "c": [1, "é"]}}',
    ),
    ("JSON_SET('[]', '$', 'x')", '"x"'),
    ("JSON_SET('[]', NULL, 1)", None),
    ("JSON_SET(doc, '$.by[0]', 'Al', '$.x.y', 1)", '{"by": ["Al", "Mo"], "rating": 5}'),
    ("""JSON_REMOVE('{"a": 1, "b": {"c": 2}}', '$.b.c', '$.a')""", '{"b": {}}'),
    ("JSON_REMOVE('[1, [2, 3]]', '$[1][0]')", "[1, [3]]"),
    ("""JSON_REMOVE('{"a": [1, 2]}', '$.a[1]', '$.a[0]')""", '{"a": []}'),
    ("JSON_TYPE('18446744073709551615')", "UNSIGNED INTEGER"),
    ("JSON_TYPE('18446744073709551616')", "DOUBLE"),
    ("JSON_EXTRACT('[-9223372036854775809]', '$[0]')", "-9.223372036854776e18"),
    ("JSON_VALID('[1e400]')", 0),
    ("JSON_REMOVE('[[1]]', '$[0][0]')", "[[]]"),
    ("""JSON_REMOVE('{"a": 1}', '$.a[0]')""", '{"a": 1}'),
    ("""JSON_ARRAY_APPEND('{"a": 1}', '$.a', 2, '$.z', 3)""", '{"a": [1, 2]}'),
    ("JSON_ARRAY_APPEND('[1, [2]]', '$', 3, '$[1]', 4)", "[1, [2, 4], 3]"),
    ("JSON_ARRAY_INSERT('[1, 2]', '$[0]', 'x', '$[9]', 'y')", '["x", 1, 2, "y"]'),
    (
        """JSON_MERGE_PATCH('{"a": 1, "b": {"c": 1}}', '{"a": null, "b": {"d": 2}}')""",
        '{"b": {"c": 1, "d": 2}}',
    ),
    ("JSON_MERGE_PATCH(NULL, '7')", "7"),
    ("""JSON_MERGE_PATCH(NULL, '{"a": 1}')""", None),
    ("""JSON_MERGE_PRESERVE('{"a": 1}', '{"a": 2, "b": 3}', '4')""", '[{"a": [1, 2], "b": 3}, 4]'),
    ("""JSON_CONTAINS('{"a": [1, {"b": 2}]}', '{"a": [{"b": 2}]}')""", 1),
    ("JSON_CONTAINS('[1, 2]', '[2, 3]')", 0),
    ("JSON_CONTAINS('true', '1')", 0),
    ("JSON_CONTAINS(doc, '\"Mo\"', '$.by')", 1),
    ("JSON_CONTAINS(doc, '1', '$.x')", None),
    ("JSON_CONTAINS_PATH(doc, 'all', '$.by', '$.x')", 0),
    ("JSON_CONTAINS_PATH(doc, 'one', '$.by', '$.x')", 1),
    (
        """JSON_SEARCH('{"a": "x", "b c": ["xy", "x"]}', 'all', 'x%')""",
        '["$.a", "$.\\"b c\\"[0]", "$.\\"b c\\"[1]"]',
    ),
    ("JSON_SEARCH(doc, 'one', 'Mo')", '"$.by[1]"'),
    ("JSON_SEARCH(doc, 'one', 'mo')", None),
    ("JSON_OVERLAPS('[1, 2]', '[2, 3]')", 1),
    ("""JSON_OVERLAPS('{"a": 1}', '{"a": 2}')""", 0),
    ("JSON_KEYS(doc)", '["by", "rating"]'),
    ("JSON_TYPE(JSON_EXTRACT(doc, '$.rating'))", "INTEGER"),
    ("JSON_DEPTH(doc)", 3),
    ("""JSON_PRETTY('{"a": [1, {}]}')""", '{\n  "a": [\n    1,\n    {}\n  ]\n}'),
    ("""JSON_EXTRACT('{"bb": 1, "a": 2, "bb": 3}', '$')""", '{"a": 2, "bb": 3}'),
    ("JSON_ARRAY(pay, DATE(at), at)", '[9000.00, "2020-01-02", "2020-01-02 03:04:05.000000"]'),
    ("JSON_OBJECT('at', TIME '10:00:00')", '{"at": "10:00:00.000000"}'),
]
ERRORS = [
    ("JSON_REMOVE('[1]', '$')", "The path expression '$' is not allowed in this context."),
    ("JSON_SET('[1]', '$[*]', 1)", "path expressions may not contain the * and ** tokens"),
    ("JSON_SET('[1]', '$.a')", "Incorrect parameter count in the call to native function"),
    ("JSON_SET('x', '$.a', 1)", "Invalid JSON text in argument 1 to function json_set"),
    ("JSON_CONTAINS('1', 'x')", "Invalid JSON text in argument 2 to function json_contains"),
    ("JSON_KEYS(1)", "Invalid data type for JSON data in argument 1 to function json_keys"),
    ("JSON_ARRAY_INSERT('[1]', '$.a', 1)", "A path expression is not a path to a cell in an array"),
    ("JSON_CONTAINS_PATH('1', 'x', '$')", "The oneOrAll argument to json_contains_path"),
    ("JSON_ARRAYAGG(DISTINCT 1)", "near 'DISTINCT 1)'"),
    ("JSON_EXTRACT('[1e400]', '$')", "Number too big to be stored in double."),
    ("JSON_ARRAYAGG(1, 2)", "near ', 2)'"),
    ("JSON_OBJECTAGG(1)", "near ')'"),
    ("JSON_OBJECTAGG(1, 2, 3)", "near ', 3)'"),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    with embedded_session(tmp_path_factory.mktemp("d"), DUMP, "d") as opened:
        yield opened


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_values(session: SqlSession, expression: str, value: object) -> None:
    result = session.run(f"SELECT {expression} FROM t WHERE id = 1", 60.0)
    assert result.rows == ((value,),), result.output


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_mistakes(session: SqlSession, expression: str, message: str) -> None:
    assert message in session.run(f"SELECT {expression}", 60.0).output


def test_aggregates(session: SqlSession) -> None:
    code = "SELECT dept, JSON_ARRAYAGG(pay), JSON_OBJECTAGG(id, dept) FROM t GROUP BY dept"
    assert session.run(code, 60.0).rows == (
        ("HR", "[null]", '{"3": "HR"}'),
        ("IT", "[9000.00, 70.50]", '{"1": "IT", "2": "IT"}'),
    )
    code = "SELECT JSON_ARRAYAGG(id), JSON_OBJECTAGG(id, 1) FROM t WHERE id > 3"
    assert session.run(code, 60.0).rows == ((None, None),)
    code = "SELECT JSON_OBJECTAGG(dept, pay) FROM t WHERE id < 3"
    assert session.run(code, 60.0).rows == (('{"IT": 70.50}',),)
    output = session.run("SELECT JSON_OBJECTAGG(NULL, 1)", 60.0).output
    assert "JSON documents may not contain NULL member names" in output


def test_a_changed_document_is_stored(session: SqlSession) -> None:
    session.run("BEGIN", 60.0)
    session.run("UPDATE t SET doc = JSON_SET(doc, '$.new', dept) WHERE id = 1", 60.0)
    rows = session.run("SELECT doc->'$.new' FROM t WHERE id = 1", 60.0).rows
    session.run("ROLLBACK", 60.0)
    assert rows == (('"IT"',),)
