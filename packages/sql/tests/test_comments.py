"""Comments in statements of every kind, and what only looks like one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sql import SqlSession, open_engine
from intercode_sql.dialect.tokens import without_comments
from intercode_sql.types import DatabaseSpec


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SqlSession]:
    path = tmp_path / "d.sql"
    path.write_text("CREATE DATABASE d; USE d; CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    engine = open_engine("embedded")
    opened = engine.open(DatabaseSpec("mysql-dump", path, "d"))
    yield opened
    opened.close()
    engine.close()


STATEMENTS = """
    CREATE TABLE t2 (b int)|ALTER TABLE t2 ADD c int|CREATE INDEX i ON t2 (b)|DROP INDEX i ON t2
    TRUNCATE TABLE t2|RENAME TABLE t TO t3|DROP TABLE t2|CREATE VIEW w AS SELECT 1|DROP VIEW w
    START TRANSACTION|INSERT INTO t3 VALUES (2)|SAVEPOINT s|UPDATE t3 SET a = 3|DELETE FROM t3
    ROLLBACK TO s|RELEASE SAVEPOINT s|COMMIT|SET @v = 1|SET autocommit = 0|ROLLBACK|USE d
    SHOW TABLES|DESCRIBE t3|DO 1|SELECT a FROM t3|( SELECT 1 )
    SELECT 1 UNION SELECT 2|REPLACE INTO t3 VALUES (4)
    """
FORMS = ["/* c */ {}", "-- c\n{}", "--\n{}", "# c\n{}", "{} /* c */", "{} -- c", "{} # c"]


@pytest.mark.parametrize("form", [*FORMS, "within"])
def test_a_comment_stands_anywhere(session: SqlSession, form: str) -> None:
    for code in STATEMENTS.replace("\n", "|").split("|"):
        if code := code.strip():
            between = code.replace(" ", " /* it's */ ", 1)
            result = session.run(between if form == "within" else form.format(code), 60)
            assert result.ok, (code, result.output)
    assert session.run("SELECT a FROM t3 ORDER BY a", 60).rows == ((1,), (2,), (4,))


def test_executable_comments_for_this_version_are_code(session: SqlSession) -> None:
    code = "SELECT 1 /*!40101 + 2 */ /*! + 4 */ /*!80033 + 8 */ /*!80034 + 16 */ /*M! + 32 */"
    assert session.run(code, 60).rows == ((15,),)
    assert session.run("/*!40101 SET @v = '*/' */", 60).ok
    assert session.run("SELECT @v", 60).rows == (("*/",),)


def test_many_comments_are_read_once(session: SqlSession) -> None:
    assert session.run("/**/" * 20_000 + "SELECT 1", 60).rows == ((1,),)


def test_texts_and_names_are_no_comments(session: SqlSession) -> None:
    code = "SELECT '/* a */', \"-- b\", '# c', 'into outfile', 1--1 AS `/* d */`"
    assert session.run(code, 60).rows == (("/* a */", "-- b", "# c", "into outfile", 2),)
    assert "Access denied" in session.run("SELECT 1 INTO /* c */ OUTFILE 'f'", 60).output


def test_an_error_quotes_the_statement_as_it_was_written(session: SqlSession) -> None:
    result = session.run("SELECT /* one\ntwo */ 1 FROM /* three */ WHERE /* four */ 1", 60)
    assert result.output.endswith("near 'WHERE /* four */ 1' at line 2")


@pytest.mark.parametrize("code", ["SELECT /* 1", "SELECT */ 1", "SELECT /*+ x */ 1", "1 --1"])
def test_what_is_no_whole_comment_stays(code: str) -> None:
    assert without_comments(code, 80033) == code
