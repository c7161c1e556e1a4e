"""JSON functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

from intercode_sql.dialect.errors import mysql_error
from intercode_sql.embedded.catalog.types import BOOL, INT, JSON, JSON_TEXT
from intercode_sql.embedded.catalog.values import document_text, load_json
from intercode_sql.embedded.functions.registry import (
    OPTIONAL_TEXT,
    TEXT,
    TEXTS,
    internal,
    scalar,
)

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
        return load_json(text)
    except ValueError as error:
        found = _MISTAKES.get(getattr(error, "msg", ""), "Invalid value.")
        what = found if text.strip() else "The document is empty."
        raise mysql_error(3141, 1, function, what, getattr(error, "pos", 0)) from None


_LEG = re.compile(
    r"""\s*(?:\.\s*(?:(?P<names>\*)|(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<name>(?:[^\W\d]|\$)[\w$]*))
    |\[\s*(?:(?P<cells>\*)|(?P<first>\d+|last(?:\s*-\s*\d+)?)
    (?:\s+to\s+(?P<end>\d+|last(?:\s*-\s*\d+)?))?)\s*\]|(?P<deep>\*\*)(?=\s*[.\[]))\s*""",
    re.X,
)


@lru_cache(maxsize=256)
def _legs(path: str) -> tuple[dict[str, str | None], ...]:
    """Return the legs of a path. Raises StatementError 3143 if a text is no path."""
    at, legs = 1, []
    if not path.startswith("$"):
        raise mysql_error(3143, 1)
    while at < len(path):
        found = _LEG.match(path, at)
        if found is None:
            raise mysql_error(3143, at + 1)
        legs.append(found.groupdict())
        at = found.end()
    return tuple(legs)


def _followed(values: list[Any], leg: dict[str, str | None]) -> list[Any]:
    """Return the values to which a leg of a path leads. A value that is no array is its own
    ``[0]``."""
    if leg["deep"]:
        return [inner for value in values for inner in _with_members(value)]
    if leg["names"]:
        return [member for v in values if isinstance(v, dict) for member in v.values()]
    if leg["cells"]:
        return [member for v in values if isinstance(v, list) for member in v]
    if leg["first"] is None:
        name = json.loads(leg["quoted"]) if leg["quoted"] else leg["name"]
        return [v[name] for v in values if isinstance(v, dict) and name in v]
    found = []
    for value in values:
        cells = value if isinstance(value, list) else [value]
        start = _cell(leg["first"], len(cells))
        end = start if leg["end"] is None else _cell(leg["end"], len(cells))
        found += cells[max(0, start) : max(0, end + 1)] if start >= 0 or leg["end"] else []
    return found


def _with_members(value: Any) -> Iterator[Any]:
    """Yield a value and what is in it."""
    yield value
    members = value.values() if isinstance(value, dict) else value
    for member in members if isinstance(value, (dict, list)) else ():
        yield from _with_members(member)


def _cell(text: str, size: int) -> int:
    digits = int(re.sub(r"\D", "", text) or 0)
    return size - 1 - digits if text.startswith("last") else digits


def _at_path(value: Any, path: str) -> list[Any]:
    values = [value]
    for leg in _legs(path):
        values = _followed(values, leg)
    return values


def _has_many(path: str) -> bool:
    return any(g["names"] or g["cells"] or g["deep"] or g["end"] for g in _legs(path))


@scalar("JSON_EXTRACT", args=[TEXT, TEXTS], returns=JSON)
def json_extract(text: str, *paths: str) -> str | None:
    """Return the value at a path, or an array of those at several."""
    document = _read(text, "json_extract")
    found = [value for path in paths for value in _at_path(document, path)]
    if not found:
        return None
    several = len(paths) > 1 or _has_many(paths[0])
    return document_text(found if several else found[0])


@scalar("JSON_UNQUOTE", args=[TEXT], returns=JSON_TEXT)
def json_unquote(text: str) -> str:
    return str(_read(text, "json_unquote")) if text.startswith('"') and text.endswith('"') else text


def _member(value: Any, what: str) -> str:
    """Return the text of a member of a document, from its value and the word of what it is."""
    if value is not None and what == "document":
        return str(value)
    return document_text(bool(value) if what == "truth" and value is not None else value)


@internal("json_array", accepts_null=True, gives_bytes=True)
def json_array(*args: Any) -> str:
    """Return an array of values, each with the word of what it is behind it."""
    return f"[{', '.join(map(_member, args[::2], args[1::2]))}]"


@internal("json_object", accepts_null=True, gives_bytes=True)
def json_object(*args: Any) -> str:
    """Return an object of names and values, each with the word of what it is behind it."""
    if None in args[::4]:
        raise mysql_error(3158)
    pairs = {str(name): _member(*args[4 * i + 2 : 4 * i + 4]) for i, name in enumerate(args[::4])}
    ordered = sorted(pairs, key=lambda name: (len(name.encode()), name.encode()))
    members = ", ".join(f"{_member(name, 'key')}: {pairs[name]}" for name in ordered)
    return f"{{{members}}}"


@internal("json_quote")
def json_quote(text: str) -> str:
    return document_text(text)


@internal("json_equality", gives_bytes=True)
def json_equality(text: str) -> str:
    """Return a text that documents share which are equal."""
    return repr(_comparable(load_json(text, parse_float=Decimal, parse_int=Decimal)))


_EXACT = Context(prec=100)


def _comparable(value: Any) -> Any:
    """Return a value of a document with its members in one order and one form of its numbers."""
    if isinstance(value, dict):
        return {name: _comparable(member) for name, member in sorted(value.items())}
    if isinstance(value, list):
        return [*map(_comparable, value)]
    return value.normalize(_EXACT) or 0 if isinstance(value, Decimal) else value


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
        load_json(text)
    except ValueError:
        return 0
    return 1


@scalar("JSON_LENGTH", args=[TEXT, OPTIONAL_TEXT], returns=INT)
def json_length(text: str, path: str = "$") -> int | None:
    document = _read(text, "json_length")
    if _has_many(path):
        raise mysql_error(3149)
    for value in _at_path(document, path):
        return len(value) if isinstance(value, (list, dict)) else 1
    return None
