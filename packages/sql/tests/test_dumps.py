"""Dumps as people have them load in both engines with equal contents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from intercode_sql import SqlSession, open_engine
from intercode_sql.errors import SqlDataError
from intercode_sql.types import DatabaseSpec
from support.sql_engines import engine_or_skip

HEAD = "CREATE DATABASE d; USE d;\n"
Open = Callable[[str | bytes], SqlSession]


@pytest.fixture(params=["embedded", pytest.param("mysql", marks=pytest.mark.mysql)])
def load(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that loads a dump into one of the engines and opens a session."""
    engine = engine_or_skip(request.param)
    request.addfinalizer(engine.close)

    def run(content: str | bytes) -> SqlSession:
        path = tmp_path / "dump.sql"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        session = engine.open(DatabaseSpec("mysql-dump", path, "d"))
        request.addfinalizer(session.close)
        return session

    return run


def rows(session: SqlSession, code: str) -> Any:
    result = session.run(code, 60)
    assert result.rows is not None, result.observation
    return list(result.rows)


T = (
    "CREATE TABLE t (`id` int NOT NULL, b varchar(20)) ENGINE=InnoDB;\n"
    "INSERT INTO t VALUES (2,'y'),(1,'x');\n"
)
FORMS: dict[str, tuple[str | bytes, str, Any]] = {
    "text with versioned comments": (
        HEAD + "CREATE TABLE t (b text);INSERT INTO t VALUES ('/*!50000 a */'),('/*!99999 b */');",
        "SELECT b FROM t",
        [("/*!50000 a */",), ("/*!99999 b */",)],
    ),
    "quotes and escapes": (
        HEAD + "CREATE TABLE t (b text);INSERT INTO t VALUES ('it''s \"a\"\" b'),"
        "(\"say \"\"x\"\" 'y''\"), ('\\\\%\\_\\'\\\\''');",
        "SELECT b FROM t",
        [('it\'s "a"" b',), ("say \"x\" 'y''",), ("\\%\\_'\\'",)],
    ),
    "keys after the rows, as phpMyAdmin writes them": (
        HEAD + T + "ALTER TABLE `t`\n  ADD PRIMARY KEY (`id`),\n  ADD KEY `b` (`b`);\n"
        "ALTER TABLE `t`\n  MODIFY `id` int NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=7;\nCOMMIT;\n",
        "SELECT id, b FROM t",
        [(1, "x"), (2, "y")],
    ),
    "foreign keys after the rows": (
        HEAD + "CREATE TABLE p (id int primary key);" + T + "ALTER TABLE t ADD CONSTRAINT f "
        "FOREIGN KEY (id) REFERENCES p (id) ON DELETE CASCADE ON UPDATE NO ACTION;",
        "SELECT COUNT(*) FROM t",
        [(2,)],
    ),
    "indexes": (
        HEAD + T + "CREATE UNIQUE INDEX i ON t (b);CREATE INDEX j ON d.t (id DESC) USING BTREE;"
        "DROP INDEX j ON t;",
        "SELECT b FROM t WHERE b = 'x'",
        [("x",)],
    ),
    "views of mysqldump": (
        HEAD + T + "/*!50001 CREATE VIEW `w` AS SELECT 1 AS `n`*/;\n/*!50001 DROP VIEW IF EXISTS "
        "`w`*/;\n/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`root`@`localhost` SQL "
        "SECURITY DEFINER */\n/*!50001 VIEW `w` AS select `t`.`id` AS `n`,`t`.`b` AS `m` from `t` "
        "where (`t`.`id` > 1) */;",
        "SELECT * FROM w",
        [(2, "y")],
    ),
    "triggers and programs behind the rows": (
        HEAD + T + "DELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 "
        "TRIGGER `tr` BEFORE INSERT ON `t` FOR EACH ROW BEGIN SET NEW.b = 1; END */;;\n"
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT ';'; END ;;\nDELIMITER ;\n",
        "SELECT b FROM t WHERE id = 1",
        [("x",)],
    ),
    "triggers before the rows": (
        HEAD + "CREATE TABLE u (id int, b text);CREATE TABLE t (id int, b text);\nDELIMITER //\n"
        "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW BEGIN INSERT INTO u (id, b) VALUES "
        "(new.id, CONCAT(new.b, '!')); END//\nCREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW "
        "SET NEW.id = NEW.id * 2//\nDELIMITER ;\nINSERT INTO t VALUES (1, 'x'), (2, 'it''s');",
        "SELECT * FROM u ORDER BY id",
        [(2, "x!"), (4, "it's!")],
    ),
    "bytes": (
        HEAD.encode() + b"CREATE TABLE t (b blob, c binary(4), e varbinary(9));"
        b"INSERT INTO t VALUES (_binary '\xff\\0\x80\\'', 'a', 0x00FF), ('\xfe', x'4142', '');",
        "SELECT b, c, e FROM t",
        [(b"\xff\0\x80'", b"a\0\0\0", b"\0\xff"), (b"\xfe", b"AB\0\0", b"")],
    ),
    "latin1": (
        HEAD.encode() + b"SET NAMES latin1;CREATE TABLE t (b text) CHARSET=utf8mb4;"
        b"INSERT INTO t VALUES ('caf\xe9 \x80');",
        "SELECT b FROM t",
        [("café €",)],
    ),
    "zero dates": (
        HEAD + "SET sql_mode='NO_AUTO_VALUE_ON_ZERO';CREATE TABLE t (d date, m datetime);"
        "INSERT INTO t VALUES ('0000-00-00', '0000-00-00 00:00:00');",
        "SELECT * FROM t",
        [(None, None)],
    ),
    "partitions": (
        HEAD + "CREATE TABLE t (id int not null) ENGINE=InnoDB\n/*!50100 PARTITION BY RANGE (id)\n"
        "(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB,\n PARTITION p1 VALUES LESS THAN "
        "MAXVALUE ENGINE = InnoDB) */;INSERT INTO t VALUES (1), (20);",
        "SELECT COUNT(*) FROM t",
        [(2,)],
    ),
    "odd names": (
        HEAD + "CREATE TABLE `a b` (`Free (K-12)` int, `x``y` int, `select` int);"
        "INSERT INTO `a b` (`Free (K-12)`, `x``y`, `select`) VALUES (1, 2, 3);",
        "SELECT `Free (K-12)`, `select` FROM `a b`",
        [(1, 3)],
    ),
    "national text, hexadecimal and bit literals": (
        HEAD + "CREATE TABLE t (a varchar(9), b varchar(9), c int, e bit(4), f int);"
        "INSERT INTO t VALUES (N'x', 0x4142, 0x10, b'101', b'11'), (_utf8mb4'y', x'43', 1, 2, 3);",
        "SELECT a, b, c, e + 0, f FROM t",
        [("x", "AB", 16, 5, 3), ("y", "C", 1, 2, 3)],
    ),
    "ZEROFILL, SET, BIT, ENUM and SERIAL": (
        HEAD + "CREATE TABLE t (a int(5) unsigned zerofill, b set('x','y') DEFAULT 'y', c bit(1) "
        "DEFAULT b'1', e enum('p','q''r') NOT NULL, g serial);"
        "INSERT INTO t (a, b) VALUES (7, 'y,x'); INSERT INTO t (a) VALUES (8);",
        "SELECT a + 0, CONCAT(b, ''), c + 0, e, g FROM t",
        [(7, "x,y", 1, "p", 1), (8, "y", 1, "p", 2)],
    ),
    "generated columns and CHECK": (
        HEAD + "CREATE TABLE t (id int CHECK (id > 0), v int GENERATED ALWAYS AS (id * 2) VIRTUAL, "
        "s varchar(9) AS (CONCAT('n', `v`)) STORED, CONSTRAINT `c` CHECK (`id` < 9), KEY (s));"
        "INSERT INTO t (id) VALUES (1), (3);",
        "SELECT * FROM t",
        [(1, 2, "n2"), (3, 6, "n6")],
    ),
    "REPLACE and INSERT IGNORE of equal keys": (
        HEAD + "CREATE TABLE t (id int primary key, b int);INSERT INTO t VALUES (2,1),(1,1);"
        "REPLACE INTO t VALUES (1,2);INSERT IGNORE INTO t VALUES (1,3),(0,4);",
        "SELECT * FROM t",
        [(0, 4), (1, 2), (2, 1)],
    ),
    "expressions and variables": (
        HEAD + "SET @n = 40; CREATE TABLE t (d datetime DEFAULT NOW(), e int DEFAULT (1 + 1), "
        "f int);INSERT INTO t VALUES (NOW(), LENGTH('a),('), @n + 2), (DEFAULT, DEFAULT, DEFAULT);"
        "INSERT INTO t (f) SELECT f + 1 FROM t WHERE f > 0; UPDATE t SET f = 0 WHERE f IS NULL;",
        "SELECT YEAR(d), e, f FROM t ORDER BY f",
        [(2000, 2, 0), (2000, 4, 42), (2000, 2, 43)],
    ),
    "several databases": (
        "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `e` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n"
        "USE `e`;CREATE TABLE t (a int);" + HEAD + "CREATE TABLE t (id int);"
        "INSERT INTO d.t VALUES (1);INSERT INTO `e`.`t` VALUES (9);DROP TABLE e.t;",
        "SELECT * FROM t",
        [(1,)],
    ),
    "a database that is dropped and created again": (
        HEAD + T + "DROP DATABASE d;" + HEAD + T,
        "SELECT COUNT(*) FROM t",
        [(2,)],
    ),
    "progress lines, settings and locks": (
        "\ufeff" + HEAD + "SELECT 'LOADING' as 'INFO';SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE="
        "'TRADITIONAL'; SET NAMES utf8mb4 COLLATE utf8mb4_general_ci; SET @@SESSION.sql_notes = 0;"
        "SET time_zone = '+00:00';\nset autocommit=0; START TRANSACTION;" + T + "LOCK TABLES `t` "
        "WRITE;/*!40000 ALTER TABLE `t` DISABLE KEYS */;UNLOCK TABLES;FLUSH TABLES;COMMIT;"
        "SET SQL_MODE=@OLD_SQL_MODE;ANALYZE TABLE t;",
        "SELECT COUNT(*) FROM t",
        [(2,)],
    ),
    "new definitions of columns with rows": (
        HEAD + T + "ALTER TABLE t ADD c int NOT NULL DEFAULT 5 FIRST, CHANGE b name text, ADD e "
        "date AFTER id, MODIFY id varchar(9); RENAME TABLE t TO u; ALTER TABLE u DROP e;",
        "SELECT * FROM u ORDER BY id",
        [(5, "1", "x"), (5, "2", "y")],
    ),
    "tables like others, and of a query": (
        HEAD + T + "CREATE TABLE u LIKE t;INSERT INTO u SELECT * FROM t WHERE id = 1;"
        "CREATE TABLE w AS SELECT id + 1 AS n FROM t;INSERT INTO w VALUES (9);TRUNCATE TABLE t;",
        "SELECT (SELECT COUNT(*) FROM t), (SELECT COUNT(*) FROM u), (SELECT SUM(n) FROM w)",
        [(0, 1, 14)],
    ),
}


