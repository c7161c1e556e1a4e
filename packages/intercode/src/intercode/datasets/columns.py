"""Parses the options after a dataset's name, such as which columns fill which fields of a task.

``?query=question&gold=answer`` fills ``query`` from the column ``question``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from intercode.core.errors import DataError, UsageError
from intercode_sandbox.registry import unknown_name_error

FIELDS = (
    "query",
    "gold",
    "id",
    "also",
    "setup",
    "cwd",
    "group",
    "hardness",
    "tags",
    "flag",
    "tests",
    "entry",
    "language",
    "notes",
)
"""Fields that an option may fill from a column of another name."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A mapping from field to column. Fields that are not in it use the column of their own
    name."""

    names: Mapping[str, str] = field(default_factory=dict)

    def rename(self, row: Any, where: str) -> Any:
        """Return a row with its columns renamed. Raises DataError if a column is missing."""
        if not self.names or not isinstance(row, Mapping):
            return row
        out = {k: v for k, v in row.items() if k not in self.names.values()}
        for name, column in self.names.items():
            if column not in row:
                names = ", ".join(map(str, row)) or "nothing"
                raise DataError(f"{where}: no column {column!r} for {name!r}; found {names}")
            out[name] = row[column]
        return out


def parse_options(
    spec: str, others: tuple[str, ...], fields: tuple[str, ...] = FIELDS
) -> tuple[str, Columns, dict[str, str]]:
    """Split ``path?name=value&…`` into the path, the columns of ``fields``, and the options named
    in ``others``.

    Raises UnknownNameError for an unknown option, UsageError for one that is repeated or empty.
    """
    path, mark, text = spec.partition("?")
    columns, options = dict[str, str](), dict[str, str]()
    pairs = parse_qsl(text, keep_blank_values=True)
    if mark and not pairs:
        raise UsageError(f"{spec!r}: options after the question mark are written name=value")
    for name, value in pairs:
        if name not in (*others, *fields):
            raise unknown_name_error(f"option of {path}", name, [*others, *fields])
        chosen = options if name in others else columns
        if not value or name in chosen:
            raise UsageError(f"{spec!r}: give {name!r} exactly one value")
        chosen[name] = value
    return path, Columns(columns), options
