"""Renders tables as LaTeX that fits a column of a paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from intercode.results.tables import ReadableTable, Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}
_MIN_GROUPED_COLUMNS = 3
"""The number of neighbouring columns with the same first word that get a common heading."""


COLUMN_WIDTH = 235.0
"""Points in the width of a column of common two-column styles (ACL 219, ICML 235, IEEE 252)."""
_CHARACTER_WIDTHS = ((" []()|,.:;'!ijl", 0.3), ("-frtsz", 0.41), ("mwMW%@=+", 0.88))
_OTHER_WIDTH, _UPPER_WIDTH = 0.53, 0.74
"""Widths of characters of Computer Modern at 8 points, in units of the size of the font."""


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a table's text: its name in LaTeX, its points, and the space beside a column."""

    name: str
    points: float
    separation: float


_SIZES = (_Size("footnotesize", 8, 3), _Size("scriptsize", 7, 2))


def render_latex(tables: Sequence[Table]) -> str:
    """Render every table as a float with caption, label and notes. Needs ``booktabs`` in the
    preamble.

    A table too wide for a column leaves out columns that are marked as less important, and names
    them in a note. If that is not enough, it spans two columns (``table*``).
    """
    head = "% In the preamble: \\usepackage[T1]{fontenc} \\usepackage{booktabs}\n"
    return head + "\n".join(map(_render_table, tables))


def escape_latex(text: str) -> str:
    """Escape every character that has a meaning in LaTeX."""
    return "".join(_ESCAPES.get(c, c) for c in " ".join(text.split()))


def _render_table(table: Table) -> str:
    kind, size, shown = _fit(table)
    label = re.sub(r"[^A-Za-z0-9-]+", "-", table.name).strip("-")
    kinds = "".join("r" if right else "l" for right in shown.right)
    caption = table.title + (f" ({shown.shared_text})" if shown.shared else "")
    lines = [
        f"\\begin{{{kind}}}",
        f"\\centering\\{size.name}\\setlength{{\\tabcolsep}}{{{size.separation:g}pt}}",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\label{{tab:{label}}}",
        f"\\begin{{tabular}}{{{kinds}}}",
        "\\toprule",
        *_render_heading(shown.columns),
        "\\midrule",
        *(_render_row(cells) for cells in shown.rows),
        "\\bottomrule",
        "\\end{tabular}",
        *(f"\\par\\footnotesize {escape_latex(note)}" for note in shown.notes),
        f"\\end{{{kind}}}",
    ]
    return "\n".join(lines) + "\n"


def _fit(table: Table) -> tuple[str, _Size, ReadableTable]:
    """Return the float that a table fits, the size of its text, and what is shown of it."""
    for size in _SIZES:
        for count in range(len(table.less_important) + 1):
            left_out = table.less_important[:count]
            shown = table.for_reading(left_out)
            if width(shown, size) <= COLUMN_WIDTH:
                names = [name for name in left_out if name in table.columns]
                note = f"Left out for the width: {', '.join(names)}."
                return "table", size, replace(shown, notes=(*shown.notes, *([note] * bool(names))))
    return "table*", _SIZES[0], table.for_reading()


def width(shown: ReadableTable, size: _Size = _SIZES[0]) -> float:
    """Return about how many points wide a table is."""
    grouped = dict(_grouped_names(shown.columns))
    total = 0.0
    for index, name in enumerate(shown.columns):
        words = [grouped[index]] if index in grouped else name.split()
        total += max(
            map(_printed_width, [*words, *(row[index] for row in shown.rows)]), default=0.0
        )
    return total * size.points + 2 * size.separation * len(shown.columns)


def _printed_width(text: str) -> float:
    total = 0.0
    for character in text:
        known = next((w for found, w in _CHARACTER_WIDTHS if character in found), None)
        other = _UPPER_WIDTH if character.isupper() else _OTHER_WIDTH
        total += other if known is None else known
    return total


def _render_row(cells: Sequence[str]) -> str:
    return " & ".join(map(escape_latex, cells)) + r" \\"


def _grouped_names(columns: Sequence[str]) -> list[tuple[int, str]]:
    """Return the columns whose first word stands in a row above, with what is left of them."""
    spans = [list(same) for _, same in groupby(enumerate(columns), key=_first_word)]
    return [
        (index, name.split(" ", 1)[1])
        for span in spans
        if len(span) >= _MIN_GROUPED_COLUMNS and all(" " in name for _, name in span)
        for index, name in span
    ]


def _render_heading(columns: Sequence[str]) -> Iterator[str]:
    """Yield the columns' names; neighbours that share a first word get it once, in a row above."""
    grouped = dict(_grouped_names(columns))
    if grouped:
        headings, rules = [], ""
        for _, same in groupby(enumerate(columns), key=_first_word):
            span = list(same)
            first = span[0][0]
            if first in grouped:
                word = escape_latex(span[0][1].split(" ")[0])
                headings.append(f"\\multicolumn{{{len(span)}}}{{c}}{{{word}}}")
                rules += f"\\cmidrule(lr){{{first + 1}-{first + len(span)}}}"
            else:
                headings += [""] * len(span)
        yield " & ".join(headings) + r" \\"
        yield rules
    names = [
        escape_latex(grouped[index]) if index in grouped else _stacked(name)
        for index, name in enumerate(columns)
    ]
    yield " & ".join(names) + r" \\"


def _stacked(name: str) -> str:
    """Return the words of a column's name above each other."""
    words = [escape_latex(word) for word in name.split()]
    stacked = r"\\".join(words)
    return stacked if len(words) == 1 else rf"\shortstack[r]{{{stacked}}}"


def _first_word(column: tuple[int, str]) -> str:
    return column[1].split(" ")[0]