@pytest.mark.parametrize("name", ["main", "temp", "Main"])
def test_a_database_with_a_name_of_sqlite(tmp_path: Path, name: str) -> None:
    path = tmp_path / "dump.sql"
    path.write_text(f"CREATE DATABASE {name}; USE {name}; {T}", encoding="utf-8")
    with (
        closing(open_engine("embedded")) as engine,
        closing(engine.open(DatabaseSpec("mysql-dump", path, name))) as session,
    ):
        assert session.run("INSERT INTO t VALUES (3, 'z')", 60).ok
        for code in (
            "CREATE INDEX i ON t (b)",
            "ALTER TABLE t ADD c int",
            "CREATE DATABASE temp2",
            "CREATE TABLE temp2.main (a int)",
            "INSERT INTO temp2.main VALUES (1)",
        ):
            assert session.run(code, 60).ok, code
        query = f"SELECT {name}.t.id, main.a FROM {name}.t JOIN temp2.main ORDER BY id"
        with closing(session.snapshot()) as snapshot, closing(snapshot.open()) as fork:
            assert rows(fork, query) == [(1, 1), (2, 1), (3, 1)]
        assert rows(session, "SELECT DATABASE()") == [(name.lower(),)]


def test_columns_with_the_names_of_row_numbers(load: Open) -> None:
    session = load(
        HEAD + "CREATE TABLE r (a varchar(5), rowid int, oid int, KEY (rowid));"
        "INSERT INTO r VALUES ('x', 9, 1), ('y', 8, 1), ('z', 8, 1);"
    )
    assert rows(session, "SELECT * FROM r") == [("x", 9, 1), ("y", 8, 1), ("z", 8, 1)]
    assert session.run("UPDATE r SET a = 'q' WHERE a = 'y'", 60).info.affected_rows == 1
    assert session.run("DELETE FROM r WHERE a = 'x'", 60).info.affected_rows == 1
    assert session.run("INSERT INTO r VALUES ('n', 1, 1)", 60).ok
    assert rows(session, "SELECT * FROM r") == [("q", 8, 1), ("z", 8, 1), ("n", 1, 1)]
    assert rows(session, "SELECT a, COUNT(*) FROM r GROUP BY a") == [("q", 1), ("z", 1), ("n", 1)]


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_dumps(load: Open, form: str) -> None:
    dump, query, right = FORMS[form]
    assert rows(load(dump), query) == right


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1;\nLOAD DATA LOCAL INFILE 'x' INTO TABLE t;", "line 4: LOAD DATA reads another"),
        ("\nCREATE TABLE t (a int, a int);", "line 4: Duplicate column name 'a'"),
        (
            "CREATE TABLE t (a int);\n-- x\n\nINSERT INTO t VALUES (1),(2,3);",
            "line 6: .*INSERT INTO t",
        ),
        ("INSERT INTO none VALUES (1);", "line 3: .*none"),
    ],
)
def test_errors_name_file_line_and_statement(load: Open, text: str, message: str) -> None:
    with pytest.raises(SqlDataError, match=message) as caught:
        load(f"{HEAD}\n{text}")
    assert "dump.sql" in str(caught.value)


