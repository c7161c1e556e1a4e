"""Reading recorded episodes, whoever wrote them, as Trajectory objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.core.logs.authors import lacks_code, parse_authors_log
from intercode.core.logs.reference import parse_reference_log, split_reference_episodes
from intercode.core.trajectories import (
    RUN_FILE,
    TRAJECTORIES_FILE,
    read_run_metadata,
    read_trajectories,
)
from intercode.core.types import Trajectory

__all__ = ["find_logs", "lacks_code", "load_log", "load_reference_rows"]


def load_log(path: Path) -> list[Trajectory]:
    """Every episode of one log.

    ``path`` is a run directory or a ``.jsonl`` file of ours, a log of the authors, or a list of
    reference steps. What ``run.json`` says of a run is filled into each Trajectory.run.
    Raises DataError with the file, and the line where there is one, for whatever cannot be read.
    """
    if path.is_dir():
        return _load_run_directory(path)
    if _is_run_file(path):
        return _load_run_directory(path.parent)
    if path.suffix == ".jsonl":
        source = {"source": "run", "file": path.name}
        return [t.replace(run={**source, **t.run}) for t in read_trajectories(path)]
    document = _read_json(path)
    if isinstance(document, list):
        return parse_reference_log(document, path)
    if isinstance(document, dict):
        return parse_authors_log(document, path)
    raise DataError(f"{path}: holds a {type(document).__name__}, not episodes")


def load_reference_rows(path: Path) -> list[list[dict[str, Any]]]:
    """The rows of a reference re-run with all their keys, one list an episode.

    In the order and with the lengths of the steps that ``load`` gives for the same file.
    Raises DataError for a file of another form.
    """
    return split_reference_episodes(_read_json(path), path)


def find_logs(paths: Sequence[Path]) -> list[Path]:
    """The logs that files and directories stand for, each once, in order.

    A directory gives itself if it is a run, else every run directory and every ``.json`` and
    ``.jsonl`` file below it. Raises UsageError for a path that does not exist or holds no log.
    """
    found: dict[Path, Path] = {}
    for given in paths:
        if not given.exists():
            raise UsageError(f"no such file or directory: {given}")
        path = given.parent if _is_run_file(given) else given
        logs = _logs_below(path) if path.is_dir() else [path]
        if not logs:
            raise UsageError(f"no logs below {path}: .json, .jsonl or a run directory are expected")
        for log in logs:
            found.setdefault(log.resolve(), log)
    return list(found.values())


def _logs_below(directory: Path) -> list[Path]:
    if _is_run_directory(directory):
        return [directory]
    out: list[Path] = []
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            out += _logs_below(entry)
        elif entry.suffix in (".json", ".jsonl"):
            out.append(entry)
    return out


def _is_run_directory(directory: Path) -> bool:
    return (directory / TRAJECTORIES_FILE).exists() or (directory / RUN_FILE).exists()


def _is_run_file(path: Path) -> bool:
    """Whether a file is one of the two that a run directory with a ``run.json`` holds."""
    return path.name in (RUN_FILE, TRAJECTORIES_FILE) and (path.parent / RUN_FILE).is_file()


def _load_run_directory(directory: Path) -> list[Trajectory]:
    if not _is_run_directory(directory):
        raise DataError(f"{directory} is no run directory: it has no {TRAJECTORIES_FILE}")
    meta = read_run_metadata(directory) if (directory / RUN_FILE).exists() else {}
    source = {"source": "run", "file": directory.resolve().name}
    log = directory / TRAJECTORIES_FILE
    episodes = read_trajectories(log) if log.exists() else ()
    return [t.replace(run={**source, **meta, **t.run}) for t in episodes]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except json.JSONDecodeError as e:
        raise DataError(f"{path}, line {e.lineno}: broken JSON ({e.msg})") from e
    except UnicodeDecodeError as e:
        raise DataError(f"{path}: not UTF-8 text ({e.reason} at byte {e.start})") from e
    except OSError as e:
        raise DataError(f"cannot read {path}: {e.strerror}") from e
