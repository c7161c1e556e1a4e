"""Reads logs of episodes in every supported format as Trajectory objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intercode.core.decoding import parse_json
from intercode.core.errors import DataError, UsageError
from intercode.core.logs.formats import Stability, format_of
from intercode.core.logs.steps import lacks_code
from intercode.core.trajectories import (
    README_FILE,
    RUN_FILE,
    TRAJECTORIES_FILE,
    read_run_metadata,
    read_trajectories,
    reading,
    runs_in,
)
from intercode.core.types import Trajectory

__all__ = ["find_logs", "ignored_files", "lacks_code", "load_log", "load_stability"]


def load_log(path: Path) -> list[Trajectory]:
    """Return every episode of one log.

    ``path``: a run directory, a ``.jsonl`` file of trajectories, or a document in one of
    LOG_FORMATS. ``Trajectory.run`` includes the content of ``run.json``. Raises DataError with the
    file, and with the line if there is one, for an invalid log.
    """
    with reading(path):
        return _load(path)


def _load(path: Path) -> list[Trajectory]:
    if path.is_dir():
        return _load_run_directory(path)
    if _is_run_file(path):
        return _load_run_directory(path.parent)
    if path.suffix == ".jsonl":
        source = {"source": "run", "file": path.name}
        return [t.replace(run={**source, **t.run}) for t in read_trajectories(path)]
    document = _read_json(path)
    if log_format := format_of(document):
        return log_format.parse(document, path)
    raise DataError(f"{path}: holds a {type(document).__name__}, not episodes")


def load_stability(path: Path) -> Stability:
    """Return what a log says about the stability of its steps, in the order of ``load_log``. Empty
    if it says nothing."""
    if path.suffix == ".jsonl" or path.is_dir() or _is_run_file(path):
        return []
    document = _read_json(path)
    log_format = format_of(document)
    tells = log_format is not None and log_format.stability
    return tells(document, path) if tells else []


def find_logs(paths: Sequence[Path]) -> list[Path]:
    """Return the logs at these paths, each once, in order.

    A run directory is a log. Any other directory stands for the run directories and the ``.json``
    and ``.jsonl`` files below it, without the ``ignored_files``. The README.txt that ``runs/*``
    contains is skipped. Raises UsageError for a path that does not exist, cannot be read, or has no
    logs.
    """
    logs_by_path: dict[Path, Path] = {}
    for given in paths:
        if given.name == README_FILE and len(paths) > 1:
            continue
        with reading(given):
            if not given.exists():
                raise UsageError(f"no such file or directory: {given}")
            path = given.parent if _is_run_file(given) else given
            logs = _logs_under(path) if path.is_dir() else [path]
        if not logs:
            raise UsageError(f"no logs below {path}: .json, .jsonl or a run directory are expected")
        for log in logs:
            logs_by_path.setdefault(log.resolve(), log)
    return list(logs_by_path.values())


def ignored_files(paths: Sequence[Path]) -> list[Path]:
    """Return the ``.jsonl`` files below these directories whose first line is no episode, such as
    exports."""
    found = [file for path in paths if path.is_dir() for file in _files_under(path)]
    return list(filter(_is_ignored, found))


def _is_ignored(path: Path) -> bool:
    """Return whether the first line of a ``.jsonl`` is JSON, but no record of this package."""
    if path.is_dir() or path.suffix != ".jsonl":
        return False
    with path.open("rb") as file:
        first = file.readline()
    try:
        row = parse_json(first, path)
    except DataError:
        return False  # a record that is broken, which reading it will say
    return not (isinstance(row, dict) and "v" in row)


def _logs_under(directory: Path) -> list[Path]:
    return [log for log in _files_under(directory) if not _is_ignored(log)]


def _files_under(directory: Path) -> list[Path]:
    """Return the run directories, and the ``.json`` and ``.jsonl`` files beside them."""
    if _is_run_directory(directory):
        return [directory]
    out: list[Path] = []
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            out += _files_under(entry)
        elif entry.suffix in (".json", ".jsonl"):
            out.append(entry)
    return out


def _is_run_directory(directory: Path) -> bool:
    return (directory / TRAJECTORIES_FILE).exists() or (directory / RUN_FILE).exists()


def _is_run_file(path: Path) -> bool:
    """Return whether a file is ``run.json`` or the trajectories of a run directory."""
    return path.name in (RUN_FILE, TRAJECTORIES_FILE) and (path.parent / RUN_FILE).is_file()


def _load_run_directory(directory: Path) -> list[Trajectory]:
    if not _is_run_directory(directory):
        raise DataError(
            f"{directory} is not a run directory: it has no {TRAJECTORIES_FILE}{runs_in(directory)}"
        )
    metadata = read_run_metadata(directory) if (directory / RUN_FILE).exists() else {}
    source = {"source": "run", "file": directory.resolve().name}
    log = directory / TRAJECTORIES_FILE
    episodes = read_trajectories(log) if log.exists() else ()
    return [t.replace(run={**source, **metadata, **t.run}) for t in episodes]


def _read_json(path: Path) -> Any:
    with reading(path):
        return parse_json(path.read_bytes(), path)
