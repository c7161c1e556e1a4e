"""Sessions that were left before their last task was done, so that they can be gone on with."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core import trajectories
from intercode.core.errors import DataError, UsageError
from intercode.core.paths import state_root
from intercode.core.types import Trajectory, to_jsonable
from intercode.evaluation.evaluate.run_metadata import remove_secrets


@dataclass(frozen=True)
class UnfinishedSession:
    """A session as it was left.

    ``values`` are its settings, ``tasks`` the positions still to be played, the one it was left in
    first, and ``episode`` what was done in that one, None for nothing.
    """

    settings: Mapping[str, Any]
    tasks: tuple[int, ...]
    episode: Trajectory | None = None


def save(draft: UnfinishedSession) -> None:
    """Write where a session stands; no secret is kept. What was known of it before is replaced."""
    row = to_jsonable(draft)
    row["values"] = remove_secrets(row["values"])
    if row["episode"] is not None:
        row["episode"]["v"] = trajectories.SCHEMA_VERSION
    path = _path(Path(draft.settings["out"]))
    passing = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(row, file)
    passing.replace(path)


def delete(out: Path) -> None:
    """The session of a run is through."""
    with contextlib.suppress(FileNotFoundError):
        _path(out).unlink()


def load_newest(dataset: str | None = None) -> UnfinishedSession:
    """The session that was left last, of one dataset if it is named. Raises UsageError where there
    is none, DataError for a file that cannot be read."""
    files = sorted(_folder().glob("*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in files:
        draft = _read(path)
        if dataset in (None, draft.settings.get("dataset")):
            return draft
    of = f" of {dataset}" if dataset else ""
    raise UsageError(f"no session{of} was left unfinished: leave out --resume to begin one")


def _read(path: Path) -> UnfinishedSession:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        episode = row["episode"] and trajectories.trajectory_from_row(row["episode"])
        return UnfinishedSession(row["values"], tuple(row["tasks"]), episode)
    except (ValueError, KeyError, TypeError) as e:
        raise DataError(f"{path} is no session that could be gone on with ({e}): remove it") from e


def _folder() -> Path:
    path = state_root() / "unfinished"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def _path(out: Path) -> Path:
    name = hashlib.sha256(str(out.absolute()).encode()).hexdigest()[:16]
    return _folder() / f"{name}.json"
