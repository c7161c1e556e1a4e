"""Task packages: directories with a task.toml that names the rows, the image and the reward.

Only loading a package runs code of it: its preprocess hook and its reward.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from intercode.core.decoding import decode_as
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import Dataset
from intercode.datasets import files, preprocess
from intercode.datasets.payloads import takes_probe
from intercode_sandbox.registry import is_file_reference
from intercode_sandbox.toml import read_toml

TASK_FILE = "task.toml"
_IMAGE_FILES = ("Dockerfile", "recipe.toml")  # the second one is refused, with its Dockerfile
_LOCAL_IMAGES = ("dir", "tar", "docker-archive", "oci", "dockerfile", "recipe")


@dataclass(frozen=True)
class PackageSettings:
    """The content of a task.toml; see ``load``."""

    description: str = ""
    environment: str | None = None
    tasks: str | None = None
    image: str | None = None
    reward: str | None = None
    preprocess: str | None = None
    programs: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


def is_package(path: Path) -> bool:
    """Return whether ``path`` is the directory of a task package, or its task.toml."""
    file = path if path.name == TASK_FILE else path / TASK_FILE
    return os.path.isfile(file)  # no error for what cannot be a path


def load(path: Path) -> Dataset:
    """Return the dataset of a package. ``path`` is its directory or the task.toml in it.

    The keys of task.toml, all of them optional:

    - ``tasks``: the file of rows (see ``files.load``). Default: the one file named ``tasks.*``.
    - ``environment``: the environment that plays the rows. Default: what the keys of rows imply.
    - ``image``: an image specification, or the name of a Dockerfile, directory or tar in the
      package. Default: the Dockerfile if there is one, else ``host``.
    - ``reward``: a registered name, ``package.module:function``, or ``file.py:function`` in the
      package. Default: ``probe`` if a row has a probe, else the environment's.
    - ``preprocess``: such a reference to a function that receives each row and returns the row to
      use, or None to leave it out.
    - ``programs``: programs that the image must have.
    - ``defaults``: values for keys that a row lacks.
    - ``description``: a sentence about the tasks.

    Files that these keys name have to be in the package. Raises DataError for one outside of it,
    UsageError for a missing file, ConfigError for a malformed task.toml, DataError for broken rows.
    """
    folder = (path.parent if path.name == TASK_FILE else path).absolute()
    settings = _read_settings(folder)
    file = _rows_file(folder, settings.tasks)
    hook = (
        preprocess.load_hook(_absolute_reference(folder, settings.preprocess))
        if settings.preprocess
        else None
    )
    given = ((where, file, row) for where, row in files.read_rows(file))
    rows = preprocess.prepare_rows(given, hook, settings.defaults)
    dataset = files.build_dataset(rows, str(file), folder.name, None, settings.environment)
    has_probe = any(task.probe is not None for task in dataset.tasks)
    environment = settings.environment or dataset.environment
    if has_probe and not takes_probe(environment):
        raise ConfigError(
            f"{folder / TASK_FILE}: 'probe' needs an environment with files, not {environment!r}"
        )
    reward = settings.reward or ("probe" if has_probe else None)
    return replace(
        dataset,
        name=str(path),
        environment=environment,
        image=_image_spec(folder, settings.image),
        notes=settings.description,
        programs=settings.programs,
        reward=_absolute_reference(folder, reward) if reward else None,
    )


def _read_settings(folder: Path) -> PackageSettings:
    """Return the settings of a task.toml. Raises ConfigError for unknown keys and wrong types."""
    file = folder / TASK_FILE
    is_harbor = (folder / "instruction.md").is_file()
    hint = f"; did you mean harbor:{folder}?" if is_harbor else ""
    settings: PackageSettings = decode_as(
        PackageSettings, read_toml(file), file, lambda text: ConfigError(f"{text}{hint}")
    )
    return settings


def _rows_file(folder: Path, given: str | None) -> Path:
    if given is not None:
        return _file_inside(folder, given)
    candidates = sorted(p for p in folder.glob("tasks.*") if p.suffix.lower() in files.SUFFIXES)
    if len(candidates) == 1:
        return candidates[0]
    what = "several files of" if candidates else "no file of"
    raise UsageError(
        f"{folder} has {what} tasks (such as tasks.jsonl): name one as `tasks` in {TASK_FILE}"
    )


def _file_inside(folder: Path, name: str) -> Path:
    """Return the path of a file of the package. Raises DataError if it leads out of it."""
    files.require_inside(folder / name, folder, f"{folder / TASK_FILE}: {name}")
    return folder / name


def _image_spec(folder: Path, given: str | None) -> str:
    """Return an image specification in which paths of the package are absolute.

    Raises DataError for a path that leads out of the package: agents read every file of the image.
    """
    name = given or next((n for n in _IMAGE_FILES if (folder / n).is_file()), "host")
    path = folder / name
    if path.exists():
        _file_inside(folder, name)
    if path.is_dir():
        return f"dir:{path}"
    if path.is_file():
        if path.suffix == ".toml":
            return f"recipe:{path}"
        return f"tar:{path}" if ".tar" in path.suffixes else f"dockerfile:{path}"
    kind, mark, rest = name.partition(":")
    is_path = kind != "recipe" or "/" in rest or rest.endswith(".toml")
    if mark and kind in _LOCAL_IMAGES and (is_path or (folder / rest).exists()):
        return f"{kind}:{_file_inside(folder, rest)}"  # for example oci:image
    if mark or name == "host":
        return name
    raise UsageError(
        f"{folder / TASK_FILE}: image = {name!r} is neither a file in {folder} nor an image"
    )


def _absolute_reference(folder: Path, reference: str) -> str:
    """Return a reference in which a file of the package has an absolute path."""
    return str(_file_inside(folder, reference)) if is_file_reference(reference) else reference


def read_description(folder: Path) -> str:
    """Return the description of a package. Raises as ``load``."""
    return _read_settings(folder).description
