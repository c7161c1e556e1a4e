"""JSON functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

from intercode_sql.dialect.errors import mysql_error
from intercode_sql.embedded.catalog.types import BOOL, INT, JSON, JSON_TEXT
from intercode_sql.embedded.catalog.values import TOO_BIG, document_text, json_object, load_json
from intercode_sql.embedded.functions.patterns import like
from intercode_sql.embedded.functions.registry import (
    OPTIONAL_TEXT,
    SQLITE_AGGREGATES,
    TEXT,
    TEXTS,
    internal,
    scalar,
)
from intercode_sql.embedded.functions.runtime import check_length, wrap_function

_MISTAKES = {
    "Expecting value": "Invalid value.",
    "Extra data": "The document root must not be followed by other values.",
    "Expecting property name enclosed in double quotes": "Missing a name for object member.",
    "Expecting ':' delimiter": "Missing a colon after a name of object member.",
    "Expecting ',' delimiter": "Missing a comma or } after an object member.",
    "Unterminated string starting at": "Missing a closing quotation mark in string.",
    TOO_BIG: TOO_BIG,
}
"""Python's words for mistakes in a document, and MySQL's."""


def _read(text: str, function: str, position: int = 1) -> Any:
    """Return the value of a document, the argument at this position. Raises StatementError 3141 if
    a text is none."""
    try:
        return load_json(text)
    except ValueError as error:
        found = _MISTAKES.get(getattr(error, "msg", ""), "Invalid value.")
        what = found if text.strip() else "The document is empty."
        raise mysql_error(3141, position, function, what, getattr(error, "pos", 0)) from None


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
    if value is not None and what in ("document", "decimal"):
        return str(value)
    if value is not None and what == "moment":  # with six digits of a second
        clock, _, fraction = str(value).partition(".")
        return f'"{clock}.{fraction:0<6}"'
    return document_text(bool(value) if what == "truth" and value is not None else value)


@internal("json_array", accepts_null=True, gives_bytes=True)
def json_array(*args: Any) -> str:
    """Return an array of values, each with the word of what it is behind it."""
    return f"[{', '.join(map(_member, args[::2], args[1::2]))}]"


@internal("json_object", accepts_null=True, gives_bytes=True)
def json_object_of(*args: Any) -> str:
    """Return an object of names and values, each with the word of what it is behind it."""
    if None in args[::4]:
        raise mysql_error(3158)
    return _object_text(
        (str(args[i]), _member(*args[i + 2 : i + 4])) for i in range(0, len(args), 4)
    )


def _object_text(members: Iterable[tuple[str, str]]) -> str:
    """Return the object of names and the texts of their values."""
    pairs = (f"{document_text(name)}: {text}" for name, text in json_object(members).items())
    return f"{{{', '.join(pairs)}}}"


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
    for value in _at_one_path(_read(text, "json_length"), path):
        return len(value) if isinstance(value, (list, dict)) else 1
    return None


def _at_one_path(document: Any, path: str) -> list[Any]:
    """Return the value at a path in a list, or none. Raises StatementError 3149 for a path to
    several."""
    if _has_many(path):
        raise mysql_error(3149)
    return _at_path(document, path)


@scalar("JSON_KEYS", args=[TEXT, OPTIONAL_TEXT], returns=JSON)
def json_keys(text: str, path: str = "$") -> str | None:
    for value in _at_one_path(_read(text, "json_keys"), path):
        return document_text(list(value)) if isinstance(value, dict) else None
    return None


@scalar("JSON_DEPTH", args=[TEXT], returns=INT)
def json_depth(text: str) -> int:
    return _depth(_read(text, "json_depth"))


def _depth(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, members), default=0) if isinstance(value, (dict, list)) else 1


@scalar("JSON_TYPE", args=[TEXT], returns=JSON_TEXT)
def json_type(text: str) -> str:
    value = _read(text, "json_type")
    if isinstance(value, int) and value >= 1 << 63:
        return "UNSIGNED INTEGER"
    return _TYPES[type(value)]


_TYPES = {
    dict: "OBJECT",
    list: "ARRAY",
    str: "STRING",
    bool: "BOOLEAN",
    int: "INTEGER",
    float: "DOUBLE",
    type(None): "NULL",
}


@scalar("JSON_PRETTY", args=[TEXT], returns=JSON_TEXT)
def json_pretty(text: str) -> str:
    return _indented(_read(text, "json_pretty"), "\n")


def _indented(value: Any, newline: str) -> str:
    inner = f"{newline}  "
    if isinstance(value, dict) and value:
        members = (f"{document_text(n)}: {_indented(v, inner)}" for n, v in value.items())
        return f"{{{inner}{f',{inner}'.join(members)}{newline}}}"
    if isinstance(value, list) and value:
        return f"[{inner}{f',{inner}'.join(_indented(v, inner) for v in value)}{newline}]"
    return document_text(value)


# ---------------------------------------------------------------- searches
@scalar("JSON_CONTAINS", args=[TEXT, TEXT, OPTIONAL_TEXT], returns=BOOL)
def json_contains(text: str, candidate: str, path: str = "$") -> int | None:
    target, wanted = _read(text, "json_contains"), _read(candidate, "json_contains", 2)
    for value in _at_one_path(target, path):
        return int(_contains(value, wanted))
    return None


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        each = wanted if isinstance(wanted, list) else [wanted]
        return all(any(_contains(member, one) for member in value) for one in each)
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(n in value and _contains(value[n], one) for n, one in wanted.items())
    return _equal(value, wanted)


def _equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal; a truth value is no number."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[name], b[name]) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


@scalar("JSON_OVERLAPS", args=[TEXT, TEXT], returns=BOOL)
def json_overlaps(text: str, other: str) -> int:
    a, b = _read(text, "json_overlaps"), _read(other, "json_overlaps", 2)
    if isinstance(a, dict) and isinstance(b, dict):
        return int(any(name in b and _equal(a[name], b[name]) for name in a))
    a, b = (value if isinstance(value, list) else [value] for value in (a, b))
    return int(any(_equal(x, y) for x in a for y in b))


def _of_one(word: str, function: str) -> bool:
    """Return whether an argument is ``one``. Raises StatementError 3154 if it is not ``all``."""
    if word.lower() not in ("one", "all"):
        raise mysql_error(3154, function)
    return word.lower() == "one"


@scalar("JSON_CONTAINS_PATH", args=[TEXT, TEXT, TEXTS], returns=BOOL)
def json_contains_path(text: str, word: str, *paths: str) -> int:
    document = _read(text, "json_contains_path")
    found = any if _of_one(word, "json_contains_path") else all
    return int(found(_at_path(document, path) for path in paths))


@internal("json_search", accepts_null=True)
def json_search(text: str, word: str, pattern: str, escape: str | None = None) -> str | None:
    """Return the path of the first text that is like a pattern, or those of all."""
    if None in (text, word, pattern):
        return None
    found: list[str] = []
    single = _of_one(word, "json_search")
    for path, value in _texts(_read(text, "json_search"), "$"):
        if like(value, pattern, escape or "\\", "bin"):
            if single:
                return document_text(path)
            found.append(path)
    return document_text(found if len(found) > 1 else found[0]) if found else None


_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$]*")


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for i, member in enumerate(value):
            yield from _texts(member, f"{path}[{i}]")
    elif isinstance(value, dict):
        for name, member in value.items():
            leg = name if _PLAIN_NAME.fullmatch(name) else document_text(name)
            yield from _texts(member, f"{path}.{leg}")


# ---------------------------------------------------------------- changes
def _value(value: Any, what: str) -> Any:
    """Return the value of a member; a decimal has the digits that it is written with."""
    return load_json(_member(value, what), parse_float=_fraction)


def _fraction(text: str) -> float | Decimal:
    return float(text) if "e" in text.lower() else Decimal(text)


Leg = dict[str, str | None]
Change = Callable[[Any, Any, bool], Any]
"""Returns a changed array or object from it, a name or position in it, and whether that exists."""


def _changed(value: Any, legs: tuple[Leg, ...], change: Change) -> Any:
    """Return a value with a change at the end of a path. A value that is no array is its own
    ``[0]``."""
    leg, behind = legs[0], legs[1:]
    if leg["first"] is None:
        name = json.loads(leg["quoted"]) if leg["quoted"] else leg["name"]
        if not isinstance(value, dict):
            return value
        if not behind:
            return change(value, name, name in value)
        if name in value:
            value[name] = _changed(value[name], behind, change)
        return value
    cells = value if isinstance(value, list) else [value]
    at = _cell(leg["first"], len(cells))
    exists = 0 <= at < len(cells)
    if not behind:
        cells = change(cells, at, exists)
    elif exists:
        cells[at] = _changed(cells[at], behind, change)
    if isinstance(value, list) or len(cells) > 1:
        return cells
    return cells[0] if cells else value


def _paths_and_values(args: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each change. The arguments are a path, a value and the word
    of what it is, in turn. Raises error 3149 for a path that may match several values."""
    for i in range(0, len(args), 3):
        value = _value(*args[i + 1 : i + 3])
        if _has_many(args[i]):
            raise mysql_error(3149)
        yield args[i], value


