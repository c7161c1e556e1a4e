"""The Bash starter suite: a file system of this package and tasks on it.

The text files in ``description/`` describe most of the file system; ``generated_files`` makes the
logs, tables and archives. Directories that are not described have mode 0755 and time ``EPOCH``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import LayerSpec, TreeEntry
from intercode.datasets.bash.starter import generated_files
from intercode.datasets.starter.file_tree import EPOCH, parse_description


def entries() -> list[TreeEntry]:
    """Return everything in the tree, parents before children, ordered by path.

    Raises DataError if a description is malformed or names a path twice.
    """
    found: dict[str, TreeEntry] = {}
    for part in sorted(files(__package__).joinpath("description").iterdir(), key=lambda p: p.name):
        if part.name.endswith(".txt"):
            _add_entries(found, parse_description(part.read_text(encoding="utf-8"), part.name))
    _add_entries(found, generated_files.entries())
    for path in list(found):
        for parent in PurePosixPath(path).parents:
            if str(parent) != "/":
                found.setdefault(str(parent), TreeEntry("dir", str(parent), 0o755, EPOCH))
    return [found[path] for path in sorted(found, key=lambda p: p.split("/"))]


def _add_entries(found: dict[str, TreeEntry], more: Iterable[TreeEntry]) -> None:
    for entry in more:
        if entry.path in found:
            raise DataError(f"{entry.path!r} is described twice; remove one of the two")
        found[entry.path] = entry


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the Task for a row. ``root`` has the files of ``entries``."""
    return {**row, "files": (LayerSpec("dir", root),)}
