"""Statements that SQLite or a Python function executes as one long step end at their limit."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hostile.processor_time import ProcessorTime
from intercode_sql import SqlEngine, SqlSession, open_engine
from intercode_sql.embedded import EmbeddedEngine
from intercode_sql.embedded.compile.calls import SPECIAL_FUNCTIONS
from intercode_sql.embedded.functions.registry import AGGREGATES, SCALARS
from intercode_sql.sqlite import SqliteEngine
from intercode_sql.types import DatabaseSpec
from intercode_sql.worker.ends_soon import BEFORE_BRACKETS, UnboundedStatementError, is_bounded
from support.sandboxes import eventually
from support.shop import shop_in

LIMIT = 0.5
"""Seconds per statement."""
GRACE = 0.5
"""How long after its limit a statement ends."""
OWNER_MEBIBYTES = 64
"""How much the memory of the owner's process grows."""
TIMEOUT = "Query execution was interrupted"


def _explosion(depth: int) -> str:
    """Return a statement whose plan doubles with each common table expression."""
    tables = [f"a{n} AS (SELECT p.x FROM a{n - 1} p, a{n - 1} q)" for n in range(1, depth)]
    return f"WITH a0 AS (SELECT 1 AS x), {', '.join(tables)} SELECT COUNT(*) FROM a{depth - 1}"


_COLUMNS = "information_schema.COLUMNS"
_TRIMS = " + ".join(["LENGTH(TRIM(LEADING 'a' FROM REPEAT('a', 4000000)))"] * 8)
LONG = {
    "sqlite": (
        "SELECT max((hex(zeroblob(2000000))||id) LIKE '%0%0%0%0%0%0%0%0%0%0%0%0_1%2') FROM sale",
        "SELECT instr(hex(zeroblob(4000000)), hex(zeroblob(2000000))||'1')",
        "SELECT length(replace(hex(zeroblob(4000000)), hex(zeroblob(2000000))||'1', 'x'))",
        "SELECT sum(length(printf('%s%s', hex(zeroblob(3000000+id)), hex(zeroblob(4000000))))) "
        "FROM sale",
        _explosion(26),
    ),
    "embedded": (
        f"SELECT MAX(CONCAT(REPEAT('0', 4000000), TABLE_NAME) LIKE '%0%0%0%0%0%0%0%0%0%0_1%2') "
        f"FROM {_COLUMNS}",
        f"SELECT MAX(DATE_FORMAT(NOW(), CONCAT(REPEAT('%W', 500000), TABLE_NAME))) FROM {_COLUMNS}",
        f"SELECT SUM(LENGTH(HEX(CONCAT(REPEAT('x', 4000000), a.TABLE_NAME)))) FROM {_COLUMNS} a, "
        f"{_COLUMNS} b",
        f"SELECT {_TRIMS}",
        f"UPDATE sale SET price = {_TRIMS}",
        _explosion(26),
    ),
}
"""Statements that no deadline between SQLite's instructions stops."""


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DatabaseSpec]:
    home = tmp_path_factory.mktemp("long")
    path = home / "sale.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sale (id INTEGER, name TEXT)")
        rows = ((n, f"name {n}") for n in range(200))
        connection.executemany("INSERT INTO sale VALUES (?, ?)", rows)
    connection.close()
    return {"sqlite": DatabaseSpec("sqlite", path, "sale"), "embedded": shop_in(home)}


@pytest.fixture(scope="module", params=["embedded", "sqlite"])
def engine(request: pytest.FixtureRequest) -> Iterator[SqlEngine]:
    opened = open_engine(request.param)
    yield opened
    opened.close()


@pytest.fixture
def session(engine: SqlEngine, databases: dict[str, DatabaseSpec]) -> Iterator[SqlSession]:
    opened = engine.open(databases[engine.kind])
    opened.run("SELECT HEX('the first such statement starts a process')", 60.0)
    yield opened
    opened.close()


def peak() -> int:
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def overrun(session: SqlSession, code: str, limit: float = LIMIT) -> float:
    """Return by how many seconds of processor time a statement exceeds its limit."""
    work = ProcessorTime()
    session.run(code, limit)
    return work.seconds() - limit


@pytest.mark.parametrize("number", range(max(map(len, LONG.values()))))
def test_a_long_statement_ends_and_changes_nothing(
    engine: SqlEngine, session: SqlSession, number: int
) -> None:
    if number >= len(LONG[engine.kind]):
        return
    code = LONG[engine.kind][number]
    before = peak()
    assert overrun(session, code) < GRACE
    assert TIMEOUT in session.run(code, LIMIT).output
    assert peak() - before < OWNER_MEBIBYTES
    assert session.changes() == []
    assert session.run("SELECT 40 + 2", 60.0).rows == ((42,),)


