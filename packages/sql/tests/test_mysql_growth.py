"""What one session adds to a server's files is bounded, and others do not notice it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from intercode_sql import SqlLimits, SqlSession
from intercode_sql.server import server_process
from intercode_sql.types import DatabaseSpec
from support.sql_engines import engine_or_skip, shop_in


# ------------------------------------------------------------------- the division of growth
@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> dict[Path, int]:
    """The processor times of threads, which a test sets."""
    known: dict[Path, int] = {}
    monkeypatch.setattr(server_process, "_processor_time", lambda thread: known.get(thread, 0))
    return known


@pytest.fixture
def shared(tmp_path: Path) -> server_process.SharedFile:
    """A shared file of 12 bytes, of which each session may use 100."""
    (tmp_path / "file").write_bytes(bytes(12))
    return server_process.SharedFile(tmp_path / "file", 100)


def test_growth_is_charged_by_processor_time(
    tmp_path: Path, shared: server_process.SharedFile, times: dict[Path, int]
) -> None:
    first, second, idle = Path("1"), Path("2"), Path("3")
    times.update({first: 50, second: 7000, idle: 9000})
    for session, thread in enumerate((first, second, idle)):
        assert shared.part(session, thread) == 0
    times.update({first: 80, second: 7010})
    (tmp_path / "file").write_bytes(bytes(12 + 40))
    assert [shared.part(n, t) for n, t in enumerate((first, second, idle))] == [30, 10, 0]
    (tmp_path / "file").write_bytes(bytes(12 + 45))  # nobody's time has passed
    assert shared.part(2, idle) == 5


def test_a_thread_belongs_to_the_last_session_that_named_it(
    tmp_path: Path, shared: server_process.SharedFile, times: dict[Path, int]
) -> None:
    thread = Path("1")
    for session in range(3):
        shared.part(session, thread)
    times[thread] = 10
    (tmp_path / "file").write_bytes(bytes(12 + 40))
    assert [shared.part(2, thread), shared.part(1, Path("2"))] == [40, 0]


def test_growth_of_a_nearly_full_file_costs_more(
    tmp_path: Path, shared: server_process.SharedFile, times: dict[Path, int]
) -> None:
    assert shared.part(0, Path("1")) == 0
    for session, (size, charge) in enumerate([(200, 200), (250, 100), (299, 200), (310, 200)], 1):
        (tmp_path / "file").write_bytes(bytes(12 + size))
        assert shared.part(session, Path("1")) == charge
        assert shared.part(0, Path("9")) == 0
    assert times == {}


# ------------------------------------------------------------------------------ a server
_BLOBS = "INSERT INTO {} SELECT REPEAT('x', 60000) FROM seq_1_to_{}"
_FUNCTION = (
    "CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO t VALUES (REPEAT('x', 16000000)); "
    "RETURN 1; END"
)
_PROCEDURE = (
    "CREATE PROCEDURE p() BEGIN CREATE TEMPORARY TABLE t (a LONGTEXT); "
    "WHILE 1 DO INSERT INTO t VALUES (REPEAT('x', 900000)); END WHILE; END"
)
_DATA, _PART = "data are larger than", "the server's files grow by more than"
_ATTACKS = {
    "one statement": (["CREATE TEMPORARY TABLE t (a LONGTEXT)", _BLOBS.format("t", 100000)], _PART),
    "rows": (
        [
            "CREATE TEMPORARY TABLE t (a VARCHAR(3000))",
            "INSERT INTO t SELECT REPEAT('x', 3000) FROM seq_1_to_1000000",
        ],
        _PART,
    ),
    "a transaction": (
        [
            "CREATE TEMPORARY TABLE t (a LONGTEXT)",
            "BEGIN",
            *["INSERT INTO t VALUES (REPEAT('x', 8000000))"] * 99,
            "ROLLBACK",
        ],
        _PART,
    ),
    "tables": (
        [
            code
            for n in range(16)
            for code in (f"CREATE TEMPORARY TABLE t{n} (a LONGTEXT)", _BLOBS.format(f"t{n}", 1000))
        ],
        _PART,
    ),
    "updates": (
        [
            "CREATE TEMPORARY TABLE t (a LONGTEXT)",
            _BLOBS.format("t", 1000),
            "BEGIN",
            *[f"UPDATE t SET a = REPEAT('{n}', 60000)" for n in range(16)],
            "ROLLBACK",
        ],
        _PART,
    ),
    "a routine": ([_PROCEDURE, "CALL p()"], _PART),
    "undo": (
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(3000))",
            "INSERT INTO t SELECT seq, REPEAT('x', 3000) FROM seq_1_to_20000",
            "BEGIN",
            *[f"UPDATE t SET a = REPEAT('{n}', 3000)" for n in range(16)],
            "ROLLBACK",
        ],
        _PART,
    ),
    "a table": (["CREATE TABLE t (a LONGTEXT)", *[_BLOBS.format("t", 3000)] * 3], _DATA),
    "a function": (["CREATE TABLE t (a LONGTEXT)", _FUNCTION, *["SELECT f()"] * 50], _DATA),
}
"""Statements that would fill InnoDB's files, and what the error that stops them says."""


