"""The SQL starter suite, and its two databases.

``databases.sql`` is a dump in MySQL's dialect, written for these tasks: ``allotment`` (plots,
tenancies, sowings and harvests) and ``ferry`` (ships, sailings, crews, fares).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.types import DatabaseSpec, TreeEntry
from intercode.datasets.starter.file_tree import EPOCH

DUMP = "databases.sql"
KEYS = frozenset({"database"})


def entries() -> list[TreeEntry]:
    """Return the dump as a file."""
    return [TreeEntry("file", DUMP, 0o644, EPOCH, files(__package__).joinpath(DUMP).read_bytes())]


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the Task for a row. The name of its database is also its group."""
    name = row["database"]
    return {**row, "database": DatabaseSpec("mysql-dump", root / DUMP, name), "group": name}
