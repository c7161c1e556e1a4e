"""Rewrites of statements for MariaDB."""

from __future__ import annotations

import pytest

from intercode_sql import SqlSession
from intercode_sql.server.statement_analysis import add_order_by_null


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT a FROM t GROUP BY a", "SELECT a FROM t GROUP BY a ORDER BY NULL "),
        (
            "SELECT a FROM t GROUP BY a LIMIT 3;",
            "SELECT a FROM t GROUP BY a ORDER BY NULL LIMIT 3;",
        ),
        ("SELECT a FROM t GROUP BY a;", "SELECT a FROM t GROUP BY a ORDER BY NULL ;"),
        ("SELECT a FROM t GROUP BY a # end", "SELECT a FROM t GROUP BY a ORDER BY NULL # end"),
        (
            "SELECT x FROM (SELECT a x FROM t GROUP BY a HAVING COUNT(*) > 1) s",
            "SELECT x FROM (SELECT a x FROM t GROUP BY a HAVING COUNT(*) > 1 ORDER BY NULL ) s",
        ),
    ],
)
def test_grouping_without_an_order(code: str, expected: str) -> None:
    assert add_order_by_null(code) == expected


BOTH = (
    "SELECT s.id FROM s WHERE s.id IN "
    "(SELECT id FROM c WHERE year = 1 INTERSECT SELECT id FROM c WHERE year = 2)"
)


@pytest.mark.mysql
def test_intersect_in_a_correlated_subquery(session: SqlSession) -> None:
    for code in (
        "CREATE TABLE s (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT, year INT, KEY k (id))",
        "INSERT INTO s VALUES (1), (2), (3), (4)",
        "INSERT INTO c VALUES (2, 1), (2, 2), (3, 1), (4, 2)",
    ):
        assert session.run(code, 60).ok
    assert session.run(BOTH, 60).rows == ((2,),)
    assert session.run(BOTH.replace("INTERSECT", "EXCEPT"), 60).rows == ((3,),)


@pytest.mark.parametrize(
    "code",
    [
        "SELECT a FROM t GROUP BY a ORDER BY a",
        "SELECT a FROM t GROUP BY a WITH ROLLUP",
        "SELECT a FROM t GROUP BY a UNION SELECT b FROM u GROUP BY b",
        "SELECT 'GROUP BY x' FROM t -- GROUP BY y",
        "SELECT GROUP_CONCAT(a ORDER BY b) FROM t",
        "",
        "))((",
    ],
)
def test_other_statements_are_unchanged(code: str) -> None:
    assert add_order_by_null(code) == code
