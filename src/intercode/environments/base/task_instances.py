"""Tasks that are another in every episode, and the files that an episode begins with."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

from numpy.random import Generator

from intercode.core.types import FileEntry, Task


def instantiate_task(task: Task, seed: int | None, random: Generator) -> tuple[Task, int | None]:
    """The task as an episode plays it, and what it was made from: the episode's seed, or a number
    of its own where there is none; None for a task that is always the same."""
    if task.instantiate is None:
        return task, None
    chosen = int(random.integers(1 << 53)) if seed is None else seed
    return task.instantiate(task, chosen), chosen


def initial_file_entries(task: Task) -> dict[str, FileEntry]:
    """The files that an episode of a task begins with, and their directories, as changes."""
    found = {}
    for path, (content, mode) in task.initial_files.items():
        for above in PurePosixPath(path).parents[:-1]:
            found[str(above)] = FileEntry("dir", 0o755)
        digest = hashlib.sha256(content).hexdigest()
        found[path] = FileEntry("file", mode, len(content), digest)
    return found
