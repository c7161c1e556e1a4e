"""Writes and reads the trajectories of a run: one JSON line for each episode.

A run directory holds ``run.json``, the metadata of the run, and ``trajectories.jsonl``. A line of
the latter is a ``Trajectory`` as JSON with the schema version ``"v"`` in front; see
docs/records.md. A process that is killed while it writes leaves an incomplete last line. Readers
skip that line, and the next append removes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from intercode.core.decoding import decode_as, parse_json
from intercode.core.errors import DataError, UsageError
from intercode.core.prompt_ids import complete_prompts, shorten_prompts
from intercode.core.types import Score, Step, Trajectory, to_jsonable
from intercode.core.types.records import RECORDED_FIELDS
from intercode_sandbox.platforms.files import lock_file

SCHEMA_VERSION = 2
"""The version of records that this release writes."""
SHORT_PROMPTS_VERSION = 3
"""The version of an episode whose prompts are not written whole; see ``core.prompt_ids``."""
RUN_FILE = "run.json"
README_FILE = "README.txt"
TRAJECTORIES_FILE = "trajectories.jsonl"
HISTORY_FILE = "history.jsonl"
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
    "limits",
    "agent",
    "model",
    "max_turns",
    "reward",
    "comparable",
    "determinism",
    "env_options",
    "policy",
    "mcp",
    "generation",
    "prompts",
    "sources",
)
"""Keys of run.json. Two runs that differ in one of them are different runs, and a directory holds
one run only."""

_OPTIONAL_IDENTITY_KEYS = ("generation", "prompts", "sources")
"""Keys that the first releases did not write. A run without such a key matches every other run."""

_KEYS_OF_MODELS = ("endpoint",)
"""Keys that runs without a model and those of early releases lack, and only then match others."""


@dataclass
class EpisodeNode:
    """An episode and the episodes that branch off from it."""

    trajectory: Trajectory
    children: list[EpisodeNode] = field(default_factory=list)

    def leaves(self) -> Iterator[Trajectory]:
        """Yield the episodes of this tree from which no other branches off."""
        if not self.children:
            yield self.trajectory
        for child in self.children:
            yield from child.leaves()


def build_episode_trees(episodes: Sequence[Trajectory]) -> list[EpisodeNode]:
    """Return the trees that the episodes form by their ``parent``, in the given order.

    An episode whose parent is not among ``episodes`` is a root.
    """
    nodes = [EpisodeNode(t) for t in episodes]
    by_id = {node.trajectory.id: node for node in nodes if node.trajectory.id}
    roots: list[EpisodeNode] = []
    for node in nodes:
        parent = by_id.get(node.trajectory.parent or "")
        (roots if parent is None or parent is node else parent.children).append(node)
    return roots


def append_trajectory(path: Path, trajectory: Trajectory) -> None:
    """Append one episode as one line and wait until it is on the disk.

    Removes an incomplete last line of an earlier process first. Several threads and processes may
    append to one file. Raises UsageError for a value that JSON cannot hold.
    """
    try:
        row = json.dumps(trajectory_to_row(trajectory), allow_nan=False)
    except (TypeError, ValueError) as e:
        raise UsageError(
            f"the episode of {trajectory.task!r} cannot be written as JSON: {e}"
        ) from e
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o644)
    try:
        with name_file_in_errors(path):
            lock_file(descriptor)  # until it is closed
            _repair_last_line(descriptor)
            _write_all(descriptor, row.encode() + b"\n")
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Name ``path`` in an OSError that names no file, such as one for a full disk."""
    try:
        yield
    except OSError as e:
        if e.filename is None:
            e.filename = str(path)
        raise


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """Yield every episode of a file in order, and skip an incomplete last line.

    Raises DataError that names the file and the line if any other line is not a trajectory.
    """
    with _open_file(path) as file:
        for number, raw in enumerate(file, start=1):
            complete = raw.endswith(b"\n")
            if complete and not raw.strip():
                continue
            try:
                row = parse_json(raw.rstrip(b"\n"), path, number)
            except DataError as e:
                if not complete:
                    return
                raise DataError(f"{e}; remove the line") from e
            try:
                trajectory = trajectory_from_row(row)
            except DataError as e:
                raise DataError(f"{path}, line {number}: {e}") from e
            yield trajectory


