"""Converts values between MySQL, SQLite's storage and Python.

SQLite stores DECIMAL as REAL, dates and times as text in MySQL's format, and FLOAT in single
precision. A number that a REAL cannot hold exactly is rejected and never rounded silently.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import (
    ROUND_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Context,
    Decimal,
    InvalidOperation,
)
from typing import Any

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dump.literals import BinaryNumber
from intercode_sql.embedded.catalog.catalog import Column
from intercode_sql.embedded.catalog.moments import (
    FIRST_DATE,
    LONGEST_CLOCK,
    MAX_TIME,
    read_moment,
    read_time,
    rounded,
    time_microseconds,
    time_text,
)
from intercode_sql.embedded.catalog.types import Type

EXACT = Context(prec=400)
"""Arithmetic with as many digits as decimals have."""
MAX_EXACT_INTEGER = 1 << 53
"""Integers up to this value are exact in a REAL."""
MAX_DOUBLE = sys.float_info.max
MAX_FLOAT = 3.4028234663852886e38
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")

is_position = re.compile(r"\s*\+?\d+").fullmatch  # whether a text is a number of words
_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


# ---------------------------------------------------------------- parsing
def is_number(text: str) -> bool:
    """Return whether a string is a number as a whole, but for spaces around it."""
    found = _NUMBER.match(text)
    return found is not None and not text[found.end() :].strip(" ")


def leading_number(text: str) -> float:
    """Return the number that a string begins with, as MySQL's arithmetic reads it, or 0. One that
    is too large is the largest double."""
    found = _NUMBER.match(text)
    return max(-MAX_DOUBLE, min(float(found[1]), MAX_DOUBLE)) if found else 0.0


def double_text(value: float) -> str:
    """Return a double as MySQL writes it: with an exponent below 1e-15 and from 1e15."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    digits = Decimal(repr(value))
    if 1e-15 <= abs(value) < 1e15:
        return f"{digits:f}"
    mantissa, _, power = f"{digits:e}".partition("e")
    whole, _, part = mantissa.partition(".")
    part = part.rstrip("0")
    return f"{whole}{'.' * bool(part)}{part}e{int(power)}"


def fitted_double(value: float, size: int) -> str:
    """Return a double with as many digits as fit in so many characters (0: any number), or its
    first digit with an exponent, which is longer."""
    if not size or len(double_text(value)) <= size or not math.isfinite(value):
        return double_text(value)
    for digits in range(len(Decimal(repr(value)).as_tuple().digits), 0, -1):
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        short = double_text(float(f"{mantissa}e{power}"))
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        for text in (short, f"{mantissa}e{int(power)}"):
            if len(text) <= size:
                return text
    width = size - (value < 0)
    if abs(value) >= 0.001 and len(f"{abs(value):.0f}") <= width:
        rounded = float(f"{value:.{max(0, width - 2) * (abs(value) < 1)}f}")
        return double_text(rounded or 0.0)
    mantissa, _, power = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(power)}"


def number_prefix(value: Any) -> Decimal:
    """Return the number that a value is or begins with, or 0."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, str):
        found = _NUMBER.match(value)
        value = found[1] if found else "0"
    try:
        return value if isinstance(value, Decimal) else Decimal(repr(value).strip("'"))
    except InvalidOperation:
        return Decimal(0)


def parse_datetime_text(text: str) -> tuple[str, str] | None:
    """Return the date and the time (``00:00:00`` if it has none) of a string in one of MySQL's
    formats, or None if it is not a date."""
    found = read_moment(text)
    return (found.date, found.time) if found is not None and found.clean else None


def parse_time_text(text: str) -> str | None:
    """Return a time in the format HH:MM:SS[.ffffff], or None if the string is not a time."""
    found = read_time(text)
    return time_text(found[0]) if found is not None and found[1] else None


def to_single_precision(value: float) -> float:
    """Return a number as a FLOAT column stores it."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return value


