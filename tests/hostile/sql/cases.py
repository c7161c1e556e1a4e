"""Hostile statements: what each tries, and the statements that do it.

No case may have an effect outside its session, read data of others, or exceed its time limit by
more than a second. This must hold whatever the engine answers, so a case does not say what it
answers. ``PLANTED`` stands for the path of a file with the secret, ``FOLDER`` for a directory that
anybody can write to.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A hostile case. The statements of ``does`` run one after another in one session."""

    kind: str
    name: str
    does: tuple[str, ...]


_ENDLESS = "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT {} FROM a) SELECT {} FROM a"
_MANY = ", ".join(f"information_schema.COLUMNS c{n}" for n in range(6))
_OWN = ", ".join(f"sale s{n}" for n in range(24))

_CASES: dict[str, dict[str, tuple[str, ...] | str]] = {
    "time": {
        "sleep": "SELECT SLEEP(60)",
        "sleep per row": "SELECT SLEEP(20) FROM sale",
        "sleep in a condition": "SELECT * FROM sale WHERE SLEEP(20) = 0",
        "sleep while writing": "UPDATE sale SET id = id + SLEEP(20)",
        "sleep and do nothing": "DO SLEEP(60)",
        "benchmark": "SELECT BENCHMARK(100000000000, SHA2('x', 512))",
        "endless recursion": _ENDLESS.format("x + 1", "COUNT(*)"),
        "endless recursion with long settings": (
            "SET SESSION cte_max_recursion_depth = 4000000000",
            "SET max_recursive_iterations = 4000000000",
            _ENDLESS.format("x + 1", "COUNT(*)"),
        ),
        "growing recursion": _ENDLESS.format("CONCAT(x, x)", "MAX(LENGTH(x))"),
        "a cross join of all it has": f"SELECT COUNT(*) FROM {_OWN}",
        "a cross join shown": f"SELECT * FROM {_OWN}",
        "a cross join of the catalog": f"SELECT COUNT(*) FROM {_MANY}",
        "a cross join sorted": f"SELECT * FROM {_OWN} ORDER BY s1.price, s2.day LIMIT 5",
        "a cross join stored": f"CREATE TABLE big AS SELECT s1.id AS a, s2.id AS b FROM {_OWN}",
        "a regular expression that goes back": (
            "SELECT REPEAT('a', 40) REGEXP '^(a+)+$b', REPEAT('a', 5000) REGEXP '(a*)*(a*)*(a*)*b'"
        ),
        "a lock that nobody gives": ("SELECT GET_LOCK('x', 60)", "SELECT GET_LOCK('x', 60)"),
        "a table locked for ever": ("LOCK TABLES sale WRITE", "SELECT SLEEP(0)"),
        "a loop": "BEGIN NOT ATOMIC WHILE 1 DO SET @x = 1; END WHILE; END",
        "a procedure that loops": (
            "CREATE PROCEDURE p() BEGIN l: LOOP SET @x = 1; END LOOP; END",
            "CALL p()",
        ),
        "a procedure that calls itself": (
            "SET max_sp_recursion_depth = 255",
            "CREATE PROCEDURE p() CALL p()",
            "CALL p()",
        ),
        "no more time limit": (
            "SET SESSION max_statement_time = 0",
            "SET max_execution_time = 0",
            "SET STATEMENT max_statement_time = 0 FOR SELECT SLEEP(60)",
            "SELECT SLEEP(60)",
        ),
        "a hint against the limit": "SELECT /*+ MAX_EXECUTION_TIME(100000) */ SLEEP(60)",
    },
    "size": {
        "a long text": "SELECT REPEAT('x', 1000000000)",
        "many long texts": "SELECT REPEAT('x', 10000000) FROM sale a, sale b, sale c",
        "a text in a text": f"SELECT {'CONCAT(' * 60}'x'{', REPEAT(1, 1000))' * 60}",
        "padding": "SELECT LPAD('x', 4000000000, 'y'), SPACE(4000000000)",
        "a long group": (
            "SET group_concat_max_len = 4000000000",
            f"SELECT GROUP_CONCAT(REPEAT('x', 1000000)) FROM {_OWN[:60].rpartition(',')[0]}",
        ),
        "brackets": f"SELECT {'(' * 4000}1{')' * 4000}",
        "a chain of conditions": f"SELECT 1 WHERE {' OR '.join(['1 = 2'] * 8000)}",
        "a deep chain of selects": f"SELECT * FROM {'(SELECT * FROM ' * 200}sale{') t' * 200}",
        "types in each other": f"SELECT {'CHAR(' * 40}1{')' * 40}",
        "a binary operator in itself": f"SELECT {'BINARY(' * 24}1{')' * 24}",
        "a table in a binary operator": f"SELECT * FROM {'BINARY(' * 24}sale{')' * 24}",
        "an offset in an offset": f"SELECT {'(SELECT 1 OFFSET ' * 30}1{')' * 30}",
        "a default value of types": (f"CREATE TABLE t (a int DEFAULT {'(DATE(' * 30}1{'))' * 30})"),
        "subscripts of types": f"SELECT {'TIME[' * 30}1{']' * 30}",
        "many columns": f"SELECT {', '.join(['1'] * 5000)}",
        "a table that doubles": (
            "CREATE TABLE big (a text)",
            "INSERT INTO big VALUES (REPEAT('x', 60000))",
            *(["INSERT INTO big SELECT * FROM big"] * 14),
        ),
        "a table in memory": (
            "SET max_heap_table_size = 16000000000",
            "CREATE TABLE big (a char(250)) ENGINE=MEMORY",
            "INSERT INTO big SELECT 'x' FROM sale a, sale b, sale c, sale d, sale e, sale f",
        ),
        "many tables": tuple(f"CREATE TABLE t{n} (a int)" for n in range(40)),
    },
    "files": {
        "into an outfile": "SELECT * FROM customer INTO OUTFILE 'FOLDER/out'",
        "into a dumpfile": "SELECT 'x' INTO DUMPFILE 'FOLDER/dump'",
        "load a file": "SELECT LOAD_FILE('PLANTED')",
        "load data": "LOAD DATA INFILE 'PLANTED' INTO TABLE customer (name)",
        "load local data": "LOAD DATA LOCAL INFILE 'PLANTED' INTO TABLE customer (name)",
        "load xml": "LOAD XML INFILE 'PLANTED' INTO TABLE customer",
        "attach": ("ATTACH DATABASE 'FOLDER/other.db' AS other", "CREATE TABLE other.t (a int)"),
        "attach the file": "ATTACH 'PLANTED' AS other",
        "vacuum into": "VACUUM INTO 'FOLDER/copy.db'",
        "an extension": "SELECT load_extension('FOLDER/x.so')",
        "read and write a file": "SELECT readfile('PLANTED'), writefile('FOLDER/x', 'y')",
        "a virtual table of files": "CREATE VIRTUAL TABLE v USING fsdir('FOLDER')",
        "a table elsewhere": "CREATE TABLE t (a int) DATA DIRECTORY = 'FOLDER'",
        "a table of text": "CREATE TABLE t (a text) ENGINE=CSV",
        "a table of another server": (
            "CREATE TABLE t (a int) ENGINE=FEDERATED CONNECTION='mysql://root@localhost/mysql/user'"
        ),
        "a log": "SET GLOBAL general_log_file = 'FOLDER/log.php', GLOBAL general_log = 1",
        "settings of files": (
            "PRAGMA temp_store_directory = 'FOLDER'",
            "PRAGMA journal_mode = WAL",
            "PRAGMA writable_schema = 1",
            "SET GLOBAL secure_file_priv = ''",
        ),
        "source a file": "SOURCE PLANTED",
        "a shell": ("SYSTEM touch FOLDER/x", "\\! touch FOLDER/x", "system touch FOLDER/x"),
        "a plugin": "INSTALL PLUGIN x SONAME 'x.so'",
        "a function of a library": "CREATE FUNCTION sys_exec RETURNS INTEGER SONAME 'x.so'",
    },
    "others": {
        "another database": ("USE vault", "SELECT * FROM vault.secrets"),
        "another database in a join": "SELECT * FROM sale JOIN vault.secrets",
        "another database in a view": (
            "CREATE VIEW v AS SELECT * FROM vault.secrets",
            "SELECT * FROM v",
        ),
        "another database in a routine": (
            "CREATE FUNCTION f() RETURNS text RETURN (SELECT word FROM vault.secrets)",
            "SELECT f()",
        ),
        "another database in a text": (
            "SET @q = 'SELECT * FROM vault.secrets'",
            "PREPARE p FROM @q",
            "EXECUTE p",
            "EXECUTE IMMEDIATE 'SELECT * FROM vault.secrets'",
        ),
        "names of others": (
            "SELECT * FROM information_schema.TABLES WHERE TABLE_SCHEMA LIKE 'va%'",
            "SELECT * FROM information_schema.COLUMNS WHERE TABLE_NAME = 'secrets'",
            "SHOW TABLES FROM vault",
            "SHOW CREATE TABLE vault.secrets",
            "SELECT * FROM information_schema.INNODB_SYS_TABLES",
        ),
        "write to another database": (
            "INSERT INTO vault.secrets VALUES ('x')",
            "DROP DATABASE vault",
            "DROP TABLE vault.secrets",
            "RENAME TABLE sale TO vault.sale",
            "CREATE TABLE vault.t (a int)",
            "CREATE TRIGGER vault.t BEFORE INSERT ON sale FOR EACH ROW SET @x = 1",
        ),
        "the server's own tables": (
            "SELECT * FROM mysql.user",
            "DELETE FROM mysql.user",
            "SELECT * FROM mysql.global_priv",
            "SELECT * FROM performance_schema.threads",
            "SELECT * FROM sys.sys_config",
            "SELECT * FROM sqlite_master",
            "SELECT * FROM sqlite_schema",
            "SELECT * FROM dbstat",
            "DELETE FROM sqlite_master",
            "SELECT * FROM pragma_database_list",
        ),
        "what others do": (
            "SHOW PROCESSLIST",
            "SHOW FULL PROCESSLIST",
            "SHOW ENGINE INNODB STATUS",
            "SELECT * FROM information_schema.PROCESSLIST",
            "SELECT * FROM information_schema.INNODB_TRX",
            "SHOW BINARY LOGS",
            "SHOW MASTER STATUS",
        ),
        "end others": (
            *(f"KILL {n}" for n in range(1, 30)),
            "KILL CONNECTION 5",
            "/*!50000 KILL */ 6",
            "BEGIN NOT ATOMIC DECLARE n INT DEFAULT 0; WHILE n < 99 DO KILL n; END WHILE; END",
            "SHUTDOWN",
            "RESTART",
        ),
        "settings of all": (
            "SET GLOBAL sql_mode = ''",
            "SET @@global.max_connections = 1",
            "SET PERSIST x = 1",
            "SET GLOBAL read_only = 1",
            "SET GLOBAL innodb_fast_shutdown = 2",
            "SET GLOBAL lower_case_table_names = 0",
            "SET GLOBAL event_scheduler = 1",
        ),
        "rights": (
            "GRANT ALL ON *.* TO CURRENT_USER()",
            "GRANT FILE ON *.* TO 'root'@'localhost'",
            "CREATE USER mallory IDENTIFIED BY 'x'",
            "SET PASSWORD = PASSWORD('x')",
            "ALTER USER CURRENT_USER() IDENTIFIED BY 'x'",
            "SET ROLE ALL",
            "ALTER USER CURRENT_USER() ACCOUNT LOCK",
            "DROP USER root@localhost",
            "REVOKE ALL ON *.* FROM CURRENT_USER()",
            "FLUSH PRIVILEGES",
        ),
        "locks of all": (
            "FLUSH TABLES WITH READ LOCK",
            "BACKUP STAGE START",
            "BACKUP LOCK customer",
            "LOCK TABLES customer WRITE, sale WRITE",
            "LOCK INSTANCE FOR BACKUP",
            "SELECT GET_LOCK('x', 0)",
            "SELECT IS_USED_LOCK('x')",
        ),
        "locks of rows": (
            "START TRANSACTION",
            "SELECT * FROM customer FOR UPDATE",
            "UPDATE customer SET name=1",
            "XA START 'x'",
            "XA END 'x'",
            "XA PREPARE 'x'",
        ),
        "work for later": (
            "SET GLOBAL event_scheduler = ON",
            "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM customer",
            "CREATE TRIGGER t AFTER INSERT ON customer FOR EACH ROW DELETE FROM sale",
            "INSERT INTO customer (name) VALUES ('x')",
        ),
    },
    "own": {
        "delete everything": ("DELETE FROM sale", "DELETE FROM customer", "TRUNCATE shop"),
        "drop everything": ("SET foreign_key_checks = 0", "DROP TABLE customer, sale, shop"),
        "drop the database": ("DROP DATABASE shop", "SELECT * FROM customer"),
        "drop the database and make it anew": (
            "DROP DATABASE IF EXISTS shop",
            "CREATE DATABASE shop",
            "USE shop",
            "CREATE TABLE customer (id int)",
            "INSERT INTO customer VALUES (9)",
        ),
        "change the tables": (
            "ALTER TABLE customer DROP COLUMN name",
            "ALTER TABLE customer ADD COLUMN age int",
            "RENAME TABLE shop TO market",
            "CREATE INDEX i ON customer (id)",
            "ALTER TABLE sale RENAME TO sales",
            "ALTER DATABASE shop CHARACTER SET latin1",
        ),
        "several statements": (
            "SELECT 1; DROP TABLE customer",
            "SELECT 1; KILL 5; SELECT 2",
            "; DELETE FROM sale",
            "SELECT ';' ; UPDATE customer SET name = 'x'",
            "SELECT 1 -- x\n; DELETE FROM shop",
        ),
        "what is text and what is not": (
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "SELECT 'a\\', GET_LOCK('x', 60), '",
            "SET NAMES gbk",
            "SELECT '\ufffd\\', SLEEP(60) -- '",
            "SET sql_mode = 'ANSI_QUOTES'",
            'SELECT "id" FROM "customer"',
        ),
        "leave everything open": (
            "START TRANSACTION",
            "DELETE FROM customer WHERE id = 3",
            "SAVEPOINT a",
            "CREATE TEMPORARY TABLE sale (a int)",
            "SET autocommit = 0",
            "SET @x = 'mine'",
        ),
        "names that are none": (
            "SELECT * FROM ``",
            "SELECT * FROM `\x00`",
            "SELECT '\x00'",
            "USE `../vault`",
            "CREATE TABLE `../../x` (a int)",
            "CREATE TABLE `a``b` (`c``d` int)",
            "\x00",
            "\ufeff",
        ),
        "no statement": (
            "",
            ";",
            "--",
            "/*",
            "'",
            "`",
            '"',
            "((((",
            "SELECT",
            "\\",
            "\\q",
            "exit",
            "?",
            "%s",
            "{}",
            "SELECT {}",
            "SELECT %s",
            ":x",
            "🙂",
        ),
        "settings for the session": (
            "SET SESSION sql_mode = ''",
            "SET time_zone = '+13:00'",
            "SET NAMES latin1",
            "SET @@session.max_session_mem_used = 8192",
            "SET SESSION wait_timeout = 1",
            "SET SESSION transaction_read_only = 1",
            "SET foreign_key_checks = 0",
            "SET SESSION sql_select_limit = 0",
            "SET SESSION div_precision_increment = 9",
        ),
    },
}


