"""What is played: tasks, datasets, and the files and images that they need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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
    """

    kind: Literal["dir", "tar", "script"]
    path: Path
    fresh: bool = False


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

    @property
    def golds(self) -> tuple[str, ...]:
        """Every solution that counts as right, the main one first."""
        return (() if self.gold is None else (self.gold,)) + self.also


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks in a fixed order, and what a result on them has to name.

    ``name`` is what the user asked for (``nl2bash:fs_1``); ``environment`` is the registered
    environment that plays it; ``image`` the image it is meant for; ``comparable`` is false where a
    result is not one that others could put beside theirs.
    """

    name: str
    environment: str
    tasks: tuple[Task, ...]
    image: str = "host"
    comparable: bool = True
    notes: str = ""

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def hash(self) -> str:
        """First 16 hex digits of a SHA-256 over every id, query and gold, in order."""
        rows = [[t.id, t.query, list(t.golds)] for t in self.tasks]
        return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Brief:
    """What an agent may know of a task before its first action."""

    task: str
    query: str
    environment: str
    max_turns: int | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A root file system that is ready to use.

    ``root``: its unpacked tree, owned by the sandbox's id; None: the machine's own programs.
    """

    name: str
    digest: str
    root: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layer:
    """Files on top of an image: an unpacked tree, owned by the sandbox's id."""

    root: Path
    digest: str
