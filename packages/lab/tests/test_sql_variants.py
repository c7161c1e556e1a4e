"""Variants of SQL tasks: what stays in their databases, their soundness, and the reward."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import UsageError
from intercode.core.types import DatabaseSpec, Dataset, State, Task
from intercode.datasets import load
from intercode.evaluation.check.task_runs import TaskRunner
from intercode_lab.audit.dataset import audit
from intercode_lab.families.choices import Choices
from intercode_lab.variants.sql.database import Database, FilledTable, read_database, write_variant
from intercode_lab.variants.sql.golds import NamedValues, read_golds
from intercode_lab.variants.sql.rows import other_rows
from intercode_lab.variants.sql.shape import shape_of
from intercode_lab.variants.sql.task import mutants, with_rows
from intercode_lab.variants.tasks import TaskVariants, VariantTasks, find_variants
from support.sql_engines import ENGINES, engine_or_skip

BERTHS = "starter/sql/norrland-berths"
HEAVIEST = "starter/sql/heaviest-crop"


def _task(task_id: str) -> Task:
    return next(t for t in load("starter", "sql").tasks if t.id == task_id)


def _varied(task: Task, seed: int) -> tuple[Database, Database]:
    assert task.database is not None
    database = read_database(task.database)
    named = read_golds(task, database, "mysql")
    return database, other_rows(database, named, Choices("rows", task.id, seed))


def _column(table: FilledTable, name: str) -> list[Any]:
    at = table.position(name)
    assert at is not None
    return [row[at] for row in table.rows]


def test_a_variant_depends_on_task_and_seed_only() -> None:
    task = _task(BERTHS)
    assert task.database is not None
    files = [write_variant(task.database, _varied(task, seed)[1]) for seed in (1, 1, 2)]
    assert files[0] == files[1] != files[2]
    assert hashlib.sha256(files[0].read_bytes()).hexdigest()[:16] == FROZEN_DATABASE


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("task_id", [BERTHS, HEAVIEST])
def test_keys_and_links_hold_and_rows_are_others(task_id: str, seed: int) -> None:
    before, after = _varied(_task(task_id), seed)
    changed = [name for name, t in after.tables.items() if t.rows != before.tables[name].rows]
    assert len(changed) > len(after.tables) / 2
    for name, table in after.tables.items():
        assert table.rows
        for key in table.keys:
            values = [tuple(row[at] for at in key) for row in table.rows]
            assert len(set(values)) == len(values), (name, key)
        for link in shape_of(before.tables[name], before, ()).links:
            parent = after.tables[link.parent]
            known = {tuple(row[at] for at in link.parent_columns) for row in parent.rows}
            used = {tuple(row[at] for at in link.columns) for row in table.rows}
            assert {values for values in used if None not in values} <= known, name
        for at in range(len(table.columns)):
            if None not in (row[at] for row in before.tables[name].rows):
                assert None not in (row[at] for row in table.rows), (name, table.columns[at])


def test_named_values_stay_and_similar_ones_come() -> None:
    for seed in range(1, 6):
        countries = _column(_varied(_task(BERTHS), seed)[1].tables["port"], "country")
        assert "Norrland" in countries
        assert set(countries) - {"Norrland"}


def test_columns_that_tell_each_other_vary_together() -> None:
    """A region lies on one continent, also in a variant; a district in one country."""
    regions = [("north", "A"), ("south", "A"), ("east", "B")]
    rows = tuple((n, f"land {n}", *regions[n % 3], 100 + 7 * n) for n in range(24))
    table = _table("country", ("id", "name", "region", "continent", "people"), rows)
    database = Database("", {"country": table})
    shape = shape_of(table, database, ())
    assert (2, 3) in [unit.columns for unit in shape.units]
    assert shape.identity == (0, 1)
    varied = other_rows(database, NamedValues(), Choices("t"))
    assert {(row[2], row[3]) for row in varied.tables["country"].rows} <= set(regions)
    cities = tuple((n, f"town {n}", n % 6, f"district {n % 6}") for n in range(60))
    city = replace(_table("city", ("id", "town", "country", "district"), cities), keys=((0,),))
    joins = ((("city", 2), ("country", 0)),)
    both = Database("", {"country": table, "city": city})
    assert [unit.owner is not None for unit in shape_of(city, both, joins).units] == [True]
    towns = other_rows(both, NamedValues(joins=joins), Choices("t")).tables["city"].rows
    owners: dict[Any, set[Any]] = {}
    for row in towns:
        owners.setdefault(row[3], set()).add(row[2])
    assert all(len(countries) == 1 for countries in owners.values())


def _table(name: str, columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> FilledTable:
    types = tuple("int" if isinstance(value, int) else "text" for value in rows[0])
    return FilledTable(name, f"CREATE TABLE {name}", columns, types, ((0,),), True, (), rows)


def test_empty_tables_get_rows_if_golds_read_them() -> None:
    table = replace(_table("match", ("id", "winner_name", "minutes"), ((1, "a", 2),)), rows=())
    database = Database("", {"match": table})
    assert with_rows(database, NamedValues(), Choices("t")) is database
    filled = with_rows(database, NamedValues(frozenset({"match"})), Choices("t")).tables["match"]
    assert len(set(_column(filled, "winner_name"))) == len(filled.rows) > 10


def test_golds_name_values_and_joins() -> None:
    task = Task("t", "Which ports of Norrland?", "SELECT 1")
    database = read_database(_task(BERTHS).database or pytest.fail("no database"))
    gold = (
        "SELECT a.name FROM port AS a JOIN route AS r ON a.code = r.from_port "
        "WHERE r.distance_nm > 30.5 AND a.name LIKE '%haven%'"
    )
    named = read_golds(replace(task, gold=gold), database, "mysql")
    texts = {database.tables[t].columns[at]: v for (t, at), v in named.values.items()}
    assert texts == {"distance_nm": ("30.5",), "name": ("%haven%",), "country": ("Norrland",)}
    assert named.tables == {"port", "route"}
    assert len(named.joins) == 1
    assert read_golds(replace(task, gold="SELECT FROM"), database, "mysql") == NamedValues()


def test_mutants_lack_one_condition() -> None:
    gold = "SELECT a FROM t WHERE b = 1 AND c = 2"
    assert list(mutants(gold)) == [
        "SELECT a FROM t",
        "SELECT a FROM t WHERE b = 1",
        "SELECT a FROM t WHERE c = 2",
    ]
    assert list(mutants("SELECT a FROM t UNION SELECT a FROM u")) == [
        "SELECT a FROM t",
        "SELECT a FROM u",
    ]
    assert list(mutants("SELECT a FROM t")) == []


# -------------------------------------------------------------- on the engines
def _only_value(state: State | None) -> Any:
    assert state is not None and state.rows is not None
    return state.rows[0][0]


def _find(task: Task, settings: Mapping[str, Any]) -> tuple[TaskVariants, TaskRunner]:
    source = VariantTasks(Dataset("one", "sql", (task,)))
    runner = TaskRunner(source.dataset, settings)
    return find_variants(source, runner, 0, 2), runner


@pytest.mark.heavy
@pytest.mark.parametrize("engine", ENGINES)
def test_sound_variants_are_found_and_luck_does_not_hold(engine: str) -> None:
    engine_or_skip(engine).close()
    task = _task(BERTHS)
    found, runner = _find(task, {"engine": engine})
    with closing(runner.env):
        assert len(found.seeds) == 2 and not found.alike and not found.missed
        total = _only_value(runner.run(0, task.gold or "").state)
        for seed in (0, *found.seeds):
            runner.reset(0, seed)
            gold = runner.run_here(task.gold or "").score
            runner.reset(0, seed)
            lucky = runner.run_here(f"SELECT {total}").score
            assert gold is not None and gold.success
            assert lucky is not None and lucky.success == (seed == 0)


def test_variants_of_an_sqlite_file(tmp_path: Path) -> None:
    path = tmp_path / "pets.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE pet (id INTEGER PRIMARY KEY, kind TEXT, weight REAL,"
            " owner INTEGER REFERENCES owner);"
        )
        names = ("Ada", "Ben", "Cleo", "Dag", "Eva")
        connection.executemany("INSERT INTO owner VALUES (?, ?)", list(enumerate(names)))
        pets = [(n, ("cat", "dog")[n % 2], 2.5 + n, n % 4) for n in range(12)]
        connection.executemany("INSERT INTO pet VALUES (?, ?, ?, ?)", pets)
        connection.commit()
    gold = 'SELECT COUNT(*) FROM pet WHERE kind = "cat" AND weight > 5'
    spec = DatabaseSpec("sqlite", path, "pets")
    task = Task("pets", "How many cats weigh more than 5 kg?", gold, database=spec)
    found, runner = _find(task, {"engine": "sqlite"})
    with closing(runner.env):
        assert len(found.seeds) == 2 and not found.missed
        runner.reset(0, found.seeds[0])
        links = runner.env.execute(
            "SELECT COUNT(*) FROM pet WHERE owner IS NULL OR owner NOT IN (SELECT id FROM owner)"
        )
        assert links.observation == "[(0,)]"


@pytest.fixture
def rewarded() -> Iterator[intercode.environments.base.env.InterCodeEnv]:
    dataset = Dataset("one", "sql", (_task(BERTHS),))
    with closing(intercode.make("sql", dataset, reward="variants")) as env:
        yield env


def test_the_reward_is_the_score_times_what_holds(rewarded: Any) -> None:
    gold = _task(BERTHS).gold or ""
    scores = {}
    for action in (gold, f"{gold} OR country = 'Norrland'", "SELECT 1"):
        rewarded.reset(options={"task": 0})
        rewarded.execute(action)
        scores[action] = rewarded.score()
    rewarded.reset(options={"task": 0})
    total = rewarded.execute(gold).observation.strip("[](),").split("'")[1]
    rewarded.execute(f"SELECT {total}")
    lucky = rewarded.finish()
    assert [s.value for s in scores.values()] == [1.0, 1.0, 0.0]
    assert scores[gold].parts["variants"] == 1.0
    assert lucky.score is not None and lucky.score.value == 0.0
    assert lucky.score.parts == {"iou": 1.0, "tau": 1.0, "variants": 0.0}
    assert rewarded.result_metadata()["reward"] == "variants"


@pytest.mark.heavy
def test_the_reward_plays_all_actions_also_of_a_fork(rewarded: Any) -> None:
    rewarded.reset(options={"task": 0})
    rewarded.execute("UPDATE port SET berths = 1")
    (fork,) = rewarded.fork()
    with closing(fork):
        fork.execute(_task(BERTHS).gold)
        changed = fork.score()
    assert changed.value == 0.0


def test_the_reward_needs_variants() -> None:
    dataset = Dataset("one", "sql", (_task(BERTHS),))
    with pytest.raises(UsageError, match="is for the profile 'standard'"):
        intercode.make("sql", dataset, reward="variants", profile="original")
    with pytest.raises(UsageError, match="'ctf' have no variants"):
        intercode.make("ctf", reward="variants")


def test_the_audit_names_golds_that_differ_in_a_variant() -> None:
    task = _task("starter/sql/how-many-plots")
    plots = _varied(task, 1)[0].tables["plot"].rows
    task = replace(task, also=(f"SELECT {len(plots)}",))
    report = audit(Dataset("one", "sql", (task,)), variants=1)
    assert [f.kind for f in report.findings] == ["golds-differ-elsewhere"]


FROZEN_DATABASE = "d6766fe84ee875f7"
