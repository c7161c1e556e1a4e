"""The names of a query's columns, which are their texts as they are written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode_sql import SqlSession
from support.sql_engines import embedded_session

NAMES = [
    ("SELECT 1/0, 1 +  1, .5, 0x41, -0.0", ["1/0", "1 +  1", ".5", "0x41", "-0.0"]),
    ("SELECT count(*), Sum( i )/2 FROM t", ["count(*)", "Sum( i )/2"]),
    ("SELECT 'a''b', \"x\", N'z', 'p' 'q', true, null", ["a'b", "x", "z", "p", "TRUE", "NULL"]),
    ("SELECT DISTINCT SQL_NO_CACHE i+1, `i`, t.i, i AS j FROM t", ["i+1", "i", "i", "j"]),
    ("WITH q AS (SELECT i+1 AS x FROM t) SELECT x*2, (SELECT 1) FROM q", ["x*2", "(SELECT 1)"]),
    ("((SELECT i>1 FROM t) UNION SELECT 2) ORDER BY 1", ["i>1"]),
    ("SELECT ',' = ' FROM ', 1+1 LIMIT 1", ["',' = ' FROM '", "1+1"]),
    ("SELECT i IS NOT NULL, DATE '2020-01-01' FROM t", ["i IS NOT NULL", "DATE '2020-01-01'"]),
    ("SELECT t.*, i+1 FROM t", ["i", "i+1"]),
    ("SELECT (1), ('a'), ((i)), (NULL), +1, + i FROM t", ["1", "a", "i", "NULL", "1", "i"]),
    ("SELECT (1+1), -(1), +'a', (1.50), 2 ORDER BY 1", ["(1+1)", "-(1)", "a", "1.50", "2"]),
    ("SELECT x'', b'', N'from', '' FROM t", ["x''", "b''", "from", ""]),
    ("SELECT RANK() OVER  w, 1 FROM t WINDOW w AS (ORDER BY i)", ["RANK() OVER  w", "1"]),
    ("SELECT * FROM (SELECT count( * ), 1 +  1 FROM t) q", ["count( * )", "1 +  1"]),
    ("SELECT `i  +1` FROM (SELECT i  +1 FROM t UNION SELECT  2) q", ["i  +1"]),
    ("WITH c AS (SELECT 1+ 1), e AS (SELECT i FROM t) SELECT c.*, i FROM c, e", ["1+ 1", "i"]),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    dump = "CREATE DATABASE d;\nUSE d;\nCREATE TABLE t (i int);\nINSERT INTO t VALUES (1);"
    with embedded_session(tmp_path_factory.mktemp("d"), dump, "d") as opened:
        yield opened


@pytest.mark.parametrize(("query", "names"), NAMES)
def test_names(session: SqlSession, query: str, names: list[str]) -> None:
    result = session.run(query, 60.0)
    assert result.info is not None, result.output
    assert [column.name for column in result.info.columns] == names