def embedded(folder: Path, content: str | bytes) -> SqlSession:
    path = folder / "dump.sql"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_engine("embedded").open(DatabaseSpec("mysql-dump", path, "d"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CALL p();", "no such statement in a dump: correct the statement, or take engine=mysql"),
        (
            "CREATE TABLE t (a int); CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW CALL p(); "
            "INSERT INTO t VALUES (1);",
            "the trigger r would run .*move it behind the rows",
        ),
        ("SET NAMES gbk; CREATE TABLE t (a text); INSERT INTO t VALUES ('x');", "to UTF-8"),
        ("SET sql_mode = 'ANSI_QUOTES';", "sql_mode ANSI_QUOTES"),
        ("SET @x = p(1);", "line 2: FUNCTION .*p does not exist"),
        (
            "CREATE TABLE t (a int primary key); INSERT INTO t VALUES (1), (1);",
            "two rows .*t.PRIMARY",
        ),
    ],
)
def test_what_the_embedded_engine_cannot_load(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SqlDataError, match=message):
        embedded(tmp_path, HEAD + text)


def test_texts_that_are_not_utf_8_name_the_way_out(tmp_path: Path) -> None:
    dump = HEAD.encode() + b"CREATE TABLE t (a text);INSERT INTO t VALUES ('caf\xe9');"
    with pytest.raises(SqlDataError, match="line 2: a text for the column a is not UTF-8: put SET"):
        embedded(tmp_path, dump)