_LATE = "SELECT sum(a.range * b.range % 7) FROM range(100000000) a, range(1000000) b"
_DUCKDB_CASES: dict[str, dict[str, tuple[str, ...] | str]] = {
    "time": {
        "a cross join of ranges": _LATE,
        "a cross join of ranges stored": f"CREATE TABLE big AS {_LATE}",
        "a late default": (
            f"CREATE TABLE late (a DOUBLE DEFAULT ({_LATE}))",
            "INSERT INTO late DEFAULT VALUES",
        ),
        "a late view": (f"CREATE VIEW late AS {_LATE}", "SELECT * FROM late", "SUMMARIZE late"),
        "a late macro": (f"CREATE MACRO late() AS ({_LATE})", "SELECT late()"),
        "a late check": (
            "CREATE TABLE late (a INT CHECK (length(repeat('x', a)) > 0))",
            "INSERT INTO late SELECT 2000000000 FROM range(1000)",
        ),
        "a late generated column": (
            "CREATE TABLE late (a INT, b AS (repeat('x', a)))",
            "INSERT INTO late SELECT 100000000 FROM range(1000)",
            "SELECT b FROM late",
        ),
        "a recursion by keys": "WITH RECURSIVE r(n) USING KEY (n) AS (SELECT 1 UNION "
        "SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "a long regular expression": (
            "SELECT regexp_matches(repeat('a', 100000), '(a*)*(a*)*(a*)*b')"
        ),
        "a pivot of many values": "PIVOT (SELECT range AS a FROM range(100000)) ON a",
        "a sample of much": "SELECT * FROM range(100000000000) USING SAMPLE 10",
        "an index of much": (
            "CREATE TABLE much AS SELECT * FROM range(100000000)",
            "CREATE INDEX i ON much (range)",
        ),
    },
    "size": {
        "a long text of one call": "SELECT repeat('x', 2000000000)",
        "a long list": "SELECT list_resize([1], 2000000000)",
        "nested lists": f"SELECT {'[' * 3000}1{']' * 3000}",
        "a deep structure": "SELECT " + "{'a': " * 500 + "1" + "}" * 500,
        "a table that fills the disk": (
            "CREATE TABLE big AS SELECT md5(range::VARCHAR) AS a FROM range(2000000)",
            *(["INSERT INTO big SELECT a || a FROM big"] * 4),
        ),
        "many small tables": tuple(f"CREATE TABLE t{n} (a int)" for n in range(20)),
        "sorting on disk": "SELECT * FROM range(300000000) ORDER BY hash(range)",
        "a long description": f"COMMENT ON TABLE sale IS '{'x' * 500_000}'",
        "many parameters": f"SELECT {', '.join(['?'] * 1000)}",
    },
    "files": {
        "read a text": ("SELECT * FROM read_text('PLANTED')", "SELECT * FROM read_blob('PLANTED')"),
        "read a table": (
            "SELECT * FROM read_csv('PLANTED')",
            "SELECT * FROM 'PLANTED'",
            "FROM 'FOLDER/*.csv'",
            "SELECT * FROM read_json_auto('PLANTED')",
            "SELECT * FROM read_parquet('PLANTED')",
            "SELECT * FROM parquet_metadata('PLANTED')",
            "SELECT * FROM sniff_csv('PLANTED')",
        ),
        "list files": ("SELECT * FROM glob('FOLDER/../**')", "SELECT * FROM read_text('FOLDER/*')"),
        "copy": (
            "COPY sale TO 'FOLDER/x.csv'",
            "COPY sale FROM 'PLANTED'",
            "COPY (SELECT 1) TO '/dev/stdout'",
            "EXPORT DATABASE 'FOLDER/x'",
            "COPY FROM DATABASE shop TO memory",
            "IMPORT DATABASE 'FOLDER'",
        ),
        "copy in disguise": (
            "EXPLAIN ANALYZE COPY sale TO 'FOLDER/x'",
            "PREPARE p AS COPY sale TO 'FOLDER/x'",
            "EXECUTE p",
            "SELECT * FROM query('COPY sale TO ''FOLDER/x''')",
            "WITH x AS (COPY sale TO 'FOLDER/x') SELECT 1",
        ),
        "attach databases": (
            "ATTACH 'FOLDER/x.db' AS x",
            "ATTACH ':memory:' AS x",
            "ATTACH 'PLANTED' AS p",
            "ATTACH IF NOT EXISTS 'FOLDER/x.db' (TYPE sqlite)",
            "DETACH shop",
        ),
        "extensions": (
            "INSTALL httpfs",
            "LOAD httpfs",
            "LOAD 'FOLDER/x.duckdb_extension'",
            "FORCE INSTALL sqlite FROM community",
            "UPDATE EXTENSIONS",
            "SET custom_extension_repository = 'http://127.0.0.1:9'",
        ),
        "the network": (
            "SELECT * FROM read_csv('http://127.0.0.1:9/x')",
            "SELECT * FROM read_parquet('s3://x/y')",
            "ATTACH 'https://x/y.db' AS y",
        ),
        "settings that name files": (
            "SET temp_directory = 'FOLDER'",
            "PRAGMA temp_directory = 'FOLDER'",
            "SET home_directory = 'FOLDER'",
            "SET secret_directory = 'FOLDER'",
            "SET extension_directory = 'FOLDER'",
            "SET log_query_path = 'FOLDER/log'",
            "PRAGMA profiling_output = 'FOLDER/x'",
            "PRAGMA enable_profiling = 'json'",
            "SET allowed_directories = ['FOLDER']",
            "SET allowed_paths = ['PLANTED']",
            "RESET GLOBAL enable_external_access",
            "SET GLOBAL lock_configuration = false",
            "CALL enable_logging(storage = 'file', storage_path = 'FOLDER')",
        ),
        "secrets": (
            "CREATE PERSISTENT SECRET s (TYPE s3)",
            "CREATE SECRET s (TYPE http)",
            "SELECT * FROM duckdb_secrets(redact = false)",
            "SELECT getenv('HOME')",
        ),
        "variables with files": (
            "SET VARIABLE f = 'PLANTED'",
            "SELECT * FROM read_text(getvariable('f'))",
            "CREATE MACRO m(f) AS TABLE SELECT * FROM read_text(f)",
            "SELECT * FROM m('PLANTED')",
            "CREATE VIEW v AS SELECT * FROM read_text('PLANTED')",
            "SELECT * FROM v",
            "CREATE TABLE c AS SELECT * FROM read_text('PLANTED')",
        ),
        "where the file is": (
            "SELECT * FROM duckdb_databases()",
            "PRAGMA database_list",
            "SHOW DATABASES",
            "SELECT * FROM pragma_database_list",
            "SELECT path || 'x' FROM duckdb_databases()",
            "SELECT error(path) FROM duckdb_databases()",
            "SELECT [path] FROM duckdb_databases()",
            "SELECT {'a': path} FROM duckdb_databases()",
            "SELECT * FROM duckdb_extensions()",
            "SELECT path::BLOB FROM duckdb_databases()",
            "SELECT * FROM duckdb_settings()",
            "CREATE TABLE t AS FROM duckdb_databases()",
            "FROM t",
            "SELECT MAP {path: 1} FROM duckdb_databases() WHERE path IS NOT NULL",
        ),
    },
    "others": {
        "tables of others": (
            "SELECT * FROM information_schema.tables",
            "SHOW ALL TABLES",
            "SELECT * FROM duckdb_tables()",
            "SELECT * FROM sqlite_master",
        ),
        "use other databases": (
            "USE memory",
            "USE temp",
            "USE system",
            "USE vault",
            "CREATE TABLE temp.main.t (a int)",
            "CREATE SCHEMA vault",
        ),
        "settings of the process": (
            "SET threads = 64",
            "SET GLOBAL memory_limit = '99GB'",
            "SET max_memory = '99GB'",
            "PRAGMA threads = 64",
            "RESET ALL",
            "SET autoinstall_known_extensions = true",
            "PRAGMA disable_optimizer",
        ),
        "objects of Python": (
            "SELECT * FROM session",
            "SELECT * FROM connection",
            "FROM self",
            "SELECT * FROM statement",
            "SELECT * FROM result",
        ),
        "addresses as numbers": (
            "SELECT * FROM pandas_scan(4711)",
            "SELECT * FROM arrow_scan(4711, 4711, 4711)",
            "SELECT * FROM arrow_scan_dumb(4711, 4711, 4711)",
            "SELECT * FROM python_map_function(4711)",
        ),
    },
    "own": {
        "drop all": (
            "DROP TABLE sale",
            "DROP TABLE customer",
            "DROP SCHEMA main CASCADE",
            "DROP DATABASE shop",
            "DELETE FROM shop",
        ),
        "hide everything": (
            "CREATE SCHEMA other",
            "SET schema = 'other'",
            "SET search_path = 'other'",
            "CREATE TABLE other.customer (a int)",
            "CREATE MACRO current_database() AS 'x'",
            "CREATE TYPE BIGINT AS ENUM ('a')",
            "CREATE MACRO count(x) AS 7",
        ),
        "leave all open": (
            "BEGIN",
            "DELETE FROM sale",
            "CREATE TEMP TABLE customer (a int)",
            "SAVEPOINT a",
            "SET VARIABLE x = 1",
            "PREPARE p AS SELECT 1",
        ),
        "statements behind others": ("SELECT 1; DROP TABLE sale", "; DELETE FROM sale", ";;"),
        "nothing of a statement": (
            "$$",
            "$1",
            ".quit",
            ".shell touch FOLDER/x",
            ".read PLANTED",
            "\x00",
            "SELECT '\x00'",
        ),
    },
}


def all_cases(engine: str = "") -> list[Case]:
    """Return all cases in a fixed order, with those in the dialect of an engine."""
    own = _DUCKDB_CASES if engine == "duckdb" else {}
    return [
        Case(kind, name, (does,) if isinstance(does, str) else does)
        for group in (_CASES, own)
        for kind, cases in group.items()
        for name, does in cases.items()
    ]
