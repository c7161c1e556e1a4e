"""Statements that write give the same rows and errors in both engines: IGNORE, modes, strict
expressions, AUTO_INCREMENT, foreign keys, generated columns and joined tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from intercode_sql import SqlSession
from intercode_sql.types import DatabaseSpec
from support.sql_engines import engine_or_skip

DUMP = """
CREATE DATABASE d DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE d;
CREATE TABLE t (id int NOT NULL AUTO_INCREMENT, n tinyint, d decimal(4,1) NOT NULL DEFAULT '7.0',
  v varchar(5), da date, e enum('low','high') NOT NULL, PRIMARY KEY (id), UNIQUE KEY n (n));
INSERT INTO t VALUES (1,1,'1.5','Ann','2001-02-03','low'),(2,-2,'2.0','10','1999-12-31','high'),
  (3,0,'0.0','','2024-02-29','low');
CREATE TABLE p (a int PRIMARY KEY, b varchar(10), UNIQUE KEY (b));
CREATE TABLE c (x int AUTO_INCREMENT PRIMARY KEY, a int, b varchar(10),
  CONSTRAINT ca FOREIGN KEY (a) REFERENCES p (a) ON DELETE CASCADE,
  CONSTRAINT cb FOREIGN KEY (b) REFERENCES p (b) ON DELETE SET NULL ON UPDATE CASCADE);
INSERT INTO p VALUES (1,'one'),(2,'two'),(3,'three');
INSERT INTO c VALUES (1,1,'one'),(2,2,'two');
CREATE TABLE g (a int, b int, c int AS (a + b), d int AS (a * b) STORED,
  CONSTRAINT small CHECK (a < 100));
INSERT INTO g (a, b) VALUES (1,2),(3,4);
"""


@pytest.fixture(scope="module", params=["embedded", pytest.param("mysql", marks=pytest.mark.mysql)])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that opens a session of one of the engines."""
    engine = engine_or_skip(request.param)
    path = tmp_path_factory.mktemp("writes") / "d.sql"
    path.write_text(DUMP, "utf-8")
    yield lambda: engine.open(DatabaseSpec("mysql-dump", Path(path), "d"))
    engine.close()


@pytest.fixture
def session(opened: Callable[[], SqlSession]) -> Any:
    """A session whose changes end with the test."""
    found = opened()
    yield found
    found.close()


def run(session: SqlSession, statements: list[str]) -> list[tuple[Any, ...]]:
    for code in statements[:-1]:
        result = session.run(code, 20.0)
        assert result.ok, f"{code}: {result.output}"
    result = session.run(statements[-1], 20.0)
    assert result.rows is not None, result.output
    return list(result.rows)