def test_a_session_continues_with_what_it_had_changed(
    engine: SqlEngine, session: SqlSession
) -> None:
    count = session.run("SELECT COUNT(*) FROM sale", 60.0).rows
    assert count is not None
    session.run("DELETE FROM sale WHERE id = 1", 60.0)
    if engine.kind == "embedded":
        session.run("SET @x = 'mine'", 60.0)
    text = session.state_text()
    for code in LONG[engine.kind][1:3]:
        assert TIMEOUT in session.run(code, LIMIT).output
        assert session.run("SELECT COUNT(*) FROM sale", 60.0).rows == ((count[0][0] - 1,),)
        assert session.changes() == ["table sale: changed"]
        assert session.state_text() == text
    copy = session.snapshot().open_last()
    assert copy.state_text() == text
    copy.close()


def test_a_killed_statement_rolls_its_transaction_back(
    engine: SqlEngine, session: SqlSession
) -> None:
    count = session.run("SELECT COUNT(*) FROM sale", 60.0).rows
    session.run("BEGIN", 60.0)
    session.run("DELETE FROM sale", 60.0)
    assert session.run("SELECT COUNT(*) FROM sale", 60.0).rows == ((0,),)
    assert TIMEOUT in session.run(LONG[engine.kind][1], LIMIT).output
    assert session.run("SELECT COUNT(*) FROM sale", 60.0).rows == count
    assert session.run("COMMIT", 60.0).rows is None


def test_other_sessions_are_not_delayed_or_changed(
    engine: SqlEngine, session: SqlSession, databases: dict[str, DatabaseSpec]
) -> None:
    other = engine.open(databases[engine.kind])
    other.run("DELETE FROM sale", 60.0)
    assert TIMEOUT in session.run(LONG[engine.kind][1], LIMIT).output
    assert other.run("SELECT COUNT(*) FROM sale", 60.0).rows == ((0,),)
    other.close()


def test_a_large_state_takes_no_memory_of_the_owner(engine: SqlEngine, session: SqlSession) -> None:
    table, name, value = {
        "embedded": ("customer", "city", "REPEAT('x', 60000)"),
        "sqlite": ("sale", "name", "hex(zeroblob(30000))"),
    }[engine.kind]
    count = f"SELECT COUNT(*), MAX(LENGTH({name})) FROM {table}"
    before = peak()
    for _ in range(10):
        values = ", ".join([f"({value})"] * 100)
        assert session.run(f"INSERT INTO {table} ({name}) VALUES {values}", 60.0).ok
    text, rows = session.state_text(), session.run(count, 60.0).rows
    assert rows is not None and rows[0][0] > 1000 and rows[0][1] == 60000
    assert TIMEOUT in session.run(LONG[engine.kind][1], LIMIT).output
    assert session.run(count, 60.0).rows == rows
    copy = session.snapshot().open_last()
    assert copy.run(count, 60.0).rows == rows
    assert session.state_text() == copy.state_text() == text
    copy.close()
    assert peak() - before < 20


# ---------------------------------------------------------------- all functions
_LONG_TEXTS = {
    "embedded": (
        "REPEAT('0a', 2000000)",
        "CONCAT(REPEAT('0', 900000), '1')",
        "SPACE(4000000)",
        "REPEAT('%W', 1000000)",
        "REPEAT('[', 4000000)",
        "9e99",
        "-1",
    ),
    "sqlite": (
        "hex(zeroblob(4000000))",
        "hex(zeroblob(900000))||'1'",
        "zeroblob(8000000)",
        "replace(hex(zeroblob(500)),'0','%')||'1'",
        "9e99",
        "-1",
        "replace(hex(zeroblob(2000000)),'0','[')",
    ),
}


def _sqlite_functions() -> list[str]:
    connection = sqlite3.connect(":memory:")
    rows = connection.execute("SELECT DISTINCT name FROM pragma_function_list").fetchall()
    connection.close()
    return sorted(name for (name,) in rows if name.isidentifier())


FUNCTIONS = {
    "embedded": sorted({*SCALARS, *AGGREGATES, *SPECIAL_FUNCTIONS, "GROUP_CONCAT"}),
    "sqlite": _sqlite_functions(),
}
_SOURCES = {"embedded": f"FROM {_COLUMNS} a", "sqlite": "FROM sale a"}
_OPERATORS = {
    "embedded": ("LIKE", "REGEXP", "=", "<", "+", "XOR"),
    "sqlite": ("LIKE", "GLOB", "||", "=", "<", "+", "->>"),
}