def quantized(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """Return a decimal of any size with ``scale`` digits after the point."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=EXACT)


def round_half_up(value: float | int | str | Decimal, scale: int) -> Decimal:
    """Round a number to ``scale`` digits after the point, half away from zero."""
    exact = value if isinstance(value, Decimal) else Decimal(repr(value).strip("'"))
    return quantized(exact, scale, ROUND_HALF_UP)


# ---------------------------------------------------------------- storing
def to_stored(value: Any, column: Column, row: int = 1) -> Any:
    """Convert a value to the one that SQLite stores in that column, by the rules of MySQL's strict
    mode.

    Raises StatementError (1048, 1264, 1265, 1292, 1366, 1406) for a value that does not fit.
    """
    if value is None:
        if not column.nullable and not column.auto:
            raise mysql_error(1048, column.name)
        return None
    kind = column.type
    if isinstance(value, (dt.date, dt.timedelta)):
        value = plain_moment(value, column)
    if column.declared.startswith("bit("):
        return _stored_bits(value, column, row)
    if isinstance(value, BinaryNumber) and kind.number:
        value = int.from_bytes(value, "big")
    if kind.kind in ("int", "year"):
        return _stored_integer(value, column, row)
    if kind.number:
        return _stored_real(value, column, row)
    if kind.moment:
        return _stored_temporal(value, column, row)
    if kind.binary:
        return _stored_bytes(value, column, row)
    if kind.kind == "json":
        return stored_json(value, column.name)
    return _stored_text(value, column, row)


def plain_moment(value: dt.date | dt.timedelta, column: Column) -> str | Decimal:
    """Return a moment of Python as MySQL's text, or for a column of numbers as its digits."""
    if isinstance(value, dt.timedelta) and column.type.kind in ("date", "datetime", "year"):
        raise unsupported("a date from a time: the current day")
    if isinstance(value, dt.date) and column.type.kind == "year":
        return Decimal(value.year)
    if column.type.kind == "time" and not isinstance(value, (dt.datetime, dt.timedelta)):
        return "00:00:00"
    text = moment_text(value)
    if not column.type.number or column.type.bits:
        return text
    return Decimal(re.sub(r"(?<=.)[-: ]", "", text))


def moment_text(value: dt.date | dt.timedelta) -> str:
    """Return a moment of Python as MySQL's text."""
    if isinstance(value, dt.timedelta):
        return time_text(value // dt.timedelta(microseconds=1))
    return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()


def _to_decimal(value: Any, column: Column, row: int) -> Decimal:
    if isinstance(value, bytes):
        value = printable(value)
    if isinstance(value, str):
        found = _NUMBER.match(value)
        if found is not None and column.type.unsigned:
            whole = quantized(Decimal(found[1]), 0) if column.type.kind == "int" else found[1]
            if Decimal(whole) < 0:
                raise mysql_error(1264, column.name, row)
        if found is None or value[found.end() :].strip():
            type_name = "integer" if column.type.kind in ("int", "year") else column.type.kind
            if (found is not None and found[1]) or column.type.kind in ("float", "double"):
                raise mysql_error(1265, column.name, row)
            raise mysql_error(1366, type_name, value, column.name, row)
        value = found[1]
    elif isinstance(value, Decimal) and value < 0 and _is_unsigned(column):
        raise mysql_error(1264, column.name, row)
    try:
        return Decimal(repr(value).strip("'") if not isinstance(value, Decimal) else value)
    except InvalidOperation as e:
        raise mysql_error(1366, column.type.kind, value, column.name, row) from e


def _is_unsigned(column: Column) -> bool:
    return column.type.unsigned or column.type.kind == "year"


def _stored_integer(value: Any, column: Column, row: int) -> int:
    year = column.type.kind == "year"
    if isinstance(value, str):  # what follows the number is looked at later
        _require_in_range(int(quantized(number_prefix(value), 0)), column, row)
    exact = _to_decimal(value, column, row)
    half = ROUND_HALF_EVEN if isinstance(value, float) else ROUND_HALF_UP  # as C rounds a double
    if year and isinstance(value, float):
        half = ROUND_DOWN if 0 <= value <= 2155 else ROUND_UP
    number = int(quantized(exact, 0, half))
    if year and (0 < number < 100 or (isinstance(value, str) and not number and value != "0000")):
        number += 2000 if number < 70 else 1900
    _require_in_range(number, column, row)
    if year:
        return number
    if number >= 1 << 63:
        raise unsupported(f"the whole number {number}, which needs more than 63 bits")
    return number


def integer_range(column: Column) -> range:
    """Return the integers that a column holds."""
    size = _INTEGER_BITS.get(column.declared.partition("(")[0].partition(" ")[0], 64)
    return range(1 << size) if column.type.unsigned else range(-(1 << size - 1), 1 << size - 1)


def _require_in_range(number: int, column: Column, row: int) -> None:
    """Raise StatementError 1264 for an integer that a column cannot hold."""
    if column.type.kind == "year":
        fits = 0 <= number < 100 or 1901 <= number <= 2155
    else:
        fits = number in integer_range(column)
    if not fits:
        raise mysql_error(1264, column.name, row)


def _stored_bits(value: Any, column: Column, row: int) -> int:
    """Return the number that a BIT column holds. A string is its bytes, a double is cut."""
    value = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if isinstance(value, bytes):
        number = int.from_bytes(value, "big")
    else:
        exact = _to_decimal(value, column, row)
        number = int(exact if isinstance(value, float) else round_half_up(exact, 0))
    if number < 0 and isinstance(value, Decimal):
        raise mysql_error(1264, column.name, row)
    if not 0 <= number < 1 << int(column.declared[4:-1]):
        raise mysql_error(1406, column.name, row)
    if number >= 1 << 63:
        raise unsupported(f"the bits {number:b}, which are more than 63")
    return number


def _stored_bytes(value: Any, column: Column, row: int) -> bytes:
    """Return bytes as a column holds them. BINARY fills them up with zeros."""
    size = column.type.precision
    data = value if isinstance(value, bytes) else _plain_text(value, size).encode(*_BYTES)
    if size and len(data) > size:
        raise mysql_error(1406, column.name, row)
    return bytes(data.ljust(size, b"\0") if column.declared.startswith("binary(") else data)


def _stored_real(value: Any, column: Column, row: int) -> float:
    number = _to_decimal(value, column, row)
    kind = column.type
    if kind.scale is not None:
        number = round_half_up(number, kind.scale)
        limit = kind.precision - kind.scale if kind.kind == "decimal" else 0
        if limit and abs(number) >= Decimal(10) ** limit:
            raise mysql_error(1264, column.name, row)
    if kind.kind == "decimal" and Decimal(repr(float(number))) != number:
        raise unsupported(f"the exact decimal {number}, which has more than 15 digits")
    stored = float(number)
    if abs(stored) > (MAX_FLOAT if kind.kind == "float" else MAX_DOUBLE):
        raise mysql_error(1264, column.name, row)
    return to_single_precision(stored) if kind.kind == "float" else stored


def _stored_temporal(value: Any, column: Column, row: int) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else _plain_text(value, 0)
    kind, digits = column.type.kind, column.type.scale or 0
    shown = printable(value) if isinstance(value, bytes) else text
    error: StatementError = mysql_error(1292, kind, shown, column.name, row)
    if kind == "time":
        found = parse_time_text(text)
        if found is None:
            raise error
        stored = rounded(found, digits) or found
        if stored.startswith("-") or not stored[2] == ":":
            raise unsupported(f"the time {stored}, which is not between 00:00:00 and 99:59:59")
        return stored
    moment = read_moment(text)
    if moment is None or not moment.clean:
        raise error
    if kind == "date":
        return moment.date
    whole = rounded(moment.text, digits)
    if whole is None:
        raise error
    return whole


def _stored_text(value: Any, column: Column, row: int) -> str:
    if column.values and column.declared.startswith("enum"):
        return _stored_word(value, column, row)
    charset = "cp1252" if column.type.charset == "latin1" else "utf-8"
    try:
        text = value.decode(charset) if isinstance(value, bytes) else ""
    except UnicodeDecodeError as e:
        bad = printable(value[e.start : e.start + 6])
        error = mysql_error(1366, "string", bad, column.name, row)
        raise (mysql_error(1265, column.name, row) if column.values else error) from e
    text = text or _plain_text(value, 0 if column.values else column.type.precision)
    if column.values:
        return _stored_set(value if isinstance(value, (int, float, Decimal)) else text, column, row)
    if column.type.charset == "latin1":
        try:
            text.encode("cp1252")
        except UnicodeEncodeError as e:
            shown = "".join(f"\\x{b:02X}" for b in text[e.start :].encode())
            raise mysql_error(1366, "string", shown, column.name, row) from e
    if column.declared.startswith("char("):
        text = text.rstrip(" ")
    if column.type.precision and len(text) > column.type.precision:
        if text[column.type.precision :].strip(" ") or not column.declared.startswith("varchar"):
            raise mysql_error(1406, column.name, row)
        text = text[: column.type.precision]
    return text


_BYTES = ("utf-8", "surrogateescape")


def _plain_text(value: Any, size: int) -> str:
    """Return a value as a text. Of a double there are as many digits as fit in ``size``."""
    if isinstance(value, bytes):
        return value.decode(*_BYTES)
    return fitted_double(value, size) if isinstance(value, float) else str(value)


def _stored_set(value: str | int | float | Decimal, column: Column, row: int) -> str:
    """Return the words of a SET in the order of its definition. A number, or a text that is one and
    no word, has a bit for each word."""
    text = str(value)
    given = {word.rstrip(" ").lower() for word in text.split(",")} if text else set()
    words = {*map(str.lower, column.values)}
    if not isinstance(value, str) or (is_position(text) and given - words):
        number = int(Decimal(text))
        if not 0 <= number < 1 << len(column.values):
            raise mysql_error(1265, column.name, row)
        return ",".join(word for n, word in enumerate(column.values) if number >> n & 1)
    if given - words:
        raise mysql_error(1265, column.name, row)
    return ",".join(word for word in column.values if word.lower() in given)


def printable(value: bytes) -> str:
    """Return bytes as errors quote them."""
    return "".join(chr(c) if 32 <= c < 127 else f"\\x{c:02X}" for c in value)


def _stored_word(value: Any, column: Column, row: int) -> str:
    """Return the word of an ENUM that a text or a number from 1 names. A text that is no word can
    be such a number."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if isinstance(value, (str, bytes)):
        for word in column.values:
            if word.lower() == text.rstrip(" ").lower():
                return word
        if not is_position(text.rstrip(" ")):
            raise mysql_error(1265, column.name, row)
    position = int(Decimal(text))
    if not 1 <= position <= len(column.values):
        raise mysql_error(1265, column.name, row)
    return column.values[position - 1]


def stored_json(value: Any, name: str) -> str:
    """Return a JSON document as MySQL normalizes it: one blank behind commas and colons, keys by
    length. Raises StatementError 3140."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    try:
        found = load_json(text)
    except ValueError as e:
        reason = "Invalid value." if text.strip() else "The document is empty."
        raise mysql_error(3140, reason, getattr(e, "pos", 0), name) from e
    return document_text(found)


def json_object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of members in MySQL's order."""
    return dict(sorted(dict(pairs).items(), key=lambda p: (len(p[0].encode()), p[0].encode())))


_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<word>NaN|Infinity)')


TOO_BIG = "Number too big to be stored in double."


def load_json(text: str, **options: Any) -> Any:
    """Return the value of a JSON document, with members in MySQL's order. Raises JSONDecodeError if
    a text is none; ``NaN`` and ``Infinity``, which Python reads, are no values. A number of more
    than 64 bits is a double."""

    def refuse(name: str) -> None:
        found = next(m for m in _CONSTANT.finditer(text) if m["word"])
        raise json.JSONDecodeError("Expecting value", text, found.start())

    def double(digits: str) -> float:
        number = float(digits)
        if math.isinf(number):
            raise json.JSONDecodeError(TOO_BIG, text, text.find(digits))
        return number

    def whole(digits: str) -> float:
        number = double(digits)
        exact = int(digits) if abs(number) < 1e20 else 1 << 64
        return exact if -1 << 63 <= exact < 1 << 64 else number

    readers = {"parse_float": double, "parse_int": whole, **options}
    return json.loads(text, parse_constant=refuse, object_pairs_hook=json_object, **readers)


def document_text(value: Any) -> str:
    """Return a JSON document as MySQL writes it."""
    if isinstance(value, dict):
        pairs = (f"{document_text(name)}: {document_text(v)}" for name, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(document_text, value))}]"
    if isinstance(value, float):
        text = double_text(value)
        return text if "." in text or "e" in text else f"{text}.0"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False)