N = "SELECT id, n FROM t ORDER BY id"
CASES: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {
    "INSERT IGNORE writes the nearest values": (
        [
            "INSERT IGNORE INTO t (id, n, d, v, da, e) VALUES (9, 1000, 1e9, 'abcdefgh', "
            "'x', 'no')",
            "SELECT n, d, v, da, e FROM t WHERE id = 9",
        ],
        [(127, Decimal("999.9"), "abcde", None, "")],
    ),
    "INSERT IGNORE leaves out rows with a known key": (
        ["INSERT IGNORE INTO t (id, n) VALUES (1, 50), (8, 1), (9, 5)", N],
        [(1, 1), (2, -2), (3, 0), (9, 5)],
    ),
    "UPDATE IGNORE leaves out rows whose new key is known": (
        ["UPDATE IGNORE t SET n = 50", N],
        [(1, 50), (2, -2), (3, 0)],
    ),
    "UPDATE IGNORE writes the nearest values": (
        [
            "UPDATE LOW_PRIORITY IGNORE t SET d = NULL, v = 'abcdefgh' WHERE id = 1",
            "SELECT d, v FROM t WHERE id = 1",
        ],
        [(Decimal("0.0"), "abcde")],
    ),
    "UPDATE assigns from left to right": (
        [
            "UPDATE t SET n = n + 1, d = n * 2, v = d WHERE id = 1",
            "SELECT n, d, v FROM t WHERE id = 1",
        ],
        [(2, Decimal("4.0"), "4.0")],
    ),
    "UPDATE of a key that a later assignment reads": (
        ["UPDATE t SET id = id + 50, n = id WHERE id = 1", N],
        [(2, -2), (3, 0), (51, 51)],
    ),
    "DELETE names its tables with a star": (
        [
            "DELETE QUICK t.*, c FROM t JOIN c ON t.id = c.x WHERE t.id = 2",
            "SELECT t.id, c.x FROM t LEFT JOIN c ON t.id = c.x ORDER BY t.id",
        ],
        [(1, 1), (3, None)],
    ),
    "without a strict mode": (
        [
            "SET sql_mode = ''",
            "INSERT INTO t (id, n, v) VALUES (9, 1000, 'abcdefgh')",
            "SELECT n, d, v, e FROM t WHERE id = 9",
        ],
        [(127, Decimal("7.0"), "abcde", "low")],
    ),
    "NULL in several rows without a strict mode": (
        [
            "SET sql_mode = ''",
            "INSERT INTO t (id, d) VALUES (8, NULL), (9, 'x')",
            "SELECT id, d FROM t WHERE id > 3 ORDER BY id",
        ],
        [(8, Decimal("0.0")), (9, Decimal("0.0"))],
    ),
    "0 with NO_AUTO_VALUE_ON_ZERO": (
        ["SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "INSERT INTO t (id, n) VALUES (0, 9)", N],
        [(0, 9), (1, 1), (2, -2), (3, 0)],
    ),
    "ANSI_QUOTES": (
        [
            "SET sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'",
            """INSERT INTO "t" ("id", "v") VALUES (9, 'a"b')""",
            """SELECT "id", "v" FROM "t" WHERE "v" LIKE '%"%'""",
        ],
        [(9, 'a"b')],
    ),
    "NO_BACKSLASH_ESCAPES": (
        [
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES'",
            "INSERT INTO t (id, v) VALUES (9, 'a\\')",
            "SELECT v, 'x\\n' FROM t WHERE id = 9",
        ],
        [("a\\", "x\\n")],
    ),
    "combined modes": (
        ["SET sql_mode = 'ANSI'", "SELECT @@sql_mode"],
        [("REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,{groups}ANSI",)],
    ),
    "values of a failed INSERT are not given again": (
        ["INSERT INTO t (n) VALUES (5)", "SELECT 1", N],
        [(1, 1), (2, -2), (3, 0), (4, 5)],
    ),
    "INSERT with SELECT reserves intervals of 1, 2 and 4": (
        [
            "INSERT INTO t (v) SELECT 'x' FROM t UNION ALL SELECT 'y'",
            "INSERT INTO t (v) VALUES ('z')",
            "SELECT MAX(id), LAST_INSERT_ID() FROM t",
        ],
        [(11, 11)],
    ),
    "ON UPDATE CASCADE": (
        ["UPDATE p SET b = 'uno' WHERE a = 1", "SELECT x, a, b FROM c ORDER BY x"],
        [(1, 1, "uno"), (2, 2, "two")],
    ),
    "REPLACE in a parent": (
        ["REPLACE INTO p VALUES (1, 'new')", "SELECT x, a, b FROM c ORDER BY x"],
        [(2, 2, "two")],
    ),
    "INSERT IGNORE without a parent": (
        ["INSERT IGNORE INTO c (a) VALUES (99), (3)", "SELECT x, a FROM c ORDER BY x"],
        [(1, 1), (2, 2), (3, 3)],
    ),
    "names of parents in another case": (
        [
            "CREATE TABLE n (a int, FOREIGN KEY (a) REFERENCES P (A))",
            "INSERT INTO n VALUES (3)",
            "DELETE IGNORE FROM P WHERE a = 3",
            "SELECT a FROM p ORDER BY a",
        ],
        [(1,), (2,), (3,)],
    ),
    "IGNORE leaves out rows that violate a condition": (
        [
            "INSERT IGNORE INTO g (a, b) VALUES (200, 1), (5, 6)",
            "UPDATE IGNORE g SET a = 300",
            "SELECT * FROM g ORDER BY a",
        ],
        [(1, 2, 3, 2), (3, 4, 7, 12), (5, 6, 11, 30)],
    ),
    "DO": (["DO 1, SLEEP(0)", "SELECT ROW_COUNT()"], [(0,)]),
    "an ENUM in a column of numbers is the number of its word": (
        [
            "UPDATE t SET d = e",
            "UPDATE t JOIN p ON t.id = p.a SET t.n = t.e WHERE p.a = 2",
            "INSERT INTO t (id, n, d) SELECT id + 10, id + 10, e FROM t",
            "SELECT id, n, d FROM t WHERE id IN (2, 12) ORDER BY id",
        ],
        [(2, 2, Decimal("2.0")), (12, 12, Decimal("2.0"))],
    ),
    "a YEAR of zero": (
        [
            "CREATE TABLE z (a int, y year)",
            "INSERT INTO z VALUES (1, 0.0), (2, 0e0), (3, '0'), (4, '0000'), (5, 0), (6, 7.0)",
            "SELECT y FROM z ORDER BY a",
        ],
        [(0,), (0,), (2000,), (0,), (0,), (2007,)],
    ),
    "a date in a TIME": (
        [
            "CREATE TABLE z (a int, b time)",
            "INSERT INTO z SELECT id, da FROM t WHERE id = 1",
            "INSERT INTO z VALUES (2, '2001-02-03 04:05:06')",
            "SELECT b FROM z ORDER BY a",
        ],
        [(timedelta(0),), (timedelta(hours=4, minutes=5, seconds=6),)],
    ),
    "a time in a date is one of today": (
        [
            "CREATE TABLE z (a date, b datetime)",
            "INSERT INTO z VALUES (TIME'01:02:03', NULL)",
            "INSERT INTO z (b) SELECT TIME'01:02:03'",
            "UPDATE z SET a = TIME'23:00:00'",
            "SELECT DATEDIFF(a, CURDATE()) IN (-1, 0), DATEDIFF(b, CURDATE()) IN (-1, 0), TIME(b) "
            "FROM z ORDER BY b",
        ],
        [(1, None, None), (1, 1, timedelta(hours=1, minutes=2, seconds=3))],
    ),
    "a text that is no whole time, without a strict mode": (
        [
            "CREATE TABLE z (b time)",
            "SET sql_mode = ''",
            "INSERT INTO z VALUES ('2020-6-5')",
            "SELECT b FROM z",
        ],
        [(timedelta(minutes=20, seconds=20),)],
    ),
    "CREATE TABLE with columns and a query keeps the columns": (
        [
            "CREATE TABLE z (d int NOT NULL, q int DEFAULT 5) "
            "SELECT '12' AS d, t.id FROM t WHERE id = 1",
            "SELECT q, d, id FROM z",
        ],
        [(5, 12, 1)],
    ),
    "CREATE TABLE of a query keeps what columns of tables are": (
        [
            "CREATE TABLE z AS SELECT t.*, n + 1 AS m FROM t",
            "SELECT COLUMN_NAME, IS_NULLABLE, NULLIF(COLUMN_DEFAULT, 'NULL') FROM "
            "information_schema.columns WHERE TABLE_NAME = 'z' AND TABLE_SCHEMA = DATABASE() "
            "ORDER BY ORDINAL_POSITION",
        ],
        [
            ("id", "NO", "0"),
            ("n", "YES", None),
            ("d", "NO", "7.0"),
            ("v", "YES", None),
            ("da", "YES", None),
            ("e", "NO", None),
            ("m", "YES", None),
        ],
    ),
    "variables with commas and quotes": (
        [r"SET @x = 'a\'b,c', @y = (1, 2) = (1, 2)", "SELECT @x, @y"],
        [("a'b,c", 1)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_writing(session: SqlSession, name: str) -> None:
    statements, expected = CASES[name]
    found = run(session, statements)
    if name == "combined modes":  # MariaDB's ANSI lacks a mode of MySQL's
        found = [(found[0][0].replace("ONLY_FULL_GROUP_BY,", ""),)]
        expected = [(str(expected[0][0]).replace("{groups}", ""),)]
    assert found == expected


ERRORS = {
    "INSERT INTO t (n) VALUES ('x' + 1)": "Truncated incorrect DOUBLE value: 'x'",
    "INSERT INTO t (n) VALUES (5 / 0)": "Division by 0",
    "INSERT INTO t (n) VALUES (5 DIV 0)": "Division by 0",
    "INSERT INTO t (n) VALUES (5 MOD 0)": "Division by 0",
    "INSERT INTO t (n) SELECT v + 0 FROM t": "Truncated incorrect DOUBLE value: 'Ann'",
    "UPDATE t SET n = -v WHERE id = 1": "Truncated incorrect DOUBLE value: 'Ann'",
    "UPDATE t SET n = 1 WHERE v = 5 AND id = 1": "value: 'Ann'",
    "UPDATE t SET v = n / 0 WHERE id = 1": "Division by 0",
    "UPDATE t SET da = DATE(v) WHERE id = 1": "Incorrect datetime value: 'Ann'",
    "UPDATE t SET n = CAST(v AS SIGNED) WHERE id = 1": "Truncated incorrect INTEGER value: 'Ann'",
    "CREATE TABLE z AS SELECT id, v * 1 AS a FROM t": "Truncated incorrect DOUBLE value: 'Ann'",
    "CREATE TABLE z AS SELECT id, id / 0 AS a FROM t": "Division by 0",
    "INSERT INTO t (d) VALUES (3), (4), ('x')": "Incorrect decimal value: 'x' for column",
    "INSERT INTO c (a) VALUES (99)": "a foreign key constraint fails",
    "INSERT INTO t (n) VALUES ('2023-02-30')": "Out of range value for column 'n'",
    "INSERT INTO t (n) VALUES ('5x')": "Data truncated for column 'n'",
    "CREATE TABLE z (n int NOT NULL) SELECT NULL AS n": "Column 'n' cannot be null",
    "SELECT 'x' + 1, 1 / 0": None,
    "INSERT INTO t (id, n) VALUES (9, NULL / 0)": None,
    "INSERT INTO t (id, n) VALUES (9, ' 5 ' + 1)": None,
    "UPDATE t SET n = IF(1, 5, 'x' + 1) WHERE id = 1": None,
    "INSERT IGNORE INTO t (id, n) VALUES (9, 'x' + 1)": None,
}


@pytest.mark.parametrize("code", ERRORS)
def test_strict_modes_inside_expressions(session: SqlSession, code: str) -> None:
    """A statement that writes ends where a SELECT would give a warning."""
    result, expected = session.run(code, 20.0), ERRORS[code]
    if expected is None:
        assert result.ok, result.output
    else:
        assert expected in result.output


def test_a_strict_mode_can_be_left(session: SqlSession) -> None:
    for code in ("SET sql_mode = ''", "UPDATE t SET d = v + 1, n = 7 / 0 WHERE id = 1"):
        assert session.run(code, 20.0).ok
    assert run(session, ["SELECT d, n FROM t WHERE id = 1"]) == [(Decimal("1.0"), None)]


def test_failed_statements_use_up_values(session: SqlSession) -> None:
    for code in ("INSERT INTO t (n) VALUES (60), (1)", "INSERT INTO c (a) VALUES (99)"):
        assert not session.run(code, 20.0).ok
    run(session, ["INSERT INTO t (n) VALUES (61)", "SELECT 1"])
    assert run(session, [N]) == [(1, 1), (2, -2), (3, 0), (6, 61)]
    assert run(session, ["INSERT INTO c (a) VALUES (3)", "SELECT MAX(x) FROM c"]) == [(4,)]


def test_errors_quote_the_text_of_the_mode(session: SqlSession) -> None:
    assert session.run("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", 20.0).ok
    found = session.run("""SELECT "a" FROM t WHERE 'x\\y' = 'x\\y' AND "id" = = "id" """, 20.0)
    assert 'near \'= "id"' in found.output


SET_CASES: list[tuple[list[str], list[tuple[Any, ...]]]] = [
    (["SELECT s FROM q ORDER BY s DESC, id"], [("c",), ("a,b",), ("b",), ("",), (None,)]),
    (
        ["SELECT id, s + 0, s = 3, s = 'a,b', s & 2 FROM q ORDER BY id"],
        [(1, 3, 1, 1, 2), (2, 4, 0, 0, 0), (3, 0, 0, 0, 0), (4, 2, 0, 0, 2), (5, *[None] * 4)],
    ),
    (
        ["SELECT MAX(s), SUM(s), GROUP_CONCAT(s ORDER BY s SEPARATOR ';') FROM q"],
        [("c", 9.0, ";b;a,b;c")],
    ),
    (
        ["SELECT id, RANK() OVER (ORDER BY s) FROM q ORDER BY id"],
        [(1, 4), (2, 5), (3, 2), (4, 3), (5, 1)],
    ),
    (
        [
            "UPDATE q SET s = 5 WHERE id = 1",
            "UPDATE q SET s = '6' WHERE id = 2",
            "SELECT s FROM q WHERE id < 3 ORDER BY id",
        ],
        [("a,c",), ("b,c",)],
    ),
    (
        ["SELECT s, COUNT(*) FROM q GROUP BY s ORDER BY s"],
        [(None, 1), ("", 1), ("b", 1), ("a,b", 1), ("c", 1)],
    ),
]


@pytest.mark.parametrize(("statements", "expected"), SET_CASES)
def test_a_set_is_sorted_as_a_number(
    session: SqlSession, statements: list[str], expected: list[tuple[Any, ...]]
) -> None:
    made = [
        "CREATE TABLE q (id int PRIMARY KEY, s set('a','b','c'))",
        "INSERT INTO q VALUES (1, 'b,a'), (2, 'c'), (3, ''), (4, 'B'), (5, NULL)",
    ]
    assert run(session, [*made, *statements]) == expected


def test_json_documents_are_normalized(opened: Callable[[], SqlSession]) -> None:
    session = opened()
    made = [
        "CREATE TABLE j (id int PRIMARY KEY, d json)",
        """INSERT INTO j VALUES (1, '{"bb":1,"a":[1,2.50,null]}'), (2, ' "x" '), (3, 7)""",
    ]
    try:
        found = run(session, [*made, "SELECT d FROM j ORDER BY id"])
        refused = session.run("INSERT INTO j VALUES (4, '{x}')", 20.0)
    finally:
        session.close()
    assert not refused.ok
    if "MariaDB" not in session_version(opened):  # MariaDB keeps the text
        assert found == [('{"a": [1, 2.5, null], "bb": 1}',), ('"x"',), ("7",)]
        assert "Invalid JSON text" in refused.output


def session_version(opened: Callable[[], SqlSession]) -> str:
    session = opened()
    try:
        return str(run(session, ["SELECT VERSION()"])[0][0])
    finally:
        session.close()


BITS: list[tuple[list[str], list[tuple[Any, ...]]]] = [
    (
        ["SELECT b, b + 0, HEX(b), BIN(b), b = 5, b & 4 FROM q ORDER BY id"],
        [(5, 5, "5", "101", 1, 4), (65, 65, "41", "1000001", 0, 0), (None,) * 6],
    ),
    (
        ["SELECT CONCAT(b, 'x'), LENGTH(b), IF(id, b, 'z') FROM q ORDER BY id"],
        [(b"\x00\x05x", 2, b"\x00\x05"), (b"\x00Ax", 2, b"\x00A"), (None, None, None)],
    ),
    (["SELECT b'1000001', b'101' + 0, CONCAT(b'1000001')"], [(b"A", 5, b"A")]),
    (
        ["SELECT b FROM q UNION SELECT b + 0 FROM q WHERE id = 1 ORDER BY 1"],
        [(None,), (b"5",), (b"65",)],
    ),
    (
        [
            "UPDATE q SET b = b'111' WHERE id = 1",
            "UPDATE t SET v = b'1000001', n = b'111' WHERE id = 1",
            "SELECT q.b, t.v, t.n FROM q JOIN t ON t.id = q.id WHERE q.id = 1",
        ],
        [(7, "A", 7)],
    ),
    (["SET @x = b'0'", "SELECT @x, @x + 1"], [(b"\x00", 1)]),
]


@pytest.mark.parametrize(("statements", "expected"), BITS)
def test_a_bit_is_a_number_and_bytes(
    session: SqlSession, statements: list[str], expected: list[tuple[Any, ...]]
) -> None:
    made = [
        "CREATE TABLE q (id int PRIMARY KEY, b bit(9))",
        "INSERT INTO q VALUES (1, 5), (2, b'1000001'), (3, NULL)",
    ]
    assert run(session, [*made, *statements]) == expected


DOUBLES = [
    ("v", "2.5e-3", "0.003"),
    ("v", "-1e10", "-1e10"),
    ("v", "5e0", "5"),
    ("v", "1e20", "1e20"),
    ("da", "20200615e0", "2020-06-15"),
    ("n", "1e1", "10"),
    ("d", "1.25e0", "1.3"),
]


@pytest.mark.parametrize(("column", "literal", "expected"), DOUBLES)
def test_a_double_in_a_column_of_another_type(
    session: SqlSession, column: str, literal: str, expected: str
) -> None:
    for code in (
        f"INSERT INTO t (id, {column}) VALUES (9, {literal})",
        f"UPDATE t SET {column} = {literal} WHERE id = 3",
    ):
        changed = session.run(code, 20.0)
        assert changed.ok, changed.output
        where = "id IN (3, 9)" if column != "n" else "n = 10"
        found = run(session, [f"SELECT {column} FROM t WHERE {where} ORDER BY id DESC"])
        assert str(found[0][0]) == expected
        session.run("DELETE FROM t WHERE id = 9", 20.0)
