"""Helpers of the converters for Spider, BIRD and WikiSQL: find, read and write files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intercode.core.decoding import decode_as
from intercode.core.errors import DataError, UsageError
from intercode.datasets import files


def read_objects(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the objects in a JSON list. Raises DataError for anything else."""
    rows: tuple[Mapping[str, Any], ...] = decode_as(
        tuple[Mapping[str, Any], ...], files.read_json(path), path
    )
    return rows


def find_release_files(release: Path, wanted: Iterable[str], name: str) -> list[Path]:
    """Return those files of ``wanted`` that exist in the release or in one of its subdirectories.

    All are in the first directory that has one of them. ``name`` is the benchmark's name for
    messages. Raises UsageError if none exists.
    """
    if not release.is_dir():
        raise UsageError(
            f"{release} is not a directory: name the directory of the unpacked {name} release"
        )
    subdirectories = sorted(p for p in release.iterdir() if p.is_dir())
    names = tuple(wanted)
    for root in (release, *subdirectories):
        if existing := [root / n for n in names if (root / n).is_file()]:
            return existing
    raise UsageError(f"{release} is not a release of {name}: none of {', '.join(names)} is there")


def table_schemas(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return the databases in a ``tables.json`` of Spider or BIRD: their tables and columns."""
    out: dict[str, dict[str, list[str]]] = {}
    for row in read_objects(path):
        tables = row.get("table_names_original")
        columns = row.get("column_names_original")
        if not isinstance(tables, list) or not isinstance(columns, list):
            raise DataError(
                f"{path}: {row.get('db_id')!r} lacks table_names_original or column_names_original"
            )
        columns_by_table: dict[str, list[str]] = {table: [] for table in tables}
        for number, column in columns:
            if number >= 0:
                columns_by_table[tables[number]].append(column)
        out[str(row["db_id"])] = columns_by_table
    return out


@dataclass(frozen=True)
class Release:
    """A downloaded release of a benchmark whose databases are SQLite files.

    ``tables``: the tables and columns of each database. ``folders``: the directories that may
    contain ``NAME/NAME.sqlite``. ``out``: the directory for the converted files.
    """

    tables: Mapping[str, dict[str, list[str]]]
    folders: Sequence[Path]
    out: Path

    def database(self, name: str, where: str) -> dict[str, str]:
        """Return the value of ``database`` in a converted row, with a path relative to ``out``.

        A database outside ``out`` is linked or copied to ``out/databases``, because the rows of a
        dataset may only name files of its own directory.
        """
        candidates = [folder / name / f"{name}.sqlite" for folder in self.folders]
        for path in candidates:
            if path.is_file():
                inside = path if path.is_relative_to(self.out) else self._bring(path)
                return {"kind": "sqlite", "path": str(inside.relative_to(self.out)), "name": name}
        paths = " and ".join(map(str, candidates))
        raise DataError(f"{where}: no database {name!r}; expected {paths}")

    def _bring(self, path: Path) -> Path:
        """Return the file ``path`` in ``out/databases``: a hard link, or a copy on other disks."""
        target = self.out / "databases" / path.name
        source = path.resolve()
        if target.exists() and os.path.samestat(target.stat(), source.stat()):
            return target
        _make_output_directory(target.parent, self.out)
        temporary = target.with_name(f".{target.name}.part")
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)
        return temporary.replace(target)

    def write_tasks(self, path: Path, name: str, task: TaskBuilder) -> Path:
        """Convert a file of rows to ``NAME.jsonl`` and return its path.

        ``task`` turns the release, a row, an id and the row's location into a row of the output.
        Raises as ``read_objects``, ``write_task_rows`` and ``task`` do.
        """
        objects = enumerate(read_objects(path))
        rows = [task(self, row, f"{name}/{n}", f"{path}, row {n}") for n, row in objects]
        return write_task_rows(self.out / f"{name}.jsonl", rows)


TaskBuilder = Callable[[Release, Mapping[str, Any], str, str], dict[str, Any]]
"""Converts a row: takes the release, the row, the task's id and the row's location."""


def write_task_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows as JSON lines, atomically. Raises UsageError if ``path.parent`` is a file."""
    _make_output_directory(path.parent, path.parent)
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("w", encoding="utf-8") as f:
        f.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return temporary.replace(path)


def _make_output_directory(directory: Path, out: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as e:
        raise UsageError(f"{out} is a file; name a directory to write to") from e
