"""The DB-API 2.0 interface: the public tests of PEP 249, and what they leave open."""

from __future__ import annotations

import datetime as dt
import enum
import signal
import sqlite3
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import dbapi20
import pytest

import intercode_sql
from intercode_sql import SqlEngine, SqlLimits, dbapi
from intercode_sql.dbapi import Connection
from intercode_sql.engines import engine_class
from intercode_sql.literals import ParameterError
from intercode_sql.worker import process
from support.sql_engines import engine_or_skip, needs_duckdb

DUMP = """
CREATE DATABASE shop;
USE shop;
CREATE TABLE sale (id int AUTO_INCREMENT PRIMARY KEY, price decimal(8,2) NOT NULL, day date,
  note varchar(20), UNIQUE KEY (note));
INSERT INTO sale (price, day, note) VALUES (9.50, '2024-01-02', 'a'), (20.00, NULL, 'b');
"""
ENGINES = ["embedded", "sqlite", "duckdb", pytest.param("mysql", marks=pytest.mark.mysql)]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dbapi") / "shop.sql"
    path.write_text(DUMP, encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[SqlEngine]:
    opened = engine_or_skip(request.param)
    yield opened
    opened.close()


@pytest.fixture
def connection(engine: SqlEngine, dump: Path) -> Iterator[Connection]:
    """A connection to the shop on each engine."""
    if "mysql-dump" in engine.dialect.reads:
        with intercode_sql.connect(dump, engine) as opened:
            yield opened
        return
    with intercode_sql.connect(None, engine) as opened:
        opened.run(
            "CREATE TABLE sale (id INTEGER PRIMARY KEY, price DECIMAL(8, 2) NOT NULL, day TEXT, "
            "note TEXT UNIQUE)"
        )
        opened.run("INSERT INTO sale VALUES (1, 9.5, '2024-01-02', 'a'), (2, 20, NULL, 'b')")
        opened.commit()
        yield opened


# ------------------------------------------------------------ the public tests
class _Compliance:
    """The settings of the public tests: procedures and further results are optional."""

    driver = dbapi
    lower_func = None
    connect_args: ClassVar[tuple[Any, ...]] = ()
    connect_kw_args: ClassVar[dict[str, Any]] = {}

    def test_nextset(self) -> None:
        connection = self._connect()  # type: ignore[attr-defined]
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.nextset() is None
            with pytest.raises(dbapi.Error):
                cursor.fetchall()

    def test_setoutputsize(self) -> None:
        connection = self._connect()  # type: ignore[attr-defined]
        with connection, connection.cursor() as cursor:
            cursor.setoutputsize(1000)
            cursor.setoutputsize(2000, 0)
            assert cursor.execute("SELECT 1").fetchall() == [(1,)]


class TestComplianceEmbedded(_Compliance, dbapi20.DatabaseAPI20Test):
    connect_kw_args: ClassVar = {"engine": "embedded"}


class TestComplianceSqlite(_Compliance, dbapi20.DatabaseAPI20Test):
    connect_kw_args: ClassVar = {"engine": "sqlite"}


class TestComplianceDuckdb(_Compliance, dbapi20.DatabaseAPI20Test):
    connect_kw_args: ClassVar = {"engine": "duckdb"}

    @pytest.fixture(autouse=True)
    def _extra(self) -> None:
        needs_duckdb()


@pytest.fixture(scope="class")
def _one_server(request: pytest.FixtureRequest, mysql: SqlEngine, dump: Path) -> None:
    request.cls.connect_args = (dump, mysql)


@pytest.mark.mysql
@pytest.mark.usefixtures("_one_server")
class TestComplianceMysql(_Compliance, dbapi20.DatabaseAPI20Test):
    pass


# ------------------------------------------------------------ results
def test_the_package_lists_its_public_names() -> None:
    assert dir(intercode_sql) == sorted(intercode_sql.__all__)
    assert "connect" in dir(intercode_sql)


def test_a_query_describes_its_rows(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT id, price, note AS text FROM sale ORDER BY id")
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == ["id", "price", "text"]
    kinds = [column[1] for column in cursor.description]
    assert kinds == [dbapi.NUMBER, dbapi.NUMBER, dbapi.STRING]
    assert kinds[2] != dbapi.NUMBER
    assert cursor.rowcount == 2
    assert [row[2] for row in cursor] == ["a", "b"]
    assert cursor.fetchone() is None


def test_the_embedded_engine_knows_the_types_of_columns(dump: Path) -> None:
    with intercode_sql.connect(dump) as connection:
        cursor = connection.cursor().execute("SELECT price, day, id + 1 FROM sale WHERE 1 = 0")
        assert cursor.description == (
            ("price", 246, None, None, 8, 2, False),
            ("day", 10, None, None, None, None, True),
            ("id + 1", 8, None, None, None, None, False),
        )
        for statement, names in (
            ("SHOW TABLES", ["Tables_in_shop"]),
            ("SHOW FULL TABLES LIKE 's%'", ["Tables_in_shop (s%)", "Table_type"]),
            ("DESCRIBE sale", ["Field", "Type", "Null", "Key", "Default", "Extra"]),
            ("SHOW CREATE TABLE sale", ["Table", "Create Table"]),
            ("SHOW VARIABLES LIKE 'autocommit'", ["Variable_name", "Value"]),
        ):
            cursor.execute(statement)
            assert cursor.description is not None
            assert [column[0] for column in cursor.description] == names
            assert all(len(row) == len(names) for row in cursor)


def test_a_statement_counts_the_rows_that_it_writes(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("INSERT INTO sale (price, note) VALUES (%s, %s)", (1, "c"))
    assert (cursor.rowcount, cursor.description) == (1, None)
    assert cursor.lastrowid == (None if connection.dialect.name == "duckdb" else 3)
    cursor.executemany("INSERT INTO sale (price, note) VALUES (1, %(n)s)", [{"n": "d"}, {"n": "e"}])
    assert cursor.rowcount == 2
    cursor.execute("UPDATE sale SET price = price + 1 WHERE id > 2")
    assert cursor.rowcount == 3
    assert cursor.execute("DELETE FROM sale").rowcount == 5
    with pytest.raises(dbapi.ProgrammingError, match=r"use execute\(\)"):
        cursor.executemany("SELECT %s", [(1,)])


def test_a_long_result_is_an_error_and_not_a_part(engine: SqlEngine, dump: Path) -> None:
    file = dump if "mysql-dump" in engine.dialect.reads else None
    with (
        intercode_sql.connect(file, engine, limits=SqlLimits(rows=2)) as connection,
        pytest.raises(dbapi.OperationalError, match="LIMIT"),
    ):
        connection.run("SELECT 1 UNION SELECT 2 UNION SELECT 3")


# ------------------------------------------------------------ parameters
HOSTILE = [
    "",
    "'",
    "''",
    "\\",
    "\\'",
    "'; DROP TABLE sale; -- ",
    "a\\\\' OR 1=1 #",
    '"',
    "`",
    "%s",
    "%%",
    "%(a)s",
    "\n\r\t\x1a",
    "\0",
    "a\0'b",
    "é𝄞",
    "/*",
    "*/",
    "--",
    "x' y",
    "$1 ? :a",
    "\\\\",
    "\\n",
    "\u2028",
    "' /*! OR 1 */ '",
    "\\Z\\0\\%",
]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_text_arrives_as_it_is(connection: Connection, text: str) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT %s, %s = %s, COUNT(*) FROM sale", (text, text, text))
    assert cursor.fetchall() == [(text, 1, 2)]
    cursor.execute("SELECT %(a)s, '%%', %(a)s", {"a": text})
    assert cursor.fetchall() == [(text, "%", text)]


@pytest.mark.mysql
@pytest.mark.parametrize("kind", ["embedded", "mysql"])
def test_a_text_arrives_in_each_mode(kind: str, dump: Path, mysql: SqlEngine) -> None:
    """Also where a backslash escapes nothing."""
    engine = mysql if kind == "mysql" else kind
    with intercode_sql.connect(dump, engine) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
        for text in HOSTILE:
            assert cursor.execute("SELECT %s", (text,)).fetchall() == [(text,)], text
        with pytest.raises(dbapi.ProgrammingError, match="depending on the mode"):
            cursor.execute("SELECT 'a\\', %s, 'b'", (" OR ",))


def test_values_of_every_type_arrive(dump: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 5, 250_000)
    values = (
        None,
        True,
        False,
        -5,
        1 << 62,
        1.5,
        -1e300,
        Decimal("-1.20"),
        moment,
        moment.date(),
        moment.time(),
        dt.timedelta(days=-2, seconds=-1),
        b"\x00\xff'",
        bytearray(b"\\"),
    )
    shown = (
        None,
        1,
        0,
        -5,
        1 << 62,
        Decimal("1.5"),
        None,
        Decimal("-1.20"),
        "2024-02-29 12:30:05.250000",
        "2024-02-29",
        "12:30:05.250000",
        "-48:00:01",
        b"\x00\xff'",
        b"\\",
    )
    with intercode_sql.connect(dump) as connection, connection.cursor() as cursor:
        for value, expected in zip(values, shown, strict=True):
            found = cursor.execute("SELECT %s", (value,)).fetchall()[0][0]
            if isinstance(expected, bytes):
                found = found.encode("latin-1") if isinstance(found, str) else bytes(found)
            if expected is not None:
                assert found == expected, value
        cursor.execute("SELECT 10-%s, 10 -%s, %s--1", (-5, -5, -5))
        assert cursor.fetchall() == [(15, 15, -4)]


@pytest.mark.parametrize(
    ("operation", "parameters", "message"),
    [
        ("SELECT %s", (), "more placeholders than the 0"),
        ("SELECT %s", (1, 2), "2 parameters for 1"),
        ("SELECT '%s'", ("x",), "within quotes"),
        ("SELECT 1 /* %s */", ("x",), "within quotes or a comment"),
        ("SELECT %(a)s", {"b": 1}, r"no parameter for %\(a\)s"),
        ("SELECT %s", {"b": 1}, "have names"),
        ("SELECT %s", "x", "a sequence or a mapping, not str"),
        ("SELECT %s", (object(),), "builtins.object has no literal"),
        ("SELECT %s", (float("nan"),), "no number"),
        ("SELECT %s", (Decimal("Infinity"),), "no number"),
        ("SELECT %s", ("\ud800",), "not Unicode"),
        ("SELECT %s", (dt.datetime.now(dt.UTC),), "time zone"),
    ],
)
def test_a_wrong_parameter_is_refused(
    connection: Connection, operation: str, parameters: Any, message: str
) -> None:
    with pytest.raises(dbapi.ProgrammingError, match=message):
        connection.cursor().execute(operation, parameters)


class _Name(str, enum.Enum):  # noqa: UP042  # its text is that of the enumeration
    RED = "red"


class _Price(Decimal, enum.Enum):
    LOW = "1.5"


def test_a_member_of_an_enumeration_is_its_value(connection: Connection) -> None:
    found = connection.cursor().execute("SELECT %s, %s", (_Name.RED, _Price.LOW)).fetchone()
    assert found is not None
    assert (found[0], float(found[1])) == ("red", 1.5)


NESTED = [
    "SELECT /* a /* b */ %s /* c */ */ 2",
    "SELECT /* /* */ */ %s",
    "/*/*/ %s */*/ SELECT 1",
    "SELECT %s /* x /* y",
    "SELECT '/* ', %s /* /* */ */",
]


@pytest.mark.parametrize("operation", NESTED)
def test_a_comment_within_a_comment_has_no_parameters(operation: str) -> None:
    literals = engine_class("duckdb").dialect.literals  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match="within a comment"):
        literals.bind(operation, ["*/ 1, 'x"])
    assert literals.bind("SELECT '/* /*', /* a */ %s /**/", [1]) == "SELECT '/* /*', /* a */ 1 /**/"


def test_a_literal_does_not_join_its_neighbours(connection: Connection) -> None:
    """Neither quotes, which would make one text of two, nor a word such as the x of x'41'."""
    cursor = connection.cursor()
    try:
        rows = cursor.execute("SELECT 'a'%s", ("b' OR '",)).fetchall()
    except dbapi.Error:
        rows = []
    assert rows in ([], [("ab' OR '",)], [("a",)])
    try:
        rows = cursor.execute("SELECT 7 x%s", ("41",)).fetchall()
    except dbapi.Error:
        rows = []
    assert rows in ([], [(7,)])


# ------------------------------------------------------------ transactions
def _notes(connection: Connection) -> list[str]:
    return [n for (n,) in connection.cursor().execute("SELECT note FROM sale ORDER BY id")]


def test_changes_stay_after_commit_only(connection: Connection) -> None:
    insert = "INSERT INTO sale (price, note) VALUES (1, %s)"
    connection.run(insert, ["c"])
    connection.commit()
    connection.run(insert, ["d"])
    assert _notes(connection) == ["a", "b", "c", "d"]
    connection.rollback()
    assert _notes(connection) == ["a", "b", "c"]
    connection.autocommit = True
    connection.run(insert, ["e"])
    connection.rollback()
    assert _notes(connection) == ["a", "b", "c", "e"]
    connection.run("BEGIN")
    connection.run(insert, ["f"])
    connection.rollback()
    connection.run("BEGIN")
    connection.run(insert, ["g"])
    connection.run("COMMIT")
    connection.rollback()
    connection.autocommit = False
    connection.run(insert, ["h"])
    connection.rollback()
    assert _notes(connection) == ["a", "b", "c", "e", "g"]


ENDS = ["/* x */ COMMIT", "-- x\nCOMMIT", "COMMIT;", "  commit  "]


@pytest.mark.parametrize("end", ENDS)
def test_a_transaction_ends_however_its_end_is_written(connection: Connection, end: str) -> None:
    connection.run("INSERT INTO sale (price, note) VALUES (1, 'c')")
    connection.run(end)
    connection.rollback()
    assert _notes(connection) == ["a", "b", "c"]
    connection.run("INSERT INTO sale (price, note) VALUES (1, 'd')")
    connection.rollback()
    assert _notes(connection) == ["a", "b", "c"]


def test_a_transaction_begins_however_its_begin_is_written(connection: Connection) -> None:
    connection.autocommit = True
    connection.run("/* x */ BEGIN")
    connection.run("INSERT INTO sale (price, note) VALUES (1, 'c')")
    connection.rollback()
    assert _notes(connection) == ["a", "b"]
    with pytest.raises(dbapi.Error):
        connection.run("/* BEGIN */ SELEC 1")
    connection.commit()
    connection.rollback()


def test_savepoints_and_conflicts_of_sqlite() -> None:
    with intercode_sql.connect(engine="sqlite") as connection:
        connection.run("CREATE TABLE sale (id INTEGER PRIMARY KEY, note TEXT)")
        connection.run("INSERT INTO sale VALUES (1, 'a')")
        connection.commit()
        connection.run("INSERT INTO sale VALUES (2, 'b')")
        connection.run("SAVEPOINT s")
        connection.run("INSERT INTO sale VALUES (3, 'c')")
        connection.run("ROLLBACK\nTO s")
        connection.commit()
        assert _notes(connection) == ["a", "b"]
        connection.run("INSERT INTO sale VALUES (3, 'c')")
        with pytest.raises(dbapi.IntegrityError):
            connection.run("INSERT OR ROLLBACK INTO sale VALUES (1, 'x')")
        connection.commit()
        assert _notes(connection) == ["a", "b"]
        assert connection.session.in_transaction
        connection.rollback()
        assert not connection.session.in_transaction


def test_connections_do_not_see_each_other_and_the_file_stays(
    engine: SqlEngine, connection: Connection, dump: Path
) -> None:
    connection.run("DELETE FROM sale")
    connection.commit()
    if "mysql-dump" in engine.dialect.reads:
        with intercode_sql.connect(dump, engine) as other:
            assert _notes(other) == ["a", "b"]
    assert connection.session.changes() != []
    with pytest.raises(dbapi.ProgrammingError):
        connection.run("SELECT * FROM missing")


def test_a_closed_connection_says_so(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    connection.close()
    for use in (connection.commit, connection.cursor, cursor.fetchone, connection.close):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            use()


# ------------------------------------------------------------ errors
def test_errors_have_their_class_and_number(dump: Path) -> None:
    with intercode_sql.connect(dump) as connection:
        for statement, kind, number in (
            ("SELECT * FROM missing", dbapi.ProgrammingError, 1146),
            ("SELEC 1", dbapi.ProgrammingError, 1064),
            ("INSERT INTO sale (price, note) VALUES (1, 'a')", dbapi.IntegrityError, 1062),
            ("INSERT INTO sale (price) VALUES (NULL)", dbapi.IntegrityError, 1048),
            ("INSERT INTO sale (price) VALUES ('x')", dbapi.DataError, 1366),
            ("INSERT INTO sale (price) VALUES (1e9)", dbapi.DataError, 1264),
            ("HANDLER sale OPEN", dbapi.NotSupportedError, 0),
        ):
            with pytest.raises(dbapi.DatabaseError) as caught:
                connection.run(statement)
            assert (type(caught.value), caught.value.args[0]) == (kind, number), statement


def test_errors_of_sqlite_have_their_class(tmp_path: Path) -> None:
    with intercode_sql.connect(engine="sqlite") as connection:
        connection.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL)")
        for statement, kind in (
            ("SELECT * FROM missing", dbapi.ProgrammingError),
            ("INSERT INTO t VALUES (1, NULL)", dbapi.IntegrityError),
            ("INSERT INTO t VALUES ('x', '')", dbapi.DataError),
            ("ATTACH 'x' AS y", dbapi.ProgrammingError),
        ):
            with pytest.raises(kind):
                connection.run(statement)


def test_opening_errors(tmp_path: Path, dump: Path) -> None:
    with pytest.raises(dbapi.InterfaceError, match="did you mean 'mysql'"):
        intercode_sql.connect(engine="mysqls")
    with pytest.raises(dbapi.OperationalError, match="cannot be read"):
        intercode_sql.connect(tmp_path / "missing.sql")
    with pytest.raises(dbapi.ProgrammingError, match="reads SQLite files"):
        intercode_sql.connect(dump, "sqlite")
    with pytest.raises(dbapi.OperationalError, match="no database 'other'"):
        intercode_sql.connect(dump, database="other")
    with pytest.raises(dbapi.ProgrammingError, match="leave out dsn"):
        intercode_sql.connect(dump, dsn="mysql://x")
    with pytest.raises(dbapi.NotSupportedError), intercode_sql.connect() as connection:
        connection.cursor().callproc("p")


def test_a_dump_without_use_has_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "garden.sql"
    path.write_text("-- as mysqldump writes it\nSET NAMES utf8;\nCREATE TABLE bed (a int);\n")
    with intercode_sql.connect(path) as connection:
        assert connection.cursor().execute("SELECT DATABASE()").fetchall() == [("garden",)]
        assert connection.cursor().execute("SHOW TABLES").fetchall() == [("bed",)]
    with intercode_sql.connect(path, database="plants") as connection:
        assert connection.cursor().execute("SELECT DATABASE()").fetchall() == [("plants",)]


def test_a_file_of_sqlite_is_opened_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "zoo.db"
    file = sqlite3.connect(path)
    file.executescript("CREATE TABLE animal (name TEXT); INSERT INTO animal VALUES ('ape')")
    file.close()
    before = path.read_bytes()
    with intercode_sql.connect(path, "sqlite") as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO animal VALUES (%s)", ["bee"])
        connection.commit()
        assert cursor.execute("SELECT name FROM animal").fetchall() == [("ape",), ("bee",)]
    assert path.read_bytes() == before


# ------------------------------------------------------------ stopping
_ENDLESS = {
    "mysql": "SELECT SLEEP(600)",
    "duckdb": "SELECT COUNT(*) FROM range(100000000) a, range(1000000) b",
    "sqlite": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT COUNT(*) FROM r",
}


def test_a_time_limit_ends_the_statement_and_its_transaction(connection: Connection) -> None:
    connection.run("INSERT INTO sale (price, note) VALUES (1, 'c')")
    connection.timeout = 0.2
    with pytest.raises(dbapi.OperationalError, match="maximum statement execution time") as caught:
        connection.run(_ENDLESS[connection.dialect.name])
    assert caught.value.args[0] == 3024
    connection.timeout = 60.0
    connection.rollback()
    assert _notes(connection) == ["a", "b"]


def test_ctrl_c_ends_the_statement_and_not_the_connection(
    monkeypatch: pytest.MonkeyPatch, dump: Path
) -> None:
    """The signal arrives when the request is sent and its answer is not read."""
    with intercode_sql.connect(dump) as connection:
        connection.run("INSERT INTO sale (price, note) VALUES (1, 'c')")
        connection.commit()
        connection.run("INSERT INTO sale (price, note) VALUES (1, 'd')")
        receive = process.receive

        def interrupted(*arguments: Any) -> Any:
            monkeypatch.setattr(process, "receive", receive)
            signal.raise_signal(signal.SIGINT)
            return receive(*arguments)

        monkeypatch.setattr(process, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.run("SELECT 'the answer that nobody reads'")
        assert _notes(connection) == ["a", "b", "c"]
        connection.run("INSERT INTO sale (price, note) VALUES (1, 'e')")
        connection.rollback()
        assert _notes(connection) == ["a", "b", "c"]


@pytest.mark.mysql
def test_ctrl_c_on_a_server(mysql: SqlEngine, dump: Path) -> None:
    """A second thread sends the signal while the server runs the statement."""
    with intercode_sql.connect(dump, mysql) as connection:
        connection.run("INSERT INTO sale (price, note) VALUES (1, 'c')")
        connection.commit()
        main = threading.main_thread().ident
        assert main is not None
        sender = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            sender.start()
            connection.run("SELECT SLEEP(600), note FROM sale FOR UPDATE")
        sender.join()
        connection.rollback()
        assert _notes(connection) == ["a", "b", "c"]