def test_writing_respects_what_the_dump_defines(tmp_path: Path) -> None:
    session = embedded(
        tmp_path,
        HEAD + "CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, x int CHECK (x < 9), g int AS "
        "(x * 2) STORED, u char(36) DEFAULT (CONCAT('a', 'b')));INSERT INTO t (x) VALUES (1),(2);"
        "CREATE TABLE r (a int);CREATE TRIGGER tr BEFORE DELETE ON r FOR EACH ROW SET @x = 1;",
    )

    def error(code: str) -> str:
        return session.run(code, 60).observation.removeprefix("Error executing query: ")

    assert session.run("INSERT INTO t (x) VALUES (3)", 60).exit_code == 0
    assert session.run("UPDATE t SET x = 5 WHERE id = 1", 60).exit_code == 0
    assert rows(session, "SELECT * FROM t") == [(1, 5, 10, "ab"), (2, 2, 4, "ab"), (3, 3, 6, "ab")]
    assert error("UPDATE t SET x = 9").startswith("Check constraint 't_chk_1' is violated")
    assert error("INSERT INTO t (g) VALUES (1)").startswith("The value specified for generated")
    assert "which has the trigger tr" in error("DELETE FROM r")
    assert session.run("INSERT INTO r VALUES (1)", 60).exit_code == 0
    session.close()


