"""JSON functions."""

from __future__ import annotations

import json
import math
from typing import Any

from intercode_sql.dialect.errors import mysql_error
from intercode_sql.embedded.catalog.types import BOOL, INT, JSON, JSON_TEXT
from intercode_sql.embedded.functions.registry import TEXT, internal, scalar

_MISSING = object()
_MISTAKES = {
    "Expecting value": "Invalid value.",
    "Extra data": "The document root must not be followed by other values.",
    "Expecting property name enclosed in double quotes": "Missing a name for object member.",
    "Expecting ':' delimiter": "Missing a colon after a name of object member.",
    "Expecting ',' delimiter": "Missing a comma or } after an object member.",
    "Unterminated string starting at": "Missing a closing quotation mark in string.",
}
"""Python's words for mistakes in a document, and MySQL's."""


def _read(text: str, function: str) -> Any:
    """Return the value of a document. Raises StatementError 3141 if a text is none."""
    try:
        return json.loads(text)
    except ValueError as error:
        found = _MISTAKES.get(getattr(error, "msg", ""), "Invalid value.")
        what = found if text.strip() else "The document is empty."
        raise mysql_error(3141, 1, function, what, getattr(error, "pos", 0)) from None


@scalar("JSON_EXTRACT", args=[TEXT, TEXT], returns=JSON)
def json_extract(text: str, path: str) -> str | None:
    """Return the value at one path of names and positions."""
    value: Any = _read(text, "json_extract")
    for part in path.removeprefix("$").replace("[", ".[").split(".")[1:]:
        if part.startswith("["):
            value = value if isinstance(value, list) else [value]  # another value is its own [0]
            at = int(part[1:-1])
            value = value[at] if at < len(value) else _MISSING
        else:
            value = value.get(part.strip('"'), _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            return None
    return json.dumps(value, ensure_ascii=False)


@scalar("JSON_UNQUOTE", args=[TEXT], returns=JSON_TEXT)
def json_unquote(text: str) -> str:
    return str(_read(text, "json_unquote")) if text.startswith('"') and text.endswith('"') else text


@internal("json_quote")
def json_quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@internal("json_compared", gives_bytes=True)
def json_compared(text: str) -> float | str | bytes:
    """Return a document for a comparison with a number or a text, in MySQL's order: null, numbers,
    texts, and then what is never equal to one."""
    value = json.loads(text)
    if value is None:
        return -math.inf
    if isinstance(value, str):
        return value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number else text.encode()


@scalar("JSON_VALID", args=[TEXT], returns=BOOL)
def json_valid(text: str) -> int:
    try:
        json.loads(text)
    except ValueError:
        return 0
    return 1


@scalar("JSON_LENGTH", args=[TEXT], returns=INT)
def json_length(text: str) -> int:
    value = _read(text, "json_length")
    return len(value) if isinstance(value, (list, dict)) else 1
