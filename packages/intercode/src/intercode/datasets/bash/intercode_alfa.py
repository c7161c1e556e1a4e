"""Loads InterCode-ALFA: 300 tasks of NL2SH (Westenfelder et al., 2025, arXiv 2502.06858).

They are corrected and further tasks on NL2Bash's file systems and a fifth one, with two golds each.
Its authors compare outputs with a language model; here both golds are compared as everywhere.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.datasets import files
from intercode.datasets.bash.nl2bash import IMAGE, WITHOUT_LAYERS
from intercode.datasets.data_files import find_data_file
from intercode_sandbox.registry import unknown_name_error

NAME = "intercode-alfa"
FILE_SYSTEMS = ("fs_1", "fs_2", "fs_3", "fs_4", "fs_5")
DIFFICULTIES = ("easy", "medium", "hard")
_ASSETS = "src/icalfa/assets"
_VARIABLE = re.compile(r"^ENV\s+(\w+=.*)$", re.MULTILINE)


def _find_assets() -> Path:
    """Return the directory of the tasks, scripts and Dockerfiles. Raises UsageError without it."""
    return find_data_file(NAME, f"{_ASSETS}/datasets/nl2bash_fs_1.json").parent.parent


def _variables(assets: Path, name: str) -> str | None:
    """Return Bash code that sets the variables which the Dockerfile of a file system sets."""
    path = assets / "docker" / f"nl2bash{name.removeprefix('fs_')}.Dockerfile"
    settings = _VARIABLE.findall(files.read_text(path)) if path.is_file() else []
    return "; ".join(f"export {setting}" for setting in settings) or None


def _to_task(row: object, task_id: str, path: Path, where: str) -> Task:
    """Return a row as a task with both golds."""
    task = files.to_task(row, task_id, path, where)
    data = dict(task.data)
    second, difficulty = data.pop("gold2", None), data.pop("difficulty", None)
    if not isinstance(second, str):
        raise DataError(f"{path}, {where}: 'gold2' must be a text, not {second!r}")
    if difficulty not in range(len(DIFFICULTIES)):
        raise DataError(f"{path}, {where}: 'difficulty' must be 0, 1 or 2, not {difficulty!r}")
    also = () if second == task.gold else (second,)
    return replace(task, also=also, hardness=DIFFICULTIES[difficulty], data=data)


def _layers(name: str, docker: Path) -> tuple[LayerSpec, ...]:
    """Return the layers of a file system: its set-up script in ``/``, as the Dockerfile copies it,
    and what that makes. Raises UsageError without the script."""
    script = docker / f"setup_nl2b_{name}.sh"
    if not script.is_file():
        raise UsageError(
            f"the files of {name} are missing: there is no {script}; "
            f"run `intercode list --fetch {NAME}`"
        )
    others = tuple(sorted(file.name for file in docker.iterdir() if file.name != script.name))
    copy = LayerSpec("dir", docker, exclude=others, executable=(script.name,))
    return copy, LayerSpec("script", script, shift_dates=True)


def _tasks(name: str, assets: Path) -> list[Task]:
    """Return the tasks of one file system, in the order of their file."""
    path = assets / "datasets" / f"nl2bash_{name}.json"
    layers = () if name in WITHOUT_LAYERS else _layers(name, assets / "docker")
    setup = _variables(assets, name)
    return [
        replace(
            _to_task(row, f"{NAME}/{name}/{n}", path, f"row {n}"),
            group=name,
            files=layers,
            setup=setup,
        )
        for n, row in enumerate(files.read_json_rows(path))
    ]


def load(subset: str | None = None) -> Dataset:
    """Return InterCode-ALFA, or one of its file systems ``fs_1`` to ``fs_5``.

    Raises UnknownNameError for an unknown subset, UsageError if the data is missing, DataError for
    broken files.
    """
    if subset is not None and subset not in FILE_SYSTEMS:
        raise unknown_name_error(f"subset of {NAME}", subset, list(FILE_SYSTEMS))
    assets = _find_assets()
    chosen = (subset,) if subset else FILE_SYSTEMS
    tasks = tuple(task for name in chosen for task in _tasks(name, assets))
    return Dataset(f"{NAME}:{subset}" if subset else NAME, "bash", tasks, image=IMAGE)
