"""Tables: rows under named columns, as programs use them and as readers see them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from intercode.core.errors import UsageError
from intercode.core.types.html import html_table
from intercode_sandbox.registry import unknown_name_error

Cell = str | int | float | None
MISSING = "-"
SIGNIFICANT_DIGITS = 3
"""The significant digits of costs: those of a column ``cost``, and of a row whose column ``unit``
is ``COST_UNIT``."""
COST_UNIT = "US dollars"
CONDITIONS = "conditions"
"""The column with what results depend on, in parts with commas between them."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. A cell is None if the logs do not give it.

    ``digits`` are the decimals of a column's floats (1 by default). ``name`` is short and stable,
    for programs; ``title`` and ``notes`` are for readers. For readers, ``intervals`` names columns
    that are shown as one: a value and the bounds of its interval. What all rows share of
    ``shared_columns`` stands once above them; ``conditions`` also in parts. ``less_important``
    columns may be left out where there is little room, the first of them first.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    digits: tuple[tuple[str, int], ...] = ()
    intervals: tuple[tuple[str, str, str], ...] = ()
    shared_columns: tuple[str, ...] = (CONDITIONS,)
    less_important: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(f"table {self.name!r}: {row!r} does not fit {self.columns!r}")

    def cell(self, column: str, **where: Cell) -> Cell:
        """Return the cell of the first row whose columns have the values of ``where``.

        Raises UsageError if there is no such column or row.
        """
        for name in (column, *where):
            if name not in self.columns:
                raise unknown_name_error(f"column of {self.name}", name, list(self.columns))
        for row in self.rows:
            values = dict(zip(self.columns, row, strict=True))
            if all(values[k] == v for k, v in where.items()):
                return values[column]
        raise UsageError(f"table {self.name!r} has no row with {where}")

    def formatted_rows(self) -> list[list[str]]:
        """Return the rows as text: rounded, ``-`` for missing cells."""
        digits = dict(self.digits)
        return [
            [
                format_cost(cell)
                if isinstance(cell, float) and (c == "cost" or self._is_cost(row))
                else _format_cell(cell, digits.get(c, 1))
                for c, cell in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]

    def _is_cost(self, row: Sequence[Cell]) -> bool:
        return "unit" in self.columns and row[self.columns.index("unit")] == COST_UNIT

    def numeric_columns(self) -> list[bool]:
        """Return which columns hold only numbers; they are aligned to the right."""
        columns = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        return [bool(c) and not any(isinstance(v, str) for v in c) for c in columns]

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        shown = self.for_reading()
        notes = [*([shown.shared_text] if shown.shared else []), *shown.notes]
        return html_table(
            shown.columns, shown.rows, title=self.title, notes=notes, right=shown.right
        )

    def for_reading(self, left_out: Collection[str] = ()) -> ReadableTable:
        """Return the table as readers see it, without the columns in ``left_out``."""
        right = dict(zip(self.columns, self.numeric_columns(), strict=True))
        texts = dict(zip(self.columns, zip(*self.formatted_rows(), strict=True), strict=False))
        cells = {name: list(texts.get(name, ())) for name in self.columns}
        for name, low, high in self.intervals:
            cells[name] = _with_bounds(cells[name], self._bounds(low), self._bounds(high))
        bounds = {bound for _, *both in self.intervals for bound in both}
        cells = {n: c for n, c in cells.items() if n not in bounds and n not in left_out}
        shared, named = self._share(cells)
        merged = {name for name, *_ in self.intervals}
        return ReadableTable(
            tuple(named.get(name, name) for name in cells),
            tuple(zip(*cells.values(), strict=True)),
            tuple(right[name] or name in merged for name in cells),
            tuple(shared),
            self.notes,
        )

    def _share(self, cells: dict[str, list[str]]) -> tuple[list[tuple[str, str]], dict[str, str]]:
        """Remove from ``cells`` what all rows share. Return it, and new names of columns."""
        shared: list[tuple[str, str]] = []
        named: dict[str, str] = {}
        for name in self.shared_columns if self.rows else ():
            column = cells.get(name)
            if column is None:
                continue
            if name == CONDITIONS:
                common, column = _split_conditions(column)
                named[name], cells[name] = _split_setting(column)
                if common:
                    shared.append((name, common))
                if not any(column):
                    del cells[name]
            elif len(self.rows) > 1 and len(set(column)) == 1:
                shared.append((name, cells.pop(name)[0]))
            elif prefix := _common_folder(column):
                shared.append((name, f"{prefix}..."))
                cells[name] = [text.removeprefix(prefix) for text in column]
        return shared, named

    def _bounds(self, name: str) -> list[str]:
        """Return the bounds of an interval, with one decimal less than the value."""
        digits = max(dict(self.digits).get(name, 1) - 1, 0)
        at = self.columns.index(name)
        return ["" if row[at] is None else _format_cell(row[at], digits) for row in self.rows]


@dataclass(frozen=True, slots=True)
class ReadableTable:
    """A table as readers see it. ``right`` says which columns are aligned to the right; ``shared``
    has what all rows share, with its names."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    shared: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    @property
    def shared_text(self) -> str:
        """What all rows share, as one line."""
        return "; ".join(t if n == CONDITIONS else f"{n} {t}" for n, t in self.shared)


def _with_bounds(values: Sequence[str], low: Sequence[str], high: Sequence[str]) -> list[str]:
    """Return values with their intervals, aligned with each other."""
    widths = [max(map(len, texts), default=0) for texts in (values, low, high)]
    empty = " " * (widths[1] + widths[2] + len(" [, ]"))
    return [
        v.rjust(widths[0])
        + (f" [{a.rjust(widths[1])}, {b.rjust(widths[2])}]" if a and b else empty)
        for v, a, b in zip(values, low, high, strict=True)
    ]


def _split_conditions(texts: Sequence[str]) -> tuple[str, list[str]]:
    """Return the parts that all conditions share, and what is left of each."""
    parts = [text.split(", ") for text in texts]
    common = [p for p in parts[0] if all(p in other for other in parts)]
    return ", ".join(common), [", ".join(p for p in own if p not in common) for own in parts]


def format_cost(dollars: float) -> str:
    """Return a cost in dollars with three significant digits, without an exponent."""
    if not dollars or not math.isfinite(dollars):
        return f"{dollars:z.2f}"
    size = math.floor(math.log10(abs(dollars)))
    return f"{dollars:z.{max(SIGNIFICANT_DIGITS - 1 - size, 0)}f}"


def _format_cell(cell: Cell, digits: int) -> str:
    if cell is None:
        return MISSING
    return f"{cell:z.{digits}f}" if isinstance(cell, float) else str(cell)


def _split_setting(texts: list[str]) -> tuple[str, list[str]]:
    """Return the name of the column and its cells: values, if all texts are ``NAME = VALUE`` of one
    setting."""
    names = {text.partition(" = ")[0] for text in texts}
    if len(names) != 1 or not all(" = " in text and ", " not in text for text in texts):
        return CONDITIONS, texts
    return names.pop(), [text.partition(" = ")[2] for text in texts]


def _common_folder(texts: Sequence[str]) -> str:
    """Return the beginning up to a slash that several texts share; empty if there is none."""
    if len(texts) < 2 or not all("/" in text for text in texts):
        return ""
    prefixes = {text.partition("/")[0] + "/" for text in texts}
    return prefixes.pop() if len(prefixes) == 1 else ""
