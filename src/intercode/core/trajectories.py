"""Trajectories on disk: one JSON line an episode, appended as each episode ends.

A run directory holds ``run.json``, what the run was obtained with (see ``IDENTITY``), and
``trajectories.jsonl``. A line is the Trajectory of types as JSON, with ``"v": 1`` in front.
A process that is killed while it writes leaves a torn last line: readers pass over it, and the next
append takes it away.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from intercode.core.errors import DataError, UsageError
from intercode.core.types import Step, Trajectory, Usage, to_jsonable

SCHEMA_VERSION = 1
RUN_FILE = "run.json"
TRAJECTORIES_FILE = "trajectories.jsonl"
IDENTITY_KEYS = (
    "environment",
    "dataset",
    "dataset_hash",
    "profile",
    "scoring",
    "image",
    "image_digest",
    "arch",
    "tier",
    "network",
    "agent",
    "model",
    "max_turns",
    "reward",
    "comparable",
    "determinism",
    "env_options",
    "policy",
    "generation",
    "prompts",
)
"""The keys of run.json that make two runs different runs. A directory holds one run only."""

_OPTIONAL_IDENTITY_KEYS = ("generation", "prompts")
"""Those of IDENTITY that earlier releases did not write: what is not told cannot differ."""

T = TypeVar("T", Step, Trajectory, Usage)


@dataclass
class EpisodeNode:
    """An episode and the episodes that branched off from it."""

    trajectory: Trajectory
    children: list[EpisodeNode] = field(default_factory=list)

    def leaves(self) -> Iterator[Trajectory]:
        """The episodes below that nothing branched off from; this one where there are none."""
        if not self.children:
            yield self.trajectory
        for child in self.children:
            yield from child.leaves()


def build_episode_trees(episodes: Sequence[Trajectory]) -> list[EpisodeNode]:
    """The trees that episodes form by their parents, in the given order. An episode whose parent
    is not among them is a root."""
    nodes = [EpisodeNode(t) for t in episodes]
    by_id = {node.trajectory.id: node for node in nodes if node.trajectory.id}
    roots: list[EpisodeNode] = []
    for node in nodes:
        parent = by_id.get(node.trajectory.parent or "")
        (roots if parent is None or parent is node else parent.children).append(node)
    return roots


def append_trajectory(path: Path, trajectory: Trajectory) -> None:
    """Add one episode as one line, which is on the disk when this returns.

    A torn last line of an earlier process is taken away first. Several threads and processes may
    append to one file. Raises UsageError for a value that JSON cannot hold.
    """
    try:
        row = json.dumps({"v": SCHEMA_VERSION, **to_jsonable(trajectory)}, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise UsageError(
            f"the episode of {trajectory.task!r} cannot be written as JSON: {e}"
        ) from e
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o644)
    try:
        with _exclusive_lock(descriptor):
            _repair_last_line(descriptor)
            _write_all(descriptor, row.encode() + b"\n")
    finally:
        os.close(descriptor)


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """Every episode of a file, in order. A torn last line is passed over.

    Raises DataError with file and line for anything else that is no trajectory.
    """
    with _open_file(path) as file:
        for number, raw in enumerate(file, start=1):
            whole = raw.endswith(b"\n")
            if whole and not raw.strip():
                continue
            try:
                row = json.loads(raw)
            except ValueError as e:
                if not whole:
                    return
                raise DataError(f"{path}, line {number}: broken JSON ({e}); remove the line") from e
            try:
                trajectory = trajectory_from_row(row)
            except DataError as e:
                raise DataError(f"{path}, line {number}: {e}") from e
            yield trajectory


def has_result(trajectory: Trajectory) -> bool:
    """Whether an episode has a result of its own: it is no branch and ended without an error."""
    return trajectory.parent is None and trajectory.end != "error" and trajectory.error is None


def finished_episodes(path: Path) -> set[tuple[str, int]]:
    """Task and epoch of every episode that is finished. Empty where there is no file."""
    if not path.exists():
        return set()
    return {(t.task, t.epoch) for t in read_trajectories(path) if has_result(t)}


def identity_differences(
    old: Mapping[str, Any], new: Mapping[str, Any], keys: Sequence[str] = IDENTITY_KEYS
) -> list[str]:
    """Those of ``keys`` in which the facts of two runs differ."""
    return [
        k
        for k in keys
        if old.get(k) != new.get(k) and not (k in _OPTIONAL_IDENTITY_KEYS and k not in old)
    ]


def write_run_metadata(directory: Path, meta: Mapping[str, Any]) -> None:
    """Write ``run.json`` in one move.

    Raises UsageError where the directory already holds a run that differs in a key of IDENTITY.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / RUN_FILE
    new = to_jsonable(meta)
    if target.exists():
        old = read_run_metadata(directory)
        if differ := identity_differences(old, new):
            what = "; ".join(f"{k} {old.get(k)!r}, now {new.get(k)!r}" for k in differ)
            raise UsageError(f"{directory} holds another run ({what}); choose another directory")
    try:
        text = json.dumps(new, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as e:
        raise UsageError(f"what is to go into {target} cannot be written as JSON: {e}") from e
    passing = directory / f".{RUN_FILE}.{os.getpid()}"
    with passing.open("wb", buffering=0) as file:
        _write_all(file.fileno(), text.encode())
    passing.replace(target)


def read_run_metadata(directory: Path) -> dict[str, Any]:
    """What ``run.json`` of a run directory holds.

    Raises DataError where it is missing or broken.
    """
    path = directory / RUN_FILE
    try:
        with _open_file(path) as file:
            meta = json.load(file)
    except ValueError as e:
        if isinstance(e, DataError):
            raise
        raise DataError(f"{path}: broken JSON ({e})") from e
    if not isinstance(meta, dict):
        raise DataError(f"{path}: an object is expected, not {type(meta).__name__}")
    return meta


def trajectory_from_row(row: object) -> Trajectory:
    """The Trajectory that one decoded line holds. Raises DataError for any other value."""
    if not isinstance(row, dict):
        raise DataError(f"an object is expected, not {type(row).__name__}")
    values = dict(row)
    version = values.pop("v", None)
    if version != SCHEMA_VERSION:
        raise DataError(f"schema version {version!r}; this release reads version {SCHEMA_VERSION}")
    steps = values.get("steps")
    if not isinstance(steps, list):
        raise DataError("'steps' has to be a list")
    values["steps"] = tuple(_step_from_row(s) for s in steps)
    values["tags"] = tuple(values.get("tags", ()))
    return _build_record(Trajectory, values)


def _step_from_row(row: object) -> Step:
    if not isinstance(row, dict):
        raise DataError(f"a step has to be an object, not {type(row).__name__}")
    values = dict(row)
    if "usage" in values:
        usage = values["usage"]
        values["usage"] = _build_record(
            Usage, usage if isinstance(usage, dict) else {"usage": usage}
        )
    for name in ("changes", "messages"):
        if name in values:
            values[name] = tuple(values[name])
    return _build_record(Step, values)


def _build_record(kind: type[T], values: dict[str, Any]) -> T:
    strange = values.keys() - {f.name for f in fields(kind)}
    if strange:
        raise DataError(f"{kind.__name__} has no {', '.join(sorted(strange))}")
    try:
        return kind(**values)
    except TypeError as e:
        raise DataError(f"not a {kind.__name__}: {e}") from e


@contextlib.contextmanager
def _open_file(path: Path) -> Iterator[Any]:
    try:
        file = path.open("rb")
    except OSError as e:
        raise DataError(f"cannot read {path}: {e.strerror}") from e
    with file:
        yield file


@contextlib.contextmanager
def _exclusive_lock(descriptor: int) -> Iterator[None]:
    """Keep other processes from appending. Where there is no flock, nothing is kept."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)  # closing the descriptor gives it back
    yield


def _repair_last_line(descriptor: int) -> None:
    """Make the file end with a whole line: a torn one is cut off, a whole one gets its newline."""
    size = os.fstat(descriptor).st_size
    tail = b""
    while size > len(tail) and b"\n" not in tail:
        start = max(0, size - len(tail) - 65536)
        os.lseek(descriptor, start, os.SEEK_SET)
        tail = os.read(descriptor, size - len(tail) - start) + tail
    torn = tail.rpartition(b"\n")[2]
    if not torn:
        return
    try:
        json.loads(torn)  # what is left of an object is never JSON
    except ValueError:
        os.ftruncate(descriptor, size - len(torn))
    else:
        _write_all(descriptor, b"\n")


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)
