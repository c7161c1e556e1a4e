"""The values that engines take and return."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

Rows = tuple[tuple[Any, ...], ...]
"""The rows of a result. Values have the types in which the database returned them."""


ContentKind = Literal["mysql-dump", "sqlite"]
"""The content of a database file."""


@dataclass(frozen=True, slots=True)
class DatabaseSpec:
    """The file from which a database is filled.

    ``kind``: ``mysql-dump`` is a file of statements in MySQL's dialect, which may create several
    databases; ``sqlite`` is an SQLite file with one database. ``path``: the file on this machine.
    ``name``: the name of the default database.
    """

    kind: ContentKind
    path: Path
    name: str


class TypeCode(IntEnum):
    """The types of columns, with their numbers in MySQL's protocol."""

    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    BIGINT = 8
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    BIT = 16
    JSON = 245
    DECIMAL = 246
    BLOB = 252
    TEXT = 253


class ResultColumn(NamedTuple):
    """A column of a result: its name and type, the digits of a decimal and those after its point,
    and whether it can hold NULL, as far as the engine knows."""

    name: str
    type: TypeCode = TypeCode.NULL
    precision: int | None = None
    scale: int | None = None
    nullable: bool | None = None


@dataclass(frozen=True, slots=True)
class StatementInfo:
    """What a statement has reported beside its rows.

    ``columns`` describe the rows. ``affected_rows`` is the number of rows that were written, or -1
    if it is unknown. ``insert_id`` is the first value of AUTO_INCREMENT that was generated, or the
    last rowid. ``error`` is the number of the error in the engine's own numbering, and ``sqlstate``
    its class in standard SQL.
    """

    columns: tuple[ResultColumn, ...] = ()
    affected_rows: int = -1
    insert_id: int | None = None
    error: int = 0
    sqlstate: str = ""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The output of a statement and how it ended.

    ``output``: the text of the rows, or of the error. ``exit_code``: 0, 1 for an error of the
    statement, or None if it did not end by itself. ``omitted_bytes``: the number of bytes that were
    left out because the result was too long. ``note``: what was left out, in square brackets.
    ``rows``: the rows that the statement returned, or None. ``info``: what else it has reported.
    """

    output: str
    exit_code: int | None
    timed_out: bool = False
    omitted_bytes: int = 0
    note: str = ""
    rows: Rows | None = None
    info: StatementInfo = field(default=StatementInfo(), compare=False, repr=False)

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def observation(self) -> str:
        """The text that a reader gets: the output, and the note on a line of its own."""
        end = "\n" if self.note and self.output and not self.output.endswith("\n") else ""
        return f"{self.output}{end}{self.note}"
