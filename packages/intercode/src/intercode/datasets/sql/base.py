"""Helpers of SQL datasets in the InterCode authors' layout: files, rows, subsets and schemas.

The subset of such a dataset is one or more words joined by ``+``, such as ``hard+schema``. A word
selects tasks (a hardness, a database, ``verified``) or adds to the prompt (``schema``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from intercode.core.errors import DataError, UsageError
from intercode.core.types import DatabaseSpec, Dataset, Payload, Task
from intercode.datasets import files, verified
from intercode.datasets.data_files import find_data_file
from intercode_sandbox.registry import unknown_name_error

SCHEMA = "schema"
"""The subset word with which the prompt lists all tables and columns (the paper's `handicap`)."""

Tables = Mapping[str, Sequence[str]]
"""Tables with their columns, in the order of the database."""
SubsetFilter = Callable[[Task], Task | None]
"""Applies a word of a subset to a task: returns the task to use, or None to leave it out."""

_DATABASE = re.compile(r"^\s*(?:CREATE\s+DATABASE|USE)\b[^`;]*`([^`]+)`", re.IGNORECASE)
_TABLE = re.compile(r"^\s*CREATE TABLE(?: IF NOT EXISTS)? `([^`]+)`", re.IGNORECASE)
_COLUMN = re.compile(r"^\s*`([^`]+)` ")


@dataclass(frozen=True, slots=True)
class DatabaseFiles:
    """The files of a dataset: its rows, and the dump of its databases."""

    rows: Path
    dump: Path


def find_files(name: str, rows: str, dump: str) -> DatabaseFiles:
    """Return the files ``rows`` and ``dump`` of a dataset, from ``INTERCODE_DATA`` or the fetched
    data.

    They are in ``data/sql/NAME`` of the authors' repository, or in ``sql/NAME`` of a data
    directory. Raises UsageError that says how to get the data.
    """
    paths = DatabaseFiles(path := find_data_file(name, f"sql/{name}/{rows}"), path.with_name(dump))
    if not paths.dump.is_file():
        raise UsageError(
            f"no {name} data ({paths.dump} is not there): run `intercode list --fetch {name}`, or "
            "set INTERCODE_DATA to a checkout of the authors' repository"
        )
    return paths


def read_tasks(
    name: str, paths: DatabaseFiles, hardness: str | None, known: Mapping[str, Tables]
) -> list[Task]:
    """Return the tasks in a file of rows with ``db``, ``query`` and ``gold``, in its order.

    ``hardness`` is the key of a row that holds the task's hardness. ``known`` has the schema of
    each database in the dump. ``Task.data["schema"]`` becomes the schema of the task's database.
    Raises DataError that names the faulty row.
    """
    out = []
    for n, row in enumerate(files.read_json_rows(paths.rows)):
        task = files.to_task(row, f"{name}/{n}", paths.rows, f"row {n}")
        database = str(task.data.get("db"))
        if database not in known:
            raise DataError(
                f"{paths.rows}, row {n}: {database!r} is not a database in {paths.dump}"
            )
        rest = {k: v for k, v in task.data.items() if k not in ("db", "db_tables", hardness)}
        out.append(
            replace(
                task,
                database=DatabaseSpec("mysql-dump", paths.dump, database),
                group=database,
                hardness=str(row[hardness]) if hardness in row else None,
                data={**rest, "schema": known[database]},
            )
        )
    return out


@lru_cache(maxsize=8)
def _parse_dump(path: Path, _mtime: int) -> dict[str, dict[str, list[str]]]:
    out: dict[str, dict[str, list[str]]] = {}
    database: dict[str, list[str]] = {}
    table: list[str] | None = None
    with path.open(encoding="utf-8") as f:
        for line in f:
            if match := _TABLE.match(line):
                table = database.setdefault(match[1], [])
            elif table is not None and (match := _COLUMN.match(line)):
                table.append(match[1])
            elif table is not None and line.lstrip().startswith(")"):
                table = None
            elif table is None and (match := _DATABASE.match(line)):
                database = out.setdefault(match[1], {})
    return out


def dump_schemas(dump: Path) -> Mapping[str, Tables]:
    """Return every database of a MySQL dump with its tables and columns, in the dump's order.

    Raises DataError for a file that cannot be read or creates no database.
    """
    try:
        schemas = _parse_dump(dump, dump.stat().st_mtime_ns)
    except OSError as e:
        raise DataError(f"cannot read {dump}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise DataError(f"{dump} is not UTF-8 text (byte {e.start})") from e
    if not schemas:
        raise DataError(f"{dump} creates no database: it has no line with CREATE DATABASE `name`")
    return schemas


def schema_text(tables: Tables) -> str:
    """Return the description of a database's tables for the prompt."""
    lines = [f"- {name}: {', '.join(columns)}" for name, columns in tables.items()]
    return "\n".join(["The database has these tables, each with its columns:", *lines])


def schema_of(task: Task) -> Tables:
    """Return the tables of a task's database with their columns; nothing if it does not say."""
    schema: Tables = task.data.get("schema", {})
    return schema


def with_note(task: Task, text: str) -> Task:
    """Return the task with ``text`` added to its notes, which are part of the prompt."""
    notes = f"{Payload.of(task).notes}\n{text}".strip()
    return replace(task, data={**task.data, "notes": notes})


def with_schema(task: Task) -> Task:
    """Return the task with the schema in its notes."""
    return with_note(task, schema_text(schema_of(task)))


def _with_golds(task: Task, judged: Task) -> Task:
    """Return the task with the golds of the verified list, and their reasons."""
    return replace(task, gold=judged.gold, also=judged.also, data={**judged.data, **task.data})


def select_subset(
    name: str, tasks: list[Task], subset: str | None, **words: SubsetFilter
) -> Dataset:
    """Return the dataset of the tasks that ``subset`` selects.

    ``words`` are the filters of words that only this dataset has. Raises UnknownNameError for an
    unknown word, UsageError for a subset without tasks.
    """
    chosen = tasks
    groups = dict.fromkeys(str(t.group) for t in tasks)
    grades = dict.fromkeys(t.hardness for t in tasks if t.hardness)
    known = {SCHEMA: with_schema, **words}
    for word in subset.split("+") if subset else ():
        if word in known:
            chosen = [new for task in chosen if (new := known[word](task)) is not None]
        elif word in grades:
            chosen = [task for task in chosen if task.hardness == word]
        elif word in groups:
            chosen = [task for task in chosen if task.group == word]
        elif word == "verified" and verified.has_verified_list(name):
            sound = {t.id: t for t in verified.verified_tasks(name, tasks)}
            chosen = [_with_golds(t, sound[t.id]) for t in chosen if t.id in sound]
        else:
            lists = ["verified"] if verified.has_verified_list(name) else []
            raise unknown_name_error(f"subset of {name}", word, [*grades, *lists, *known, *groups])
    if not chosen:
        raise UsageError(f"{name}:{subset} holds no task")
    label = f"{name}:{subset}" if subset else name
    return Dataset(label, "sql", tuple(chosen))
