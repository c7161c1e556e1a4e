"""Text that every reader can take: lone surrogates for encoders, formulas for spreadsheets."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_FORMULA = re.compile(r"[=@\t\r\n]|[+-].")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def replace_surrogates(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, which no encoding of Unicode can hold.

    Records hold them: a byte of a program's output that is not UTF-8 (``\\udc80`` for 0x80), or
    what a model wrote.
    """
    return _SURROGATE.sub(_REPLACEMENT, text)


def has_surrogates(text: str) -> bool:
    """Return whether a text holds a lone surrogate."""
    return _SURROGATE.search(text) is not None


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
