"""Worlds: their form, their proofs, their requests, and how they are loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import intercode
from intercode import datasets
from intercode.cli import main
from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Dataset, State
from intercode_lab.proofs.worlds import RULES, WorldProof, kind_faults, prove_task, world_tables
from intercode_lab.worlds import selection_of
from intercode_lab.worlds.kinds import KINDS
from intercode_lab.worlds.requests import Goal, phrasings
from intercode_lab.worlds.world import WorldKind, worlds_reward

NAMES = [kind.name for kind in KINDS]


def kind_of(name: str) -> WorldKind:
    return next(kind for kind in KINDS if kind.name == name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("difficulty", [1, 5])
def test_a_world_of_each_kind_is_proven(name: str, difficulty: int) -> None:
    seed, found = 3, replace(kind_of(name), shallow={})
    dataset = Dataset("worlds", "bash", (found(seed, difficulty),), reward="worlds")
    with intercode.make("bash", dataset) as env:
        env.known_golds = (State(),)
        proof = prove_task(env, 0, found, seed)
    assert proof.faults == ()
    assert proof.goals >= 2


@pytest.mark.parametrize("name", NAMES)
def test_players_who_skip_a_part_solve_no_world_of_difficulty_5(name: str) -> None:
    found = kind_of(name)
    dataset = Dataset("worlds", "bash", (found(3, 5),), reward="worlds")
    solved = []
    with intercode.make("bash", dataset) as env:
        env.known_golds = (State(),)
        for who, player in found.shallow.items():
            query, _ = env.reset(options={"task": 0})
            player(query, lambda command: env.execute(command).observation)
            solved += [who] if env.score().success else []
    assert len(found.shallow) >= 3
    assert solved == []


@pytest.mark.parametrize("name", NAMES)
def test_worlds_of_a_kind_differ_and_are_drawn_again(name: str) -> None:
    tasks = [kind_of(name)(seed, 5) for seed in range(5)]
    assert len({task.initial_files for task in tasks}) == 5
    assert kind_of(name)(2, 5).initial_files == tasks[2].initial_files
    assert len({task.data["phrasing"] for task in (kind_of(name)(s, 1) for s in range(25))}) == 4
    for task in tasks:
        assert "/work" in task.query
        assert task.data["goals"].keys() and task.data["damage"].keys()


def test_a_goal_has_at_least_20_phrasings() -> None:
    import importlib
    import pkgutil

    from intercode_lab.worlds import kinds

    found = 0
    for module in pkgutil.iter_modules(kinds.__path__):
        for value in vars(importlib.import_module(f"{kinds.__name__}.{module.name}")).values():
            goals = value.values() if isinstance(value, dict) else ()
            for goal in goals:
                if isinstance(goal, Goal):
                    found += 1
                    assert len(set(phrasings(goal))) >= 20, goal
    assert found >= 2 * len(KINDS)


def test_a_specification_names_kinds_difficulties_and_seeds() -> None:
    dataset = datasets.load(f"worlds:bash/{NAMES[0]}[difficulty=5]@seed=1..2")
    assert [task.id for task in dataset.tasks] == [
        f"worlds/bash/{NAMES[0]}/5/{seed}" for seed in (1, 2)
    ]
    assert (dataset.environment, dataset.reward) == ("bash", "worlds")
    assert len(datasets.load("worlds:bash").tasks) == 5 * len(KINDS)
    with pytest.raises(UsageError, match="write worlds:bash"):
        datasets.load("worlds:sql")


def test_an_endless_dataset_draws_from_the_seed_and_the_salt() -> None:
    name = f"worlds:bash/{NAMES[0]}[difficulty=1]"
    with intercode.make("bash", dataset=name) as env:
        env.reset(seed=4)
        assert env.task.initial_files == kind_of(NAMES[0])(1_000_004, 1).initial_files
        assert env.task.id == f"worlds/bash/{NAMES[0]}/1/1000004"
    with intercode.make("bash", dataset=f"{name}@salt={'s' * 16}") as env:
        env.reset(seed=4)
        assert env.task.initial_files != kind_of(NAMES[0])(1_000_004, 1).initial_files


def test_a_score_is_the_share_of_goals_halved_for_each_damage() -> None:
    task = replace(
        kind_of(NAMES[0])(1, 1),
        data={"goals": {"a": {"x": 1, "y": [2]}, "b": {"z": "3"}}, "damage": {"c": {"w": 4}}},
    )

    def value(**readings: object) -> float:
        return worlds_reward(
            task, State(probe_output=f"noise\n{json.dumps(readings)}\n"), State()
        ).value

    assert value(x=1, y=[2], z="3", w=4) == 1
    assert value(x=1, y=[2], w=4) == 0.5
    assert value(x=1, y=[2], z="3") == 0.5
    assert value(x=1, z="3", w=5) == 0.25
    assert worlds_reward(task, State(probe_output="no object"), State()).value == 0
    assert worlds_reward(task, State(probe_output="[1]"), State()).value == 0


def test_tells_and_faults_of_tasks_are_faults_of_a_proof() -> None:
    good = WorldProof("t", "k", 5, "d", (), {"a": False}, 9, 2, 3, 1, 40, 0.01, 1.0)
    proofs = [replace(good, task=f"t{n}", digest=f"d{n}", shallow={"a": n < 6}) for n in range(50)]
    assert kind_faults(proofs) == [("k", "tell: a solves 6 of 50")]
    assert kind_faults(proofs[1:]) == []  # too few
    assert kind_faults([good, replace(good, task="u")]) == [("u", "same-world: as t")]
    assert kind_faults([replace(good, faults=("f",), reset=0.4)])[0] == ("t", "f")
    assert [table.name for table in world_tables("w", proofs)] == ["worlds", "tells", "faults"]
    candidates = [
        {"value": "b", "length": 2},
        {"value": "c", "length": 1},
        {"value": "a", "length": 3},
    ]
    assert {name: rule(candidates) for name, rule in RULES.items()} == {
        "the first": 0,
        "the second": 1,
        "the middle one": 1,
        "the last but one": 1,
        "the last": 2,
        "the shortest": 1,
        "the longest": 2,
        "the least": 2,
        "the greatest": 1,
    }


def test_the_command_proves_worlds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "proofs.jsonl"
    spec = f"worlds:bash/{NAMES[0]}[difficulty=2]"
    assert main(["check", spec, "--draw", "1", "--parallel", "1", "--out", str(out)]) == 0
    assert f"{spec}: 1 of 1 drawn worlds are sound" in capsys.readouterr().out
    assert json.loads(out.read_text("utf-8"))["faults"] == []
    with pytest.raises(UsageError, match="without @seed="):
        from intercode_lab.proofs.worlds import prove

        prove("worlds:bash@seed=1", 1, out)


OWN_KIND = """
from intercode_lab.families.file_tree import FileTree
from intercode_lab.worlds.world import World, kind