def _with_values(
    function: str, text: str | None, args: tuple[Any, ...], replaces: bool, inserts: bool
) -> str | None:
    """Return a document in which each path of some has a value."""
    if text is None or None in args[::3]:
        return None
    document = _read(text, function)
    for path, new in _paths_and_values(args):

        def put(holder: Any, at: Any, exists: bool, new: Any = new) -> Any:
            if exists and replaces:
                holder[at] = new
            elif not exists and inserts and isinstance(holder, list):
                holder.insert(len(holder) if at >= 0 else 0, new)
            elif not exists and inserts:
                return json_object([*holder.items(), (at, new)])
            return holder

        if legs := _legs(path):
            document = _changed(document, legs, put)
        elif replaces:
            document = new
    return document_text(document)


@internal("json_set", accepts_null=True, gives_bytes=True)
def json_set(text: str | None, *args: Any) -> str | None:
    return _with_values("json_set", text, args, True, True)


@internal("json_insert", accepts_null=True, gives_bytes=True)
def json_insert(text: str | None, *args: Any) -> str | None:
    return _with_values("json_insert", text, args, False, True)


@internal("json_replace", accepts_null=True, gives_bytes=True)
def json_replace(text: str | None, *args: Any) -> str | None:
    return _with_values("json_replace", text, args, True, False)


