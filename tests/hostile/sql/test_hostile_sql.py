"""Runs the hostile cases on every engine: no effect outside the session, no late statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostile.processor_time import ProcessorTime
from hostile.sql.cases import Case, all_cases
from intercode_sql import SqlEngine, SqlLimits, SqlSession
from intercode_sql.types import DatabaseSpec
from support.shop import CUSTOMERS, SECRET, shop_in
from support.sql_engines import ENGINES, engine_or_skip

CASES = all_cases()
DUCKDB_CASES = all_cases("duckdb")
LIMIT = 1.0  # seconds per statement
GRACE = 1.0  # additional seconds
LIMITS = SqlLimits(rows=20_000, size=1 << 20, storage=64 << 20)
MYSQL_RESULTS = (
    ("SELECT * FROM customer", CUSTOMERS),
    ("SELECT COUNT(*), SUM(price) FROM sale", "[(3, Decimal('39.00'))]"),
    ("SELECT * FROM shop", "[(1, 'Main Street')]"),
    ("SHOW TABLES", "[('customer',), ('sale',), ('shop',)]"),
    ("SELECT @x, @q, DATABASE(), @@sql_mode LIKE '%ANSI%'", "[(None, None, 'shop', 0)]"),
)
"""What a session sees in an unchanged database."""
DUCKDB_RESULTS = (
    *MYSQL_RESULTS[:4],
    ("SELECT getvariable('x'), current_database(), current_schema()", "[(None, 'shop', 'main')]"),
)


@dataclass
class Bystanders:
    """An engine with a session that is open before the case, and the files beside it."""

    engine: SqlEngine
    shop: DatabaseSpec
    bystander: SqlSession
    planted: Path
    folder: Path

    @property
    def unchanged(self) -> Sequence[tuple[str, str]]:
        """Statements over the unchanged database, and what they show."""
        return DUCKDB_RESULTS if self.engine.kind == "duckdb" else MYSQL_RESULTS

    def listing(self) -> set[str]:
        return {str(p) for p in self.folder.parent.rglob("*")}


def open_ground(home: Path, kind: str) -> Iterator[Bystanders]:
    planted, folder = home / "planted", home / "folder"
    planted.write_text(SECRET)
    folder.mkdir()
    folder.chmod(0o777)
    for above in (home, *home.parents[:2]):
        above.chmod(above.stat().st_mode | 0o011)
    engine = engine_or_skip(kind)
    shop = shop_in(home)
    bystander = engine.open(shop, LIMITS)
    bystander.run("CREATE TABLE mine (a int)", 60.0)
    bystander.run("INSERT INTO mine VALUES (7)", 60.0)
    yield Bystanders(engine, shop, bystander, planted, folder)
    bystander.close()
    engine.close()


@pytest.fixture(scope="module", params=ENGINES)
def ground(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bystanders]:
    yield from open_ground(tmp_path_factory.mktemp("hostile_sql"), request.param)


@pytest.fixture(scope="module")
def duckdb_ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bystanders]:
    pytest.importorskip("duckdb", reason="needs the extra duckdb")
    yield from open_ground(tmp_path_factory.mktemp("hostile_sql"), "duckdb")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[f"{c.kind}: {c.name}" for c in CASES])
def test_a_hostile_case(ground: Bystanders, case: Case) -> None:
    try_case(ground, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", DUCKDB_CASES, ids=[f"{c.kind}: {c.name}" for c in DUCKDB_CASES])
def test_a_hostile_case_on_duckdb(duckdb_ground: Bystanders, case: Case) -> None:
    try_case(duckdb_ground, case)


def try_case(ground: Bystanders, case: Case) -> None:
    before = ground.listing()
    session = ground.engine.open(ground.shop, LIMITS)
    try:
        for code in case.does:
            attempt(ground, session, code)
        usable(session)
    finally:
        session.close()
    untouched(ground)
    assert ground.listing() == before


def attempt(ground: Bystanders, session: SqlSession, code: str) -> None:
    code = code.replace("PLANTED", str(ground.planted)).replace("FOLDER", str(ground.folder))
    work = ProcessorTime()
    result = session.run(code, LIMIT)
    assert (took := work.seconds()) < LIMIT + GRACE, f"{code[:80]!r} took {took:.1f} s"
    assert SECRET not in result.observation, code
    assert "/intercode-" not in result.observation, code
    assert len(result.observation) < LIMITS.size + 1000, f"{len(result.observation)} characters"
    assert result.ok or result.output.startswith("Error executing query: "), result


def usable(session: SqlSession) -> None:
    """Return whether the session is still usable."""
    for code in ("SET SESSION sql_select_limit = DEFAULT", "ROLLBACK"):
        session.run(code, LIMIT)
    assert session.run("SELECT 40 + 2", 60.0).output == "[(42,)]"
    assert isinstance(session.changes(), list)
    assert session.state_text() != ""


def untouched(ground: Bystanders) -> None:
    """Check that neither the earlier session nor the next one sees any effect."""
    assert ground.bystander.run("SELECT a FROM mine", 60.0).output == "[(7,)]"
    assert ground.bystander.run(ground.unchanged[0][0], 60.0).output == CUSTOMERS
    fresh = ground.engine.open(ground.shop, LIMITS)
    try:
        for code, expected in ground.unchanged:
            assert fresh.run(code, 60.0).output == expected, code
        fresh.run("CREATE TABLE fresh (a int)", 60.0)
        assert fresh.changes() == ["table fresh: new"]
    finally:
        fresh.close()


def test_there_are_enough_cases() -> None:
    assert len({(c.kind, c.name) for c in CASES}) == len(CASES) >= 60
    assert len({(c.kind, c.name) for c in DUCKDB_CASES}) == len(DUCKDB_CASES) >= len(CASES) + 30
    assert sum(len(c.does) for c in CASES) >= 150
