"""A dataset from one file: JSON, JSON lines, or a table with a header."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from intercode.datasets.entry import tests_of
from intercode.errors import DataError
from intercode.types import DatabaseSpec, Dataset, LayerSpec, Task

SUFFIXES = (".json", ".jsonl", ".csv", ".tsv")

_TEXT = ("query", "gold", "id", "setup", "cwd", "group", "hardness", "flag")
_LISTS = ("also", "tags", "files")


def read_text(path: Path) -> str:
    """A UTF-8 file. Raises DataError that names the file when it is absent or something else."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as e:
        raise DataError(f"cannot read {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise DataError(f"{path} is not UTF-8 text (byte {e.start}): save it as UTF-8") from e


def read_json(path: Path) -> Any:
    """A JSON file's value. Raises DataError that names file, line and column."""
    return _parse(read_text(path), path, 1)


def _parse(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        where = f"{path}, line {line + e.lineno - 1}, column {e.colno}"
        raise DataError(f"{where}: broken JSON: {e.msg}") from e


def read_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Every row of a table or list with the words that say where it stands."""
    kind = path.suffix.lower()
    if kind == ".json":
        value = read_json(path)
        if not isinstance(value, list):
            raise DataError(f"{path}: expected a list of rows, found {type(value).__name__}")
        yield from ((f"row {n}", row) for n, row in enumerate(value))
    elif kind == ".jsonl":
        for number, text in enumerate(read_text(path).split("\n"), 1):
            if text.strip():
                yield f"line {number}", _parse(text, path, number)
    else:
        delimiter = "\t" if kind == ".tsv" else ","
        reader = csv.DictReader(
            io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True
        )
        try:
            for row in reader:
                if None in row or None in row.values():
                    raise DataError(
                        f"{path}, line {reader.line_num}: not as many cells as the header has names"
                    )
                yield f"line {reader.line_num}", {k: v for k, v in row.items() if v != ""}
        except csv.Error as e:
            raise DataError(f"{path}, line {reader.line_num}: {e}") from e


def _strings(value: Any, key: str, where: str) -> tuple[str, ...]:
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(v, str) for v in found):
        raise DataError(f"{where}: {key!r} must be a text or a list of texts, not {value!r}")
    return tuple(found)


def _layer(text: str, folder: Path, where: str) -> LayerSpec:
    path = (folder / text).absolute()
    if path.is_dir():
        return LayerSpec("dir", path)
    if path.is_file():
        return LayerSpec("script" if path.suffix == ".sh" else "tar", path)
    raise DataError(f"{where}: 'files' names {text!r}, and there is no {path}")


def _database(value: Any, folder: Path, where: str) -> DatabaseSpec:
    """A row's ``{"kind", "path", "name"}`` with the path beside the file."""
    kinds = get_args(get_type_hints(DatabaseSpec)["kind"])
    texts = value if isinstance(value, Mapping) else {}
    if set(texts) != {"kind", "path", "name"} or texts["kind"] not in kinds:
        wanted = f"an object with kind ({' or '.join(kinds)}), path and name"
        raise DataError(f"{where}: 'database' must be {wanted}, not {value!r}")
    path = (folder / str(texts["path"])).absolute()
    if not path.is_file():
        raise DataError(f"{where}: 'database' names {texts['path']!r}, and there is no {path}")
    return DatabaseSpec(texts["kind"], path, str(texts["name"]))


def gold_text(value: Any, where: str) -> str:
    """A gold as one text: a list of commands is joined with ``;`` as the authors' code does."""
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ";".join(value)
    if isinstance(value, str):
        return value
    raise DataError(f"{where}: 'gold' must be a text or a list of texts, not {value!r}")


def to_task(row: Any, default_id: str, path: Path, where: str) -> Task:
    """A row as a Task. Keys that have no field of their own go to ``data``.

    Raises DataError that names the file, the row and the key.
    """
    where = f"{path}, {where}"
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected an object with 'query' and 'gold', not {row!r}")
    if row.get("flag"):  # a task that asks for a flag is solved by handing it in
        row = {"gold": f"submit {row['flag']}", **row}
    for key in ("query", "gold"):
        if key not in row:
            raise DataError(f"{where}: no {key!r}; found {', '.join(map(str, row)) or 'nothing'}")
    texts = {k: row[k] for k in _TEXT if k in row and k != "gold" and row[k] is not None}
    if "id" in texts:
        texts["id"] = str(texts["id"])
    for key, value in texts.items():
        if not isinstance(value, str):
            raise DataError(f"{where}: {key!r} must be a text, not {value!r}")
    lists = {k: _strings(row[k], k, where) for k in _LISTS if k in row}
    layers = tuple(_layer(text, path.parent, where) for text in lists.pop("files", ()))
    gold = None if row["gold"] is None else gold_text(row["gold"], where)
    database = _database(row["database"], path.parent, where) if "database" in row else None
    rest = {k: v for k, v in row.items() if k not in (*_TEXT, *_LISTS, "database")}
    fields = {"id": default_id, **texts, **lists}
    if "tests" in rest:  # hidden tests of Python: set-up is code that they need
        rest = tests_of(rest, gold, fields.pop("setup", ""), where)
    return Task(**fields, gold=gold, files=layers, database=database, data=rest)


def load(path: Path) -> Dataset:
    """The dataset in a .json (a list), .jsonl, .csv or .tsv (with a header) file.

    A row needs ``query`` and ``gold``; ``id`` is ``<stem>/<n>`` where it is absent; ``also``,
    ``tags``, ``setup``, ``cwd``, ``group`` and ``hardness`` fill the Task; ``files`` names
    directories, tars or .sh scripts beside the file, ``database`` the content of an SQL task's
    database: where a row has one, the tasks are SQL's. ``flag`` is what a row asks for: where one
    has it, the tasks are Capture the Flag's, and ``gold`` may be left out. ``tests``, with
    ``entry`` and ``setup`` as ``entry.tests_of`` has them, make the tasks Python's. Raises
    DataError with the place of the fault.
    """
    tasks = tuple(
        to_task(row, f"{path.stem}/{n}", path, where)
        for n, (where, row) in enumerate(read_rows(path))
    )
    if not tasks:
        raise DataError(f"{path} holds no task: it needs rows with 'query' and 'gold'")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise DataError(f"{path}: the id {task.id!r} is there twice; ids must differ")
        seen.add(task.id)
    notes = "a file of the user's own, played on the machine's own programs"
    environment = "sql" if any(task.database for task in tasks) else "bash"
    environment = "ctf" if any(task.flag for task in tasks) else environment
    environment = "python" if any("tests" in task.data for task in tasks) else environment
    return Dataset(str(path), environment, tasks, image="host", comparable=False, notes=notes)
