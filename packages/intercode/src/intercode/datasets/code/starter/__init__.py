"""The Code starter suite: functions and programs to write in JavaScript, C and Java.

The tasks are in the files of ``tasks/``, in the format of ``starter.task_texts``. A function's task
has its name under ``-- entry``; a program's task shows the test under ``-- example`` in its query.
The tests are hidden, one JSON object per line. Their outputs do not come from the gold: a second
implementation in Python computed them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from intercode.core.types import LayerSpec, TreeEntry
from intercode.datasets.starter.file_tree import empty_directory
from intercode.datasets.starter.task_texts import read_tasks

HOME = "/code"
"""The working directory of the tasks, which is empty."""
PROGRAMS = ("node", "gcc", "javac")
_LANGUAGES = ("javascript", "c", "java")
KEYS = frozenset({"data"})


def entries() -> list[TreeEntry]:
    """Return the empty working directory."""
    return empty_directory(HOME)


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every task as a row, with its location for messages."""
    for language in _LANGUAGES:
        for task in read_tasks("code", f"{language}.txt", needed={"gold", "tests"}):
            query, parts = task.query, task.sections
            tests = tuple(map(json.loads, parts["tests"].splitlines()))
            data: dict[str, Any] = {"language": language, "tests": tests}
            if "entry" in parts:
                data["entry"] = parts["entry"].strip()
            else:
                first = json.loads(parts["example"])
                data["example"] = first["input"]
                query += f"\n\nFor the input\n\n{first['input']}\nit prints\n\n{first['output']}"
            name, tags = f"starter/code/{language}/{task.name}", (language, *task.tags)
            yield task.where, task.row(id=name, query=query, tags=tags, data=data)


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the Task for a row. ``root`` has the files of ``entries``."""
    group = row["data"]["language"]
    return {**row, "files": (LayerSpec("dir", root),), "cwd": HOME, "group": group}
