"""The values that statements with IGNORE, or without a strict mode, write in place of those that do
not fit."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

from intercode_sql.dialect.errors import StatementError
from intercode_sql.dump.literals import BinaryNumber
from intercode_sql.embedded.catalog.catalog import Column
from intercode_sql.embedded.catalog.moments import (
    FIRST_DATE,
    LONGEST_CLOCK,
    MAX_TIME,
    read_moment,
    read_time,
    time_text,
)
from intercode_sql.embedded.catalog.values import (
    MAX_DOUBLE,
    MAX_FLOAT,
    default_value,
    fitted_double,
    integer_range,
    is_position,
    number_prefix,
    plain_moment,
    to_stored,
)

_ADJUSTED = frozenset({1048, 1264, 1265, 1292, 1366, 1406})
"""Numbers of the errors about values that do not fit."""


def nearest_value(value: Any, column: Column, row: int = 1) -> Any:
    """Convert a value to the one that SQLite stores in that column, or to the nearest that fits."""
    try:
        return to_stored(value, column, row)
    except StatementError as e:
        if e.number not in _ADJUSTED:
            raise
    if value is None:
        return implicit_default(column)
    if isinstance(value, (dt.date, dt.timedelta)):
        value = plain_moment(value, column)
    if column.declared.startswith("bit("):
        below = isinstance(value, Decimal) and value < 0
        return 0 if below else (1 << int(column.declared[4:-1])) - 1
    if isinstance(value, BinaryNumber) and column.type.number:
        value = int.from_bytes(value, "big")
    if column.type.number:
        return _nearest_number(value, column)
    if column.type.moment:
        return _nearest_moment(value, column)
    return _cut(value, column)


def implicit_default(column: Column) -> Any:
    """Return the value of a column without a default that cannot be NULL: zero, nothing, or the
    first word of an ENUM."""
    if column.values and column.declared.startswith("enum"):
        return column.values[0]
    if column.type.moment:
        zeros = {"time": "00:00:00", "date": "0000-00-00"}
        return zeros.get(column.type.kind, "0000-00-00 00:00:00")
    if column.declared.startswith("binary("):
        return bytes(column.type.precision)
    return 0 if column.type.number else b"" if column.type.binary else ""


def default_or_implicit(column: Column, now: str) -> Any:
    """Return the default of a column, or the implicit one of a column that has none."""
    if column.default is None and not column.nullable and not column.auto and not column.computed:
        return implicit_default(column)
    return default_value(column, now)


def _nearest_number(value: Any, column: Column) -> Any:
    kind = column.type
    number = number_prefix(value)
    if kind.kind == "year":
        return to_stored(int(number), column) if 0 <= number < 100 or 1900 < number < 2156 else 0
    if kind.kind == "int":
        fitting = integer_range(column)
        return to_stored(min(max(number, Decimal(fitting[0])), Decimal(fitting[-1])), column)
    if kind.scale is not None and kind.precision:
        largest = (Decimal(10) ** kind.precision - 1).scaleb(-kind.scale)
        number = min(max(number, Decimal(0) if kind.unsigned else -largest), largest)
    if kind.kind == "float":
        number = min(max(number, -Decimal(MAX_FLOAT)), Decimal(MAX_FLOAT))
    return to_stored(min(max(number, Decimal(-MAX_DOUBLE)), Decimal(MAX_DOUBLE)), column)


def _nearest_moment(value: Any, column: Column) -> Any:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if column.type.kind == "time":
        number = isinstance(value, (int, float, Decimal))
        if number and abs(value) > LONGEST_CLOCK and (value < FIRST_DATE or value >= 1e14):
            return to_stored(time_text(MAX_TIME if value > 0 else -MAX_TIME), column)
        found = read_time(text)
        return implicit_default(column) if found is None else to_stored(time_text(found[0]), column)
    if (moment := read_moment(text)) is not None:
        try:  # what follows the date does not count
            return to_stored(moment.text, column)
        except StatementError:
            return implicit_default(column)
    return implicit_default(column)


def _cut(value: Any, column: Column) -> Any:
    """Return as much of a text as fits, the known words of a SET, or no word of an ENUM."""
    if column.type.binary:
        size = column.type.precision
        text = fitted_double(value, size) if isinstance(value, float) else str(value)
        data = value if isinstance(value, bytes) else text.encode("utf-8", "surrogateescape")
        return to_stored(data[:size], column)
    text = str(value)
    if isinstance(value, bytes):  # up to the first that is no character
        text = value.decode("utf-8", "surrogateescape")
        text = re.split("[\udc80-\udcff]", text)[0]
    if column.declared.startswith("enum"):
        return ""
    if column.values and isinstance(value, (int, float, Decimal)):
        return to_stored(int(value) & ((1 << len(column.values)) - 1), column)
    if column.values and is_position(text):
        return to_stored(int(text) & ((1 << len(column.values)) - 1), column)
    if column.values:
        known = {word.lower() for word in column.values}
        return to_stored(",".join(w for w in text.split(",") if w.lower() in known), column)
    if column.type.charset == "latin1":
        text = text.encode("cp1252", "replace").decode("cp1252")
    return to_stored(text[: column.type.precision or None], column)
