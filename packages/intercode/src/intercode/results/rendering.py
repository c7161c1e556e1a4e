"""Renders tables as text, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Sequence

from intercode.results.latex import render_latex
from intercode.results.safe_text import neutralise_formula
from intercode.results.tables import Cell, Table
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.valid_text import replace_surrogates

TABLE_COLUMN = "table"
"""The first column of CSV: the name of the table that a row is from."""


def render(tables: Sequence[Table], style: str = "text") -> str:
    """Render all tables as one text. ``style`` is ``text``, ``markdown``, ``latex``, ``csv`` or
    ``json``.

    In the first three, what all rows share stands once above a table. CSV is one rectangle: the
    name of each row's table, then all columns of all tables, with full numbers and empty fields for
    missing cells; an apostrophe precedes a text that a spreadsheet would execute. JSON has full
    numbers and null. Lone surrogates become U+FFFD. Raises UnknownNameError for
    another style.
    """
    style = _SHORT_NAMES.get(style, style)
    if style not in RENDERERS:
        raise unknown_name_error("format", style, list(RENDERERS))
    return replace_surrogates(RENDERERS[style](tables))


def _render_text_table(table: Table) -> str:
    shown = table.for_reading()
    cell_widths = [
        max((len(row[i]) for row in shown.rows), default=0) for i in range(len(shown.columns))
    ]
    names = [
        textwrap.wrap(name, max(w, *map(len, name.split())), break_on_hyphens=False)
        if name.split()
        else [name]
        for name, w in zip(shown.columns, cell_widths, strict=True)
    ]
    height = max(map(len, names))
    heads = [["" for _ in range(height - len(words))] + words for words in names]
    widths = [max(w, *map(len, words)) for w, words in zip(cell_widths, names, strict=True)]
    rule = ["-" * w for w in widths]
    out = [table.title, *([shown.shared_text] if shown.shared else [])]
    for line in (*zip(*heads, strict=True), rule, *shown.rows):
        cells = [
            c.rjust(w) if r else c.ljust(w)
            for c, w, r in zip(line, widths, shown.right, strict=True)
        ]
        out.append("  ".join(cells).rstrip())
    return "\n".join([*out, *(f"Note: {n}" for n in shown.notes)]) + "\n"


def _render_markdown_table(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"

    shown = table.for_reading()
    rule = ["---:" if right else "---" for right in shown.right]
    out = [
        f"### {table.title}",
        "",
        *([shown.shared_text, ""] if shown.shared else []),
        line(shown.columns),
        line(rule),
        *map(line, shown.rows),
    ]
    if shown.notes:
        out += ["", *(f"- {note}" for note in shown.notes)]
    return "\n".join(out) + "\n"


def _render_csv(tables: Sequence[Table]) -> str:
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(neutralise_formula, [TABLE_COLUMN, *columns]))
    for table in tables:
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            writer.writerow(map(_csv_text, [table.name, *map(cells.get, columns)]))
    return out.getvalue()


def _csv_text(cell: Cell) -> str:
    if cell is None:
        return ""
    return neutralise_formula(cell) if isinstance(cell, str) else str(cell)


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


_SHORT_NAMES = {"md": "markdown", "tex": "latex", "txt": "text"}
RENDERERS: dict[str, Callable[[Sequence[Table]], str]] = {
    "text": lambda tables: "\n".join(map(_render_text_table, tables)),
    "markdown": lambda tables: "\n".join(map(_render_markdown_table, tables)),
    "latex": render_latex,
    "csv": _render_csv,
    "json": _render_json,
}