@pytest.fixture
def alone(tmp_path: Path) -> DatabaseSpec:
    """The shop on a server that no other test uses, because its files never shrink."""
    spec = shop_in(tmp_path)
    with spec.path.open("a") as file:
        file.write(f"\n-- {tmp_path.name}\n")
    return spec


@pytest.mark.mysql
@pytest.mark.slow
@pytest.mark.parametrize("kind", _ATTACKS)
def test_a_session_that_fills_files_ends_no_other(alone: DatabaseSpec, kind: str) -> None:
    """InnoDB aborts the server if one of its files cannot grow."""
    statements, expected = _ATTACKS[kind]
    with (
        closing(engine_or_skip("mysql")) as engine,
        closing(engine.open(alone)) as greedy,
        closing(engine.open(alone)) as modest,
        ThreadPoolExecutor(1) as thread,
    ):
        for code in ("CREATE TEMPORARY TABLE mine (a INT)", "CREATE TABLE kept (a INT)"):
            assert modest.run(code, 60.0).ok
        ended = threading.Event()
        working = thread.submit(_work_until, modest, ended)
        try:
            outputs = (greedy.run(code, 600.0).output for code in statements)
            assert any(expected in output for output in outputs)
            greedy.run("ROLLBACK", 600.0)
            greedy.run("DROP TABLE IF EXISTS t", 600.0)
        finally:
            ended.set()
        rounds = working.result()
        assert greedy.run("SELECT COUNT(*) FROM customer", 60.0).rows == ((3,),)
        for table in ("mine", "kept"):
            assert modest.run(f"SELECT COUNT(*) FROM {table}", 60.0).rows == ((rounds,),)


def _work_until(session: SqlSession, ended: threading.Event) -> int:
    """Write to a temporary and another table until the event, with pauses, as an agent makes them.
    Return how often."""
    rounds = 0
    while not ended.wait(0.1):
        rounds += 1
        for table in ("mine", "kept"):
            result = session.run(f"INSERT INTO {table} VALUES (1)", 600.0)
            assert result.ok, result.output
    return rounds


@pytest.mark.mysql
def test_temporary_tables_that_grow_too_much_end_their_connection(alone: DatabaseSpec) -> None:
    """Their pages are then free: also for the session itself, which goes on."""
    with (
        closing(engine_or_skip("mysql")) as engine,
        closing(engine.open(alone, SqlLimits(storage=8 << 20))) as session,
    ):
        assert session.run("CREATE TEMPORARY TABLE t (a LONGTEXT)", 60.0).ok
        result = session.run(_BLOBS.format("t", 1000), 600.0)
        assert _PART in result.output
        assert "temporary tables are lost" in result.note
        assert session.run("CREATE TEMPORARY TABLE t (a LONGTEXT)", 60.0).ok
        assert session.run(_BLOBS.format("t", 100), 600.0).ok
        assert session.run("SELECT COUNT(*) FROM t", 60.0).rows == ((100,),)
