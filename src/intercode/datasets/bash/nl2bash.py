"""NL2Bash as the InterCode authors lay it out: 200 tasks on four file systems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from intercode.core.errors import DataError, UsageError
from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.datasets import files
from intercode.datasets.data_files import find_data_file
from intercode.datasets.verified import verified_tasks

IMAGE = "recipe:nl2bash"
FILE_SYSTEMS = ("fs_1", "fs_2", "fs_3", "fs_4")
SUBSETS = (*FILE_SYSTEMS, "verified")
WITHOUT_LAYERS = frozenset({"fs_4"})
"""File systems that are the image alone: the authors' script for it makes nothing."""


@dataclass(frozen=True, slots=True)
class DataDirectories:
    """Where the parts of the data lie: the task files and tars, and the set-up scripts."""

    tasks: Path
    scripts: Path


def find_data() -> DataDirectories:
    """The directories of the data, in ``INTERCODE_DATA`` or where ``fetch`` put them.

    Both the authors' repository (``data/nl2bash``, ``docker``) and its data directory alone
    (``nl2bash``) will do. Raises UsageError that says how to get the data.
    """
    tasks = find_data_file("nl2bash", "nl2bash/nl2bash_fs_1.json").parent
    root = tasks.parent.parent if tasks.parent.name == "data" else tasks.parent
    return DataDirectories(tasks, root / "docker" / "bash_scripts")


def _file_system_layers(name: str, places: DataDirectories) -> tuple[LayerSpec, ...]:
    """What a file system lays over the image: its tar, else the script that makes it."""
    if name in WITHOUT_LAYERS:
        return ()
    tar = places.tasks / f"{name}.tar"
    if tar.is_file():
        return (LayerSpec("tar", tar, shift_dates=True),)
    script = places.scripts / f"setup_nl2b_{name}.sh"
    if script.is_file():
        return (LayerSpec("script", script, shift_dates=True),)
    raise UsageError(
        f"neither {tar} nor {script} is there, so the files of {name} are missing: "
        "run `intercode data fetch nl2bash`"
    )


def _tasks(name: str, places: DataDirectories) -> list[Task]:
    """The tasks of one file system, in the order of the authors' file."""
    path = places.tasks / f"nl2bash_{name}.json"
    rows = files.read_json(path)
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a list of rows, found {type(rows).__name__}")
    layers = _file_system_layers(name, places)
    return [
        replace(
            files.to_task(row, f"nl2bash/{name}/{n}", path, f"row {n}"), group=name, files=layers
        )
        for n, row in enumerate(rows)
    ]


def load(subset: str | None = None, *, verified: Path | None = None) -> Dataset:
    """NL2Bash, or one of its subsets ``fs_1`` to ``fs_4`` and ``verified``.

    ``verified`` is a file that takes the place of the packaged list of sound tasks. Raises
    UnknownNameError for another subset, UsageError without the data, DataError for broken files.
    """
    if subset is not None and subset not in SUBSETS:
        raise unknown_name_error("subset of nl2bash", subset, list(SUBSETS))
    places = find_data()
    chosen = (subset,) if subset in FILE_SYSTEMS else FILE_SYSTEMS
    tasks = [task for name in chosen for task in _tasks(name, places)]
    if subset == "verified":
        tasks = verified_tasks("nl2bash", tasks, verified)
    label = f"nl2bash:{subset}" if subset else "nl2bash"
    return Dataset(label, "bash", tuple(tasks), image=IMAGE)
