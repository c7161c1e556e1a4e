"""The Python starter suite: functions and classes to write, with hidden tests.

The tasks are in the files of ``tasks/``, in the format of ``starter.task_texts``: ``-- gold`` with
a solution, optionally ``-- setup`` with code that runs between the solution and the tests, and
``-- tests`` with one assert statement per line. ``files.txt`` describes the files in the sandbox,
in the format of ``starter.file_tree``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.types import LayerSpec, TreeEntry
from intercode.datasets.hidden_tests import find_entry_point
from intercode.datasets.starter.file_tree import parse_description
from intercode.datasets.starter.task_texts import TextTask, read_tasks

HOME = "/lab"
"""The working directory of the tasks."""
KEYS = frozenset({"data"})


def entries() -> list[TreeEntry]:
    """Return every file and directory of the suite, parents before children."""
    text = files(__package__).joinpath("files.txt").read_text("utf-8")
    return list(parse_description(text, "files.txt"))


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every task as a row, with its location for messages."""
    for part in sorted(files(__package__).joinpath("tasks").iterdir(), key=lambda p: p.name):
        for task in read_tasks("python", part.name, needed={"gold", "tests"}):
            yield task.where, to_row(task)


def to_row(task: TextTask) -> dict[str, Any]:
    """Return a task as a row. Raises DataError if no test calls what the gold defines."""
    setup, tests = task.sections.get("setup", ""), tuple(task.sections["tests"].splitlines())
    entry = find_entry_point(task.sections["gold"], tests, setup, task.where)
    data = {"entry": entry.name, "tests": tests, "setup": setup, "mode": "assert"}
    return task.row(id=f"starter/python/{task.name}", data=data)


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the Task for a row. ``root`` has the files of ``entries``."""
    return {**row, "files": (LayerSpec("dir", root),), "cwd": HOME}
