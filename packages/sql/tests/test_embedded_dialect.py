"""MySQL's dialect on the embedded engine: the results of statements in MySQL 8's types."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from intercode_sql import SqlSession
from intercode_sql.embedded.execute.context import DEFAULT_MODES
from support.sql_engines import embedded_session

DUMP = """
CREATE DATABASE `zoo` DEFAULT CHARACTER SET utf8mb4;
USE `zoo`;
CREATE TABLE `animal` (
  `id` int NOT NULL AUTO_INCREMENT, `name` varchar(20) DEFAULT NULL,
  `kind` varchar(10) DEFAULT NULL,
  `weight` float(6,2) DEFAULT NULL, `price` decimal(8,2) DEFAULT NULL, `born` date DEFAULT NULL,
  `seen` datetime DEFAULT NULL, `year` text, `x` double DEFAULT NULL, `keeper` int DEFAULT NULL,
  PRIMARY KEY (`id`), KEY `kind_key` (`kind`), KEY `keeper_key` (`keeper`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `animal` VALUES
(1,'Zoë','Cat',4.50,10.10,'2020-02-29','2024-01-01 10:00:00','2012',0.1,2),
(2,'otto ','dog',20.25,20.20,'2019-12-31',NULL,'1999',0.2,1),
(3,'Anna','cat',3.10,NULL,NULL,'2024-05-05 23:59:59','12abc',1e20,2),
(4,NULL,'Ape',99.99,5.00,'2021-07-01',NULL,NULL,NULL,NULL);
CREATE TABLE `keeper` (`id` int NOT NULL, `name` varchar(20) NOT NULL, PRIMARY KEY (`id`))
 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `keeper` VALUES (1,'Kim'),(2,'Lea'),(3,'Moe');
"""

D = Decimal


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlSession]:
    with embedded_session(tmp_path_factory.mktemp("zoo"), DUMP, "zoo") as session:
        yield session


def rows(session: SqlSession, code: str) -> list[tuple[Any, ...]]:
    result = session.run(code, 60.0)
    assert result.rows is not None, result.output
    return list(result.rows)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", D("3.5000")),
        ("7 DIV 2", 3),
        ("-7 DIV 2", -3),
        ("7 % 4", 3),
        ("1 / 0", None),
        ("0.1 + 0.2", D("0.3")),
        ("0.1 + 0.2 = 0.3", 1),
        ("1e0 / 3", 1 / 3),
        ("2.50 * 2", D("5.00")),
        ("'3 apples' + 4", 7.0),
        ("'a' = 'A'", 1),
        ("'a' = 'A '", 0),
        ("'1' = 1.0", 1),
        ("2 || 0", 1),
        ("NULL || 0", None),
        ("1 XOR 1", 0),
        ("NOT 5", 0),
        ("!0", 1),
        ("NULL <=> NULL", 1),
        ("NULL = NULL", None),
        ("3 BETWEEN 1 AND 3", 1),
        ("2 IN (1, NULL)", None),
        ("'x' LIKE 'X%'", 1),
        ("'a_c' LIKE 'a\\_c'", 1),
        ("'abc' REGEXP '^A.C$'", 1),
        ('"double"', "double"),
        ("'it''s'", "it's"),
        ("'a' 'b'", "ab"),
        ("0x41", b"A"),
        ("CONCAT('a', 1, 2.50)", "a12.50"),
        ("CONCAT('a', NULL)", None),
        ("CONCAT_WS('-', 1, NULL, 2)", "1-2"),
        ("IF(0, 'a', 2)", "2"),
        ("IFNULL(NULL, 3)", 3),
        ("COALESCE(NULL, 1.5, 2)", D("1.5")),
        ("NULLIF('a', 'A')", None),
        ("GREATEST(1, 2.5)", D("2.5")),
        ("LEAST('b', 'A')", "A"),
        ("ROUND(2.675, 2)", D("2.68")),
        ("ROUND(2.5)", D("3")),
        ("ROUND(-1.5)", D("-2")),
        ("ROUND(2.5e0)", 2.0),
        ("TRUNCATE(-1.99, 1)", D("-1.9")),
        ("FLOOR(-1.5)", -2),
        ("CEIL(1.2)", 2),
        ("LENGTH('é')", 2),
        ("CHAR_LENGTH('é')", 1),
        ("SUBSTRING('hello', -3, 2)", "ll"),
        ("SUBSTRING_INDEX('a.b.c', '.', -2)", "b.c"),
        ("LEFT('abc', 2)", "ab"),
        ("LPAD('5', 3, '0')", "005"),
        ("TRIM(BOTH 'x' FROM 'xaxx')", "a"),
        ("REPLACE('aXa', 'X', 'b')", "aba"),
        ("LOCATE('B', 'abc')", 2),
        ("FIELD('b', 'a', 'b')", 2),
        ("FORMAT(1234567.891, 2)", "1,234,567.89"),
        ("HEX(255)", "FF"),
        ("YEAR('2020-02-29')", 2020),
        ("DATEDIFF('2024-03-01', '2024-02-28')", 2),
        ("DATE_ADD('2024-01-31', INTERVAL 1 MONTH)", "2024-02-29"),
        ("DATE_ADD(DATE('2024-01-31'), INTERVAL 1 DAY)", datetime.date(2024, 2, 1)),
        ("DATE('2024-01-31') - INTERVAL 1 YEAR", datetime.date(2023, 1, 31)),
        ("TIMESTAMPDIFF(YEAR, '2000-06-15', '2024-06-14')", 23),
        ("DAYNAME('2024-01-01')", "Monday"),
        (
            "DATE_FORMAT('2024-03-05 14:07:09', '%W, %D %M %Y %l:%i %p')",
            "Tuesday, 5th March 2024 2:07 PM",
        ),
        ("STR_TO_DATE('March 5, 2024', '%M %d, %Y')", datetime.date(2024, 3, 5)),
        ("EXTRACT(YEAR_MONTH FROM '2024-03-05')", 202403),
        ("WEEK('2024-01-01', 1)", 1),
        ("LAST_DAY('2023-02-10')", datetime.date(2023, 2, 28)),
        ("TO_DAYS('2007-10-07')", 733321),
        ("CAST('12.5x' AS SIGNED)", 12),
        ("CAST(2.567 AS DECIMAL(4,1))", D("2.6")),
        ("CAST('2024-01-02 03:04:05' AS DATE)", datetime.date(2024, 1, 2)),
        ("CAST(7 AS CHAR)", "7"),
        ("CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", "b"),
        ("(SELECT MAX(id) FROM animal)", 4),
        ("(1, 2) = (1, 2)", 1),
        ("3 > ALL (SELECT id FROM keeper)", 0),
        ("3 >= ANY (SELECT id FROM keeper)", 1),
        ("EXISTS (SELECT 1 FROM animal WHERE id = 9)", 0),
        ("DATABASE()", "zoo"),
        ("@@autocommit", 1),
        ("5 & 6", 4),
        ("5 ^ 1", 4),
        ("MD5('a')", "0cc175b9c0f1b6a831c399e269772661"),
    ],
)
def test_expressions(zoo: SqlSession, expression: str, value: object) -> None:
    ((found,),) = rows(zoo, f"SELECT {expression}")
    assert found == value
    assert type(found) is type(value)
    assert str(found) == str(value)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "SELECT SUM(id), AVG(id), COUNT(*), COUNT(name) FROM animal",
            [(D("10"), D("2.5000"), 4, 3)],
        ),
        (
            "SELECT SUM(price), AVG(price), MAX(price) FROM animal",
            [(D("35.30"), D("11.766667"), D("20.20"))],
        ),
        ("SELECT SUM(weight), AVG(weight) FROM animal", [(127.84, 31.959999)]),
        (
            "SELECT MIN(born), MAX(seen) FROM animal",
            [(datetime.date(2019, 12, 31), datetime.datetime(2024, 5, 5, 23, 59, 59))],
        ),
        ("SELECT SUM(id) FROM animal WHERE id > 9", [(None,)]),
        ("SELECT x FROM animal", [(0.1,), (0.2,), (1e20,), (None,)]),
        ("SELECT id FROM animal WHERE kind = 'CAT'", [(1,), (3,)]),
        ("SELECT id FROM animal WHERE name = 'zoe'", [(1,)]),
        ("SELECT id FROM animal WHERE name = 'Otto'", [(2,)]),
        ("SELECT id FROM animal WHERE year = 2012", [(1,)]),
        ("SELECT id FROM animal WHERE year > 11", [(1,), (2,), (3,)]),
        ("SELECT id FROM animal WHERE born = '2020-2-29'", [(1,)]),
        ("SELECT id FROM animal WHERE born >= '2020'", None),
        ("SELECT id FROM animal WHERE seen > '2024-01-01' AND seen < '2024-01-02'", [(1,)]),
        ("SELECT id FROM animal WHERE born LIKE '2019%'", [(2,)]),
        ("SELECT id FROM animal ORDER BY price", [(3,), (4,), (1,), (2,)]),
        ("SELECT id FROM animal ORDER BY price DESC LIMIT 1, 2", [(1,), (4,)]),
        ("SELECT id FROM animal ORDER BY name", [(4,), (3,), (2,), (1,)]),
        ("SELECT kind, COUNT(*) c FROM animal GROUP BY kind HAVING c > 1", [("Cat", 2)]),
        ("SELECT DISTINCT kind FROM animal ORDER BY kind DESC", [("dog",), ("Cat",), ("Ape",)]),
        ("SELECT id AS n FROM animal HAVING n > 3", [(4,)]),
        ("SELECT COUNT(DISTINCT kind), COUNT(DISTINCT kind, keeper) FROM animal", [(3, 2)]),
        (
            "SELECT GROUP_CONCAT(DISTINCT kind ORDER BY kind DESC SEPARATOR '|') FROM animal",
            [("dog|Cat|Ape",)],
        ),
        (
            "SELECT a.id, k.name FROM animal a LEFT JOIN keeper k ON a.keeper = k.id "
            "WHERE a.id > 2",
            [(3, "Lea"), (4, None)],
        ),
        (
            "SELECT k.id, a.id FROM animal a RIGHT JOIN keeper k ON a.keeper = k.id AND "
            "a.kind = 'dog'",
            [(1, 2), (2, None), (3, None)],
        ),
        ("SELECT * FROM keeper k JOIN keeper j USING (id) WHERE id = 1", [(1, "Kim", "Kim")]),
        ("SELECT id FROM keeper NATURAL JOIN (SELECT 2 AS id) t", [(2,)]),
        (
            "SELECT kind FROM animal WHERE id = 1 UNION SELECT 'cat' UNION ALL SELECT 'x'",
            [("Cat",), ("x",)],
        ),
        ("SELECT id FROM animal INTERSECT SELECT id FROM keeper", [(2,), (1,), (3,)]),
        ("SELECT id FROM animal EXCEPT SELECT id FROM keeper", [(4,)]),
        ("(SELECT 1 AS a) UNION (SELECT 2) ORDER BY a DESC LIMIT 1", [(2,)]),
        (
            "WITH t AS (SELECT kind k FROM animal) SELECT COUNT(*) FROM t a JOIN t b ON a.k = b.k",
            [(6,)],
        ),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) "
            "SELECT SUM(n) FROM r",
            [(D("15"),)],
        ),
        (
            "SELECT id, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY weight DESC) r FROM animal "
            "ORDER BY id",
            [(1, 1), (2, 1), (3, 2), (4, 1)],
        ),
        ("SELECT id FROM animal WHERE year IN (NULL, 2012)", [(1,)]),
        (
            "SELECT id FROM animal WHERE keeper IN (SELECT id FROM keeper WHERE keeper.name > 'L')",
            [(1,), (3,)],
        ),
        ("SELECT name FROM keeper WHERE id IN (SELECT keeper FROM animal)", [("Kim",), ("Lea",)]),
        (
            "SELECT name FROM keeper k WHERE NOT EXISTS (SELECT 1 FROM animal WHERE keeper = k.id)",
            [("Moe",)],
        ),
        ("SELECT id FROM keeper WHERE id NOT IN (SELECT keeper FROM animal)", []),
        ("SHOW TABLES", [("animal",), ("keeper",)]),
        ("SHOW TABLES LIKE 'kee%'", [("keeper",)]),
        (
            "DESC keeper",
            [("id", "int", "NO", "PRI", None, ""), ("name", "varchar(20)", "NO", "", None, "")],
        ),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
            [("animal",), ("keeper",)],
        ),
        (
            "SELECT column_name, data_type FROM information_schema.columns WHERE "
            "table_name = 'keeper'",
            [("id", "int"), ("name", "varchar")],
        ),
    ],
)
def test_queries(zoo: SqlSession, code: str, expected: list[tuple[Any, ...]] | None) -> None:
    if expected is None:
        assert "Incorrect DATE value: '2020'" in zoo.run(code, 60.0).output
    else:
        assert rows(zoo, code) == expected


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("SELECT nope FROM animal", "Unknown column 'nope' in 'field list'"),
        ("SELECT id FROM animal WHERE nope = 1", "Unknown column 'nope' in 'where clause'"),
        (
            "SELECT a.id FROM animal a JOIN keeper k ON a.nope = k.id",
            "Unknown column 'a.nope' in 'on clause'",
        ),
        ("SELECT id FROM animal ORDER BY nope", "Unknown column 'nope' in 'order clause'"),
        ("SELECT id FROM animal GROUP BY nope", "Unknown column 'nope' in 'group statement'"),
        ("SELECT name FROM animal HAVING weight > 3", "Unknown column 'weight' in 'having clause'"),
        ("SELECT id AS n FROM animal WHERE n = 1", "Unknown column 'n' in 'where clause'"),
        ("SELECT nope FROM nowhere", "Table 'zoo.nowhere' doesn't exist"),
        (
            "SELECT nope FROM animal WHERE id IN (SELECT id FROM nowhere)",
            "Table 'zoo.nowhere' doesn't exist",
        ),
        ("SELECT * FROM elsewhere.t", "Unknown database 'elsewhere'"),
        ("SELECT name FROM animal, keeper", "Column 'name' in field list is ambiguous"),
        ("SELECT 1 FROM keeper, keeper", "Not unique table/alias: 'keeper'"),
        ("SELECT * FROM (SELECT 1)", "Every derived table must have its own alias"),
        ("SELECT (SELECT id, name FROM keeper)", "Operand should contain 1 column(s)"),
        ("SELECT (SELECT id FROM keeper)", "Subquery returns more than 1 row"),
        ("SELECT id FROM animal WHERE COUNT(*) > 1", "Invalid use of group function"),
        ("SELECT MAX(COUNT(*)) FROM animal", "Invalid use of group function"),
        (
            "SELECT 1 UNION SELECT 1, 2",
            "The used SELECT statements have a different number of columns",
        ),
        ("SELECT nope(1)", "FUNCTION zoo.nope does not exist"),
        ("SELECT NVL(1, 2)", "does not exist"),
        ("SELECT LEFT('a')", "near ')' at line 1"),
        ("SELECT IF(1, 2, 3, 4)", "near ', 4)' at line 1"),
        ("SELECT REPLACE('a', 'b') FROM = t", "near ') FROM = t' at line 1"),
        ("SELECT SPACE(1, 2)", "Incorrect parameter count in the call to native function 'SPACE'"),
        (
            "SELECT id FROM keeper WHERE id IN (SELECT id FROM animal LIMIT 1)",
            "This version of MySQL doesn't yet support 'LIMIT & IN/ALL/ANY/SOME subquery'",
        ),
        (
            "SELECT nope FROM keeper WHERE id IN (SELECT id FROM animal LIMIT 1)",
            "'LIMIT & IN/ALL/ANY/SOME subquery'",
        ),
        ("SELECT 9223372036854775807 + 1", "BIGINT value is out of range"),
        ("USE elsewhere", "Unknown database 'elsewhere'"),
        ("DESC nowhere", "Table 'zoo.nowhere' doesn't exist"),
        ("SET nope = 1", "Unknown system variable 'nope'"),
        ("SET sql_mode = 'NOPE'", "Variable 'sql_mode' can't be set to the value of 'NOPE'"),
        (
            "DELETE FROM keeper WHERE id IN (SELECT id FROM keeper)",
            "You can't specify target table 'keeper' for update in FROM clause",
        ),
    ],
)
def test_errors_have_mysqls_messages(zoo: SqlSession, code: str, message: str) -> None:
    assert message in zoo.run(code, 60.0).output


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("SELEC 1", "SELEC 1"),
        ("SELECT rank FROM keeper", "FROM keeper"),
        ("SELECT * FROM show", "show"),
        ("SELECT id, * FROM keeper", "* FROM keeper"),
        ("SELECT id FROM keeper WHERE id = 1 JOIN animal", "JOIN animal"),
        ("SELECT id FROM keeper GROUP BY id WHERE id = 1", "WHERE id = 1"),
        ("SELECT 1 LIMIT 1 UNION SELECT 2", "UNION SELECT 2"),
        ("SELECT CAST(1 AS INT)", "INT)"),
        ("SELECT 1 FROM keeper k FULL OUTER JOIN animal a ON 1", "FULL OUTER JOIN animal a ON 1"),
        ("Which keepers are there?", "Which keepers are there?"),
        ("SELECT id FROM keeper ORDER BY id ASC DESC", "DESC"),
        ("SELECT EXISTS (id) FROM keeper", "id) FROM keeper"),
        ("SELECT . 1 FROM keeper", ". 1 FROM keeper"),
        ("SELECT RANK(id) FROM keeper", "id) FROM keeper"),
        ("SELECT COUNT(*) FROM keeper JOIN COUNT(*) k", "COUNT(*) k"),
        ("SELECT id FROM keeper k JOIN 'a' animal", "'a' animal"),
        ("SELECT k. FROM keeper k", "FROM keeper k"),
        ("SELECT id FROM keeper (WHERE id)", "(WHERE id)"),
        ("SELECT id FROM keeper WHERE = (SELECT 1)", "= (SELECT 1)"),
        ("(SELECT 1) k", "k"),
        ("CREATE TABLE z (rank INT)", "rank INT)"),
        ("DESC rank", "rank"),
        ("USE zoo now", "now"),
        ("UPDATE keeper SET name = 'x', id", ""),
        ("UPDATE keeper SET id = 9 LIMIT 0, 1", ", 1"),
        ("INSERT INTO keeper VALUES (8, 'x'), 9", "9"),
        ("DELETE keeper WHERE id = 9", "WHERE id = 9"),
    ],
)
def test_syntax_errors(zoo: SqlSession, code: str, near: str) -> None:
    output = zoo.run(code, 60.0).output
    assert "You have an error in your SQL syntax" in output
    assert f"near '{near}' at line 1" in output


def test_a_space_before_the_bracket_depends_on_sql_mode(zoo: SqlSession) -> None:
    assert rows(zoo, "SELECT COUNT (*), MAX (id) FROM keeper") == [(3, 3)]
    zoo.run(f"SET sql_mode = '{DEFAULT_MODES}'", 60.0)
    assert "does not exist" in zoo.run("SELECT MAX (id) FROM keeper", 60.0).output
    assert "near '*) FROM keeper'" in zoo.run("SELECT COUNT (*) FROM keeper", 60.0).output
    zoo.run("SET sql_mode = DEFAULT", 60.0)


@pytest.mark.parametrize(
    "code",
    [
        "EXPLAIN SELECT 1",
        "SELECT DISTINCT id FROM keeper GROUP BY id WITH ROLLUP",
        "CREATE TRIGGER t BEFORE INSERT ON keeper FOR EACH ROW SET @a = 1",
        "SELECT MATCH(name) AGAINST ('x') FROM keeper",
        "SELECT 'a' REGEXP '(a+)+$'",
        "SELECT REPEAT('x', 10000000)",
        "SELECT 12345678901234567890",
    ],
)
def test_unsupported_statements_say_so(zoo: SqlSession, code: str) -> None:
    output = zoo.run(code, 60.0).output
    assert "The embedded engine cannot do this: " in output


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT id FROM keeper k", [(1,), (2,), (3,)]),
        ("SELECT id FROM animal", [(4,), (2,), (1,), (3,)]),
        ("SELECT kind, COUNT(*) FROM animal GROUP BY kind", [("Ape", 1), ("Cat", 2), ("dog", 1)]),
        (
            "SELECT name, COUNT(*) FROM animal GROUP BY name",
            [("Zoë", 1), ("otto ", 1), ("Anna", 1), (None, 1)],
        ),
        (
            "SELECT year FROM animal UNION SELECT name FROM keeper",
            [("2012",), ("1999",), ("12abc",), (None,), ("Kim",), ("Lea",), ("Moe",)],
        ),
    ],
)
def test_rows_are_in_the_order_of_mysqls_plans(
    zoo: SqlSession, code: str, expected: list[tuple[Any, ...]]
) -> None:
    """The order is by the primary key, or by the shortest index with all columns; groups come in
    the order of their first row."""
    assert rows(zoo, code) == expected


@pytest.mark.parametrize(
    ("inner", "name"),
    [
        ("MAX(id)", "max(id)"),
        ("max(k.`id`)", "MAX(k.``id``)"),
        ("COUNT(*)", "count(*)"),
        ("SUM(id) + 1", "SUM(id) + 1"),
        ("k.id", "id"),
    ],
)
def test_a_column_without_an_alias_is_named_by_its_text(
    zoo: SqlSession, inner: str, name: str
) -> None:
    assert len(rows(zoo, f"SELECT x.`{name}` FROM (SELECT {inner} FROM keeper k) x")) > 0
