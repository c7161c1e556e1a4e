"""Task families: what is drawn from a seed, how datasets of them are named, and their splits."""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from intercode import datasets
from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Task, tree_digest
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import (
    FIRST_EPISODE_SEED,
    Draw,
    Family,
    all_families,
    find_family,
    load_families,
)
from intercode_lab.families.file_tree import FileTree
from intercode_lab.families.selection import select_families
from intercode_sandbox import plugins
from intercode_sandbox.plugins import Plugin
from intercode_sql.embedded import EmbeddedEngine

FROZEN = {
    "bash": "ebf4a13cdf71ee9c",
    "ctf": "6000800a9fce1ffd",
    "code": "48b3bfe7b65f4c56",
    "python": "ddc0cc0f0d87f6c6",
    "sql": "4593b3fef738154f",
}
"""Digests of a task of each family of seed 7, the same on every machine."""
UNFILLED = re.compile(r"\{[\w}]|\$\w")
"""A placeholder that is left in a query."""
PAGE = Path(__file__).parents[3] / "benchmarks" / "results" / "families.md"
LEAST = {"bash": 20, "code": 8, "ctf": 10, "python": 12, "sql": 20}
"""The least number of families of each environment."""


def _parts(task: Task) -> tuple[object, ...]:
    return task.query, task.golds, task.flag, *_world(task)


def _world(task: Task) -> tuple[object, ...]:
    """Return the initial state of a task. Parts that it does not have are left out."""
    database = [task.database.path.name] if task.database else []
    return tree_digest(task.initial_files), *database, *task.data.get("tests", ())


@pytest.mark.parametrize("family", list(all_families()), ids=lambda family: family.id)
def test_a_family_draws_sound_tasks_from_seeds(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, offered = Draw.phrase, set()

    def phrase(draw: Draw, queries: Sequence[str]) -> tuple[int, str]:
        offered.add(tuple(queries))
        return choose(draw, queries)

    monkeypatch.setattr(Draw, "phrase", phrase)
    assert family.description.endswith(".")
    worlds = set()
    for difficulty in range(1, 6):
        task = family(7, difficulty)
        assert task.id == f"families/{family.environment}/{family.name}/{difficulty}/7"
        assert _parts(task) == _parts(family(7, difficulty))
        assert task.vary is not None and len(task.data["turns"]) >= 1
        variant, other = task.vary(task, 1), family(7, difficulty, other=1)
        assert (variant.query, variant.golds) == (task.query, task.golds)
        assert other.query == task.query
        worlds |= {repr(_world(t)) for t in (task, variant, other)}
        if family.blind is not None:
            assert any(family(7, difficulty, other=n).golds != task.golds for n in range(1, 9))
            assert len(task.data["turns"]) > 1
        if task.flag is not None:
            assert not any(task.flag.encode() in entry.data for entry in task.initial_files)
    assert len(worlds) == 15
    assert len({family(seed, 3).query for seed in range(12)}) > 1
    assert offered
    for queries in offered:
        assert len(set(queries)) >= 3
        assert not any(UNFILLED.search(query) for query in queries)


@pytest.mark.parametrize("environment", FROZEN)
def test_draws_are_the_same_on_every_machine(environment: str) -> None:
    parts = [_parts(family(7, 3)) for family in load_families(environment)]
    assert hashlib.sha256(repr(parts).encode()).hexdigest()[:16] == FROZEN[environment]


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("groups-above", 90),
        ("had-every-kind", 145),
        ("one-and-the-other", 550),
        ("one-without-the-other", 270),
        ("days-between", 49),
    ],
)
def test_every_gold_of_sql_returns_a_row(name: str, seed: int) -> None:
    task = find_family("sql", name)(seed, 1)
    assert task.database is not None
    engine = EmbeddedEngine(bounded=False)
    with closing(engine), closing(engine.open(task.database)) as session:
        assert session.run(task.gold, 60).rows


@pytest.mark.parametrize("seed", [40, 45, 65])
def test_no_condition_fixes_the_column_of_the_groups(seed: int) -> None:
    gold = find_family("sql", "share-of-total")(seed, 1).gold
    column = gold.partition("SELECT ")[2].partition(",")[0]
    assert f"WHERE {column} =" not in gold and f"GROUP BY {column}" in gold


def test_families_have_names_of_their_own_and_some_are_held_out() -> None:
    for environment, least in LEAST.items():
        families = load_families(environment)
        assert len(families) == len({f.name for f in families}) >= least
        train = select_families(f"families:{environment}[split=train]").families
        test = select_families(f"families:{environment}[split=test]").families
        assert {*train, *test} == set(families) and not set(train) & set(test)
        assert len(test) >= 2 and any(f.blind for f in families)


def test_fixed_tasks_have_the_difficulties_in_turn() -> None:
    dataset = datasets.load("families:bash/links[difficulty=2..3]@seed=4..6")
    families = ("broken-links", "newest-release", "links-to-file")
    expected = [f"families/bash/{f}/{d}/{s}" for f in families for d, s in ((2, 4), (3, 5), (2, 6))]
    assert [task.id for task in dataset.tasks] == expected
    assert dataset.environment == "bash" and not dataset.comparable
    assert {task.group for task in dataset.tasks} == {"links"}
    again = datasets.load("families:bash/links[difficulty=2..3]@seed=4..6")
    assert again.hash == dataset.hash != datasets.load("families:bash/links@seed=4..6").hash


