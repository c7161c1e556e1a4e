"""Functions that raise the errors of strict modes for values inside expressions."""

from __future__ import annotations

from typing import Any

from intercode.sql.dialect.errors import mysql_error, truncated_error
from intercode.sql.embedded.catalog.moments import read_moment, read_time
from intercode.sql.embedded.catalog.values import is_number, printable
from intercode.sql.embedded.functions.registry import internal


def _text(value: Any) -> str:
    return printable(value) if isinstance(value, bytes) else str(value)


@internal("whole_number")
def whole_number(value: Any, kind: str) -> Any:
    """Return a value that is a number as a whole. Raises StatementError 1292 for any other."""
    if isinstance(value, (int, float)) or is_number(_text(value)):
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


@internal("divisor", accepts_null=True)
def divisor(dividend: Any, value: Any) -> Any:
    """Return what a number is divided by. Raises StatementError 1365 if it is zero."""
    if value == 0 and value is not None and dividend is not None:
        raise mysql_error(1365)
    return value
