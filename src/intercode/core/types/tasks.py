"""What is played: tasks, datasets, and the files and images that they need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Profile = Literal["standard", "original"]
Network = Literal["none", "host"]


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """Where the files of a task come from, before anything is unpacked.

    ``kind``: ``script`` is run in a sandbox as root of ``/``, its changes are the layer; ``path``
    lies on this machine. ``fresh``: what set-up wrote is dated as if that were two hours ago.

    A ``dir`` may go elsewhere than to the root: its files are then laid out ``at`` that path, the
    names in ``without`` left out wherever they stand in it; directories and what ``executable``
    names (relative to it) get the mode 0755, other files 0644.
    """

    kind: Literal["dir", "tar", "script"]
    path: Path
    shift_dates: bool = False
    destination: str = "/"
    exclude: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """Where the content of a task's database comes from.

    ``kind``: ``mysql-dump`` is a text of statements in MySQL's dialect that may make several
    databases, ``sqlite`` a file of SQLite's, one database. ``path`` lies on this machine.
    ``name``: the database in which the task plays.
    """

    kind: Literal["mysql-dump", "sqlite"]
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Task:
    """One query with its gold.

    ``id`` is stable (``nl2bash/fs_1/17``); ``gold`` is code in the environment's language;
    ``also`` are further golds that are as right; ``files`` are laid over the image, lowest first;
    ``database`` is what SQL is asked of; ``group`` and ``hardness`` are what tables are split by;
    ``data`` is what else the row held.

    ``flag`` is what a capture-the-flag task asks for. ``draw`` makes of a task the one that an
    episode plays, by the episode's seed, so that nobody can know it before; ``contents`` are files
    written into the box when the episode begins: absolute path to content and mode.

    ``look`` is a script that prints facts of an end state for the reward (see environments/base/probe.py),
    ``look_at`` what of the end state it is given: nothing means all of it.
    """

    id: str
    query: str
    gold: str | None = None
    also: tuple[str, ...] = ()
    files: tuple[LayerSpec, ...] = ()
    database: DatabaseSpec | None = None
    setup: str | None = None
    cwd: str = "/"
    group: str | None = None
    hardness: str | None = None
    tags: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    flag: str | None = None
    instantiate: Callable[[Task, int], Task] | None = None
    initial_files: Mapping[str, tuple[bytes, int]] = field(default_factory=dict)
    probe: str | None = None
    probe_paths: tuple[str, ...] = ()

    @property
    def golds(self) -> tuple[str, ...]:
        """Every solution that counts as right, the main one first."""
        return (() if self.gold is None else (self.gold,)) + self.also

    @property
    def solution(self) -> str | None:
        """Code that reaches what the gold says, where the gold alone does not show how
        (``data["solution"]``), else the gold itself."""
        solution: str | None = self.data.get("solution", self.gold)
        return solution


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks in a fixed order, and what a result on them has to name.

    ``name`` is what the user asked for (``nl2bash:fs_1``); ``environment`` is the registered
    environment that plays it; ``image`` the image it is meant for; ``comparable`` is false where a
    result is not one that others could put beside theirs. ``programs``: what its tasks need in the
    image beyond a shell and the usual small tools. ``reward``: the name of a reward of its own, or
    a reference to one, for the ``standard`` profile; None for the environment's.
    """

    name: str
    environment: str
    tasks: tuple[Task, ...]
    image: str = "host"
    comparable: bool = True
    notes: str = ""
    programs: tuple[str, ...] = ()
    reward: str | None = None

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def hash(self) -> str:
        """First 16 hex digits of a SHA-256 over every id, query and gold, and over the hidden
        tests and the look where there are such, in order."""
        rows = [[t.id, t.query, list(t.golds), *_hidden_test_values(t)] for t in self.tasks]
        return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:16]


def _hidden_test_values(task: Task) -> list[Any]:
    seen = [task.probe, list(task.probe_paths)] if task.probe is not None else []
    tests = [task.data["tests"], task.data.get("setup", "")] if "tests" in task.data else []
    return tests + seen


@dataclass(frozen=True, slots=True)
class Brief:
    """What an agent may know of a task before its first action.

    ``answers``: what counts is the answer that it hands in with ``submit``, not what it leaves.
    """

    task: str
    query: str
    environment: str
    max_turns: int | None = None
    notes: str = ""
    expects_answer: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """A root file system that is ready to use.

    ``root``: its unpacked tree, owned by the sandbox's id; None: the machine's own programs.
    ``env`` and ``cwd``: the environment and directory in which its programs start, where a task
    names no other. ``layers``: its own files on top of that tree, the lowest first; only an image
    over the machine's own programs has such.
    """

    name: str
    digest: str
    root: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class Layer:
    """Files on top of an image: an unpacked tree, owned by the sandbox's id."""

    root: Path
    digest: str
