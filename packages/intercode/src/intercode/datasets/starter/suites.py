"""Loads the starter suites: small tasks of this package that need no network and no download."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol, cast

from intercode.core.decoding import parse_json
from intercode.core.errors import DataError
from intercode.core.types import Dataset, Task, TreeEntry, tree_digest
from intercode.datasets.starter.file_tree import cached_entries
from intercode_sandbox.registry import unknown_name_error

_REQUIRED = {"id", "query", "gold", "hardness", "tags"}
_OPTIONAL = {"also"}


class _StarterSuite(Protocol):
    """The starter tasks of one environment: the package ``datasets/ENVIRONMENT/starter``.

    ``entries`` returns the files that the tasks share. ``task_fields`` turns the directory in which
    they are, and a row, into the fields of a Task. A suite may have ``KEYS`` that a row has in
    addition to the usual ones; ``PROGRAMS`` that the image must have in addition to the usual small
    tools; and ``rows``, which yields the rows, each with its location for messages. Else they are
    read from ``tasks.jsonl``.
    """

    def entries(self) -> Sequence[TreeEntry]: ...
    def task_fields(self, root: Path, row: dict[str, Any]) -> dict[str, Any]: ...


ENVIRONMENTS = tuple(
    sorted(
        folder.name
        for folder in files("intercode.datasets").iterdir()
        if folder.joinpath("starter", "__init__.py").is_file()
    )
)
"""The environments that have starter tasks."""


def _suite(environment: str) -> _StarterSuite:
    suite: Any = import_module(f"intercode.datasets.{environment}.starter")
    return cast("_StarterSuite", suite)


def load(environment: str = "bash") -> Dataset:
    """Return the starter tasks of one environment. The first call writes their files to the cache.

    Raises UnknownNameError for an environment without starter tasks, and OSError when the cache
    cannot be written.
    """
    if environment not in ENVIRONMENTS:
        raise unknown_name_error("subset of starter", environment, list(ENVIRONMENTS))
    root = cached_entries(f"starter/{environment}", *_shared_files(environment))
    return Dataset(
        name=f"starter:{environment}",
        environment=environment,
        tasks=_tasks(environment, root),
        image="host",
        comparable=False,
        programs=getattr(_suite(environment), "PROGRAMS", ()),
        notes="Our own tasks on the machine's own programs: a start, not a benchmark.",
    )


@cache
def _shared_files(environment: str) -> tuple[Sequence[TreeEntry], str]:
    """Return the files that the tasks of an environment share, and the digest of their tree."""
    entries = _suite(environment).entries()
    return entries, tree_digest(entries)


@cache
def _tasks(environment: str, root: Path) -> tuple[Task, ...]:
    """Return the tasks of an environment, whose shared files are in the directory ``root``."""
    suite, tasks = _suite(environment), []
    required = _REQUIRED | getattr(suite, "KEYS", frozenset())
    allowed = required | _OPTIONAL
    rows: Callable[[], Iterator[tuple[str, Any]]]
    rows = getattr(suite, "rows", partial(_read_lines, environment))
    for where, row in rows():
        if not isinstance(row, dict) or not row.keys() >= required or row.keys() - allowed:
            raise DataError(f"{where}: a row needs the keys {sorted(required)} and may have 'also'")
        row["tags"], row["also"] = tuple(row["tags"]), tuple(row.get("also", ()))
        tasks.append(Task(**suite.task_fields(root, row)))
    return tuple(tasks)


def _read_lines(environment: str) -> Iterator[tuple[str, Any]]:
    name = f"{environment}/starter/tasks.jsonl"
    text = files("intercode.datasets").joinpath(name).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        yield f"{name}:{number}", parse_json(line, name, number)
