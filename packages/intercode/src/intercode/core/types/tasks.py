"""Tasks and datasets, and the files and images that they need."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from intercode.core.decoding import decode_as
from intercode.core.errors import DataError
from intercode.core.types.descriptions import EnvironmentDescription, describe_unknown
from intercode_sandbox.types import LayerSpec


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """The file from which a task's database is filled.

    ``kind``: ``mysql-dump`` is a file of statements in MySQL's dialect, which may create several
    databases; ``sqlite`` is an SQLite file with one database. ``path``: the file on this machine.
    ``name``: the name of the task's database.

    >>> from intercode import datasets
    >>> from intercode.core import DatabaseSpec
    >>> spec: DatabaseSpec = datasets.load("starter:sql").tasks[0].database
    >>> spec.kind, spec.name
    ('mysql-dump', 'allotment')
    """

    kind: Literal["mysql-dump", "sqlite"]
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, directory or symbolic link. ``mtime`` is in seconds since 1970, UTC (None: the time
    at which it is written).

    >>> import intercode
    >>> from intercode.core import Dataset, Task, TreeEntry
    >>> entry = TreeEntry("file", "/work/a.txt", 0o644, None, b"one\\n")
    >>> task = Task("t", "Print it.", gold="cat /work/a.txt", initial_files=(entry,))
    >>> with intercode.make("bash", Dataset("mine", "bash", (task,))) as env:
    ...     _ = env.reset()
    ...     print(env.step("cat /work/a.txt")[0].strip())
    one
    """

    kind: Literal["file", "dir", "link"]
    path: str
    mode: int
    mtime: int | None
    data: bytes = b""
    target: str = ""

    def with_data(self, text: str) -> TreeEntry:
        """Return the same entry with ``text`` as its content, encoded as UTF-8."""
        return replace(self, data=text.encode())


@dataclass(frozen=True, slots=True)
class Task:
    """A query with its gold.

    ``id``: a name that does not change, such as ``nl2bash/fs_1/17``. ``gold``: code in the language
    of the environment. ``also``: further golds that are equally correct. ``files``: layers over the
    image, the lowest first. ``database``: the database of an SQL task. ``setup``: code that runs
    before the first action. ``group``, ``hardness``: reports split results by these. ``data``: the
    other columns of the row, of which an environment reads those of its ``Payload``.

    ``flag``: the flag of a capture-the-flag task. ``instantiate``: a function of this task and the
    seed of an episode that returns the task to play, with a flag that nobody can know in advance.
    ``initial_files``: files, directories and links that are written when the episode begins, after
    ``setup``. They are a part of the initial state: they count as changes only if they are changed.
    ``vary``: a function of this task and a number from 1 that returns a variant of it: the same
    query and golds in another initial state.

    ``probe``: a script that prints facts of a state for the reward (see
    docs/new-tasks.md). ``probe_paths``: the paths that the probe gets to see (empty: all).
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
    initial_files: tuple[TreeEntry, ...] = ()
    vary: Callable[[Task, int], Task] | None = None
    probe: str | None = None
    probe_paths: tuple[str, ...] = ()

    @property
    def golds(self) -> tuple[str, ...]:
        """All golds, the main one first."""
        return (() if self.gold is None else (self.gold,)) + self.also

    @property
    def solution(self) -> str | None:
        """Code that solves the task: the column ``solution`` if there is one, else the gold.

        A dataset has it if its golds only hand in a result, such as ``submit FLAG``.
        """
        solution = Payload.of(self).solution
        return self.gold if solution is None else solution

    @property
    def solution_actions(self) -> tuple[str, ...]:
        """The actions that solve the task: the column ``actions`` of a task that submits several
        times, else ``solution``. Empty without a solution."""
        solution = () if self.solution is None else (self.solution,)
        return Payload.of(self).actions or solution


@dataclass(frozen=True, kw_only=True)
class Payload:
    """The columns of a task that its environment reads.

    A subclass has a field for each further column. The type of a field is what the column must
    hold: a text, a truth value, a number, a list (``tuple[str, ...]``), an object (``Mapping``), an
    instance of a class, or anything. A column that is absent or null has the field's default; a
    field without one must be there. Columns that are no field stay in ``Task.data``.

    ``notes``: what the prompt says beside the query. ``solution``: code that solves the task, if
    its golds only hand in a result. ``actions``: the actions that solve a task which submits
    several times. ``tests``: hidden tests. ``absent_in_tests``: paths that are removed before they
    run.
    """

    hint: ClassVar[str] = ""
    """What to do about a field that is missing, for the error of ``decode_as``."""
    other_keys: ClassVar[bool] = True
    notes: str = ""
    solution: str | None = None
    actions: tuple[str, ...] = ()
    tests: tuple[Any, ...] = ()
    absent_in_tests: tuple[str, ...] = ()

    @property
    def only_changes(self) -> bool:
        """Whether the profile ``standard`` judges the lasting changes and no output."""
        return False

    @classmethod
    def of(cls, task: Task) -> Self:
        """Return the payload of a task. Raises DataError that names the task and the field."""
        return cls.of_row(task.data, task.id)

    @classmethod
    def of_row(cls, row: Mapping[str, Any], where: str) -> Self:
        """Return the payload in a row. Raises DataError that begins with ``where`` and names the
        field."""
        given = {name: value for name, value in row.items() if value is not None}
        payload: Self = decode_as(cls, given, where)
        return payload


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks in a fixed order, with the metadata that results on them record.

    ``name``: the specification that the user gave, such as ``nl2bash:fs_1``. ``environment``: the
    registered environment that plays the tasks. ``image``: the image in which they run unless the
    user names another. ``comparable``: false if results cannot be compared with those of others.
    ``programs``: the programs that the image must have beyond a shell and the usual small tools.
    ``reward``: the name of the reward in the ``standard`` profile, or a reference to one (None: the
    reward of the environment). ``warnings``: what the tasks ask for and do not get; commands print
    it before they run anything. ``fixed_example``: for a dataset that draws another task for each
    episode, how to choose fixed ones, such as ``families:bash@seed=0..99``.
    """

    name: str
    environment: str
    tasks: tuple[Task, ...]
    image: str = "host"
    comparable: bool = True
    notes: str = ""
    programs: tuple[str, ...] = ()
    reward: str | None = None
    warnings: tuple[str, ...] = ()
    fixed_example: str = ""

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def hash(self) -> str:
        """The first 16 digits of a SHA-256 over id, query and golds of each task, and over its
        hidden tests, shown tests, probe, repair and initial files, in order. Raises DataError for
        half of a surrogate pair in one of these."""
        rows = [[t.id, t.query, list(t.golds), *_hidden_test_values(t)] for t in self.tasks]
        try:
            text = json.dumps(rows, ensure_ascii=False).encode()
        except UnicodeEncodeError as e:
            n = next(n for n, row in enumerate(rows) if _has_half_pair(row))
            raise DataError(
                f"{self.name}, task {n} ({self.tasks[n].id!r}): a text has half of a surrogate "
                f"pair ({e.object[e.start]!r}), which is no text: write the whole character"
            ) from e
        return hashlib.sha256(text).hexdigest()[:16]


