"""The Capture-the-Flag starter suite: every episode gets its own flag and files from its seed.

Each module hides flags in files. The queries and golds are in a file of ``tasks/`` of the module's
name, in the format of ``starter.task_texts``. A gold is Bash code that prints the flag with
coreutils and Python alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from intercode.core.types import LayerSpec, Task, TreeEntry
from intercode.datasets.ctf.starter import (
    archives,
    classical_ciphers,
    encodings,
    logs,
    modern_ciphers,
    reversing,
    systems,
)
from intercode.datasets.ctf.starter.challenge import CreateFiles, SeededRandom
from intercode.datasets.starter.file_tree import empty_directory
from intercode.datasets.starter.task_texts import read_tasks

FOLDER = "/ctf/task"
"""The working directory of the tasks."""
_MODULES = (encodings, archives, logs, classical_ciphers, modern_ciphers, reversing, systems)
CREATE_FILES: dict[str, CreateFiles] = {
    f"starter/ctf/{name}": create for part in _MODULES for name, create in part.CREATE_FILES.items()
}


def entries() -> list[TreeEntry]:
    """Return the empty working directory; every episode adds its own files."""
    return empty_directory(FOLDER)


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every task as a row, with its location for messages."""
    for part in _MODULES:
        name = part.__name__.rpartition(".")[2]
        for task in read_tasks("ctf", f"{name}.txt", needed={"gold"}):
            gold = task.sections["gold"].strip()
            yield task.where, task.row(id=f"starter/ctf/{task.name}", gold=gold)


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row as fields of a task; ``instantiate`` adds the flag and the files."""
    return {**row, "files": (LayerSpec("dir", root),), "cwd": FOLDER, "instantiate": instantiate}


def instantiate(task: Task, seed: int) -> Task:
    """Return the task with the flag and the files for a seed, the same on every machine."""
    rng = SeededRandom(f"{task.id}:{seed}")
    flag = rng.flag()
    contents = tuple(
        TreeEntry("file", f"{FOLDER}/{name}", mode, None, data)
        for name, (data, mode) in (
            (name, made if isinstance(made, tuple) else (made, 0o644))
            for name, made in CREATE_FILES[task.id](rng, flag).items()
        )
    )
    return replace(task, flag=flag, initial_files=contents, instantiate=None)
