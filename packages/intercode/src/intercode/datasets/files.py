"""Loads a dataset from one file: JSON, JSON lines, a table with a header, or Parquet."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

from intercode.core.decoding import parse_json
from intercode.core.errors import DataError, UsageError
from intercode.core.types import DatabaseSpec, Dataset, LayerSpec, Task
from intercode.datasets.columns import Columns
from intercode.datasets.payloads import RowPayload, payload_of
from intercode.datasets.preprocess import PreprocessHook, prepare_rows
from intercode_sandbox.hidden_files import hide_from_host_image
from intercode_sandbox.registry import suggest_name

LOCAL_IMAGE = re.compile(r"(?:dir|tar|recipe|docker-archive|oci|dockerfile|built|image):")
"""Matches names of images that refer to files of this machine."""

_PARQUET_BATCH = 1024
_csv_limit_lock = threading.Lock()
_TEXT_KEYS = ("query", "gold", "id", "setup", "cwd", "group", "hardness", "flag", "probe")
_LIST_KEYS = ("also", "tags", "files", "probe_paths")
_OPTIONAL_KEYS = {*_TEXT_KEYS, *_LIST_KEYS, "database", "tests"} - {"gold", "query"}
"""The keys of which a null is the same as none."""


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, and hide it from sandboxes on the image ``host``. Raises
    DataError when it is absent or not UTF-8."""
    try:
        hide_from_host_image(path)
        return path.read_bytes().decode("utf-8-sig")
    except OSError as e:
        raise DataError(f"cannot read {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise DataError(f"{path} is not UTF-8 text (byte {e.start}): save it as UTF-8") from e
    except ValueError as e:  # a NUL byte, a lone surrogate
        raise DataError(f"{str(path)!r} cannot be a path: {e}") from e


def required_text(row: Mapping[str, Any], key: str, where: str) -> str:
    """Return the text under ``key``. Raises DataError if it is absent or empty."""
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: {key!r} must be a text, not {value!r}")
    return value


def require_inside(path: Path, folder: Path, what: str) -> None:
    """Raise DataError if ``path`` leads out of ``folder``, by ``..``, as an absolute path or by a
    link, or if it cannot be looked up. ``what`` describes the path in the message."""
    try:
        target = path.resolve()
        path.exists()
    except (OSError, ValueError, RuntimeError) as e:  # too long, a NUL byte, links in a circle
        raise DataError(f"{what} cannot be looked up: {e}") from e
    if not target.is_relative_to(folder.resolve()):
        raise DataError(
            f"{what} leads out of {folder}, to {target}: copy what is needed into {folder}"
        )


def read_json(path: Path) -> Any:
    """Return the value in a JSON file. Raises DataError with file, line and column."""
    return parse_json(read_text(path), path)


def read_json_rows(path: Path) -> list[Any]:
    """Return the rows in a JSON file. Raises DataError if it does not hold a list."""
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a list of rows, found {type(rows).__name__}")
    return rows


def _read_json(path: Path) -> Iterator[tuple[str, Any]]:
    yield from ((f"row {n}", row) for n, row in enumerate(read_json_rows(path)))


def _read_json_lines(path: Path) -> Iterator[tuple[str, Any]]:
    for number, text in enumerate(read_text(path).split("\n"), 1):
        if text.strip():
            yield f"line {number}", parse_json(text, path, number)


def _read_table(path: Path, delimiter: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield every row of a table with its location; empty cells are left out."""
    text = read_text(path)
    with _csv_limit_lock:  # the limit is one for the process: other threads may be reading
        csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name for name in reader.fieldnames or () if name]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise DataError(f"{path}, line 1: two columns are called {repeated[0]!r}")
        for row in reader:
            if None in row or None in row.values():
                raise DataError(
                    f"{path}, line {reader.line_num}: the row and the header differ in length"
                )
            yield f"line {reader.line_num}", {k: v for k, v in row.items() if v != ""}
    except csv.Error as e:
        raise DataError(f"{path}, line {reader.line_num}: {e}") from e


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every row with its location; empty cells are left out.

    Raises UsageError without pyarrow, DataError for a file that is absent or broken.
    """
    hide_from_host_image(path)
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as e:
        raise UsageError(f"reading {path} needs pyarrow: pip install 'intercode-gym[data]'") from e
    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(_PARQUET_BATCH):
                for row in batch.to_pylist():
                    yield f"row {number}", {k: v for k, v in row.items() if v is not None}
                    number += 1
    except FileNotFoundError as e:
        raise DataError(f"cannot read {path}: there is no such file") from e
    except (OSError, arrow.ArrowException) as e:
        raise DataError(f"{path} cannot be read as Parquet: {e}") from e


_FORMATS: dict[str, Callable[[Path], Iterator[tuple[str, Any]]]] = {
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".csv": partial(_read_table, delimiter=","),
    ".tsv": partial(_read_table, delimiter="\t"),
    ".parquet": read_parquet,
}
"""The functions that read a file of rows, by its suffix."""
SUFFIXES = tuple(_FORMATS)


def read_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield every row of a file with its location for messages, such as ``line 3``.

    Raises UsageError for a suffix that no format has, DataError for a file that cannot be read.
    """
    if (suffix := path.suffix.lower()) not in _FORMATS:
        raise UsageError(f"{path}: rows are read from files that end in {', '.join(SUFFIXES)}")
    yield from _FORMATS[suffix](path)


def _probe_script(text: str, folder: Path, where: str) -> str:
    """Return the text of a probe: ``text`` itself, or the content of the .sh file it names."""
    if not text.endswith(".sh") or set(text) & set(" \n"):
        return text
    require_inside(folder / text, folder, f"{where}: 'probe' names {text!r}, which")
    if not (folder / text).is_file():
        raise DataError(f"{where}: 'probe' names {text!r}, and there is no {folder / text}")
    return read_text(folder / text)


def _strings(value: Any, key: str, where: str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(v, str) for v in texts):
        raise DataError(f"{where}: {key!r} must be a text or a list of texts, not {value!r}")
    return tuple(texts)


def _layer_spec(text: str, folder: Path, where: str) -> LayerSpec:
    path = (folder / text).absolute()
    require_inside(path, folder, f"{where}: 'files' names {text!r}, which")
    if path.is_dir():
        return LayerSpec("dir", path)
    if path.is_file():
        return LayerSpec("script" if path.suffix == ".sh" else "tar", path)
    raise DataError(f"{where}: 'files' names {text!r}, and there is no {path}")


def _database_spec(value: Any, folder: Path, where: str) -> DatabaseSpec:
    """Return the database of a row's ``{"kind", "path", "name"}``; the path is relative to
    ``folder``."""
    kinds = get_args(get_type_hints(DatabaseSpec)["kind"])
    texts = value if isinstance(value, Mapping) else {}
    if set(texts) != {"kind", "path", "name"} or texts["kind"] not in kinds:
        wanted = f"an object with kind ({' or '.join(kinds)}), path and name"
        raise DataError(f"{where}: 'database' must be {wanted}, not {value!r}")
    path = (folder / str(texts["path"])).absolute()
    require_inside(path, folder, f"{where}: 'database' names {texts['path']!r}, which")
    if not path.is_file():
        raise DataError(f"{where}: 'database' names {texts['path']!r}, and there is no {path}")
    return DatabaseSpec(texts["kind"], path, str(texts["name"]))


def _require_unicode(value: Any, where: str, key: str = "") -> None:
    """Raise DataError for half of a surrogate pair in a value of a row, which no file, prompt or
    record can hold."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as e:
            raise DataError(
                f"{where}: {key or 'the name of a key'} has half of a surrogate pair at character "
                f"{e.start + 1} ({value[e.start]!r}), which is no text: write the whole character, "
                "or \\ufffd"
            ) from e
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _require_unicode(name, where)
            _require_unicode(inner, where, key or repr(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            _require_unicode(inner, where, key)


def gold_text(value: Any, where: str) -> str:
    """Return a gold as one text. Lists of commands are joined with ``;``, as the authors do."""
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ";".join(value)
    if isinstance(value, str):
        return value
    raise DataError(f"{where}: 'gold' must be a text or a list of texts, not {value!r}")


def to_task(
    row: Any, default_id: str, path: Path, where: str, payload: type[RowPayload] | None = None
) -> Task:
    """Return a row as a Task. Keys that are not fields of Task go to ``data``.

    ``payload``: the columns of the environment that plays the rows (None: the row tells). Raises
    DataError that names the file, the row and the key.
    """
    where = f"{path}, {where}"
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected an object with 'query' and 'gold', not {row!r}")
    if row.get("flag"):  # the gold of a task with a flag submits the flag
        row = {"gold": f"submit {row['flag']}", **row}
    for key in ("query", "gold"):
        if key not in row:
            raise DataError(f"{where}: no {key!r}; found {', '.join(map(str, row)) or 'nothing'}")
    _require_unicode(row, where)
    if row["query"] is None:
        raise DataError(f"{where}: 'query' is null: write what the agent is asked, or omit the row")
    row = {k: v for k, v in row.items() if v is not None or k not in _OPTIONAL_KEYS}
    texts = {k: row[k] for k in _TEXT_KEYS if k in row and k != "gold"}
    if "id" in texts:
        texts["id"] = str(texts["id"])
    for key, value in texts.items():
        if not isinstance(value, str):
            raise DataError(f"{where}: {key!r} must be a text, not {value!r}")
    if not texts.get("cwd", "/").startswith("/"):
        raise DataError(
            f"{where}: 'cwd' is an absolute path in the sandbox, such as '/{texts['cwd']}'"
        )
    lists = {k: _strings(row[k], k, where) for k in _LIST_KEYS if k in row}
    layers = tuple(_layer_spec(text, path.parent, where) for text in lists.pop("files", ()))
    if "probe" in texts:
        texts["probe"] = _probe_script(texts["probe"], path.parent, where)
    gold = None if row["gold"] is None else gold_text(row["gold"], where)
    database = _database_spec(row["database"], path.parent, where) if "database" in row else None
    payload = payload or payload_of([row], None)
    own = {field.name for field in fields(payload)}
    taken = {*_TEXT_KEYS, *_LIST_KEYS, "database"}
    rest = payload.columns({k: v for k, v in row.items() if k not in taken - own}, where, gold)
    values = {"id": default_id, **texts, **lists}
    values = {k: v for k, v in values.items() if k not in own}
    return Task(**values, gold=gold, files=layers, database=database, data=rest)


def load(
    path: Path,
    columns: Columns | None = None,
    preprocess: PreprocessHook | None = None,
    environment: str | None = None,
) -> Dataset:
    """Return the dataset in a .json (a list), .jsonl, .csv or .tsv (with a header) or .parquet
    file.

    A row needs ``query`` and ``gold``. It may have:

    - ``id`` (default: ``<stem>/<n>``), ``also``, ``tags``, ``setup``, ``cwd``, ``group``,
      ``hardness``, ``probe_paths``: fields of Task.
    - ``files``: names of directories, tars or .sh scripts in the file's directory. No path of a row
      may lead out of it.
    - ``probe``: a script, or the name of an .sh file beside the file.
    - ``database``: the content of a database. The tasks are then SQL tasks.
    - ``flag``: the flag to find. The tasks are then Capture-the-Flag tasks; ``gold`` may be absent.
    - ``tests`` and other columns of ``PythonPayload``: the tasks are then Python tasks; with
      ``language`` or ``environment="code"`` they are Code tasks, with those of ``CodePayload``.
    - any other column. Those that the environment reads are checked; see payloads.py.

    ``preprocess`` receives each row first and returns the row to use, or None to leave it out.
    ``columns`` then says which columns fill which fields. Raises DataError with the location of the
    fault.
    """
    rows = prepare_rows(((where, path, row) for where, row in read_rows(path)), preprocess)
    return build_dataset(rows, str(path), path.stem, columns, environment)


def build_dataset(
    rows: Iterable[tuple[str, Path, Any]],
    name: str,
    stem: str,
    columns: Columns | None,
    environment: str | None = None,
) -> Dataset:
    """Return the dataset of ``rows``. A row is its location, its file and its content.

    ``name`` is the dataset's name and ``stem`` the first part of default ids. ``environment`` is
    the environment that the user chose for the rows, if any. Raises DataError for no rows and for
    ids that are not unique.
    """
    columns = columns or Columns()
    renamed = [(w, path, columns.rename(row, f"{path}, {w}")) for w, path, row in rows]
    given = [row for *_, row in renamed if isinstance(row, Mapping)]
    payload = payload_of(given, environment)
    tasks = tuple(
        to_task(row, f"{stem}/{n}", path, where, payload)
        for n, (where, path, row) in enumerate(renamed)
    )
    if not tasks:
        raise DataError(f"{name} holds no task: it needs rows with 'query' and 'gold'")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise DataError(f"{name}: two rows have the id {task.id!r}; ids must be unique")
        seen.add(task.id)
    notes = "a file of the user's own, played on the machine's own programs"
    kind = payload.environment or environment or ""
    warnings = tuple(_misspelt_keys(given, payload)) if payload.environment else ()
    return Dataset(name, kind, tasks, "host", comparable=False, notes=notes, warnings=warnings)


def _misspelt_keys(rows: Iterable[Mapping[Any, Any]], payload: type[RowPayload]) -> Iterator[str]:
    """Yield a warning for each key that is not read and is nearly the name of one that is."""
    known = {*_TEXT_KEYS, *_LIST_KEYS, "database", *(field.name for field in fields(payload))}
    for key in dict.fromkeys(key for row in rows for key in row if key not in known):
        if hint := suggest_name(key, known, cutoff=0.9):
            yield f"no environment of this package reads the column {key!r}: {hint.strip()}"