JOINED = (
    HEAD + "CREATE TABLE a (id int PRIMARY KEY, x int, y varchar(9));CREATE TABLE b (id int, "
    "z int);INSERT INTO a VALUES (1,1,'p'),(2,2,'q'),(3,3,'r');"
    "INSERT INTO b VALUES (1,10),(1,11),(3,30);"
)


@pytest.mark.parametrize(
    ("code", "a", "b"),
    [
        (
            "UPDATE a JOIN b ON a.id = b.id SET a.x = 7, b.z = b.z + 1 WHERE a.id < 3",
            [(1, 7, "p"), (2, 2, "q"), (3, 3, "r")],
            [(1, 11), (1, 12), (3, 30)],
        ),
        (
            "UPDATE a, b SET a.y = CONCAT(a.y, b.z) WHERE a.id = b.id AND b.z > 11",
            [(1, 1, "p"), (2, 2, "q"), (3, 3, "r30")],
            [(1, 10), (1, 11), (3, 30)],
        ),
        (
            "UPDATE a LEFT JOIN (SELECT id, SUM(z) AS s FROM b GROUP BY id) AS k USING "
            "(id) SET a.x = k.s",
            [(1, 21, "p"), (2, None, "q"), (3, 30, "r")],
            [(1, 10), (1, 11), (3, 30)],
        ),
        ("DELETE a FROM a JOIN b ON a.id = b.id", [(2, 2, "q")], [(1, 10), (1, 11), (3, 30)]),
        (
            "DELETE a, k FROM a JOIN b AS k ON a.id = k.id WHERE k.z < 20",
            [(2, 2, "q"), (3, 3, "r")],
            [(3, 30)],
        ),
        (
            "DELETE FROM a USING a LEFT JOIN b ON a.id = b.id WHERE b.id IS NULL",
            [(1, 1, "p"), (3, 3, "r")],
            [(1, 10), (1, 11), (3, 30)],
        ),
    ],
)
def test_statements_over_several_tables(load: Open, code: str, a: Any, b: Any) -> None:
    session = load(JOINED)
    result = session.run(code, 60)
    assert result.exit_code == 0, result.observation
    assert rows(session, "SELECT * FROM a ORDER BY id") == a
    assert rows(session, "SELECT * FROM b ORDER BY id, z") == b


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("UPDATE a, b SET id = 1", "is ambiguous"),
        ("DELETE k FROM a JOIN b ON a.id = b.id", "Unknown table 'k' in MULTI DELETE"),
        ("UPDATE a JOIN b ON a.id = b.id SET b.z = 0, a.id = 3", "Duplicate entry '3' for key"),
    ],
)
def test_failed_statements_over_several_tables_change_nothing(
    load: Open, code: str, message: str
) -> None:
    session = load(JOINED)
    assert message in session.run(code, 60).observation
    assert rows(session, "SELECT COUNT(*), SUM(x) FROM a") == [(3, 6)]
    assert rows(session, "SELECT SUM(z) FROM b") == [(51,)]


def test_joined_tables_cannot_be_updated_with_limit_in_mysql_8(tmp_path: Path) -> None:
    session = embedded(tmp_path, JOINED)
    found = session.run("UPDATE a JOIN b ON a.id = b.id SET a.x = 1 LIMIT 1", 60).observation
    assert "Incorrect usage of UPDATE and LIMIT" in found
    session.close()
