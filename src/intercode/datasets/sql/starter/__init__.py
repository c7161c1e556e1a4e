"""The SQL starter suite, and its two databases.

``databases.sql`` is a dump in MySQL's dialect, written for these tasks: ``allotment`` (plots,
tenancies, sowings and harvests) and ``ferry`` (ships, sailings, crews, fares).
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
    """Return the first 16 hex digits of the dump's SHA-256."""
    return hashlib.sha256(_content()).hexdigest()[:16]


def build(root: Path) -> None:
    """Write the dump into an existing directory."""
    (root / DUMP).write_bytes(_content())


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the Task for a row. The name of its database is also its group."""
    name = row["database"]
    return {**row, "database": DatabaseSpec("mysql-dump", root / DUMP, name), "group": name}
