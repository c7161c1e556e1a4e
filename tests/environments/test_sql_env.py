"""The SQL environment on every engine: the contract, profiles, snapshots, metadata."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import (
    DatabaseLostError,
    DataError,
    EnvironmentStateError,
    GoldError,
    UsageError,
)
from intercode.core.types import DatabaseSpec, Dataset, Task
from intercode.environments.sql.env import SqlEnv
from intercode.evaluation import check_env
from intercode_sql.server.connection import Address
from support.ending import ended
from support.shop import CUSTOMERS, shop_in
from support.sql_engines import ENGINES

Make = Callable[..., SqlEnv]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    shop = shop_in(tmp_path_factory.mktemp("env"))
    golds = (
        "SELECT name FROM customer WHERE city = 'Bern'",
        "SELECT id FROM sale ORDER BY price DESC",
        "SELECT nonsense FROM customer",
    )
    made = (Task(f"shop/{n}", f"question {n}", g, database=shop) for n, g in enumerate(golds))
    return Dataset("shop", "sql", tuple(made))


@pytest.fixture
def make(engine: str, tasks: Dataset) -> Iterator[Make]:
    made: list[SqlEnv] = []

    def make_one(**settings: Any) -> SqlEnv:
        made.append(intercode.make("sql", tasks, engine=engine, **settings))
        return made[-1]

    yield make_one
    for env in made:
        env.close()


@pytest.mark.paper
@pytest.mark.parametrize("profile", ["standard", pytest.param("original", marks=pytest.mark.paper)])
def test_the_contract(make: Make, profile: str) -> None:
    check_env(make(profile=profile))


def test_the_starter_tasks_and_gymnasiums_registry(engine: str) -> None:
    import gymnasium as gym

    env = gym.make("intercode/SQL-v1", engine=engine)
    env.reset(options={"task": 0})
    env.close()


def test_the_gold_scores_one_and_doing_nothing_less(make: Make) -> None:
    env = make()
    for index in (0, 1):
        env.reset(options={"task": index})
        assert env.score().value < 1
        env.step(env.task.gold or "")
        assert env.submit()[1] == 1.0


def test_order_counts_where_the_gold_asks_for_one(make: Make) -> None:
    env = make()
    env.reset(options={"task": 1})
    env.step("SELECT id FROM sale ORDER BY price, id")
    assert env.score().value < 1
    env.step("SELECT id FROM sale ORDER BY price DESC, id DESC")
    assert env.score().value == 1, "1 and 3 have one price"


def test_the_standard_gold_does_not_see_what_the_agent_did(make: Make) -> None:
    env = make()
    env.reset(options={"task": 0})
    env.step("DELETE FROM customer WHERE id = 3")
    env.step("SELECT name FROM customer WHERE city = 'Bern'")
    assert env.submit()[1] == pytest.approx(0.22)  # half of the rows, and one row destroyed


@pytest.mark.paper
def test_the_original_gold_runs_on_the_agents_data(make: Make) -> None:
    env = make(profile="original")
    env.reset(options={"task": 0})
    env.step("DELETE FROM sale")
    env.step("DELETE FROM customer WHERE id = 3")
    env.step("SELECT name FROM customer WHERE city = 'Bern'")
    assert env.submit()[1] == 1.0
    env.reset(options={"task": 0})
    assert env.step("SELECT * FROM customer")[0] == CUSTOMERS


@pytest.mark.paper
def test_a_failing_gold_is_a_fault_or_an_empty_result(make: Make) -> None:
    env = make()
    env.reset(options={"task": 2})
    env.step("SELECT 1")
    with pytest.raises(GoldError, match="shop/2 fails: Unknown column 'nonsense'"):
        env.score()
    env = make(profile="original")
    env.reset(options={"task": 2})
    env.step("SELECT 1 FROM sale WHERE 1 = 0")
    assert env.score().value == 1.0


@pytest.mark.paper
def test_a_blank_before_a_bracket_is_a_fault_of_the_original_profile(make: Make) -> None:
    env = make(profile="original")
    env.reset(options={"task": 0})
    assert "right syntax to use near '*) FROM sale'" in env.step("SELECT COUNT (*) FROM sale")[0]
    assert "FUNCTION shop.max does not exist" in env.step("SELECT max (id) FROM sale")[0]
    assert env.step("SELECT COUNT(*) FROM sale WHERE id IN (1)")[0] == "[(1,)]"


def test_info_has_validity_and_changes(make: Make) -> None:
    env = make()
    env.reset(options={"task": 0})
    info = env.step("SELECT * FROM nope")[4]
    assert (info["valid"], info["exit_code"], info["changes"]) == (False, 1, [])
    info = env.step("CREATE TABLE fresh (a int)")[4]
    assert (info["valid"], info["changes"]) == (True, ["table fresh: new"])
    assert env.working_directory == "shop"


def test_a_time_out_is_an_observation(make: Make) -> None:
    env = make(timeout=0.5)
    env.reset(options={"task": 0})
    many = ", ".join(f"sale s{n}" for n in range(24))
    observation, *_, info = env.step(f"SELECT COUNT(*) FROM {many}")
    assert (info["timed_out"], info["valid"], info["exit_code"]) == (True, False, None)
    assert "maximum statement execution time exceeded" in observation
    env.timeout = 20.0
    assert env.step("SELECT COUNT(*) FROM sale")[0] == "[(3,)]"


def test_restore_and_fork(make: Make) -> None:
    env = make(hashes=True)
    env.reset(options={"task": 0})
    env.step("CREATE TABLE fresh (a int)")
    state = env.step("INSERT INTO fresh VALUES (1)")[4]["hashes"]["state"]
    snapshot = env.snapshot()
    assert env.step("INSERT INTO fresh VALUES (2)")[4]["hashes"]["state"] != state
    env.restore(snapshot)
    assert env.step("SELECT * FROM fresh")[0] == "[(1,)]"
    left, right = env.fork(2)
    env.close()
    snapshot.close()
    try:
        assert left.step("DROP TABLE fresh")[0] == "None"
        observation, *_, info = right.step("SELECT * FROM fresh")
        assert (observation, info["hashes"]["state"]) == ("[(1,)]", state)
    finally:
        left.close()
        right.close()


def test_a_pickle_within_an_episode_continues_it_unless_it_is_on_a_server(
    make: Make, engine: str
) -> None:
    env = make(hashes=True)
    env.reset(options={"task": 0})
    written = (
        "SET @x = 5",
        "DELETE FROM sale WHERE id > 1",
        "START TRANSACTION",
        "UPDATE customer SET city = 'Bern'",
    )
    for code in ("SELECT id FROM sale", *written):
        if engine == "mysql":
            with pytest.raises(EnvironmentStateError, match=r"end_episode\(\).* fork\(\)"):
                pickle.dumps(env)
            return
        packed = pickle.dumps(env)
        observed = env.step(code)
        with pickle.loads(packed) as copied:
            assert copied.step(code) == observed
    with pickle.loads(pickle.dumps(env)) as first, pickle.loads(pickle.dumps(first)) as second:
        env.close()
        for copied in (first, second):
            look = "SELECT (SELECT COUNT(*) FROM sale), @x, COUNT(DISTINCT city) FROM customer"
            assert copied.step(look)[0] == "[(1, 5, 1)]"
        first.step("DROP TABLE sale")
        assert second.step("SELECT COUNT(*) FROM sale")[0] == "[(1,)]"
        assert second.step(second.task.gold or "")[0] != "[]" and second.submit()[1] < 1


def test_equal_episodes_have_equal_hashes(make: Make) -> None:
    def play(env: SqlEnv) -> list[Any]:
        env.reset(options={"task": 0})
        codes = ("SELECT * FROM customer", "CREATE TABLE a (b int)", "SET @x = 1", "DROP TABLE a")
        return [env.step(code)[4]["hashes"] for code in codes]

    first, second = play(make(hashes=True)), play(make(hashes=True))
    assert first == second
    assert len({h["state"] for h in first}) == 4 - (first[2] == first[3])


def test_metadata_names_the_engine_and_its_version(make: Make, engine: str) -> None:
    facts = make().result_metadata()
    assert facts["engine"]["kind"] == engine == facts["env_options"]["engine"]
    assert any(c.isdigit() for c in facts["engine"]["version"])
    assert facts["tier"].startswith(f"{engine}: ")


@pytest.mark.parametrize(
    "setting",
    [
        {"image": "host"},
        {"backend": "namespace"},
        {"network": "host"},
    ],
)
def test_settings_that_mean_nothing_here_are_refused(make: Make, setting: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"leave out {next(iter(setting))}="):
        make(**setting)


def test_deterministic_episodes_have_a_fixed_clock_and_seeded_random_numbers() -> None:
    observations = []
    for setting in ({"seed": 1}, {"seed": 1}, {"seed": 2, "clock": "2001-02-03"}):
        with intercode.make("sql", dataset="starter:sql", deterministic=setting) as env:
            env.reset(options={"task": 0})
            actions = (
                "SELECT NOW()",
                "SELECT RAND(), RAND()",
                "CREATE TABLE seen (day DATETIME DEFAULT CURRENT_TIMESTAMP, n INT)",
                "INSERT INTO seen (n) VALUES (1)",
                "SELECT * FROM seen",
            )
            observations.append([env.step(action)[0] for action in actions])
            assert env.result_metadata()["determinism"]["seed"] == setting["seed"]
    first, again, other = observations
    assert first == again
    assert first[0] == "[(datetime.datetime(2026, 1, 1, 0, 0),)]"
    assert first[4] == "[(datetime.datetime(2026, 1, 1, 0, 0), 1)]"
    assert other[0] == "[(datetime.datetime(2001, 2, 3, 0, 0),)]" and other[1] != first[1]
    with pytest.raises(UsageError, match="'sqlite' uses the real clock"):
        intercode.make("sql", dataset="starter:sql", engine="sqlite", deterministic=True)


def test_a_task_without_a_database_is_a_fault_of_its_dataset(engine: str) -> None:
    env = intercode.make("sql", Dataset("d", "sql", (Task("d/0", "q", "SELECT 1"),)), engine=engine)
    with pytest.raises(DataError, match="d/0 names no database"):
        env.reset()
    env.close()


@pytest.mark.mysql
def test_a_lost_connection_costs_settings_and_a_lost_server_one_episode(
    tasks: Dataset, tmp_path: Path
) -> None:
    own = Task("own/0", "q", "SELECT id FROM sale", database=shop_in(tmp_path))
    env = intercode.make("sql", Dataset("own", "sql", (own,)), engine="mysql")
    env.reset()
    session: Any = env.episode.require_workspace().session._session
    session._server.kill(session._server._kill_connection.id)
    session.run("SET @x = 1", 60.0)
    session._server.kill(session._private.connection.id)
    observation = env.step("SELECT @x")[0]
    assert "Lost connection" in observation and "settings" in observation
    assert env.step("SELECT @x")[0] == "[(None,)]"
    session._server.address = Address(unix_socket=str(tmp_path / "no server"))
    session._server.is_ours_alive = lambda: False  # it has ended before this statement
    session._server.kill(session._private.connection.id)
    with pytest.raises(DatabaseLostError) as lost:
        env.step("SELECT @x")
    assert lost.value.machine_failed
    env.reset()
    assert env.step("SELECT COUNT(*) FROM sale")[0] == "[(3,)]"
    env.close()


def test_plain_sqlite_plays_files_of_its_own(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "pets.sqlite"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT)")
        made.execute("INSERT INTO pet VALUES (1, 'Rex'), (2, 'Tom')")
    made.close()
    spec = DatabaseSpec("sqlite", path, "pets")
    tasks = Dataset("pets", "sql", (Task("pets/0", "q", "SELECT name FROM pet", database=spec),))
    check_env(intercode.make("sql", tasks, engine="sqlite"))
    env = intercode.make("sql", tasks, engine="sqlite")
    env.reset()
    assert env.step("DELETE FROM pet WHERE id = 1")[4]["valid"]
    (twin,) = env.fork()
    assert twin.step("SELECT name FROM pet")[0] == "[('Tom',)]"
    assert twin.submit()[1] == pytest.approx(0.22)
    twin.close()
    env.close()


@pytest.mark.paper
@pytest.mark.parametrize("profile", ["standard", pytest.param("original", marks=pytest.mark.paper)])
@pytest.mark.parametrize("what", ["action", "gold"])
def test_a_running_statement_can_be_aborted(
    engine: str, tasks: Dataset, what: str, profile: str
) -> None:
    long = "SELECT SLEEP(600)"
    task = replace(tasks.tasks[0], gold=long) if what == "gold" else tasks.tasks[0]
    settings: dict[str, Any] = {"engine": engine, "profile": profile, "timeout": 900.0}
    with SqlEnv(replace(tasks, tasks=(task, *tasks.tasks[1:])), **settings) as env:
        env.reset(options={"task": 0})
        env.step("SELECT 1")
        work = env.score if what == "gold" else partial(env.step, long)
        ended(work, env.abort, DatabaseLostError)
        env.reset(options={"task": 1})
        assert env.step("SELECT 1")[0] == "[(1,)]"
