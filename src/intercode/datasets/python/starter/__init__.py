"""The Python starter suite: functions and classes to write, with hidden tests.

The tasks are in the files of ``tasks/``. A line ``== name`` begins a task. It is followed by lines
``hardness:`` and ``tags:``, the query, ``-- gold`` with a solution, optionally ``-- setup`` with
code that runs between the solution and the tests, and ``-- tests`` with one assert statement per
line. ``files.txt`` describes the files in the sandbox, in the format of ``starter.file_tree``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import LayerSpec
from intercode.datasets.hidden_tests import find_entry_point
from intercode.datasets.starter import file_tree
from intercode.datasets.starter.file_tree import TreeEntry

HOME = "/lab"
"""The working directory of the tasks."""

_HEAD = re.compile(r"^== ([a-z0-9-]+)$", re.MULTILINE)
_TASK = re.compile(
    r"\nhardness: (?P<hardness>\w+)\ntags: (?P<tags>.+)\n(?P<query>(?:.+\n)+)"
    r"-- gold\n(?P<gold>(?:.*\n)+?)(?:-- setup\n(?P<setup>(?:.*\n)+?))?"
    r"-- tests\n(?P<tests>(?:.+\n)+)\s*"
)


def entries() -> list[TreeEntry]:
    """Return every file and directory of the suite, parents before children."""
    return list(
        file_tree.parse_description(
            files(__package__).joinpath("files.txt").read_text("utf-8"), "files.txt"
        )
    )


def digest() -> str:
    """Return a digest of the suite's files; see ``tree_digest``."""
    return file_tree.tree_digest(entries())


def build(dest: Path) -> None:
    """Write the files below ``dest``; see ``write_tree``."""
    file_tree.write_tree(dest, entries())


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every task as a row, with its location for messages.

    Raises DataError for a task that is not in the format above.
    """
    for part in sorted(files(__package__).joinpath("tasks").iterdir(), key=lambda p: p.name):
        if part.name.endswith(".txt"):
            yield from parse(part.read_text("utf-8"), part.name)


def parse(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tasks in the text of one file as rows. ``name`` is the file's name for messages."""
    parts = _HEAD.split(text)
    if parts[0].strip():
        raise DataError(f"{name}: {parts[0].strip()[:40]!r} precedes the first '== name'")
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        where = f"starter/python/tasks/{name}, {title}"
        found = _TASK.fullmatch(body)
        if found is None:
            raise DataError(f"{where}: expected hardness, tags, a query, '-- gold' and '-- tests'")
        setup, tests = found["setup"] or "", tuple(found["tests"].splitlines())
        entry = find_entry_point(found["gold"], tests, setup, where)
        yield (
            where,
            {
                "id": f"starter/python/{title}",
                "query": found["query"].strip(),
                "gold": found["gold"].strip() + "\n",
                "hardness": found["hardness"],
                "tags": found["tags"].split(", "),
                "data": {"entry": entry.name, "tests": tests, "setup": setup, "mode": "assert"},
            },
        )


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the Task for a row. ``root`` has the files that ``build`` wrote."""
    return {**row, "files": (LayerSpec("dir", root),), "cwd": HOME}
