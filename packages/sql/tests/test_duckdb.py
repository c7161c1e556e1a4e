"""The engine ``duckdb``: its content, its states, and what statements cannot do."""

from __future__ import annotations

import datetime as dt
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from intercode_sql import SqlEngine, SqlLimits, SqlSession, open_engine
from intercode_sql.errors import SqlDataError, SqlError
from intercode_sql.types import DatabaseSpec
from intercode_sql.worker.process import receive, send, workers
from intercode_sql.worker.service import serve

pytest.importorskip("duckdb", reason="needs the extra duckdb")
duckdb_session = pytest.importorskip("intercode_sql.duckdb.session")
content = pytest.importorskip("intercode_sql.duckdb.content")
DuckdbSession = duckdb_session.DuckdbSession

SECONDS = 60.0
DUMP = """
CREATE DATABASE `d`; USE `d`;
CREATE TABLE kinds (id int AUTO_INCREMENT PRIMARY KEY, small tinyint unsigned, price decimal(8,2),
  big decimal(60,2), f float, text varchar(20) UNIQUE, day date, at datetime, span time, made year,
  facts json, raw blob, size enum('s','l'));
INSERT INTO kinds VALUES
  (1, 255, 1.50, 7, 0.5, 'o''x\\\\', '2024-02-29', '2024-02-29 10:00:00', '30:00:00', 1999,
   '{"a": 1}', x'00ff', 'l'),
  (5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE VIEW cheap AS SELECT id FROM kinds WHERE price < 2;
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[SqlEngine]:
    with closing(open_engine("duckdb")) as opened:
        yield opened


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> DatabaseSpec:
    path = tmp_path_factory.mktemp("duckdb") / "d.sql"
    path.write_text(DUMP, encoding="utf-8")
    return DatabaseSpec("mysql-dump", path, "d")


@pytest.fixture
def session(engine: SqlEngine, dump: DatabaseSpec) -> Iterator[SqlSession]:
    with closing(engine.open(dump, SqlLimits(rows=1000, storage=8 << 20))) as opened:
        yield opened


@pytest.fixture
def local(dump: DatabaseSpec) -> Iterator[DuckdbSession]:
    """A session in this process, as a worker has it."""
    opened = DuckdbSession(content.built_file(dump), "d", SqlLimits())
    with closing(opened):
        yield opened


def test_a_dump_keeps_its_types_and_keys(session: SqlSession) -> None:
    result = session.run("SELECT * FROM d.kinds ORDER BY id", SECONDS)
    assert result.rows is not None
    first, second = result.rows
    assert first == (
        1,
        255,
        Decimal("1.50"),
        7.0,
        0.5,
        "o'x\\",
        dt.date(2024, 2, 29),
        dt.datetime(2024, 2, 29, 10),
        dt.timedelta(hours=30),
        1999,
        '{"a": 1}',
        b"\x00\xff",
        "l",
    )
    assert second == (5, *[None] * 12)
    assert session.run("SELECT id FROM cheap", SECONDS).rows == ((1,),)
    assert session.run("INSERT INTO kinds (text) VALUES ('new')", SECONDS).info.affected_rows == 1
    assert session.run("SELECT max(id) FROM kinds", SECONDS).rows == ((6,),)
    for code in ("INSERT INTO kinds (text) VALUES ('new')", "INSERT INTO kinds (id) VALUES (1)"):
        assert session.run(code, SECONDS).info.sqlstate == "23000"


def test_an_sqlite_file_keeps_its_values(tmp_path: Path, engine: SqlEngine) -> None:
    path = tmp_path / "zoo.db"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(
            "CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT NOT NULL, w REAL, any, b BLOB);"
            "INSERT INTO a VALUES (1, 'x''y', 1, 2, x'00'), (2, '', 2.5, 'two', NULL)"
        )
    with closing(engine.open(DatabaseSpec("sqlite", path, "zoo"))) as session:
        assert session.run("SELECT * FROM a ORDER BY id", SECONDS).rows == (
            (1, "x'y", 1.0, "2", b"\x00"),
            (2, "", 2.5, "two", None),
        )


def test_tables_are_copied_in_parts(
    engine: SqlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_ROWS_PER_READ", 3)
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    dump, file = tmp_path / "d.sql", tmp_path / "d.db"
    for rows in (0, 2, 3, 7):
        values = ", ".join(f"({i}, 'text {i}')" for i in range(1, rows + 1))
        insert = f"INSERT INTO t VALUES {values};" if rows else ""
        key = "int AUTO_INCREMENT PRIMARY KEY"
        dump.write_text(f"CREATE DATABASE d; USE d; CREATE TABLE t (id {key}, x text); {insert}")
        file.unlink(missing_ok=True)
        with closing(sqlite3.connect(file)) as opened:
            opened.executescript(f"CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT); {insert}")
        for kind, path in (("mysql-dump", dump), ("sqlite", file)):
            built = content.built_file(DatabaseSpec(kind, path, "d"))
            with closing(DuckdbSession(built, "d", SqlLimits())) as session:
                expected = tuple((i, f"text {i}") for i in range(1, rows + 1))
                assert session.run("SELECT * FROM t ORDER BY id", SECONDS).rows == expected
                if kind == "mysql-dump":
                    session.run("INSERT INTO t (x) VALUES ('new')", SECONDS)
                    assert session.run("SELECT max(id) FROM t", SECONDS).rows == ((rows + 1,),)


def test_a_database_that_cannot_be_copied_in_time_is_refused(
    dump: DatabaseSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_BUILD_SECONDS", -1.0)
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SqlDataError, match=r"too large for the engine 'duckdb'.*Leave out rows"):
        content.built_file(dump)


# ------------------------------------------------------------ states
def test_snapshots_forks_and_changes(session: SqlSession) -> None:
    assert session.changes() == []
    pristine = session.state_text()
    session.run("DELETE FROM kinds WHERE id = 5", SECONDS)
    session.run("CREATE TABLE more AS SELECT 1 AS one", SECONDS)
    assert session.changes() == ["table kinds: changed", "table more: new"]
    with closing(session.snapshot()) as snapshot:
        session.run("DROP TABLE cheap", SECONDS)
        session.run("DROP TABLE kinds", SECONDS)
        assert session.changes() == [
            "table cheap: gone",
            "table kinds: gone",
            "table more: new",
        ]
        with closing(snapshot.open()) as one, closing(snapshot.open()) as other:
            assert one.state_text() == other.state_text() != pristine
            one.run("INSERT INTO more VALUES (2)", SECONDS)
            assert one.run("SELECT count(*) FROM more", SECONDS).rows == ((2,),)
            assert other.run("SELECT count(*) FROM more", SECONDS).rows == ((1,),)
            assert other.run("SELECT count(*) FROM kinds", SECONDS).rows == ((1,),)


def test_a_transaction_is_rolled_back(session: SqlSession) -> None:
    count = "SELECT count(*) FROM kinds"
    for end, left in (("ROLLBACK", 2), ("COMMIT", 1)):
        session.run("BEGIN TRANSACTION", SECONDS)
        session.run("DELETE FROM kinds WHERE id = 5", SECONDS)
        assert session.run("SELECT broken", SECONDS).exit_code == 1
        assert session.run(count, SECONDS).rows == ((1,),)
        assert session.run(end, SECONDS).ok
        assert session.run(count, SECONDS).rows == ((left,),)
    assert "no transaction" in session.run("COMMIT", SECONDS).output


def test_a_transaction_begins_and_ends_after_comments(session: SqlSession) -> None:
    session.run("/* é /* COMMIT */ */ -- ROLLBACK\n BEGIN TRANSACTION", SECONDS)
    session.run("DELETE FROM kinds", SECONDS)
    assert session.run("/* COMMIT */\nROLLBACK", SECONDS).ok
    assert session.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)


def test_a_killed_worker_loses_nothing_and_leaves_nothing(session: SqlSession) -> None:
    session.run("DELETE FROM kinds WHERE id = 5", SECONDS)
    left = {path.name for path in Path(tempfile.gettempdir()).glob("intercode-duckdb-*")}
    worker = session._worker  # type: ignore[attr-defined]
    worker.kill()
    session.run("SELECT 1", SECONDS)  # it is lost with its worker
    assert session.run("SELECT count(*) FROM kinds", SECONDS).rows == ((1,),)
    now = {path.name for path in Path(tempfile.gettempdir()).glob("intercode-duckdb-*")}
    assert left - now, "the directory of the killed worker is still there"


HIDDEN_WRITES = [
    "WITH x AS (DELETE FROM kinds WHERE id = 5 RETURNING *) SELECT count(*) FROM x",
    "WITH x AS (UPDATE kinds SET small = 7 WHERE id = 5 RETURNING *) SELECT count(*) FROM x",
    "WITH x AS (INSERT INTO kinds (text) VALUES ('new') RETURNING *) SELECT count(*) FROM x",
    "SELECT * FROM query(E'SELECT n\\x65xtval(''kinds_id'')')",
    "SELECT nextval('kinds_id')",
]


@pytest.mark.parametrize("code", HIDDEN_WRITES)
def test_a_query_that_writes_changes_its_own_session_only(
    engine: SqlEngine, session: SqlSession, dump: DatabaseSpec, code: str
) -> None:
    look = "SELECT count(*), sum(small) FROM kinds"
    after = {"DELETE": (1, 255), "UPDATE": (2, 262), "INSERT": (3, 255)}
    expected = next((after[word] for word in after if word in code), (2, 255))
    with closing(engine.open(dump)) as other:
        assert session.run(code, SECONDS).ok
        assert session.run(look, SECONDS).rows == (expected,)
        assert bool(session.changes()) == (expected != (2, 255))
        with closing(session.snapshot()) as snapshot, closing(snapshot.open()) as fork:
            assert fork.run(look, SECONDS).rows == (expected,)
            following = "SELECT nextval('kinds_id')"
            assert fork.run(following, SECONDS).rows == session.run(following, SECONDS).rows
        session.close()
        with closing(engine.open(dump)) as later:
            for one in (other, later):
                assert one.run(look, SECONDS).rows == ((2, 255),)
                assert one.run("SELECT nextval('kinds_id')", SECONDS).rows == ((6,),)


@pytest.mark.parametrize("code", ["SELECT setseed(0.25)", "SELECT 1", "DELETE FROM kinds"])
def test_no_worker_goes_on_to_another_session(
    engine: SqlEngine, dump: DatabaseSpec, code: str
) -> None:
    with closing(engine.open(dump)) as first:
        assert first.run(code, SECONDS).ok
        worker = first._worker  # type: ignore[attr-defined]
        assert worker is not None
    assert worker not in workers()._idle
    with closing(engine.open(dump)) as second:
        assert second.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)
        assert second._worker is not worker  # type: ignore[attr-defined]


def test_a_write_whose_state_cannot_be_kept_is_taken_back(
    local: DuckdbSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(DuckdbSession, "_keep", fail)
        assert not local.run("DELETE FROM kinds", SECONDS).ok
    assert local.dirty
    assert local.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)


def test_a_failed_write_keeps_what_the_connection_has(session: SqlSession) -> None:
    assert session.run("CREATE TEMP TABLE mine AS SELECT 1 AS one", SECONDS).ok
    assert session.run("INSERT INTO kinds (id) VALUES (1)", SECONDS).info.sqlstate == "23000"
    assert session.run("SELECT one FROM mine", SECONDS).rows == ((1,),)


def test_macros_do_not_hide_changes(session: SqlSession) -> None:
    for name in (
        "duckdb_tables() AS TABLE SELECT 1",
        "duckdb_views() AS TABLE SELECT 1",
        "current_database() AS 'other'",
    ):
        assert session.run(f"CREATE MACRO {name}", SECONDS).ok
    assert session.run("CREATE SCHEMA d", SECONDS).ok
    assert session.run("CREATE SCHEMA system", SECONDS).ok
    assert session.run("CREATE TABLE d.d.hidden AS SELECT 1 AS one", SECONDS).ok
    assert session.run("DELETE FROM d.main.kinds", SECONDS).ok
    assert session.changes() == ["table d.hidden: new", "table kinds: changed"]
    assert '"kinds"' in session.state_text()


def test_a_worker_raises_errors_of_the_package_only(
    local: DuckdbSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.run("DELETE FROM kinds", SECONDS)
    monkeypatch.setattr(duckdb_session, "_OBJECTS", "SELECT broken")
    with pytest.raises(SqlDataError, match="cannot be listed"):
        local.changes()
    mine, other = socket.socketpair()
    with mine, other:
        send(mine, (SECONDS, "run", "SELECT 1", SECONDS, {}))
        mine.shutdown(socket.SHUT_WR)
        serve(other)
        receive(mine)
        (error,) = receive(mine) or ()
    assert type(error) is SqlError
    assert "AttributeError" in str(error)


# ------------------------------------------------------------ hostile statements
@pytest.mark.parametrize(
    "code", ["SELECT '\ud800'", "DELETE FROM kinds WHERE text = '\udfff'", "\ud800"]
)
def test_a_statement_that_is_not_unicode_is_an_error(session: SqlSession, code: str) -> None:
    result = session.run(code, SECONDS)
    assert result.exit_code == 1
    assert "not Unicode" in result.output
    assert session.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)


@pytest.mark.parametrize("code", ["SELECT MAP {[1]: 2}", "SELECT DATE '290000-01-01'", "", "--"])
def test_a_statement_without_a_value_ends_no_session(session: SqlSession, code: str) -> None:
    session.run(code, SECONDS)
    assert session.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)


REFUSED = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "COPY kinds TO '{new}'",
    "COPY kinds FROM '{file}'",
    "COPY (SELECT 1) TO '{new}' (FORMAT json)",
    "EXPORT DATABASE '{new}'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{new}' AS x",
    "ATTACH ':memory:' AS x",
    "CREATE TABLE t AS SELECT * FROM read_csv('{file}')",
    "EXPLAIN ANALYZE COPY kinds TO '{new}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}'",
    "SELECT * FROM read_csv('https://127.0.0.1:9/x.csv')",
    "CREATE SECRET s (TYPE s3)",
    "SET memory_limit = '99GB'",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET threads = 64",
    "SET temp_directory = '{folder}'",
    "PRAGMA temp_directory = '{folder}'",
    "SET lock_configuration = false",
    "PRAGMA enable_profiling",
    "PRAGMA profile_output = '{new}'",
    "SET log_query_path = '{new}'",
    "PRAGMA import_database('{folder}')",
    "SELECT getenv('HOME')",
    "SELECT * FROM query('COPY kinds TO ''{new}''')",
    "PREPARE p AS COPY kinds TO '{new}'",
    "SELECT 1; COPY kinds TO '{new}'",
    "SELECT * FROM sqlite_scan('{file}', 't')",
    "CREATE MACRO m() AS TABLE SELECT * FROM read_text('{file}')",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_files_networks_and_settings_are_out_of_reach(
    session: SqlSession, tmp_path: Path, statement: str
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\nhidden,1\n", encoding="utf-8")
    new = tmp_path / "new"
    code = statement.format(file=secret, folder=tmp_path, new=new)
    result = session.run(code, SECONDS)
    if statement.startswith("CREATE MACRO") and result.ok:  # a definition that nothing can call
        result = session.run("SELECT * FROM m()", SECONDS)
    assert result.exit_code == 1, result.output
    assert "hidden" not in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]
    assert session.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)


ENDLESS = [
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM range(100000000) a, range(1000000) b",
    "INSERT INTO kinds (price) SELECT sum(a.range % (b.range + 1)) "
    "FROM range(100000000) a, range(1000000) b",
]


@pytest.mark.parametrize("code", ENDLESS)
def test_an_endless_statement_ends(session: SqlSession, code: str) -> None:
    assert session.run(code, 0.3).timed_out
    assert session.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)


GREEDY = [
    "SELECT repeat('x', 2000000000)",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT string_agg(repeat('x', 100000), '') FROM range(100000)",
    "SELECT * FROM range(200000000) a JOIN range(200000000) b USING (range) ORDER BY hash(range)",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "SELECT " + "1 + " * 20000 + "1",
]


@pytest.mark.parametrize("code", GREEDY, ids=range(len(GREEDY)))
def test_a_greedy_statement_is_bounded(session: SqlSession, code: str) -> None:
    """It fails, meets its limit, or its result is cut: the owner has no more than the limits."""
    result = session.run(code, 60.0)
    assert len(result.output) < 4 << 20
    assert not result.ok or result.omitted_bytes or len(result.output) < 100
    assert session.run("SELECT count(*) FROM kinds", SECONDS).rows == ((2,),)


def test_a_database_that_grows_is_full(session: SqlSession) -> None:
    grow = "CREATE TABLE heap AS SELECT random()::VARCHAR || hash(range) AS x FROM range(1000000)"
    result = session.run(grow, SECONDS)
    assert "is full" in result.output
    assert session.changes() == []
    assert session.run("CREATE TABLE small AS SELECT 1", SECONDS).ok


def test_an_abort_ends_the_session(session: SqlSession) -> None:
    session.run("SELECT 1", SECONDS)
    session.abort()
    with pytest.raises(Exception, match="aborted"):
        session.run("SELECT 1", SECONDS)


def test_the_owner_does_not_load_duckdb(dump: DatabaseSpec) -> None:
    """Statements of an adversary run in the worker only."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom intercode_sql import open_engine\n"
        "from intercode_sql.types import DatabaseSpec\n"
        "spec = DatabaseSpec('mysql-dump', Path(sys.argv[1]), 'd')\n"
        "session = open_engine('duckdb').open(spec)\n"
        "assert session.run('SELECT 1', 60).rows == ((1,),)\nassert 'duckdb' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, str(dump.path)], check=True)


def test_a_directory_that_another_process_took_for_abandoned_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock_file, removed = duckdb_session.lock_file, []

    def lock_after_a_removal(file: Any, *, wait: bool = True) -> None:
        if wait and not removed:
            removed.append(Path(file.name).parent)
            shutil.rmtree(removed[0])
        lock_file(file, wait=wait)

    monkeypatch.setattr(duckdb_session, "lock_file", lock_after_a_removal)
    file = duckdb_session._PrivateFile("d", b"content")
    assert file.path.read_bytes() == b"content" and file.folder not in removed
    file.remove()
    assert not file.folder.exists()
