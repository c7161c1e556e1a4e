"""A table, and how it is written: text, Markdown, LaTeX, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intercode.core.errors import UsageError
from intercode.core.registry import unknown_name_error
from intercode.results.latex import render_latex

Cell = str | int | float | None
MISSING = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. A cell is None where the logs do not give it.

    ``digits`` are the decimals of a column's floats (1 where it is not named). ``name`` is short
    and stable, for programs; ``title`` and ``notes`` are for people.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    digits: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise UsageError(f"table {self.name!r}: {row!r} does not fit {self.columns!r}")

    def cell(self, column: str, **where: Cell) -> Cell:
        """The cell of the first row whose columns have the values of ``where``.

        Raises UsageError where there is no such column or row.
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
        """The rows as people read them: rounded, ``-`` for what is missing."""
        digits = dict(self.digits)
        return [
            [
                _format_cell(cell, digits.get(c, 1))
                for c, cell in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]

    def numeric_columns(self) -> list[bool]:
        """Which columns hold figures (they are set flush right)."""
        columns = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        return [bool(c) and not any(isinstance(v, str) for v in c) for c in columns]


def render(tables: Sequence[Table], style: str = "text") -> str:
    """All tables as one text. ``style`` is ``text``, ``markdown``, ``latex``, ``csv`` or
    ``json``.

    CSV holds one block a table (a line with its name, the header, the rows), blank lines between,
    figures rounded as shown and empty fields for what is missing. JSON holds full figures and null.
    Raises UnknownNameError for another style.
    """
    if style not in RENDERERS:
        raise unknown_name_error("format", style, list(RENDERERS))
    return RENDERERS[style](tables)


def _format_cell(cell: Cell, digits: int) -> str:
    if cell is None:
        return MISSING
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


def _render_text(tables: Sequence[Table]) -> str:
    return "\n".join(_render_text_table(t) for t in tables)


def _render_text_table(table: Table) -> str:
    lines = [list(table.columns), *table.formatted_rows()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    right = table.numeric_columns()
    out = [table.title]
    for number, line in enumerate(lines):
        cells = [
            c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)
        ]
        out.append("  ".join(cells).rstrip())
        if number == 0:
            out.append("  ".join("-" * w for w in widths))
    return "\n".join([*out, *(f"Note: {n}" for n in table.notes)]) + "\n"


def _render_markdown(tables: Sequence[Table]) -> str:
    return "\n".join(_render_markdown_table(t) for t in tables)


def _render_markdown_table(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"

    rule = ["---:" if right else "---" for right in table.numeric_columns()]
    out = [
        f"### {table.title}",
        "",
        line(table.columns),
        line(rule),
        *map(line, table.formatted_rows()),
    ]
    if table.notes:
        out += ["", *(f"- {note}" for note in table.notes)]
    return "\n".join(out) + "\n"


def _render_csv(tables: Sequence[Table]) -> str:
    blocks = []
    for table in tables:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([table.name])
        writer.writerow(table.columns)
        for row, shown in zip(table.rows, table.formatted_rows(), strict=True):
            writer.writerow(["" if c is None else s for c, s in zip(row, shown, strict=True)])
        blocks.append(out.getvalue())
    return "\n".join(blocks)


def _render_json(tables: Sequence[Table]) -> str:
    rows = [
        {
            "name": t.name,
            "title": t.title,
            "rows": [dict(zip(t.columns, row, strict=True)) for row in t.rows],
            "notes": list(t.notes),
        }
        for t in tables
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


RENDERERS: dict[str, Callable[[Sequence[Table]], str]] = {
    "text": _render_text,
    "markdown": _render_markdown,
    "latex": render_latex,
    "csv": _render_csv,
    "json": _render_json,
}
