"""Which columns of a table fill which fields of a task: ``?query=question&gold=answer``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from intercode.core.errors import DataError, UsageError
from intercode.core.registry import unknown_name_error

FIELDS = (
    "query", "gold", "id", "also", "setup", "cwd", "group", "hardness", "tags", "flag", "tests",
    "entry", "language", "notes",
)  # fmt: skip
"""What a column may be given for."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Field to column. What names no column is filled by the column of its own name."""

    names: Mapping[str, str] = field(default_factory=dict)

    def rename(self, row: Any, where: str) -> Any:
        """A row with its columns renamed. Raises DataError where it lacks one."""
        if not self.names or not isinstance(row, Mapping):
            return row
        out = {k: v for k, v in row.items() if k not in self.names.values()}
        for name, column in self.names.items():
            if column not in row:
                there = ", ".join(map(str, row)) or "nothing"
                raise DataError(f"{where}: no column {column!r} for {name!r}; there are {there}")
            out[name] = row[column]
        return out


def parse_options(spec: str, others: tuple[str, ...] = ()) -> tuple[str, Columns, dict[str, str]]:
    """``place?name=value&…`` as the place, the columns, and those options that are in ``others``.

    Raises UnknownNameError for another option, UsageError for one that is there twice or empty.
    """
    place, mark, text = spec.partition("?")
    columns, options = dict[str, str](), dict[str, str]()
    pairs = parse_qsl(text, keep_blank_values=True)
    if mark and not pairs:
        raise UsageError(f"{spec!r}: write what follows the question mark as name=value")
    for name, value in pairs:
        if name not in (*others, *FIELDS):
            raise unknown_name_error(f"option of {place}", name, [*others, *FIELDS])
        chosen = options if name in others else columns
        if not value or name in chosen:
            raise UsageError(f"{spec!r}: {name!r} needs one value, written once")
        chosen[name] = value
    return place, Columns(columns), options
