"""The SQL starter tasks, and the two databases under them.

``databases.sql`` is a dump in MySQL's dialect, written for these tasks: ``allotment`` (plots,
tenancies, what was sown and harvested) and ``ferry`` (ships, sailings, crews, fares).
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.types import DatabaseSpec

DUMP = "databases.sql"


def _content() -> bytes:
    return files(__package__).joinpath(DUMP).read_bytes()


def digest() -> str:
    """The first 16 hex digits of the dump's SHA-256."""
    return hashlib.sha256(_content()).hexdigest()[:16]


def build(root: Path) -> None:
    """Put the dump into an existing directory."""
    (root / DUMP).write_bytes(_content())


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """The row as fields of a task: it plays in the ``database`` that it names, which is also its
    group."""
    name = row["database"]
    return {**row, "database": DatabaseSpec("mysql-dump", root / DUMP, name), "group": name}
