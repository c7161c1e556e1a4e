"""Merges parts of a run, which several machines have played with the same settings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from intercode.core import trajectories
from intercode.core.errors import UsageError
from intercode.core.types import Trajectory, Usage, to_jsonable
from intercode.evaluation.evaluate.history import RunHistory
from intercode.evaluation.evaluate.run_directory import (
    create_run_directory,
    differing_settings,
    differing_values,
    read_run_metadata,
)
from intercode.evaluation.evaluate.run_state import EpisodeKey, episode_key
from intercode_sandbox.platforms.files import lock_file
from intercode_sandbox.registry import unknown_name_error

Duplicates = Literal["refuse", "first", "epochs"]
"""What to do with different results for one task and epoch: raise UsageError, take the result of
the directory that is named first, or add the others as further epochs of the task."""

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a merge.

    ``identical`` counts the episodes that were in several directories, ``errors_replaced`` those
    with an error in one and a result in another, and ``conflicts_resolved`` the different results
    for one task and epoch, which ``duplicates`` decided.
    """

    out: Path
    episodes: int
    identical: int
    errors_replaced: int
    conflicts_resolved: int


def merge(directories: Sequence[Path], out: Path, duplicates: Duplicates = "refuse") -> MergeResult:
    """Write the run whose parts are in ``directories`` to ``out``. The parts are not changed.

    The merged run can be resumed, extended and reported like any other. It includes the branches of
    its episodes. An incomplete last line of a part is skipped.

    Raises UsageError for parts with different settings, for different results for one task and
    epoch, for a part that a process works on, and for an ``out`` that contains a run already.
    Raises DataError for a file that cannot be read.
    """
    if duplicates not in get_args(Duplicates):
        raise unknown_name_error("way with duplicates", duplicates, list(get_args(Duplicates)))
    if (out / trajectories.TRAJECTORIES_FILE).exists():
        raise UsageError(f"{out} contains a run already: name another directory")
    with ExitStack() as locks:
        for directory in directories:
            locks.enter_context(_shared_lock(directory))
        metadata = _common_metadata(directories)
        merged = _EpisodeMerge(duplicates)
        for directory in directories:
            merged.add_run(directory)
        histories = [RunHistory(directory) for directory in directories]
        spent = sum((history.earlier_usage for history in histories), Usage())
        lost = sum((history.earlier_lost for history in histories), Usage())
    episodes = list(merged.episodes.values())
    out.mkdir(parents=True, exist_ok=True)
    temporary = out / f".{trajectories.TRAJECTORIES_FILE}.{os.getpid()}"
    try:
        _write(temporary, [*episodes, *merged.branches()])
        create_run_directory(out, {**metadata, "merged_from": [d.name for d in directories]})
        temporary.replace(out / trajectories.TRAJECTORIES_FILE)
    finally:
        temporary.unlink(missing_ok=True)
    history = RunHistory(out)
    history.begin(version=metadata.get("version"), parts=len(directories))
    history.end("merged", spent, lost)
    return MergeResult(
        out, len(episodes), merged.identical, merged.errors_replaced, merged.conflicts_resolved
    )


