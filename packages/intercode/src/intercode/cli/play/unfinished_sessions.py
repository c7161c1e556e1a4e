"""Sessions of ``intercode play`` that ended before their last task, saved to be resumed."""

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
from intercode.core.config import recorded_settings
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Trajectory, to_jsonable
from intercode.evaluation.evaluate.run_metadata import remove_secrets
from intercode_sandbox.platforms.paths import state_root


@dataclass(frozen=True)
class UnfinishedSession:
    """An unfinished session.

    ``settings`` are those of its run. ``tasks`` are the positions of the tasks that remain; the
    first is the task that was being played. ``episode`` records the turns of that task, or is None
    if it had none.
    """

    settings: Mapping[str, Any]
    tasks: tuple[int, ...]
    episode: Trajectory | None = None


def save(session: UnfinishedSession) -> None:
    """Save a session without its secrets. Replaces what was saved for the same run before."""
    row = {
        "settings": remove_secrets(to_jsonable(session.settings)),
        "tasks": list(session.tasks),
        "episode": session.episode and trajectories.trajectory_to_row(session.episode),
    }
    path = _path(Path(session.settings["out"]))
    temporary = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(row, file)
    temporary.replace(path)


def delete(out: Path) -> None:
    """Delete the saved session of the run in ``out``, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        _path(out).unlink()


def load_newest(dataset: str | None) -> UnfinishedSession:
    """Load the session that was saved last, of ``dataset`` if that is not None.

    Raises UsageError if there is none, DataError for a file that cannot be read.
    """
    files = sorted(_folder().glob("*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in files:
        session = _read(path)
        if dataset in (None, session.settings.get("dataset")):
            return session
    of = f" of {dataset}" if dataset else ""
    raise UsageError(f"there is no unfinished session{of}: leave out --resume to begin one")


def _read(path: Path) -> UnfinishedSession:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        episode = row["episode"] and trajectories.trajectory_from_row(row["episode"])
        return UnfinishedSession(recorded_settings(row["settings"]), tuple(row["tasks"]), episode)
    except (ValueError, KeyError, TypeError) as e:
        raise DataError(f"{path} is no unfinished session that can be resumed: remove it") from e


def _folder() -> Path:
    path = state_root() / "unfinished"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def _path(out: Path) -> Path:
    name = hashlib.sha256(str(out.absolute()).encode()).hexdigest()[:16]
    return _folder() / f"{name}.json"
