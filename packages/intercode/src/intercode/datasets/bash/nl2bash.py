"""Loads NL2Bash in the InterCode authors' layout: 200 tasks on four file systems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.datasets import files
from intercode.datasets.data_files import find_data_file
from intercode.datasets.verified import verified_tasks
from intercode_sandbox.registry import unknown_name_error

IMAGE = "recipe:nl2bash"
FILE_SYSTEMS = ("fs_1", "fs_2", "fs_3", "fs_4")
SUBSETS = (*FILE_SYSTEMS, "verified")
WITHOUT_LAYERS = frozenset({"fs_4"})
"""File systems without files of their own: the authors' set-up script for them creates none."""


@dataclass(frozen=True, slots=True)
class DataDirectories:
    """``tasks`` holds the files of tasks and the tars of file systems, ``scripts`` the set-up
    scripts."""

    tasks: Path
    scripts: Path


def find_data() -> DataDirectories:
    """Return the directories of the data, from ``INTERCODE_DATA`` or the fetched data.

    They are ``data/nl2bash`` and ``docker`` of the authors' repository, or ``nl2bash`` and
    ``docker`` of a data directory. Raises UsageError that says how to get the data.
    """
    tasks = find_data_file("nl2bash", "nl2bash/nl2bash_fs_1.json").parent
    root = tasks.parent.parent if tasks.parent.name == "data" else tasks.parent
    return DataDirectories(tasks, root / "docker" / "bash_scripts")


def _file_system_layers(name: str, paths: DataDirectories) -> tuple[LayerSpec, ...]:
    """Return the layers of a file system over the image: its tar, or without one its set-up
    script."""
    if name in WITHOUT_LAYERS:
        return ()
    tar = paths.tasks / f"{name}.tar"
    if tar.is_file():
        return (LayerSpec("tar", tar, shift_dates=True),)
    script = paths.scripts / f"setup_nl2b_{name}.sh"
    if script.is_file():
        return (LayerSpec("script", script, shift_dates=True),)
    raise UsageError(
        f"the files of {name} are missing: neither {tar} nor {script} exists; "
        "run `intercode list --fetch nl2bash`"
    )


def _tasks(name: str, paths: DataDirectories) -> list[Task]:
    """Return the tasks of one file system, in the order of the authors' file."""
    path = paths.tasks / f"nl2bash_{name}.json"
    layers = _file_system_layers(name, paths)
    return [
        replace(
            files.to_task(row, f"nl2bash/{name}/{n}", path, f"row {n}"), group=name, files=layers
        )
        for n, row in enumerate(files.read_json_rows(path))
    ]


def load(subset: str | None = None, *, verified: Path | None = None) -> Dataset:
    """Return NL2Bash, or one of its subsets ``fs_1`` to ``fs_4`` and ``verified``.

    ``verified`` is a file that replaces the packaged list of verified tasks. Raises
    UnknownNameError for an unknown subset, UsageError if the data is missing, DataError for broken
    files.
    """
    if subset is not None and subset not in SUBSETS:
        raise unknown_name_error("subset of nl2bash", subset, list(SUBSETS))
    paths = find_data()
    chosen = (subset,) if subset in FILE_SYSTEMS else FILE_SYSTEMS
    tasks = [task for name in chosen for task in _tasks(name, paths)]
    if subset == "verified":
        tasks = verified_tasks("nl2bash", tasks, verified)
    label = f"nl2bash:{subset}" if subset else "nl2bash"
    return Dataset(label, "bash", tuple(tasks), image=IMAGE)
