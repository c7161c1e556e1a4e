"""Tasks of our own on files of our own: everything works without a network or a download."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.paths import cache_root
from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.datasets.code import starter
from intercode.datasets.ctf import starter as ctf
from intercode.datasets.python import starter as python
from intercode.datasets.sql import starter as sql
from intercode.datasets.starter import file_tree

_REQUIRED = {"id", "query", "gold", "hardness", "tags"}
_OPTIONAL = {"also"}


@dataclass(frozen=True, slots=True)
class _StarterSuite:
    """How one environment's tasks are had: the files under them, by content, their builder, and
    what makes a row the fields of a task on them; ``keys`` are those of a row beyond the usual,
    ``rows`` where they come from (None: ``tasks.jsonl``), each with the words for its place;
    ``programs`` what the tasks need beyond the usual small tools."""

    digest: Callable[[], str]
    build: Callable[[Path], None]
    task_fields: Callable[[Path, dict[str, Any]], dict[str, Any]]
    keys: frozenset[str] = frozenset()
    rows: Callable[[], Iterator[tuple[str, dict[str, Any]]]] | None = None
    programs: tuple[str, ...] = ()


def _with_files(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "files": (LayerSpec("dir", root),)}


_SUITES = {
    "bash": _StarterSuite(file_tree.tree_digest, file_tree.write_tree, _with_files),
    "code": _StarterSuite(
        starter.digest,
        starter.build,
        starter.task_fields,
        frozenset({"data"}),
        starter.rows,
        starter.PROGRAMS,
    ),
    "ctf": _StarterSuite(ctf.digest, ctf.build, ctf.task_fields, frozenset(), ctf.rows),
    "python": _StarterSuite(
        python.digest, python.build, python.task_fields, frozenset({"data"}), python.rows
    ),
    "sql": _StarterSuite(sql.digest, sql.build, sql.task_fields, frozenset({"database"})),
}


def load(environment: str = "bash") -> Dataset:
    """The starter tasks of one environment; their files are laid out in the cache on first use.

    Raises UnknownNameError for an environment that has none, and OSError when the cache cannot be
    written.
    """
    if environment not in _SUITES:
        raise unknown_name_error("starter environment", environment, list(_SUITES))
    part = _SUITES[environment]
    root = _build_once(cache_root() / "starter" / f"{environment}-{part.digest()}", part.build)
    return Dataset(
        name=f"starter:{environment}",
        environment=environment,
        tasks=tuple(_tasks(environment, part, root)),
        image="host",
        comparable=False,
        programs=part.programs,
        notes="Our own tasks on the machine's own programs: a start, not a benchmark.",
    )


def _tasks(environment: str, part: _StarterSuite, root: Path) -> Iterator[Task]:
    required = _REQUIRED | part.keys
    for where, row in part.rows() if part.rows else _read_lines(environment):
        if (
            not isinstance(row, dict)
            or not row.keys() >= required
            or row.keys() - required - _OPTIONAL
        ):
            raise DataError(f"{where}: keys must be {sorted(required)} and perhaps 'also'")
        row["tags"], row["also"] = tuple(row["tags"]), tuple(row.get("also", ()))
        yield Task(**part.task_fields(root, row))


def _read_lines(environment: str) -> Iterator[tuple[str, Any]]:
    text = (
        files("intercode.datasets")
        .joinpath(environment, "starter", "tasks.jsonl")
        .read_text(encoding="utf-8")
    )
    for number, line in enumerate(text.splitlines(), 1):
        where = f"starter/{environment}/tasks.jsonl:{number}"
        try:
            yield where, json.loads(line)
        except json.JSONDecodeError as e:
            raise DataError(f"{where}: {e.msg} at column {e.colno}; one JSON object a line") from e


def _build_once(path: Path, build: Callable[[Path], None]) -> Path:
    """``path``, built aside and renamed into place, so that no reader ever sees half of it.

    Of several processes that build at once the first to finish wins; their trees are equal.
    """
    if path.is_dir():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        build(aside)
        try:
            aside.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return path
