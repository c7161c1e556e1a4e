"""What a world is: a state with goals and things to leave alone, and how it is scored.

The probe of a world prints readings: a JSON object of names and values. A goal is a set of
readings that must have certain values, and so is each damage, whose values are those of the
beginning. A probe changes nothing, and reads files of the state by
``read_file`` only. What is expected stays outside the sandbox, in the data of the task.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from intercode.core.types import Score, State, Task
from intercode_lab.families.bash.bash_task import folder_layer
from intercode_lab.families.family import Draw, Family, FamilyPayload
from intercode_lab.families.file_tree import FOLDER, FileTree

Run = Callable[[str], str]
"""Runs a command in the environment and returns its observation."""
Player = Callable[[str, Run], None]
"""The reference player: it solves a world from its request and what its commands print."""
_DAMAGE_FACTOR = 0.5
_READ_FILE = f"""
import os, stat

def read_file(path):
    # Return the bytes of a regular file of the state. OSError: another kind, too large, elsewhere.
    real = os.path.realpath(path)
    if not real.startswith("{FOLDER}/"):
        raise OSError("leads out of {FOLDER}: " + path)
    number = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError("no regular file: " + path)
        data = file.read((16 << 20) + 1)
    if len(data) > 16 << 20:
        raise OSError("larger than 16 MiB: " + path)
    return data
"""
"""The function by which probes read: nothing blocks it, and nothing fills the memory."""


@dataclass(frozen=True, slots=True)
class HiddenChoice:
    """A hidden choice: ``candidates`` by their visible properties, one of which is right."""

    candidates: Sequence[Mapping[str, Any]]
    right: int


@dataclass(frozen=True, kw_only=True)
class WorldPayload(FamilyPayload):
    """What a world says of its task; see World. ``other_solutions``: those after the gold."""

    goals: Mapping[str, Mapping[str, Any]]
    damage: Mapping[str, Mapping[str, Any]]
    other_solutions: tuple[str, ...] = ()
    harms: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[Mapping[str, Any], ...] = ()
    discoveries: int = 1
    traps: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """A world that a kind draws.

    ``goals``, ``damage``: the readings of each. ``probe``: a Python program that prints readings.
    ``solutions``: scripts that reach right end states which differ. ``harms``: a script that causes
    each damage. ``choices``: what the search for tells tries to guess. ``discoveries``, ``traps``:
    how many there are, for reports.
    """

    phrasing: int
    request: str
    tree: FileTree
    probe: str
    goals: Mapping[str, Mapping[str, Any]]
    damage: Mapping[str, Mapping[str, Any]]
    solutions: Sequence[str]
    harms: Mapping[str, str]
    choices: Sequence[HiddenChoice] = ()
    discoveries: int = 1
    traps: int = 0

    def task(self) -> Task:
        """Return the task of this world, without an id. Raises ValueError without a solution or a
        goal, and TypeError for values that are not JSON."""
        if not (self.solutions and self.goals):
            raise ValueError("a world needs at least one solution and one goal")
        choices = [{"candidates": list(c.candidates), "right": c.right} for c in self.choices]
        data = {
            "phrasing": self.phrasing,
            "compare": "changes",
            "goals": self.goals,
            "damage": self.damage,
            "other_solutions": list(self.solutions[1:]),
            "harms": self.harms,
            "choices": choices,
            "discoveries": self.discoveries,
            "traps": self.traps,
        }
        return Task(
            "",
            self.request,
            self.solutions[0],
            files=(folder_layer(),),
            cwd=FOLDER,
            data=json.loads(json.dumps(data)),
            initial_files=self.tree.entries,
            probe=f"python3 - <<'PROBE'\n{_READ_FILE}{self.probe}\nPROBE\n",
            probe_paths=(FOLDER,),
        )


@dataclass(frozen=True, slots=True)
class WorldKind(Family):
    """A kind of world: a family with a reference player.

    ``shallow``: players who skip a part of the looking, by name; none may solve many worlds.
    """

    player: Player = lambda _request, _run: None
    shallow: Mapping[str, Player] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """The beginning of the ids of its tasks."""
        return f"worlds/{self.environment}/{self.name}"

    def __call__(self, seed: int, difficulty: int, *, variant: int = 0, other: int = 0) -> Task:
        """Return the task of a seed; see ``Family``. A world has no variants."""
        task = Family.__call__(self, seed, difficulty, variant=variant, other=other)
        return replace(task, vary=None)


def kind(
    player: Player, shallow: Mapping[str, Player]
) -> Callable[[Callable[[Draw], World]], WorldKind]:
    """Make a kind of the decorated function, as ``family`` makes a family."""

    def decorate(function: Callable[[Draw], World]) -> WorldKind:
        @wraps(function)
        def draw_task(draw: Draw) -> Task:
            world = function(draw)
            if not isinstance(world, World):
                raise TypeError(f"the function returned a {type(world).__name__}, not a World")
            return world.task()

        description = (inspect.getdoc(function) or "").partition("\n")[0]
        name = function.__name__.replace("_", "-")
        return WorldKind(
            name,
            "bash",
            name,
            description,
            draw_task,
            player=player,
            shallow=shallow,
        )

    return decorate


def worlds_reward(task: Task, agent: State, _gold: State) -> Score:
    """Return the share of the goals that are reached, halved for each damage."""
    readings = _readings(agent.probe_output)
    payload = WorldPayload.of(task)
    missed = [name for name, wanted in payload.goals.items() if not _agree(wanted, readings)]
    damaged = [name for name, was in payload.damage.items() if not _agree(was, readings)]
    share = 1 - len(missed) / len(payload.goals)
    value = share * _DAMAGE_FACTOR ** len(damaged)
    details = {"missed": missed, "damaged": damaged}
    return Score(value, {"goals": share, "damage": float(len(damaged))}, details)


def _agree(wanted: Mapping[str, Any], readings: Mapping[str, Any]) -> bool:
    return all(name in readings and readings[name] == value for name, value in wanted.items())


def _readings(output: str) -> Mapping[str, Any]:
    """Return what the probe printed in its last line; nothing if that is not an object."""
    try:
        found = json.loads(output.strip().rpartition("\n")[2] or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