def test_the_fixed_suites_have_the_hashes_of_the_page() -> None:
    page = PAGE.read_text("utf-8")
    rows = re.findall(r"\| `(families:\S+@seed=0\.\.4)` \| (\d+) \| `(\w{16})` \|", page)
    assert len(rows) == 2 * len(LEAST)
    for specification, tasks, expected in rows:
        dataset = datasets.load(specification)
        assert (len(dataset), dataset.hash) == (int(tasks), expected), specification


def test_episodes_of_an_endless_dataset_play_no_fixed_task() -> None:
    (task,) = datasets.load("families:ctf/wrapped[difficulty=4]").tasks
    assert task.id == "families/ctf/wrapped/4" and task.instantiate is not None
    drawn = pickle.loads(pickle.dumps(task)).instantiate(task, 3)
    assert drawn.id == f"families/ctf/wrapped/4/{FIRST_EPISODE_SEED + 3}"
    assert _parts(drawn) == _parts(find_family("ctf", "wrapped")(FIRST_EPISODE_SEED + 3, 4))


OWN = """
from intercode.core.types import Task
from intercode_lab.families.family import family

@family("bash")
def one_number(draw):
    return Task("", f"Print {draw.query.index(9)}.", f"echo {draw.query.index(9)}")

@family(OTHER)
def text(draw):
    return "no task"
"""


def test_families_of_a_file_of_a_module_and_of_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own_families.py").write_text(OWN.replace("OTHER", '"bash"'))
    plugin = Plugin("named", "own_families", "own 1")
    added, find = (plugin, replace(plugin, name="bash")), plugins.find_plugins
    monkeypatch.setattr(
        plugins, "find_plugins", lambda g: added if g == "intercode.families" else find(g)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    drawn = []
    for source in ("./own_families.py", "own_families", "named"):
        dataset = datasets.load(f"families:{source}/one-number@seed=0")
        (task,) = dataset.tasks
        assert dataset.environment == "bash" and task.group == "own_families"
        assert task.data["turns"] == [task.gold] and not dataset.warnings
        assert task.vary is not None
        assert _parts(pickle.loads(pickle.dumps(task)).vary(task, 1)) == _parts(task)
        drawn.append(_parts(task))
    assert drawn[0] == drawn[1] == drawn[2]
    (warning,) = datasets.load("families:bash/links").warnings
    assert "own 1 also adds families 'bash', which are not used" in warning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no families"),
        (OWN.replace("OTHER", '"sql"'), "has families of bash and sql"),
        (OWN.replace("OTHER", '"bash"'), "families/bash/text returned a str, not a Task"),
        ("x = (", "cannot be run: SyntaxError"),
    ],
)
def test_mistakes_in_a_file_of_families(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(UsageError, match=message):
        datasets.load(f"families:{tmp_path}/own.py@seed=0")


def test_the_name_alone_stands_for_the_families_of_the_environment() -> None:
    tasks = datasets.load("families", "ctf").tasks
    assert len(tasks) == 5 * len(load_families("ctf"))


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("families:bash/x", UnknownNameError, "family or group of bash 'x'"),
        ("families:harbor", UnknownNameError, "environment with task families 'harbor'"),
        ("families:bash[split=dev]", UnknownNameError, "unknown split 'dev'"),
        ("families:bash[difficulty=0..2]", UsageError, "a difficulty is from 1 to 5"),
        ("families:bash[size=2]", UsageError, "'size=2' is not difficulty"),
        ("families:bash@seed=9..1", UsageError, r"write 1\.\.9"),
        ("families:bash@seed=9..", UsageError, "neither a number nor a range"),
        ("families:bash@seed=1000000", UsageError, "a seed is below 1000000"),
        ("families:bash/wrapped/3", UsageError, "does not name families"),
        ("families:ctf/ciphers/", UsageError, "does not name families"),
        ("families:bash/trail[split=test]", UsageError, "selects no family"),
    ],
)
def test_mistakes_in_specifications(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        datasets.load(spec)


def test_difficulties_and_seeds_are_checked() -> None:
    family = find_family("bash", "trail")
    with pytest.raises(UsageError, match="must be from 1 to 5"):
        family(0, 6)
    with pytest.raises(UsageError, match="must be at least 0"):
        family(-1, 1)


def _draws(choices: Choices) -> Iterator[object]:
    yield choices.between(3, 5) in (3, 4, 5)
    yield sorted(choices.shuffled("abcd")) == list("abcd")
    yield len(choices.name(5)) == 5 and len(choices.data(40)) == 40


def test_choices_keep_their_bounds() -> None:
    assert all(_draws(Choices("t", 1)))
    assert Choices("t", 1).data(40) != Choices("t", 2).data(40)


def test_a_file_tree_adds_parents_and_orders_them_first() -> None:
    tree = FileTree("/top")
    tree.file("b/c/f", "text\n", mode=0o600)
    tree.link("a", "b/c/f")
    assert [entry.path for entry in tree.entries] == ["/top/a", "/top/b", "/top/b/c", "/top/b/c/f"]
    assert tree.entries[3].mode == 0o600 and tree.paths == ["b/c/f"] and "b/c" in tree
