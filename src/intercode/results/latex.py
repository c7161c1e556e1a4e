"""Tables as LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intercode.results.tables import Table

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
_MIN_GROUPED_COLUMNS = 3
"""So many neighbouring columns whose names share their first word get a heading of their own."""


def render_latex(tables: Sequence[Table]) -> str:
    """Every table as a float with caption, label and notes. Needs ``booktabs`` in the preamble."""
    head = "% In the preamble: \\usepackage[T1]{fontenc} \\usepackage{booktabs}\n"
    return head + "\n".join(map(_render_table, tables))


def escape_latex(text: str) -> str:
    """A text as LaTeX prints it: every character that LaTeX gives a meaning is taken literally."""
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
    """The columns' names; above neighbours with one first word, that word once."""
    spans = [list(same) for _, same in groupby(columns, key=lambda c: c.split(" ")[0])]
    grouped = [len(s) >= _MIN_GROUPED_COLUMNS and all(" " in c for c in s) for s in spans]
    if any(grouped):
        above, rules, at = [], "", 1
        for span, is_group in zip(spans, grouped, strict=True):
            if is_group:
                word = escape_latex(span[0].split(" ")[0])
                above.append(f"\\multicolumn{{{len(span)}}}{{c}}{{{word}}}")
                rules += f"\\cmidrule(lr){{{at}-{at + len(span) - 1}}}"
            else:
                above += [""] * len(span)
            at += len(span)
        yield " & ".join(above) + r" \\"
        yield rules
    names = [
        column.split(" ", 1)[1] if is_group else column
        for span, is_group in zip(spans, grouped, strict=True)
        for column in span
    ]
    yield _render_row(names)
