"""GROUP BY … WITH ROLLUP, with the rows that a server gives, or MySQL 8's manual (GROUP BY
Modifiers)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from intercode_sql import SqlSession
from support.sql_engines import embedded_session

DUMP = """
CREATE TABLE pay (id int PRIMARY KEY, dept varchar(9), boss int, hired date, salary decimal(9,2));
INSERT INTO pay VALUES (1,'Mgmt',NULL,'2002-08-14',9000),(2,'Sales',1,'2002-05-01',7000),
(3,'Sales',2,'2002-04-01',4000),(4,'IT',1,'2003-10-17',6000),(5,'IT',4,'2004-01-02',3500);
"""
D = Decimal
ROWS = [
    ("dept", "dept", "", [("IT", 2), ("Mgmt", 1), ("Sales", 2), (None, 5)]),
    ("dept", "dept", " LIMIT 2", [("IT", 2), ("Mgmt", 1)]),
    ("dept", "1", " HAVING COUNT(*) > 1", [("IT", 2), ("Sales", 2), (None, 5)]),
    ("dept AS d", "d", " ORDER BY 2 DESC, d", [(None, 5), ("IT", 2), ("Sales", 2), ("Mgmt", 1)]),
    ("SUM(id)", "dept", " ORDER BY MIN(id) DESC", [(D(9), 2), (D(5), 2), (D(1), 1), (D(15), 5)]),
    ("COALESCE(dept, 'all')", "dept", " HAVING dept IS NULL", [("all", 5)]),
    ("IF(GROUPING(dept), 'all', 1)", "dept", " LIMIT 3, 1", [("all", 5)]),
    ("YEAR(hired) + 1", "YEAR(hired)", "", [(2003, 3), (2004, 1), (2005, 1), (None, 5)]),
    ("MAX(dept)", "dept", "", [("IT", 2), ("Mgmt", 1), ("Sales", 2), ("Sales", 5)]),
    ("dept", "(dept)", "", [("IT", 2), ("Mgmt", 1), ("Sales", 2), (None, 5)]),
    ("(dept)", "dept", " LIMIT 3, 1", [(None, 5)]),
    ("id + 1 AS id", "id", " LIMIT 4, 2", [(6, 1), (None, 5)]),
    ("id AS dept", "dept, id", " LIMIT 3", [(4, 1), (5, 1), (None, 2)]),
    ("boss", "boss", "", [(None, 1), (1, 2), (2, 1), (4, 1), (None, 5)]),
    (
        "CONCAT(pay.dept, '-', boss)",
        "dept, boss",
        " HAVING boss IS NULL AND SUM(salary) > 9000",
        [(None, 2), (None, 2), (None, 5)],
    ),
    (
        "GROUPING(dept, boss)",
        "dept, boss",
        "",
        [(0, 1), (0, 1), (1, 2), (0, 1), (1, 1), (0, 1), (0, 1), (1, 2), (3, 5)],
    ),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    dump = f"CREATE DATABASE d;\nUSE d;{DUMP}"
    with embedded_session(tmp_path_factory.mktemp("d"), dump, "d") as opened:
        yield opened


@pytest.mark.parametrize(("column", "groups", "tail", "rows"), ROWS)
def test_rows_of_several_groups(
    session: SqlSession, column: str, groups: str, tail: str, rows: list[tuple[object, int]]
) -> None:
    code = f"SELECT {column}, COUNT(*) FROM pay GROUP BY {groups} WITH ROLLUP{tail}"
    result = session.run(code, 60.0)
    assert result.rows is not None, result.output
    assert list(result.rows) == rows


def test_the_columns_are_those_of_the_query(session: SqlSession) -> None:
    code = "SELECT dept AS d, SUM(salary) FROM pay GROUP BY d WITH ROLLUP ORDER BY AVG(salary)"
    result = session.run(code, 60.0)
    assert result.info is not None
    assert [column.name for column in result.info.columns] == ["d", "SUM(salary)"]
    assert session.run(f"SELECT d FROM ({code}) q WHERE d > 'N'", 60.0).rows == (("Sales",),)


def test_no_rows_have_no_total(session: SqlSession) -> None:
    code = "SELECT dept, COUNT(*) FROM pay WHERE id > 9 GROUP BY dept WITH ROLLUP"
    assert session.run(code, 60.0).rows == ()


@pytest.mark.parametrize(
    ("shown", "groups"),
    [
        ("DISTINCT dept", "dept"),
        ("*", "dept"),
        ("RANK() OVER ()", "dept"),
        ("(SELECT 1)", "dept"),
        ("dept", "dept, (pay.dept)"),
    ],
)
def test_other_queries_are_refused(session: SqlSession, shown: str, groups: str) -> None:
    output = session.run(f"SELECT {shown} FROM pay GROUP BY {groups} WITH ROLLUP", 60.0).output
    assert "The embedded engine cannot do this: " in output


@pytest.mark.parametrize(
    "groups", ["ROLLUP(dept)", "boss, ROLLUP(dept)", "ROLLUP(dept) WITH ROLLUP"]
)
def test_the_form_of_a_call_is_an_unknown_function(session: SqlSession, groups: str) -> None:
    result = session.run(f"SELECT COUNT(*) FROM pay GROUP BY {groups}", 60)
    assert result.info.error == 1305 and ".ROLLUP does not exist" in result.output