def attacks(kind: str, every: bool) -> Iterator[str]:
    """Yield calls of each function with one to three long arguments: ``every``, both for one row
    and for many, otherwise in turn for one row, for many, and for many as an aggregate."""
    texts = _LONG_TEXTS[kind]
    name_column = "a.TABLE_NAME" if kind == "embedded" else "a.name"
    glue = f"CONCAT({{}}, {name_column})" if kind == "embedded" else f"({{}}||{name_column})"
    for at, name in enumerate(FUNCTIONS[kind]):
        for count in range(1, 4):
            first = texts[at % 2]
            rest = [texts[(at + n) % len(texts)] for n in range(1, count)]
            arguments = ", ".join([glue.format(first), *rest])
            calls = [
                f"SELECT {name}({', '.join([first, *rest])})",
                f"SELECT MAX({name}({arguments})) {_SOURCES[kind]}",
            ]
            if name.upper() in AGGREGATES:
                calls.append(f"SELECT {name}({arguments}) {_SOURCES[kind]}")
            yield from calls if every else [calls[(at + count) % len(calls)]]
    for operator in _OPERATORS[kind]:
        for other in texts:
            left = glue.format(texts[0])
            yield f"SELECT COUNT(*) {_SOURCES[kind]} WHERE {left} {operator} {other}"
    for first in texts[:2]:
        key = glue.format(first)
        yield f"SELECT {key} AS k {_SOURCES[kind]}, sale b ORDER BY k"
        yield f"SELECT DISTINCT {key} {_SOURCES[kind]}, sale b"
        yield f"SELECT COUNT(*) {_SOURCES[kind]}, sale b GROUP BY {key}"
        yield f"SELECT MAX({key}) OVER (ORDER BY {key}) {_SOURCES[kind]}, sale b"


@pytest.mark.slow("long")
def test_no_function_exceeds_the_limit(engine: SqlEngine, session: SqlSession) -> None:
    """A statement runs for minutes where nothing ends it."""
    before, most, late = peak(), 4 * GRACE, {}
    for code in attacks(engine.kind, every="INTERCODE_HOSTILE_LONG" in os.environ):
        if (seconds := overrun(session, code, 0.05)) > most:
            late[code] = seconds
    assert late == {}
    assert peak() - before < OWNER_MEBIBYTES
    assert session.changes() == []


# ---------------------------------------------------------------- in the owner's process
_BOUNDED = {
    "embedded": (EmbeddedEngine, "CONCAT({0}, {0}, {0}, {0})"),
    "sqlite": (SqliteEngine, "UPPER({0})"),
}


@pytest.mark.parametrize("kind", ["embedded", "sqlite"])
def test_bounded_statements_end_in_the_owners_process(
    kind: str, databases: dict[str, DatabaseSpec]
) -> None:
    opener, growing = _BOUNDED[kind]
    engine = opener(bounded=True)
    local = engine.open(databases[kind])
    text = "x" * 200
    grown = growing.format(growing.format(f"'{text}'"))
    other = "COLUMN_NAME" if kind == "embedded" else "name"
    source = (
        f"{_COLUMNS} a, {_COLUMNS} b, {_COLUMNS} c"
        if kind == "embedded"
        else ("sale a, sale b, sale c")
    )
    ran = 0
    for code in (
        f"SELECT COUNT(*) FROM {source} WHERE {grown} LIKE '%{'x%' * 40}y'",
        f"SELECT COUNT(*) FROM {source} WHERE {grown} LIKE '%{'x' * 90}y'",
        f"SELECT COUNT(*) FROM {source} WHERE {grown} LIKE '%{'x_' * 45}y'",
        f"SELECT DISTINCT a.{other}, b.{other}, c.{other} FROM {source} ORDER BY 3, 1, 2",
        f"SELECT MAX({grown}) FROM {source} GROUP BY a.{other}, b.{other}, c.{other}",
        f"SELECT {', '.join(f'MAX(UPPER({other}))' for _ in range(100))} FROM sale, {source}",
        "SELECT 1 FROM " + ", ".join(f"sale s{n}" for n in range(60)),
        f"SELECT {'CASE WHEN 1 THEN ' * 60}1{' END' * 60}",
        "SELECT * FROM " + " NATURAL JOIN ".join(["sale"] * 60),
        "SELECT 1 WHERE "
        + " OR ".join(f"(1 IN (SELECT id FROM sale) AND {n} > 2)" for n in range(25)),
    ):
        work = ProcessorTime()
        try:
            local.run(code, LIMIT)
            ran += 1
        except UnboundedStatementError:
            continue
        assert work.seconds() < LIMIT + GRACE, code[:100]
    assert ran >= 5
    local.close()
    engine.close()


