"""Saves episodes in progress to files, so that they go on after a crash of the process."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, EnvironmentStateError, UsageError
from intercode.core.trajectories import identity_differences, trajectory_from_row, trajectory_to_row
from intercode.core.types import Trajectory, Usage, to_jsonable
from intercode.models.base import Completion

_EPISODE, _SNAPSHOT, _FILES = "episode.json", "snapshot.json", "files"
_MOST_BYTES = 2 << 30
"""How large the content of a file may be, which is read into memory."""


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
        omitted = json.loads(self.environment[_SNAPSHOT])["omitted"]
        return {"turn": len(self.record.steps), "omitted": omitted}


class EpisodeSaver:
    """Saves one episode in the file ``path`` every ``every`` turns (None: never).

    ``identity``: what tells the episode from others, as JSON types. ``saved`` is what the file
    holds, from which the episode goes on. ``answers`` are those of its model so far. ``on_save`` is
    called when the episode has been saved, and ``on_failure`` with the reason why it could not be.
    Raises DataError for a file that cannot be read or is of another episode.
    """

    def __init__(self, path: Path, every: int | None, identity: Mapping[str, Any]) -> None:
        self.path, self._every, self._identity = path, every, identity
        self.saved = _read(path, identity) if path.exists() else None
        self.answers: Sequence[Completion] = ()
        self.on_save: Callable[[], None] = lambda: None
        self.on_failure: Callable[[str], None] = lambda _: None

    @property
    def way_out(self) -> str:
        """What to do if the episode cannot go on."""
        return _way_out(self.path)

    def is_due(self, turns: int) -> bool:
        """Return whether to save the episode after so many turns."""
        return self._every is not None and turns % self._every == 0

    def save(self, env: Any, record: Trajectory) -> None:
        """Save the episode in place of what was saved before, unless its environment is in a state
        that no snapshot holds."""
        try:
            saved = SavedEpisode(record, tuple(self.answers), env.snapshots.pack())
            _write(self.path, saved, self._identity)
        except EnvironmentStateError:
            return
        except (OSError, UsageError) as e:
            self.on_failure(f"{self.path} cannot be written, and the episode goes on unsaved: {e}")
            return
        self.on_save()

    def restore(self, env: Any) -> None:
        """Put an environment into the state that was saved. Raises DataError if it is damaged."""
        assert self.saved is not None
        try:
            env.snapshots.unpack(dict(self.saved.environment))
        except ValueError as e:
            raise DataError(f"{self.path} cannot be restored ({e}): {self.way_out}") from e

    def discard(self) -> None:
        """Remove what was saved: the episode begins anew."""
        self.saved = None
        remove_saved(self.path)


def _way_out(path: Path) -> str:
    return f"remove {path} to play the episode from its beginning"


def _write(path: Path, episode: SavedEpisode, identity: Mapping[str, Any]) -> None:
    row = {
        "identity": identity,
        "record": trajectory_to_row(episode.record),
        "answers": to_jsonable(episode.answers),
    }
    parts = {_EPISODE: json.dumps(row).encode(), **episode.environment}
    if (size := sum(map(len, parts.values()))) > _MOST_BYTES:
        raise DataError(f"it has {size} bytes, and {_MOST_BYTES} are the most")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    try:
        with temporary.open("wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in parts.items():
                    archive.writestr(name, data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def _read(path: Path, identity: Mapping[str, Any]) -> SavedEpisode:
    try:
        row, episode = _read_parts(path)
        saved = row["identity"]
        different = identity_differences(saved, identity, tuple({**saved, **identity}))
    except Exception as e:  # whatever a damaged file causes
        raise DataError(f"{path} holds no saved episode ({e!r}): {_way_out(path)}") from e
    for key in different:
        raise DataError(
            f"{path} is of another episode: its {key} is {saved.get(key)!r:.200}, not "
            f"{identity.get(key)!r:.200}: {_way_out(path)}"
        )
    return episode


def _read_parts(path: Path) -> tuple[Mapping[str, Any], SavedEpisode]:
    if not path.is_file():
        raise DataError("it is no file")
    with zipfile.ZipFile(path) as archive:
        members = [archive.getinfo(name) for name in (_EPISODE, _SNAPSHOT, _FILES)]
        if (size := sum(member.file_size for member in members)) > _MOST_BYTES:
            raise DataError(f"it has {size} bytes, and {_MOST_BYTES} are the most")
        parts = {member.filename: archive.read(member) for member in members}
    row = json.loads(parts.pop(_EPISODE))
    answers = tuple(map(_completion, row["answers"]))
    episode = SavedEpisode(trajectory_from_row(row["record"]), answers, parts)
    if not isinstance(episode.mark["omitted"], list):
        raise DataError("the omitted parts of its snapshot are no list")
    return row, episode


def _completion(row: Mapping[str, Any]) -> Completion:
    usage = {name: Usage(**row[name]) for name in ("usage", "original_usage")}
    return Completion(**{**row, **usage, "calls": tuple(row["calls"])})


def remove_saved(path: Path) -> None:
    """Remove the file of an episode, if it can be removed."""
    for file in (path, path.with_suffix(".new")):
        with suppress(OSError):
            file.unlink()
