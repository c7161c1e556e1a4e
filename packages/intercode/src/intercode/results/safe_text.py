"""Text that every reader can take: bytes for encoders, no formulas for spreadsheets."""

from __future__ import annotations

import re

from intercode_sandbox.valid_text import replace_surrogates

_FORMULA = re.compile(r"[=@\t\r\n]|[+-].")


def encode_text(text: str) -> bytes:
    """Return a text as UTF-8: escaped bytes as they were, other lone surrogates as U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return replace_surrogates(text).encode()


def neutralise_formula(text: str) -> str:
    """Return a text for a cell of CSV, with an apostrophe before what a spreadsheet would execute:
    a text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end and is no number."""
    if not _FORMULA.match(text) or _is_number(text):
        return text
    return f"'{text}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return not text.isspace()
