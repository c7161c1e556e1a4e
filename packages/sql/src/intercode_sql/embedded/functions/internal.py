"""Functions that only compiled statements call, also for what strict modes check."""

from __future__ import annotations

import re
import time
from decimal import Decimal
from typing import Any

from intercode_sql.dialect.errors import StatementError, mysql_error, truncated_error, unsupported
from intercode_sql.embedded.catalog import collations, types
from intercode_sql.embedded.catalog.moments import read_moment, read_parts, read_time
from intercode_sql.embedded.catalog.values import double_text, is_number, printable, quantized
from intercode_sql.embedded.functions.numeric import cast_decimal, to_decimal
from intercode_sql.embedded.functions.registry import internal
from intercode_sql.embedded.functions.runtime import THREAD_STATE


@internal("raise", deterministic=False)
def raise_error(number: int) -> None:
    """Fail with MySQL's error of that number."""
    if number == 3636:
        raise mysql_error(3636, 1001)
    raise mysql_error(number)


@internal("sleep", deterministic=False)
def sleep(seconds: float) -> int:
    """Wait for ``seconds``, at most until the statement's deadline. SLEEP is compiled to this."""
    end = time.monotonic() + max(0.0, float(seconds))
    while (now := time.monotonic()) < end:
        if THREAD_STATE.deadline.expired:
            raise StatementError(3024, "")
        time.sleep(min(0.02, end - now))
    return 0


@internal("set_variable", accepts_null=True, deterministic=False)
def set_variable(name: str, value: Any, digits: int, number: int) -> Any:
    """Store the value of a user variable. ``digits`` are those of a decimal, or -1; ``number`` is
    that of the assignment."""
    THREAD_STATE.variables[name] = value, digits, number
    return value


@internal("variable", deterministic=False)
def variable(name: str, number: int) -> Any:
    """Return the value of a user variable as a number or as a byte string, which one without a
    value at the start of the statement is."""
    value, digits, _ = THREAD_STATE.variables.get(name, (None, -1, -1))
    if value is None or isinstance(value, bytes) or (number and not isinstance(value, str)):
        return value
    if number:
        raise unsupported("a variable that changes from a number to a text")
    if isinstance(value, float):
        text = double_text(value) if digits < 0 else str(quantized(Decimal(repr(value)), digits))
        return text.encode()
    return str(value).encode()


@internal("key")
def collation_key(value: Any, collation: str) -> Any:
    """Return a key that is equal for strings which the collation considers equal."""
    if not isinstance(value, str):
        return value
    return collations.collation_key(value, collation)


@internal("bit_bytes")
def bit_bytes(value: int, size: int) -> bytes:
    """Return the bytes of a BIT."""
    return int(value).to_bytes(size, "big")


@internal("set_number")
def number_of_set(value: str, members: str) -> int:
    """Return the number of a SET's value. ``members`` are its words with commas."""
    return types.set_number(value, members.split(","))


@internal("tuple")
def as_tuple(*parts: Any) -> str:
    """Combine several values into one. The result is NULL if one of them is."""
    return repr(parts)


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
    """Return a value that is a date or a time, or for ``parts`` a date that can be incomplete.
    Raises StatementError 1292 for any other."""
    text = _text(value)
    if kind == "time":
        found = read_time(text)
        if found is None or not found[1]:
            raise truncated_error(kind, text)
        return value
    if (read_parts(text) if kind == "parts" else read_moment(text)) is None:
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
