"""Functions that raise the errors of strict modes for values inside expressions."""

from __future__ import annotations

import re
from typing import Any

from intercode_sql.dialect.errors import mysql_error, truncated_error, unsupported
from intercode_sql.embedded.catalog.moments import read_moment, read_time
from intercode_sql.embedded.catalog.values import is_number, printable, quantized
from intercode_sql.embedded.functions.numeric import cast_decimal, to_decimal
from intercode_sql.embedded.functions.registry import internal

_WHOLE = re.compile(r"\s*[-+]?\d+\s*")


def _text(value: Any) -> str:
    return printable(value) if isinstance(value, bytes) else str(value)


@internal("whole_number")
def whole_number(value: Any, kind: str) -> Any:
    """Return a value that is a number as a whole. Raises StatementError 1292 for any other."""
    if isinstance(value, (int, float)):
        return value
    whole = _WHOLE.fullmatch(_text(value)) if kind == "INTEGER" else is_number(_text(value))
    if whole:
        return value
    raise truncated_error(kind, _text(value))


@internal("whole_moment")
def whole_moment(value: Any, kind: str) -> Any:
    """Return a value that is a date or a time. Raises StatementError 1292 for any other."""
    text = _text(value)
    if kind == "time":
        found = read_time(text)
        if found is None or not found[1]:
            raise truncated_error(kind, text)
        return value
    moment = read_moment(text)
    if moment is None:
        raise mysql_error(1525, "datetime", text)
    return value


@internal("whole_characters", gives_bytes=False)
def whole_characters(text: str, _: int, size: int) -> str:
    """Return a text that has at most so many characters. Raises StatementError 1292 for a longer
    one."""
    if len(text) > size:
        raise truncated_error(f"CHAR({size})", text)
    return text


@internal("whole_bytes", gives_bytes=True)
def whole_bytes(value: Any, size: int) -> Any:
    """Return a byte string that has at most so many bytes. Raises StatementError 1292 for a longer
    one."""
    if len(value) > size:
        raise truncated_error(f"BINARY({size})", _text(value))
    return value


@internal("whole_decimal")
def whole_decimal(value: Any, scale: int, limit: int) -> float:
    """Return a decimal. Raises StatementError for one that its type cannot hold."""
    if abs(quantized(to_decimal(value), scale)) >= limit:
        raise unsupported("CAST AS DECIMAL out of range in a statement that writes")
    return cast_decimal(value, scale, limit)


@internal("parsed_date", accepts_null=True)
def parsed_date(found: Any, text: Any) -> Any:
    """Return a date that was read from a text. Raises StatementError 1411 if it is none."""
    if found is None and text is not None:
        raise mysql_error(1411, "datetime", _text(text), "str_to_date")
    return found


@internal("moved_date", accepts_null=True)
def moved_date(moved: Any, date: Any, size: Any) -> Any:
    """Return a date that was moved by an interval. Raises StatementError 1441 if it is beyond all
    dates."""
    if moved is None and date is not None and size is not None:
        raise mysql_error(1441, "datetime")
    return moved


@internal("divisor", accepts_null=True)
def divisor(dividend: Any, value: Any) -> Any:
    """Return what a number is divided by. Raises StatementError 1365 if it is zero."""
    if value == 0 and value is not None and dividend is not None:
        raise mysql_error(1365)
    return value
