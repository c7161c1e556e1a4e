"""Tables as HTML, for notebooks. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_PRE = "white-space:pre-wrap;text-align:left;vertical-align:top;font-family:monospace"


def html_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    notes: Sequence[str] = (),
    right: Sequence[bool] = (),
) -> str:
    """Return a table. ``right`` says which columns are aligned to the right; without it, cells are
    set as code is."""
    styles = [f"text-align:{'right' if r else 'left'}" for r in right] or [_PRE] * len(columns)
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='{s}'>{escape(c)}</td>" for c, s in zip(row, styles, strict=True))
        + "</tr>"
        for row in rows
    )
    parts = [f"<div><b>{escape(title)}</b></div>" if title else ""]
    parts += [f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"]
    return "".join([*parts, *(f"<div>{escape(note)}</div>" for note in notes)])


def html_details(summary: str, content: str) -> str:
    """Return HTML that is shown after a click on ``summary``."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"