def fail(request, run):
    raise KeyError("shelf")

@kind(player=fail, shallow={"no notes": fail})
def room(draw):
    tree = FileTree()
    return World(phrasing=0, request="?", tree=tree, probe="", goals={"a": {"a": 1}}, damage={},
                 solutions=("true",), harms={})
"""


@pytest.mark.parametrize("name", ["bash.py", "bash-own.py", "own.py"])
def test_kinds_come_from_a_file_of_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(OWN_KIND)
    selection = selection_of(f"worlds:{tmp_path}/{name}@seed=0..1")
    assert [task.id for task in selection.tasks()] == [
        f"worlds/bash/room/{n}" for n in ("1/0", "2/1")
    ]
    assert selection.families[0].function.__module__ != "intercode_lab.worlds.world"


def test_a_name_that_begins_with_bash_is_not_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("bash.py", "bash-own.py"):
        Path(name).write_text(OWN_KIND)
        assert [kind.name for kind in selection_of(f"worlds:{name}").families] == ["room"]


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("tree = FileTree()", "1 / 0", "room, of .*own.py, .* seed 0 .*: ZeroDivisionError: "),
        ("return World(", "return dict(", "room, of .*own.py, .*returned a dict, not a World"),
        ('("true",)', "()", "room, of .*own.py, .*at least one solution"),
        ('{"a": {"a": 1}}', "{}", "room, of .*own.py, .*one goal"),
        ('{"a": 1}', '{"a": {1}}', "room, of .*own.py, .*set is not JSON"),
        ('@kind(player=fail, shallow={"no notes": fail})', "", "own.py has no families: .*@kind"),
    ],
)
def test_a_kind_that_draws_no_world_is_named(
    was: str, now: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN_KIND.replace(was, now))
    with pytest.raises(UsageError, match=message):
        datasets.load(f"worlds:{tmp_path}/own.py@seed=0")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sql", "worlds:sql has no worlds, which are of Bash"),
        ("nosuch", "worlds:nosuch has no worlds, which are of Bash"),
        ("bash/mail", "unknown kind of bash 'mail'; known: broken-ledger"),
        ("bash[level=1]", "'worlds:bash.level=1.'.*write worlds:bash/KIND"),
    ],
)
def test_a_specification_without_worlds_is_refused_in_words_of_worlds(
    spec: str, message: str
) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=message):
        datasets.load(f"worlds:{spec}")


def test_a_player_that_raises_is_a_fault_with_the_exception(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_KIND)
    found = selection_of(f"worlds:{tmp_path}/own.py").families[0]
    assert isinstance(found, WorldKind)
    dataset = Dataset("worlds", "bash", (found(0, 5),), reward="worlds")
    with intercode.make("bash", dataset) as env:
        env.known_golds = (State(),)
        faults = prove_task(env, 0, found, 0).faults
    assert "player-fails: KeyError: 'shelf'" in faults
    assert "player-fails: no notes: KeyError: 'shelf'" in faults
    assert not [fault for fault in faults if fault.startswith(("player-below-1", "few-turns"))]