@pytest.mark.parametrize(
    "code",
    [
        "SELECT `REPEAT`('x', 4000000)",
        'SELECT "REPEAT"(4)',
        "SELECT REPEAT /**/ ('x', 4)",
        "SELECT REPEAT--\n('x', 4)",
        "SELECT REPEAT#\n('x', 4)",
        "SELECT 'a\\', REPEAT('x', 4), '\\'",
        "SELECT `'`, REPEAT('x', 4), `'`",
        "SELECT [a'], hex(zeroblob(9)), [b']",
        "SELECT \"it's\", REPEAT('x', 4), \"it's\"",
        "SELECT 1 UNION SELECT hex ( 'x')",
        "SELECT 'a' || 'b'",
        "SELECT 'a' REGEXP 'b'",
        "SELECT a->'$.b'",
        "DELETE FROM sale",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT 1 FROM pragma_function_list",
        "SELECT " + "(" * 13 + "1" + ")" * 13,
        "SELECT 1" + " + 1" * 1000,
        "SHOW TABLES LIKE (1)",
        "SELECT GROUP_CONCAT(name) FROM sale",
        "SELECT 1 INTO @x",
        "",
    ],
)
def test_these_are_not_bounded(code: str) -> None:
    assert not is_bounded(code, BEFORE_BRACKETS | {"COUNT", "CONCAT"})


@pytest.mark.parametrize(
    "code",
    [
        "SELECT COUNT(*) FROM sale WHERE name LIKE '%REPEAT(%' AND (id > 3 OR id IN (1, 2))",
        'SELECT "x (y)", count( * ) FROM sale',
        "SHOW TABLES",
        "DESC `sale`",
        "(SELECT 1)",
        "SELECT 'it''s (a)', CONCAT('a', -(1))",
    ],
)
def test_these_are_bounded(code: str) -> None:
    assert is_bounded(code, BEFORE_BRACKETS | {"COUNT", "CONCAT"})


# ---------------------------------------------------------------- what remains of a killed owner
_OWNER = """
import sys, time
from pathlib import Path
from intercode_sql.types import DatabaseSpec
from intercode_sql import open_engine
session = open_engine("sqlite").open(DatabaseSpec("sqlite", Path(sys.argv[1]), "sale"))
assert session.run("DELETE FROM sale", 60.0).ok
print("ready", flush=True)
session.run(sys.argv[2], 2.0)
"""


def _group_members(session_id: int) -> list[int]:
    """Return the processes of the owner's session or those that descend from it, by environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"TEST_OWNER=%d" % session_id in variables:
            found.append(int(entry.name))
    return found


def _ticks(session_id: int) -> int:
    """Return the processor time of the owner's processes."""
    total = 0
    for pid in _group_members(session_id):
        with suppress(OSError):  # it has ended
            total += int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
    return total


def test_a_killed_owner_leaves_neither_copies_nor_processes(
    databases: dict[str, DatabaseSpec], tmp_path: Path
) -> None:
    """The owner is killed while its worker executes one long step."""
    mark = os.getpid()
    process = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(databases["sqlite"].path), LONG["sqlite"][1]],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path), "TEST_OWNER": str(mark)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    before = _ticks(mark)
    eventually(
        lambda: _ticks(mark) > before + 10 or process.poll() is not None, "it executes the step"
    )
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert list(tmp_path.iterdir()) == []
    eventually(lambda: not _group_members(mark), "its processes have ended")


# ---------------------------------------------------------------- SQLite
def test_a_view_without_end_delays_nothing(databases: dict[str, DatabaseSpec]) -> None:
    session = open_engine("sqlite").open(databases["sqlite"])
    endless = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT x FROM a"
    assert session.run(f"CREATE VIEW v AS {endless}", 60.0).ok
    session.run(
        "CREATE TABLE t (a INT, b AS (instr(hex(zeroblob(4000000)), hex(zeroblob(2000000))||a)))",
        10.0,
    )
    session.run("INSERT INTO t VALUES (1), (2)", LIMIT)
    work = ProcessorTime()
    assert session.changes() == ["table t: new", "table v: new"]
    assert session.state_text()
    assert work.seconds() < 5.0
    session.close()


@pytest.mark.parametrize(
    "code",
    ["PRAGMA database_list", "SELECT * FROM pragma_database_list", "PRAGMA main.database_list;"],
)
def test_no_statement_shows_the_path_of_the_file(
    code: str, databases: dict[str, DatabaseSpec]
) -> None:
    session = open_engine("sqlite").open(databases["sqlite"])
    for _ in range(2):
        assert str(databases["sqlite"].path.parent) not in session.run(code, 60.0).output
        assert "intercode" not in session.run(code, 60.0).output
        session.run("DELETE FROM sale", 60.0)
    assert session.run("PRAGMA database_list", 60.0).rows == ((0, "main", ""),)
    session.close()
