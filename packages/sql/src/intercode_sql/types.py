"""The values that engines take and return."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Rows = tuple[tuple[Any, ...], ...]
"""The rows of a result. Values have the types in which the database returned them."""


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """The file from which a database is filled.

    ``kind``: ``mysql-dump`` is a file of statements in MySQL's dialect, which may create several
    databases; ``sqlite`` is an SQLite file with one database. ``path``: the file on this machine.
    ``name``: the name of the default database.
    """

    kind: Literal["mysql-dump", "sqlite"]
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The output of a statement and how it ended.

    ``output``: the text of the rows, or of the error. ``exit_code``: 0, 1 for an error of the
    statement, or None if it did not end by itself. ``omitted_bytes``: the number of bytes that were
    left out because the result was too long. ``note``: what was left out, in square brackets.
    ``rows``: the rows that the statement returned, or None.
    """

    output: str
    exit_code: int | None
    timed_out: bool = False
    omitted_bytes: int = 0
    note: str = ""
    rows: Rows | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def observation(self) -> str:
        """The text that a reader gets: the output, and the note on a line of its own."""
        end = "\n" if self.note and self.output and not self.output.endswith("\n") else ""
        return f"{self.output}{end}{self.note}"