class _EpisodeMerge:
    """Chooses one episode for each task and epoch."""

    def __init__(self, duplicates: Duplicates) -> None:
        self._duplicates = duplicates
        self._sources: dict[EpisodeKey, Path] = {}
        self._branches: dict[str, Trajectory] = {}
        self.episodes: dict[EpisodeKey, Trajectory] = {}
        self.identical = self.errors_replaced = self.conflicts_resolved = 0

    def add_run(self, directory: Path) -> None:
        """Add the episodes of one part. Raises UsageError for results that differ from others."""
        file = directory / trajectories.TRAJECTORIES_FILE
        clashes: list[EpisodeKey] = []
        for episode in trajectories.read_trajectories(file) if file.exists() else ():
            if episode.parent is not None:
                self._branches.setdefault(episode.id or repr(to_jsonable(episode)), episode)
            elif self._add(episode, directory) is None:
                clashes.append(episode_key(episode))
        if clashes:
            self._raise_conflict(clashes, directory)

    def branches(self) -> list[Trajectory]:
        """Return the branches of all parts, each once."""
        return list(self._branches.values())

    def _add(self, new: Trajectory, directory: Path) -> bool | None:
        """Add an episode or keep one with the same key. Returns None if neither may be chosen."""
        key = episode_key(new)
        old = self.episodes.get(key)
        if old is None:
            self._set(key, new, directory)
            return True
        if to_jsonable(old.replace(run={})) == to_jsonable(new.replace(run={})):
            self.identical += 1
            return False
        if not trajectories.has_result(old):
            self._set(key, new, directory)
            self.errors_replaced += trajectories.has_result(new)
            return True
        if not trajectories.has_result(new):
            self.errors_replaced += 1
            return False
        if self._sources[key] == directory:  # both are in one directory: the later one counts
            self._set(key, new, directory)
            return True
        if self._duplicates == "refuse":
            return None
        self.conflicts_resolved += 1
        if self._duplicates == "epochs":
            while key in self.episodes:
                key = key._replace(epoch=key.epoch + 1)
            self._set(key, new.replace(epoch=key.epoch), directory)
        return True

    def _set(self, key: EpisodeKey, episode: Trajectory, directory: Path) -> None:
        self.episodes[key], self._sources[key] = episode, directory

    def _raise_conflict(self, clashes: Sequence[EpisodeKey], directory: Path) -> None:
        listed = ", ".join(f"{k.task} (epoch {k.epoch})" for k in clashes[:_MAX_NAMED])
        more = f" and {len(clashes) - _MAX_NAMED} more" if len(clashes) > _MAX_NAMED else ""
        other = self._sources[clashes[0]]
        raise UsageError(
            f"{directory} and {other} contain different results for {listed}{more}: --duplicates "
            "first takes those of the directory named first, --duplicates epochs makes the later "
            "ones further epochs"
        )


def _common_metadata(directories: Sequence[Path]) -> dict[str, Any]:
    """Return the metadata of the parts. Raises UsageError for settings that differ."""
    if not directories:
        raise UsageError("no directories to merge: name those of runs")
    metadata_of_parts: list[Mapping[str, Any]] = []
    for directory in directories:
        metadata = read_run_metadata(directory) if directory.is_dir() else None
        if metadata is None:
            raise UsageError(f"{directory} is not the directory of a run: it has no run.json")
        metadata_of_parts.append(metadata)
    first = metadata_of_parts[0]
    for directory, metadata in zip(directories[1:], metadata_of_parts[1:], strict=True):
        differ = differing_settings(first, metadata)
        if differ:
            what = "; ".join(
                f"{k} {' and '.join(differing_values(first.get(k), metadata.get(k)))}"
                for k in differ
            )
            raise UsageError(
                f"{directories[0]} and {directory} differ in {what}: they are not parts of one "
                f"run. Compare them with `intercode report {directories[0]} {directory}`"
            )
    started = [str(metadata.get("started", "")) for metadata in metadata_of_parts]
    common = dict(metadata_of_parts[started.index(min(started))])
    configs = [dict(metadata.get("config") or {}) for metadata in metadata_of_parts]
    if all(configs):
        common["config"] = {**configs[0], **_combined_extent(configs)}
    return common


def _combined_extent(configs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tasks and epochs of all parts together."""
    all_select = all(config.get("tasks") for config in configs)
    tasks = (
        dict.fromkeys(str(t) for config in configs for t in config["tasks"]) if all_select else {}
    )
    limits = [config.get("limit") for config in configs]
    return {
        "tasks": list(tasks),
        "limit": None if all_select or None in limits else max(filter(None, limits)),
        "epochs": max(config.get("epochs", 1) for config in configs),
    }


def _write(path: Path, episodes: Iterable[Trajectory]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for episode in episodes:
            row = trajectories.trajectory_to_row(episode)
            file.write(json.dumps(row, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _shared_lock(directory: Path) -> Iterator[None]:
    """Lock a run so that no process can work on it. Raises UsageError if one does."""
    lock = directory / ".lock"
    if not lock.exists():
        yield
        return
    with lock.open("rb") as file:
        try:
            lock_file(file, shared=True, wait=False)
        except BlockingIOError as e:
            raise UsageError(f"a process is working in {directory}: wait until it ends") from e
        yield