def default_value(column: Column, now: str) -> Any:
    """Return the value of a column for which an INSERT gives none. Raises StatementError 1364."""
    if column.computed:
        if str(column.default).startswith("CURRENT_TIMESTAMP"):
            return now
        raise unsupported(f"the default {column.default} here")
    if column.default is not None and column.declared.startswith("bit("):
        return int(column.default[2:-1] or "0", 2)
    if column.default is None and not column.nullable and not column.auto:
        if column.declared.startswith("enum"):
            return column.values[0]
        raise mysql_error(1364, column.name)
    return column.default


def error_text(value: Any) -> str:
    """Return a value as error messages quote it."""
    return "NULL" if value is None else str(value)


# ---------------------------------------------------------------- results
def result_converter(kind: Type) -> Callable[[Any], Any] | None:
    """Return the function that converts SQLite's values to those of MySQL Connector/Python, or None
    if no conversion is needed. It is never called with NULL."""
    if kind.kind == "decimal":
        return _decimal_converter(kind.scale or 0)
    if kind.kind == "float":
        fixed = kind.scale
        return (lambda v: float(f"{v:.6g}")) if fixed is None else (lambda v: round(v, fixed))
    if kind.kind == "double":
        scale = kind.scale
        return _to_double if scale is None else lambda v: float(f"{v:.{scale}f}")
    if kind.kind in ("int", "year"):
        return _to_unsigned if kind.wrapped else _to_int
    if kind.moment:
        return {"date": _to_date, "datetime": _to_datetime, "time": _to_timedelta}[kind.kind]
    return _to_text if kind.kind in ("string", "json") else None


