"""Assignments to user variables in queries, with the rows of a server."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from intercode_sql import SqlSession
from support.sql_engines import embedded_session

DUMP = """
CREATE DATABASE d;
USE d;
CREATE TABLE pay (id int PRIMARY KEY, name varchar(9), dept varchar(9), salary decimal(9,2));
INSERT INTO pay VALUES (1,'Ann','HR',9000),(2,'Bob','IT',70.5),(3,'Cid','IT',4000),
(4,'Dan','HR',70.5);
"""
D = Decimal
ROWS: list[tuple[str, str, list[object]]] = [
    ("SET @n = 0", "SELECT name, @n := @n + 1 FROM pay ORDER BY salary, name", [1, 2, 3, 4]),
    ("SET @n = 0", "SELECT id, (@n := @n + 1) FROM pay ORDER BY id DESC LIMIT 2", [1, 2]),
    (
        "SET @n = 0",
        "SELECT @n := @n + salary FROM pay WHERE id < 3",
        [D("9000.00"), D("9070.50")],
    ),
    (
        "SET @dept = NULL, @rank = 0",
        "SELECT id, @rank := IF(@dept = dept, @rank + 1, 1), @dept := dept, @rank FROM pay "
        "ORDER BY dept, id",
        [1, 2, 1, 2],
    ),
    (
        "SET @old = NULL",
        "SELECT id, @old := salary, @rank := IF(@old = salary, 1, 0) FROM pay ORDER BY id",
        [1, 1, 1, 1],
    ),
    ("DO 1", "SELECT name, @a := @a + 1 FROM pay, (SELECT @a := 10) r", [11.0, 12.0, 13.0, 14.0]),
    ("DO 1", "SELECT @a := @a + 1, id FROM (SELECT @a := 0) r, pay", [1, 2, 3, 4]),
    ("DO 1", "SELECT @a := @a + 1, id FROM pay, (SELECT @a := 0) r ORDER BY dept", [1, 4, 2, 3]),
    ("DO 1", "SELECT id FROM pay, (SELECT MAX(id) AS m FROM pay) r WHERE id < m", [1, 2, 3]),
    ("DO 1", "SELECT r.*, @b := @b + 1 FROM pay, (SELECT @b := 9 AS x) r WHERE id < 2", [10.0]),
    ("DO 1", "SELECT @c := 'x', @d := DATE '2020-01-01', CONCAT(@c, @d)", ["x2020-01-01"]),
    ("DO 1", "SELECT @e := 1 UNION ALL SELECT @e := 2", [1, 2]),
    ("SET @n = 4", "SELECT COUNT(*) FROM (SELECT id, @n := @n + 1 FROM pay) x", [4]),
    (
        "DO 1",
        "SELECT id, num FROM (SELECT *, @num := IF(@g = dept, @num + 1, 1) AS num, @g := dept AS g "
        "FROM pay, (SELECT @num := 0, @g := '') v ORDER BY dept, salary DESC) x WHERE num = 1",
        [1.0, 1.0],
    ),
]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SqlSession]:
    with embedded_session(tmp_path, DUMP, "d") as opened:
        yield opened


@pytest.mark.parametrize(("first", "query", "values"), ROWS)
def test_each_row_sees_what_the_row_before_has_set(
    session: SqlSession, first: str, query: str, values: list[object]
) -> None:
    assert session.run(first, 60.0).ok
    result = session.run(query, 60.0)
    assert result.rows is not None, result.output
    assert [row[-1] for row in result.rows] == values


def test_the_value_stays_for_later_statements(session: SqlSession) -> None:
    session.run("SELECT @m := MAX(salary), @t := 'x', @n := NULL FROM pay", 60.0)
    assert session.run("SELECT @m, @t, @n", 60.0).rows == ((D("9000.00"), "x", None),)
    assert session.run("SELECT id FROM pay WHERE salary = @m", 60.0).rows == ((1,),)
    session.run("SELECT @m := id FROM pay ORDER BY id LIMIT 3", 60.0)
    assert session.run("SELECT @m", 60.0).rows == ((3,),)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT @n := 1 FROM pay",
        "SELECT @n := dept FROM pay GROUP BY dept",
        "SELECT @n := id AS x FROM pay ORDER BY x",
        "SELECT id FROM pay WHERE (@n := id) > 1",
        "SELECT @unknown, @unknown := 1",
        "UPDATE pay SET salary = (@n := salary + 1)",
        "INSERT INTO pay (id) SELECT @n := 20",
    ],
)
def test_other_places_are_refused(session: SqlSession, query: str) -> None:
    assert "The embedded engine cannot do this: " in session.run(query, 60.0).output
