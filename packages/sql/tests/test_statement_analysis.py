"""The analysis of statements before they reach the server."""

from __future__ import annotations

import pytest

from intercode_sql.server.statement_analysis import analyze_statement


@pytest.mark.parametrize(
    "code",
    [
        "SELECT 1",
        "  (SELECT a FROM t)",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SHOW TABLES",
        "DESCRIBE t",
        "EXPLAIN SELECT 1",
        "SELECT status, user, count(*) FROM variables;",
        "SELECT 'FOR UPDATE', `into` FROM t -- INTO @x",
        "SHOW CREATE TABLE t",
        "SELECT table_name FROM information_schema.tables",
        "VALUES (1), (2)",
    ],
)
def test_statements_for_any_connection(code: str) -> None:
    assert analyze_statement(code).kind == "read"


@pytest.mark.parametrize(
    "code",
    [
        "INSERT INTO t VALUES (1)",
        "SET @a = 1",
        "SELECT @a := 1",
        "SELECT 1 INTO @a",
        "SELECT FOUND_ROWS()",
        "SHOW WARNINGS",
        "SELECT * FROM t FOR UPDATE",
        "SELECT @@sql_mode",
        "SELECT * FROM t LOCK IN SHARE MODE",
        "CREATE TABLE t (a int)",
        "START TRANSACTION",
        "SELECT user()",
        "SHOW PROCESSLIST",
        "EXPLAIN UPDATE t SET a = 1",
        "BEGIN",
        "CALL p()",
        "SELECT LAST_INSERT_ID(5)",
        "SELECT NEXT VALUE FOR s",
        "/*!50000 DELETE */ FROM t",
        "WITH x AS (SELECT 1) SELECT a FROM x INTO @y",
        "SHOW SESSION VARIABLES",
        "x: LOOP END LOOP",
        "SELECT * FROM information_schema.processlist",
        "TRUNCATE t",
        "DO SLEEP(1)",
    ],
)
def test_statements_that_need_a_connection_of_their_own(code: str) -> None:
    assert analyze_statement(code).kind == "own"


REFUSED = [
    "KILL 5",
    "SET PASSWORD = ''",
    "SELECT GET_LOCK('a', 1)",
    "SELECT get_lock ('a', 1)",
    "CREATE USER x",
    "ALTER USER CURRENT_USER() IDENTIFIED BY 'x'",
    "XA START 'x'",
    "/*!50000 KILL */ 5",
    "CREATE PROCEDURE p() BEGIN KILL 5; END",
    "BEGIN NOT ATOMIC KILL 5; END",
    "PREPARE p FROM 'KILL 5'",
    "EXECUTE IMMEDIATE 'KILL 5'",
    "SET SESSION max_statement_time = 0",
    "SET @@session.max_statement_time = 0",
    "CREATE PACKAGE p AS PROCEDURE q(); END",
    "CREATE TABLE t (a int) ENGINE=FEDERATED CONNECTION='mysql://h/d/t'",
    "HANDLER t OPEN",
    "BACKUP LOCK t",
    "CREATE TABLE t (a int) DATA DIRECTORY='/tmp'",
    "SET STATEMENT max_statement_time=0 FOR DO 1",
    "CREATE PROCEDURE p() SET PASSWORD = ''",
    "x: BEGIN NOT ATOMIC SET max_statement_time = 1; END",
    "SET @a = (1, 2), PASSWORD = ''",
]


@pytest.mark.parametrize("code", REFUSED)
def test_refused_statements(code: str) -> None:
    reading = analyze_statement(code)
    assert reading.kind == "refused"
    assert "not allowed here" in reading.argument


@pytest.mark.parametrize(
    "prefix",
    [
        "SET STATEMENT a = 1 FOR ",
        "set /* x */ statement a = (SELECT 1 FOR UPDATE), b = 2 for ",
        "/*!50000 SET STATEMENT */ a = 1 FOR SET STATEMENT b = 'FOR' FOR ",
    ],
)
def test_statements_are_refused_after_settings_of_their_own(prefix: str) -> None:
    for code in (*REFUSED, "USE mysql"):
        assert analyze_statement(prefix + code).kind == "refused", code


def test_a_statement_after_settings_of_its_own_is_what_counts() -> None:
    prefix = "SET STATEMENT sql_mode = '' FOR "
    made = analyze_statement(f"{prefix}CREATE TEMPORARY TABLE t (a int)")
    assert (made.kind, made.first, made.defines) == ("own", "CREATE", True)
    assert made.temporary_tables == {"t"}
    read = analyze_statement(f"{prefix}SELECT a FROM t")
    assert (read.kind, read.writes, read.defines) == ("own", False, False)
    assert (
        analyze_statement(f"{prefix}SELECT 'KILL 5'").kind == "refused"
    )  # quotes may have changed
    assert analyze_statement(f"{prefix}UNLOCK TABLES").kind == "no-op"
    assert analyze_statement(f"{prefix}BEGIN NOT ATOMIC DO 1; END").compound
    assert analyze_statement("SET STATEMENT a = 1 FOR").kind == "syntax-error"


def test_harmless_statements_are_not_refused() -> None:
    for code in (
        "SELECT get_lock FROM t",
        "SELECT 'KILL 5'",
        "SELECT `kill`, password, event FROM user",
        "INSERT INTO t (connection) VALUES ('LOAD_FILE')",
        "ALTER TABLE t ADD COLUMN user int",
        "SET @a = IF(1, password, role)",
        "SET @a = (SELECT a, role FROM t)",
        "SET STATEMENT = 1",
    ):
        assert analyze_statement(code).kind != "refused", code


def test_careful_analysis_searches_strings() -> None:
    hidden = r"SELECT 'a\', GET_LOCK('x',1), '"
    assert analyze_statement(hidden).kind == "read"
    assert analyze_statement(hidden, careful=True).kind == "refused"


def test_other_kinds() -> None:
    assert (analyze_statement("USE `a`;").kind, analyze_statement("USE `a`;").argument) == (
        "use",
        "a",
    )
    assert (
        analyze_statement("LOCK TABLES t WRITE").kind
        == analyze_statement("unlock tables").kind
        == "no-op"
    )
    assert analyze_statement("Can you show me the tables?").kind == "syntax-error"
    assert analyze_statement(" -- x").argument == "Query was empty"


def test_assigned_names() -> None:
    assert analyze_statement("SET sql_mode = 'x', @a := 5").assigned_names == {"sql_mode", "@a"}
    assert analyze_statement("SELECT @a, @b := 1").assigned_names == {"@b"}
    assert analyze_statement("SET NAMES latin1").assigned_names == {"names"}
    assert analyze_statement("SELECT @a").assigned_names == frozenset()