def _decimal_converter(scale: int) -> Callable[[Any], Decimal]:
    unit = Decimal(1).scaleb(-scale)
    limit = MAX_EXACT_INTEGER / 10**scale

    def read(value: Any) -> Decimal:
        if (
            isinstance(value, float)
            and abs(value) >= limit
            and len(repr(value).strip("-").replace(".", "")) > 15
        ):
            raise unsupported(f"exact decimals as large as {value:.15g}")
        found = Decimal(repr(value).strip("'")).quantize(unit, ROUND_HALF_UP, EXACT)
        return found if found or not value else abs(found)

    return read


def _to_double(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise mysql_error(1690, "DOUBLE", "the expression")
    return number


def _to_unsigned(value: Any) -> Any:
    return value + (1 << 64) if isinstance(value, int) and value < 0 else _to_int(value)


def _to_int(value: Any) -> Any:
    if isinstance(value, float):
        if abs(value) >= 1 << 63:
            raise mysql_error(1690, "BIGINT", "the expression")
        return int(value)
    return value


def _to_text(value: Any) -> Any:
    return value if isinstance(value, (str, bytes)) else str(value)


def _to_date(value: Any) -> Any:
    try:
        return dt.date.fromisoformat(value[:10])
    except (TypeError, ValueError):
        return None


def _to_datetime(value: Any) -> Any:
    try:
        return dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def _to_timedelta(value: Any) -> Any:
    return dt.timedelta(microseconds=time_microseconds(str(value)))


def convert_rows(
    rows: Sequence[tuple[Any, ...]], readers: Sequence[Callable[[Any], Any] | None]
) -> list[tuple[Any, ...]]:
    """Convert SQLite's rows to MySQL's."""
    if not rows or not any(readers):
        return list(rows)
    columns = list(zip(*rows, strict=True))
    for i, read in enumerate(readers):
        if read and not {type(v) for v in columns[i]} <= _UNCHANGED_TYPES.get(read, frozenset()):
            columns[i] = tuple(v if v is None else read(v) for v in columns[i])
    return list(zip(*columns, strict=True))


_UNCHANGED_TYPES: dict[Any, frozenset[type]] = {
    _to_text: frozenset({str, bytes, type(None)}),
    _to_int: frozenset({int, type(None)}),
}


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
        year = int(quantized(number, 0))
        return to_stored(year, column) if 0 <= year < 100 or 1900 < year < 2156 else 0
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
        data = value if isinstance(value, bytes) else _plain_text(value, size).encode(*_BYTES)
        return to_stored(data[:size], column)
    text = str(value) if column.values else _plain_text(value, column.type.precision)
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
