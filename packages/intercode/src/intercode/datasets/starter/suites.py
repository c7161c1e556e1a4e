"""Loads the starter suites: small tasks of this package that need no network and no download."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import Dataset, Task, TreeEntry, tree_digest
from intercode.datasets.bash import starter as bash
from intercode.datasets.code import starter as code
from intercode.datasets.ctf import starter as ctf
from intercode.datasets.python import starter as python
from intercode.datasets.sql import starter as sql
from intercode.datasets.starter.file_tree import cached_entries
from intercode_sandbox.registry import unknown_name_error

_REQUIRED = {"id", "query", "gold", "hardness", "tags"}
_OPTIONAL = {"also"}


@dataclass(frozen=True, slots=True)
class _StarterSuite:
    """The starter tasks of one environment.

    ``entries`` returns the files that the tasks share. ``task_fields`` turns the directory in which
    they are, and a row, into the fields of a Task. ``keys`` are keys that a row has in addition to
    the usual ones. ``rows`` yields the rows, each with its location for messages; None reads
    ``tasks.jsonl``. ``programs`` are those that the image must have in addition to the usual small
    tools.
    """

    entries: Callable[[], Sequence[TreeEntry]]
    task_fields: Callable[[Path, dict[str, Any]], dict[str, Any]]
    keys: frozenset[str] = frozenset()
    rows: Callable[[], Iterator[tuple[str, dict[str, Any]]]] | None = None
    programs: tuple[str, ...] = ()


_DATA = frozenset({"data"})
_SUITES = {
    "bash": _StarterSuite(bash.entries, bash.task_fields),
    "code": _StarterSuite(code.entries, code.task_fields, _DATA, code.rows, code.PROGRAMS),
    "ctf": _StarterSuite(ctf.entries, ctf.task_fields, frozenset(), ctf.rows),
    "python": _StarterSuite(python.entries, python.task_fields, _DATA, python.rows),
    "sql": _StarterSuite(sql.entries, sql.task_fields, frozenset({"database"})),
}
ENVIRONMENTS = tuple(_SUITES)
"""The environments that have starter tasks."""


def load(environment: str = "bash") -> Dataset:
    """Return the starter tasks of one environment. The first call writes their files to the cache.

    Raises UnknownNameError for an environment without starter tasks, and OSError when the cache
    cannot be written.
    """
    if environment not in _SUITES:
        raise unknown_name_error("starter environment", environment, list(_SUITES))
    suite = _SUITES[environment]
    root = cached_entries(f"starter/{environment}", *_shared_files(environment))
    return Dataset(
        name=f"starter:{environment}",
        environment=environment,
        tasks=_tasks(environment, root),
        image="host",
        comparable=False,
        programs=suite.programs,
        notes="Our own tasks on the machine's own programs: a start, not a benchmark.",
    )


@cache
def _shared_files(environment: str) -> tuple[Sequence[TreeEntry], str]:
    """Return the files that the tasks of an environment share, and the digest of their tree."""
    entries = _SUITES[environment].entries()
    return entries, tree_digest(entries)


@cache
def _tasks(environment: str, root: Path) -> tuple[Task, ...]:
    """Return the tasks of an environment, whose shared files are in the directory ``root``."""
    suite, tasks = _SUITES[environment], []
    required = _REQUIRED | suite.keys
    allowed = required | _OPTIONAL
    for where, row in suite.rows() if suite.rows else _read_lines(environment):
        if not isinstance(row, dict) or not row.keys() >= required or row.keys() - allowed:
            raise DataError(f"{where}: a row needs the keys {sorted(required)} and may have 'also'")
        row["tags"], row["also"] = tuple(row["tags"]), tuple(row.get("also", ()))
        tasks.append(Task(**suite.task_fields(root, row)))
    return tuple(tasks)


def _read_lines(environment: str) -> Iterator[tuple[str, Any]]:
    name = f"{environment}/starter/tasks.jsonl"
    text = files("intercode.datasets").joinpath(name).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        try:
            yield where, json.loads(line)
        except json.JSONDecodeError as e:
            raise DataError(
                f"{where}: {e.msg} at column {e.colno}; write one JSON object per line"
            ) from e
