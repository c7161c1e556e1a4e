"""A task package: a directory with a task.toml, which says what its tasks are played on and scored
with. Nothing of it is imported or run before it is loaded; then its hook and its reward are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from intercode.core.config import read_toml
from intercode.core.errors import ConfigError, UsageError
from intercode.core.registry import is_file_reference, unknown_name_error
from intercode.core.types import Dataset
from intercode.datasets import files, preprocess

TASK_FILE = "task.toml"
_KEY_TYPES: dict[str, type] = {
    "description": str, "environment": str, "tasks": str, "image": str, "reward": str,
    "preprocess": str, "programs": list, "defaults": dict,
}  # fmt: skip
_IMAGE_FILES = ("recipe.toml", "Dockerfile")
_WITHOUT_PROBE = ("ctf", "python", "sql")


def is_package(path: Path) -> bool:
    """Whether a path is a task package: its directory, or the task.toml in it."""
    return (path / TASK_FILE).is_file() or (path.name == TASK_FILE and path.is_file())


def load(path: Path) -> Dataset:
    """The dataset of a package. ``path`` is its directory or the task.toml in it.

    ``tasks`` is the file of rows (else the one file there whose name begins with ``tasks.``, see
    ``files.load``), ``environment`` what plays them (else what the rows tell), ``image`` an image
    specification, or a recipe or Dockerfile in the directory (else recipe.toml or Dockerfile, else
    ``host``), ``reward`` a name, ``package.module:function`` or ``file.py:function`` in the
    directory (else ``probe`` where rows have one, else the environment's), ``preprocess`` such a
    reference to a function that is given each row and returns the row to use, or None for none.
    ``programs`` are names that the image must have; ``defaults`` fill rows that lack a key.

    Raises UsageError for what is not there, ConfigError for a task.toml of the wrong form,
    DataError for broken rows.
    """
    folder = (path.parent if path.name == TASK_FILE else path).absolute()
    told = _read_settings(folder)
    file = _rows_file(folder, told.get("tasks"))
    hook = (
        preprocess.load_hook(_absolute_reference(folder, told["preprocess"]))
        if "preprocess" in told
        else None
    )
    given = ((where, file, row) for where, row in files.read_rows(file))
    rows = preprocess.prepare_rows(given, hook, told.get("defaults", {}))
    dataset = files.build_dataset(rows, str(file), folder.name, None, told.get("environment"))
    has_probe = any(task.probe is not None for task in dataset.tasks)
    environment = told.get("environment", dataset.environment)
    if has_probe and environment in _WITHOUT_PROBE:
        raise ConfigError(
            f"{folder / TASK_FILE}: 'probe' reads files of a sandbox, not for {environment!r}"
        )
    reward = told.get("reward", "probe" if has_probe else None)
    return replace(
        dataset,
        name=str(path), environment=environment, image=_image_spec(folder, told.get("image")),
        notes=told.get("description", ""), programs=tuple(told.get("programs", ())),
        reward=_absolute_reference(folder, reward) if reward else None,
    )  # fmt: skip


def _read_settings(folder: Path) -> Mapping[str, Any]:
    """What a task.toml says, with every key known and of its type."""
    file = folder / TASK_FILE
    table = read_toml(file)
    for key, value in table.items():
        if key not in _KEY_TYPES:
            error = unknown_name_error(f"key in {file}", key, list(_KEY_TYPES))
            if (folder / "instruction.md").is_file():
                raise ConfigError(f"{error}; did you mean harbor:{folder}?") from error
            raise error
        if not isinstance(value, _KEY_TYPES[key]):
            raise ConfigError(f"{file}: {key} = {value!r} is no {_KEY_TYPES[key].__name__}")
    if not all(isinstance(name, str) for name in table.get("programs", ())):
        raise ConfigError(f"{file}: programs = {table['programs']!r} is no list of names")
    return table


def _rows_file(folder: Path, given: str | None) -> Path:
    if given is not None:
        return folder / given
    found = sorted(p for p in folder.glob("tasks.*") if p.suffix.lower() in files.SUFFIXES)
    if len(found) == 1:
        return found[0]
    what = "several files of" if found else "no file of"
    raise UsageError(
        f"{folder} has {what} tasks (tasks.jsonl, say): name it as `tasks` in {TASK_FILE}"
    )


def _image_spec(folder: Path, given: str | None) -> str:
    """An image specification with the paths of this directory made absolute."""
    name = given or next((n for n in _IMAGE_FILES if (folder / n).is_file()), "host")
    path = folder / name
    if path.is_dir():
        return f"dir:{path}"
    if path.is_file():
        if path.suffix == ".toml":
            return f"recipe:{path}"
        return f"tar:{path}" if ".tar" in path.suffixes else f"dockerfile:{path}"
    kind, mark, rest = name.partition(":")
    if mark and (folder / rest).exists():  # such as oci:image
        return f"{kind}:{folder / rest}"
    if mark or name == "host":
        return name
    raise UsageError(f"{folder / TASK_FILE}: image = {name!r} is no file there and no image")


def _absolute_reference(folder: Path, reference: str) -> str:
    """A reference with a file of this directory made absolute."""
    return str(folder / reference) if is_file_reference(reference) else reference


def read_description(folder: Path) -> str:
    """What a package says that it is. Raises as ``load``."""
    return str(_read_settings(folder).get("description", ""))
