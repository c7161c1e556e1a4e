"""The words of this project as frozen dataclasses. Nothing here does any work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Profile = Literal["standard", "original"]
Network = Literal["none", "host"]

NOTHING: Mapping[str, Any] = MappingProxyType({})
SUCCESS = 1.0 - 1e-9
"""A reward of at least this counts as solved (rewards are sums of rounded parts)."""


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
class Task:
    """One query with its gold.

    ``id`` is stable (``nl2bash/fs_1/17``); ``gold`` is code in the environment's language;
    ``also`` are further golds that are as right; ``files`` are laid over the image, lowest first;
    ``group`` and ``hardness`` are what tables are split by; ``data`` is what else the row held.
    """

    id: str
    query: str
    gold: str | None = None
    also: tuple[str, ...] = ()
    files: tuple[LayerSpec, ...] = ()
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


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What one command printed and how it ended.

    ``output`` is stdout and stderr in the order in which they were written, or stdout alone where
    ``stderr`` is kept apart. ``exit_code`` is None when the command did not end by itself. ``cut``
    counts bytes left out. ``note`` is what the sandbox says of it, in lines in brackets.
    """

    output: str
    exit_code: int | None
    timed_out: bool = False
    cut: int = 0
    stderr: str | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def shown(self) -> str:
        """What whoever acts is told: output, stderr, and the note on lines of its own."""
        said = self.output + (self.stderr or "")
        return said + "\n" * bool(self.note and said and not said.endswith("\n")) + self.note


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One path that differs from the layers below, or ``kind='gone'`` for one that was removed.

    ``digest`` is the SHA-256 of a regular file's content, ``target`` a symbolic link's text.
    ``new`` tells whether the lower layers have nothing at this path.
    """

    kind: Literal["file", "dir", "link", "fifo", "socket", "device", "gone"]
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""
    new: bool = True


@dataclass(frozen=True, slots=True)
class State:
    """What an episode left behind, as a reward function sees it.

    ``output`` is the last observation. ``files`` maps absolute paths to what changed (standard
    profile); in the original one ``status`` holds the authors' reading of ``git status``, and
    ``checksums`` what their hash command printed. ``failed``: the code could not be run at all.
    ``answer`` is what the agent handed in.
    """

    output: str | None = ""
    files: Mapping[str, FileEntry] = field(default_factory=dict)
    status: tuple[tuple[str, str], ...] = ()
    checksums: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    exit_code: int | None = 0
    answer: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """A reward with its parts. ``value`` is what a trainer or a table uses."""

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.value >= SUCCESS


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and requests that a model spent. Unknown counts are None, never zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        def add(a: int | None, b: int | None) -> int | None:
            return b if a is None else a if b is None else a + b

        prompt = add(self.prompt_tokens, other.prompt_tokens)
        completion = add(self.completion_tokens, other.completion_tokens)
        return Usage(prompt, completion, self.requests + other.requests)


@dataclass(frozen=True, slots=True)
class Move:
    """What an agent decided: an action, or None when there was no code in what the model wrote.

    ``reply`` is what the agent is told in place of an observation when ``action`` is None.
    """

    action: str | None
    message: str = ""
    thought: str = ""
    reply: str = ""
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Step:
    """One turn: an action and its observation.

    ``executed`` is false for a turn that held no code. ``valid`` is None where nothing ran.
    ``reward`` is None where the turn was not scored. ``hashes``: of observation and state.
    """

    action: str
    observation: str
    executed: bool = True
    valid: bool | None = True
    exit_code: int | None = 0
    timed_out: bool = False
    reward: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    message: str = ""
    thought: str = ""
    usage: Usage = Usage()
    hashes: Mapping[str, str] = field(default_factory=dict)


EndReason = Literal["solved", "submitted", "turn_limit", "agent_stopped", "error", "unknown"]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode's record. ``run`` says what it was obtained with (see trajectories.py); a branch
    has its first ``branched_at`` steps in common with the episode that ``parent`` names."""

    task: str
    index: int
    query: str
    steps: tuple[Step, ...]
    end: EndReason = "unknown"
    error: str | None = None
    group: str | None = None
    hardness: str | None = None
    seconds: float | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    parent: str | None = None
    branched_at: int | None = None

    @property
    def reward(self) -> float:
        """The best reward of the episode (paper, section 3); 0 where nothing was scored."""
        return max((s.reward for s in self.steps if s.reward is not None), default=0.0)

    @property
    def success(self) -> bool:
        return self.reward >= SUCCESS

    @property
    def turns(self) -> int:
        return len(self.steps)

    @property
    def usage(self) -> Usage:
        return sum((s.usage for s in self.steps), Usage())

    def replace(self, **changes: Any) -> Trajectory:
        return replace(self, **changes)


def plain(value: Any) -> Any:
    """A dataclass of this module as JSON types."""
    if hasattr(value, "__dataclass_fields__"):
        return {k: plain(getattr(value, k)) for k in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value