def _has_half_pair(row: Any) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in json.dumps(row, ensure_ascii=False))


def _hidden_test_values(task: Task) -> list[Any]:
    probe = [task.probe, list(task.probe_paths)] if task.probe is not None else []
    tests = [task.data["tests"], task.data.get("setup", "")] if "tests" in task.data else []
    repair = [task.setup, task.cwd] if "repair" in task.data else []
    compare = [task.data["compare"]] if "compare" in task.data else []
    tests += [task.data["call_form"]] if "call_form" in task.data else []
    tests += [list(task.data["absent_in_tests"])] if "absent_in_tests" in task.data else []
    files = [tree_digest(task.initial_files)] if task.initial_files else []
    return tests + probe + repair + compare + files


def tree_digest(entries: Sequence[TreeEntry]) -> str:
    """Return 16 hex digits of a SHA-256 over path, kind, mode, time and content of each entry."""
    rows = [
        [e.kind, e.path, e.mode, e.mtime, hashlib.sha256(e.data).hexdigest(), e.target]
        for e in entries
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


TOOL_CALL = "call"
"""The first word of an action that calls a tool of a Brief; the tool's name and a JSON object of
arguments follow."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. ``parameters`` is a JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


_UNDESCRIBED = describe_unknown("")


@dataclass(frozen=True, slots=True)
class Brief:
    """The description of a task that an agent gets before its first action.

    ``expects_answer``: the answer that the agent submits is scored, not the state. ``tools``: those
    of MCP servers, which an action calls (see environments/base/tools). ``only_changes``: the
    lasting changes are judged, and no output. ``description``: what the environment is, with the
    language of this task.

    >>> import intercode
    >>> with intercode.make("bash") as env:
    ...     _ = env.reset(options={"task": "starter/bash/count-csv"})
    ...     print(env.brief.environment, env.brief.query.startswith("How many regular files"))
    bash True
    """

    task: str
    query: str
    environment: str
    max_turns: int | None = None
    notes: str = ""
    expects_answer: bool = False
    tools: tuple[Tool, ...] = ()
    only_changes: bool = False
    description: EnvironmentDescription = _UNDESCRIBED
