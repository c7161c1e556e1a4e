"""Tasks and datasets, and the files and images that they need."""

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
    """The source of a layer of files, before anything is unpacked.

    ``kind``: a ``script`` runs in a sandbox as root in ``/``, and its changes are the layer.
    ``path``: on this machine. ``shift_dates``: shift the dates of the files as if set-up had
    finished two hours ago.

    A ``dir`` may have another ``destination`` than the root. ``exclude``: names to leave out at any
    depth. ``executable``: files, relative to ``path``, that get the mode 0755, like directories;
    other files get 0644.
    """

    kind: Literal["dir", "tar", "script"]
    path: Path
    shift_dates: bool = False
    destination: str = "/"
    exclude: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """The source of the content of a task's database.

    ``kind``: ``mysql-dump`` is a file of statements in MySQL's dialect, which may create several
    databases; ``sqlite`` is an SQLite file, one database. ``path``: on this machine. ``name``: the
    database of the task.
    """

    kind: Literal["mysql-dump", "sqlite"]
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Task:
    """A query with its gold.

    ``id``: stable, such as ``nl2bash/fs_1/17``. ``gold``: code in the language of the environment.
    ``also``: further golds that are equally right. ``files``: layers over the image, the lowest
    first. ``database``: the database of an SQL task. ``group``, ``hardness``: by which reports
    split results. ``data``: the other columns of the row.

    ``flag``: the flag of a capture-the-flag task. ``instantiate``: makes the task of an episode
    from its seed, so that nobody can know it in advance. ``initial_files``: files that are written
    when the episode begins, absolute path to content and mode.

    ``probe``: a script that prints facts of a state for the reward (see
    environments/base/probe.py). ``probe_paths``: the paths of the state that it gets (empty: all).
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
        """All golds, the main one first."""
        return (() if self.gold is None else (self.gold,)) + self.also

    @property
    def solution(self) -> str | None:
        """Code that solves the task: ``data["solution"]`` if the gold is only its result, else the
        gold."""
        solution: str | None = self.data.get("solution", self.gold)
        return solution


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks in a fixed order, with the metadata that results on them record.

    ``name``: as the user gave it (``nl2bash:fs_1``). ``environment``: the registered environment
    that plays it. ``image``: its own image. ``comparable``: false if results cannot be compared
    with those of others. ``programs``: what its tasks need in the image beyond a shell and the
    usual small tools. ``reward``: the name of its reward, or a reference to one, in the
    ``standard`` profile (None: the reward of the environment).
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
        """The first 16 digits of a SHA-256 over id, query and golds of each task, and over its
        hidden tests and probe, in order."""
        rows = [[t.id, t.query, list(t.golds), *_hidden_test_values(t)] for t in self.tasks]
        return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:16]


def _hidden_test_values(task: Task) -> list[Any]:
    probe = [task.probe, list(task.probe_paths)] if task.probe is not None else []
    tests = [task.data["tests"], task.data.get("setup", "")] if "tests" in task.data else []
    return tests + probe


@dataclass(frozen=True, slots=True)
class Brief:
    """What an agent may know of a task before its first action.

    ``expects_answer``: the answer that the agent submits is scored, not the state.
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

    ``root``: its unpacked tree, owned by the sandbox's user id. None: the machine's own programs.
    ``env``, ``cwd``: environment variables and working directory of its programs, unless a task
    names others. ``layers``: layers over the tree, the lowest first, for images over the machine's
    own programs only.
    """

    name: str
    digest: str
    root: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class Layer:
    """Files over an image: an unpacked tree, owned by the sandbox's user id."""

    root: Path
    digest: str