@internal("json_array_append", accepts_null=True, gives_bytes=True)
def json_array_append(text: str | None, *args: Any) -> str | None:
    """Return a document with values behind those at paths, which become arrays."""
    if text is None or None in args[::3]:
        return None
    whole = [_read(text, "json_array_append")]
    for path, new in _paths_and_values(args):

        def append(holder: Any, at: Any, exists: bool, new: Any = new) -> Any:
            if exists:
                old = holder[at]
                holder[at] = [*old, new] if isinstance(old, list) else [old, new]
            return holder

        whole = _changed(whole, (*_legs("$[0]"), *_legs(path)), append)
    return document_text(whole[0])


@internal("json_array_insert", accepts_null=True, gives_bytes=True)
def json_array_insert(text: str | None, *args: Any) -> str | None:
    """Return a document with values in arrays before the cells at paths."""
    if text is None or None in args[::3]:
        return None
    whole = [_read(text, "json_array_insert")]
    for path, new in _paths_and_values(args):
        legs = _legs(path)
        if not legs or legs[-1]["first"] is None:
            raise mysql_error(3165)
        cell = legs[-1]["first"]

        def insert(holder: Any, at: Any, exists: bool, new: Any = new, cell: str = cell) -> Any:
            if exists and isinstance(holder[at], list):
                holder[at].insert(max(0, _cell(cell, len(holder[at]))), new)
            return holder

        whole = _changed(whole, (*_legs("$[0]"), *legs[:-1]), insert)
    return document_text(whole[0])


@scalar("JSON_REMOVE", args=[TEXT, TEXTS], returns=JSON)
def json_remove(text: str, *paths: str) -> str:
    document = _read(text, "json_remove")

    def remove(holder: Any, at: Any, exists: bool) -> Any:
        if exists:
            del holder[at]
        return holder

    for path in paths:
        if _has_many(path):
            raise mysql_error(3149)
        if not _legs(path):
            raise mysql_error(3153)
        document = _changed(document, _legs(path), remove)
    return document_text(document)


@scalar("JSON_MERGE_PATCH", args=[TEXT, TEXTS], returns=JSON, accepts_null=True)
def json_merge_patch(*texts: str | None) -> str | None:
    """Return the documents merged by RFC 7396: a member replaces another, and null removes it. NULL
    makes the result NULL, unless what is no object comes later."""
    merged, known = None, True
    for number, text in enumerate(texts, 1):
        patch = None if text is None else _read(text, "json_merge_patch", number)
        if text is None or not isinstance(patch, dict):
            merged, known = patch, text is not None
        elif known:
            merged = _patched(merged, patch) if number > 1 else patch
    return document_text(merged) if known else None


def _patched(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    members = dict(value) if isinstance(value, dict) else {}
    for name, new in patch.items():
        if new is None:
            members.pop(name, None)
        else:
            members[name] = _patched(members.get(name), new)
    return json_object(members.items())


@scalar("JSON_MERGE_PRESERVE", "JSON_MERGE", args=[TEXT, TEXTS], returns=JSON)
def json_merge_preserve(*texts: str) -> str:
    """Return the documents merged: arrays one behind the other, members of one name as arrays."""
    found = [_read(text, "json_merge_preserve", n) for n, text in enumerate(texts, 1)]
    merged = found[0]
    for document in found[1:]:
        merged = _merged(merged, document)
    return document_text(merged)


def _merged(a: Any, b: Any) -> Any:
    if isinstance(a, dict) and isinstance(b, dict):
        both = {name: _merged(a[name], b[name]) for name in a.keys() & b.keys()}
        return json_object({**a, **b, **both}.items())
    return [*(a if isinstance(a, list) else [a]), *(b if isinstance(b, list) else [b])]


# ---------------------------------------------------------------- aggregates
class JsonAggregate:
    """Takes a value and the word of what it is; of an object, a name and its word before them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.members: list[str] = []
        self.size = 0

    def _step(self, *args: Any) -> None:
        if len(args) > 2:
            if args[0] is None:
                raise mysql_error(3158)
            self.names.append(str(args[0]))
        member = _member(*args[-2:])
        self.size = check_length(self.size + len(member))
        self.members.append(member)

    step = wrap_function(_step, True)

    def finalize(self) -> str | None:
        if self.names:
            return _object_text(zip(self.names, self.members, strict=True))
        return f"[{', '.join(self.members)}]" if self.members else None


SQLITE_AGGREGATES.update(
    dict.fromkeys(("mysql_json_arrayagg", "mysql_json_objectagg"), JsonAggregate)
)