def read_history(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a run's history, without lines that a killed process left incomplete."""
    for line in file.read_bytes().splitlines() if file.exists() else ():
        with contextlib.suppress(DataError):
            row = parse_json(line, file)
            if isinstance(row, dict):
                yield row


def planned_episodes(directory: Path) -> int:
    """Return how many episodes a run is to have, 0 if its history does not say."""
    planned = 0
    for row in read_history(directory / HISTORY_FILE):
        tasks, epochs = row.get("tasks"), row.get("epochs", 1)
        if isinstance(tasks, int) and isinstance(epochs, int):
            planned = tasks * epochs
    return planned


def has_incomplete_line(path: Path) -> bool:
    """Return whether the last line of a file is incomplete, so that readers skip it."""
    with _open_file(path) as file:
        last = b""
        for line in file:
            last = line
    return bool(last.strip()) and not last.endswith(b"\n") and not _is_json(last)


def _is_json(text: bytes) -> bool:
    try:
        parse_json(text, "")
    except DataError:
        return False
    return True


def has_result(trajectory: Trajectory) -> bool:
    """Return whether an episode counts as a result: it is not a branch and ended without an
    error."""
    return trajectory.parent is None and trajectory.end != "error" and trajectory.error is None


def identity_differences(
    old: Mapping[str, Any], new: Mapping[str, Any], keys: Sequence[str] = IDENTITY_KEYS
) -> list[str]:
    """Return those of ``keys`` in which the metadata of two runs differ."""
    return [
        k
        for k in keys
        if old.get(k) != new.get(k)
        and not (k in _OPTIONAL_IDENTITY_KEYS and k not in old)
        and not (k in _KEYS_OF_MODELS and (k not in old or k not in new))
    ]


def write_run_metadata(directory: Path, metadata: Mapping[str, Any]) -> None:
    """Write ``run.json`` atomically.

    Raises UsageError if the directory already holds a run that differs in a key of IDENTITY_KEYS.
    """
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / RUN_FILE
    new = to_jsonable(metadata)
    if target.exists():
        old = read_run_metadata(directory)
        if differ := identity_differences(old, new):
            what = "; ".join(f"{k} {old.get(k)!r}, now {new.get(k)!r}" for k in differ)
            raise UsageError(f"{directory} holds another run ({what}); choose another directory")
    try:
        text = json.dumps({"v": SCHEMA_VERSION, **new}, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as e:
        raise UsageError(f"the content of {target} cannot be written as JSON: {e}") from e
    temporary = directory / f".{RUN_FILE}.{os.getpid()}-{threading.get_ident()}"
    with name_file_in_errors(temporary), temporary.open("wb", buffering=0) as file:
        _write_all(file.fileno(), text.encode())
    temporary.replace(target)


def read_run_metadata(directory: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` in a run directory.

    Raises DataError if the file is missing or broken.
    """
    path = directory / RUN_FILE
    with reading(directory):
        directory.stat()
        if not path.exists():
            raise DataError(f"{directory} is no run: it has no {RUN_FILE}{runs_in(directory)}")
    with _open_file(path) as file:
        metadata = parse_json(file.read(), path)
    if not isinstance(metadata, dict):
        raise DataError(f"{path}: an object is expected, not {type(metadata).__name__}")
    try:
        return without_version(metadata)
    except DataError as e:
        raise DataError(f"{path}: {e}") from e


def runs_in(directory: Path) -> str:
    """Return the last runs in a directory as the end of a message."""
    found = sorted(file.parent.name for file in directory.glob(f"*/{RUN_FILE}"))
    return f"; the last runs in it are {', '.join(found[-3:])}" if found else ""


def without_version(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a decoded record without the key ``v``.

    Raises DataError for a schema version that this release does not read.
    """
    rest = dict(values)
    version = rest.pop("v", None)
    if "v" not in values:
        raise DataError("no 'v', the schema version: this is no episode or run of this package")
    if type(version) is not int or version not in (SCHEMA_VERSION, SHORT_PROMPTS_VERSION):
        raise DataError(
            f"schema version {version!r}, but this release reads only {SCHEMA_VERSION} and "
            f"{SHORT_PROMPTS_VERSION}: use the release that wrote the record"
        )
    return rest


def trajectory_to_row(trajectory: Trajectory) -> dict[str, Any]:
    """Return an episode as JSON types, with the schema version in front."""
    steps, version = [], SCHEMA_VERSION
    short = shorten_prompts(step.messages for step in trajectory.steps)
    for step, messages in zip(trajectory.steps, short, strict=True):
        if messages is not step.messages:
            step, version = replace(step, messages=tuple(messages)), SHORT_PROMPTS_VERSION
        steps.append(step_to_row(step))
    row = {"v": version, **to_jsonable(trajectory.replace(steps=())), "steps": steps}
    if not trajectory.restarts:
        del row["restarts"]
    return row


def trajectory_from_row(row: object) -> Trajectory:
    """Return the Trajectory of one decoded line.

    Raises DataError for any other value.
    """
    if not isinstance(row, dict):
        raise DataError(f"an object is expected, not {type(row).__name__}")
    rest = without_version(row)
    if isinstance(rest.get("steps"), list):
        rest["steps"] = [_step_values(n, step) for n, step in enumerate(rest["steps"])]
        with_messages = [s for s in rest["steps"] if _has_messages(s)]
        whole = complete_prompts(step["messages"] for step in with_messages)
        for step, messages in zip(with_messages, whole, strict=True):
            step["messages"] = messages
    trajectory: Trajectory = decode_as(Trajectory, rest)
    _check_restarts(trajectory.restarts, trajectory.turns)
    return trajectory


def _has_messages(step: object) -> bool:
    return isinstance(step, dict) and isinstance(step.get("messages"), list)


def step_to_row(step: Step) -> dict[str, Any]:
    """Return a step as JSON types, with the value and the parts of its score side by side."""
    row = {k: to_jsonable(getattr(step, k)) for k in RECORDED_FIELDS if k != "score"}
    return row | {"score": step.score_value, "parts": to_jsonable(step.parts)}


@dataclass(frozen=True, slots=True)
class _ScoreRow:
    """What a recorded step has of its score, which records made before call ``reward``."""

    score: float | None = None
    reward: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)


def _step_values(number: int, row: object) -> object:
    """Return what is decoded as a step. The parts of a turn without a score are left out."""
    if not isinstance(row, dict):
        return row
    values = dict(row)
    given = {k: values.pop(k) for k in ("score", "reward", "parts") if k in values}
    if "score" in given and "reward" in given:
        raise DataError(f"'steps[{number}]' has both 'score' and 'reward', its former name")
    found: _ScoreRow = decode_as(
        _ScoreRow, given, error=lambda message: DataError(f"'steps[{number}].{message[1:]}")
    )
    value = found.score if found.reward is None else found.reward
    return values if value is None else values | {"score": Score(value, found.parts)}


def _check_restarts(restarts: Sequence[int], steps: int) -> None:
    """Raise DataError unless these are growing numbers of steps."""
    if not all(before < n <= steps for before, n in pairwise((0, *restarts))):
        raise DataError(
            f"'restarts' has to list growing numbers from 1 to {steps}, the number of steps, "
            f"not {list(restarts)!r:.80}"
        )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise DataError in place of an OSError, such as one for a missing permission."""
    try:
        yield
    except OSError as e:
        raise DataError(f"cannot read {e.filename or path}: {e.strerror}") from e


@contextlib.contextmanager
def _open_file(path: Path) -> Iterator[Any]:
    try:
        file = path.open("rb")
    except OSError as e:
        raise DataError(f"cannot read {path}: {e.strerror}") from e
    with file:
        yield file


def _repair_last_line(descriptor: int) -> None:
    """Make the file end with a complete line.

    Cuts off an incomplete last line, and adds the newline that a complete one lacks.
    """
    size = os.fstat(descriptor).st_size
    tail = b""
    while size > len(tail) and b"\n" not in tail:
        start = max(0, size - len(tail) - 65536)
        os.lseek(descriptor, start, os.SEEK_SET)
        tail = os.read(descriptor, size - len(tail) - start) + tail
    last = tail.rpartition(b"\n")[2]
    if not last:
        return
    if _is_json(last):  # which the beginning of an object never is
        _write_all(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, size - len(last))


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)
