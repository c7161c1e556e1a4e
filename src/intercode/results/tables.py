"""Tables, and their rendering as text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from intercode.core.errors import UsageError
from intercode.core.registry import unknown_name_error
from intercode.core.types.html import html_table
from intercode.results.safe_text import neutralise_formula, replace_surrogates

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
_MIN_GROUPED_COLUMNS = 3
"""The number of neighbouring columns with the same first word that get a common heading."""


def render_latex(tables: Sequence[Table]) -> str:
    """Render every table as a float with caption, label and notes. Needs ``booktabs`` in the
    preamble."""
    head = "% In the preamble: \\usepackage[T1]{fontenc} \\usepackage{booktabs}\n"
    return head + "\n".join(map(_render_table, tables))


def escape_latex(text: str) -> str:
    """Escape every character that has a meaning in LaTeX."""
    return "".join(_ESCAPES.get(c, c) for c in " ".join(text.split()))


def _render_table(table: Table) -> str:
    label = re.sub(r"[^A-Za-z0-9-]+", "-", table.name).strip("-")
    kinds = "".join("r" if numeric else "l" for numeric in table.numeric_columns())
    lines = [
        "\\begin{table}",
        "\\centering\\small",
        f"\\caption{{{escape_latex(table.title)}}}",
        f"\\label{{tab:{label}}}",
        f"\\begin{{tabular}}{{{kinds}}}",
        "\\toprule",
        *_render_heading(table.columns),
        "\\midrule",
        *(_render_row(cells) for cells in table.formatted_rows()),
        "\\bottomrule",
        "\\end{tabular}",
        *(f"\\par\\footnotesize {escape_latex(note)}" for note in table.notes),
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _render_row(cells: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, cells)) + r" \\"


def _render_heading(columns: Sequence[str]) -> Iterator[str]:
    """Yield the columns' names; neighbours that share a first word get it once, in a row above."""
    spans = [list(same) for _, same in groupby(columns, key=lambda c: c.split(" ")[0])]
    grouped = [len(s) >= _MIN_GROUPED_COLUMNS and all(" " in c for c in s) for s in spans]
    if any(grouped):
        headings, rules, column_number = [], "", 1
        for span, is_group in zip(spans, grouped, strict=True):
            if is_group:
                word = escape_latex(span[0].split(" ")[0])
                headings.append(f"\\multicolumn{{{len(span)}}}{{c}}{{{word}}}")
                rules += f"\\cmidrule(lr){{{column_number}-{column_number + len(span) - 1}}}"
            else:
                headings += [""] * len(span)
            column_number += len(span)
        yield " & ".join(headings) + r" \\"
        yield rules
    names = [
        column.split(" ", 1)[1] if is_group else column
        for span, is_group in zip(spans, grouped, strict=True)
        for column in span
    ]
    yield _render_row(names)


Cell = str | int | float | None
MISSING = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. A cell is None if the logs do not give it.

    ``digits`` are the decimals of a column's floats (1 by default). ``name`` is short and stable,
    for programs; ``title`` and ``notes`` are for readers.
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
                _format_cell(cell, digits.get(c, 1))
                for c, cell in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]

    def numeric_columns(self) -> list[bool]:
        """Return which columns hold only numbers; they are aligned to the right."""
        columns = [[row[i] for row in self.rows] for i in range(len(self.columns))]
        return [bool(c) and not any(isinstance(v, str) for v in c) for c in columns]

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return html_table(
            self.columns, self.formatted_rows(), title=self.title, notes=self.notes,
            right=self.numeric_columns(),
        )  # fmt: skip


def render(tables: Sequence[Table], style: str = "text") -> str:
    """Render all tables as one text. ``style`` is ``text``, ``markdown``, ``latex``, ``csv`` or
    ``json``.

    CSV has one block per table (a line with its name, the header, the rows), separated by blank
    lines, with rounded numbers and empty fields for missing cells. JSON has full numbers and null.
    In CSV an apostrophe precedes a text that a spreadsheet would execute. Lone surrogates become
    U+FFFD. Raises UnknownNameError for another style.
    """
    if style not in RENDERERS:
        raise unknown_name_error("format", style, list(RENDERERS))
    return replace_surrogates(RENDERERS[style](tables))


def _format_cell(cell: Cell, digits: int) -> str:
    if cell is None:
        return MISSING
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


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
        writer.writerow([neutralise_formula(table.name)])
        writer.writerow(map(neutralise_formula, table.columns))
        for row, shown in zip(table.rows, table.formatted_rows(), strict=True):
            writer.writerow(_csv_text(c, s) for c, s in zip(row, shown, strict=True))
        blocks.append(out.getvalue())
    return "\n".join(blocks)


def _csv_text(cell: Cell, shown: str) -> str:
    if cell is None:
        return ""
    return neutralise_formula(shown) if isinstance(cell, str) else shown


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
    "text": lambda tables: "\n".join(map(_render_text_table, tables)),
    "markdown": lambda tables: "\n".join(map(_render_markdown_table, tables)),
    "latex": render_latex,
    "csv": _render_csv,
    "json": _render_json,
}
