"""Saves episodes in progress to files, so that they go on after a crash of the process."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, EnvironmentStateError
from intercode.core.trajectories import trajectory_from_row, trajectory_to_row
from intercode.core.types import Trajectory, Usage, to_jsonable
from intercode.models.base import Completion

_EPISODE = "episode.json"


@dataclass(frozen=True)
class SavedEpisode:
    """An episode in progress.

    ``record``: that of its turns so far. ``answers``: those of its model. ``environment``: what
    ``Snapshots.pack`` returned after the last turn.
    """

    record: Trajectory
    answers: tuple[Completion, ...]
    environment: Mapping[str, bytes]

    @property
    def mark(self) -> dict[str, Any]:
        """What the record of an episode that goes on from here says of it: after how many turns,
        and what the snapshot did not hold, such as processes in the background."""
        omitted = json.loads(self.environment["snapshot.json"])["omitted"]
        return {"turn": len(self.record.steps), "omitted": omitted}


class EpisodeSaver:
    """Saves one episode in the file ``path`` every ``every`` turns (None: never).

    ``saved`` is what the file holds; the episode goes on from there. ``answers`` are those of its
    model so far, and ``on_save`` is called when the episode has been saved
    or restored. Raises DataError for a file that cannot
    be read.
    """

    def __init__(self, path: Path, every: int | None) -> None:
        self._path, self._every = path, every
        self.saved = _read(path) if path.exists() else None
        self.answers: Sequence[Completion] = ()
        self.on_save: Callable[[], None] = lambda: None

    def is_due(self, turns: int) -> bool:
        """Return whether to save the episode after so many turns."""
        return self._every is not None and turns % self._every == 0

    def save(self, env: Any, record: Trajectory) -> None:
        """Save the episode in place of what was saved before, unless its environment is in a state
        that no snapshot holds."""
        try:
            environment = env.snapshots.pack()
        except EnvironmentStateError:
            return
        _write(self._path, SavedEpisode(record, tuple(self.answers), environment))
        self.on_save()

    def restore(self, env: Any) -> None:
        """Put an environment into the state that was saved."""
        assert self.saved is not None
        env.snapshots.unpack(dict(self.saved.environment))
        self.on_save()


def _write(path: Path, episode: SavedEpisode) -> None:
    row = {"record": trajectory_to_row(episode.record), "answers": to_jsonable(episode.answers)}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_EPISODE, json.dumps(row))
            for name, data in episode.environment.items():
                archive.writestr(name, data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _read(path: Path) -> SavedEpisode:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        row = json.loads(parts.pop(_EPISODE))
        answers = tuple(map(_completion, row["answers"]))
        return SavedEpisode(trajectory_from_row(row["record"]), answers, parts)
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, DataError) as e:
        raise DataError(
            f"{path} holds no saved episode ({e}): remove it to play the episode from its beginning"
        ) from e


def _completion(row: Mapping[str, Any]) -> Completion:
    usage = {name: Usage(**row[name]) for name in ("usage", "original_usage")}
    return Completion(**{**row, **usage, "calls": tuple(row["calls"])})


def remove_saved(path: Path) -> None:
    """Remove the file of an episode."""
    for file in (path, path.with_suffix(".new")):
        file.unlink(missing_ok=True)
