"""Dates and times that are the digits of numbers, and the numbers of dates and times."""

from __future__ import annotations

import re

from intercode_sql.dialect.errors import mysql_error, truncated_error
from intercode_sql.embedded.catalog.moments import FIRST_DATE, LONGEST_CLOCK, number_text, read_time
from intercode_sql.embedded.catalog.values import double_text
from intercode_sql.embedded.functions.registry import internal


@internal("number_clock")
def number_clock(value: float) -> str | None:
    """Return the text of a time, HHMMSS, or of a date and time, of a number. One that is longer
    than the longest time, and no date, is none."""
    if abs(int(value)) <= LONGEST_CLOCK:
        return double_text(round(value, 6)) if isinstance(value, float) else str(value)
    if not FIRST_DATE <= value < 1e14:
        return None
    moment = number_text(value)
    return f"{moment} 00:00:00" if moment is not None and " " not in moment else moment


@internal("whole_number_clock")
def whole_number_clock(value: float) -> str:
    """Return the text of a time of a number. Raises StatementError 1292 for one that is none."""
    text = number_clock(value)
    if text is None or read_time(text) is None:
        shown = double_text(value) if isinstance(value, float) else str(value)
        raise truncated_error("time", shown)
    return text


@internal("whole_number_moment")
def whole_number_moment(value: float, kind: str, scale: int) -> str:
    """Return the date that a number is, as ``number_moment`` does. Raises StatementError 1292 for
    one that is none."""
    found = number_moment(value, kind)
    if found is None:
        shown = f"{value:.{scale}f}" if scale > 0 else double_text(value)
        raise mysql_error(1525, "datetime", shown)
    return found


@internal("number_moment")
def number_moment(value: float, kind: str) -> str | None:
    """Return the date, the date and time, or whichever a number is, as text."""
    found = number_text(value)
    if found is None or not kind:
        return found
    if kind == "date":
        return found[:10]
    return found if " " in found else f"{found} 00:00:00"


@internal("temporal_number")
def temporal_number(value: str) -> int | float:
    """Return a date as an integer: 20230131, or 20230131235959 with its time, which can have a
    fraction."""
    whole, point, fraction = value.partition(".")
    digits = re.sub(r"\D", "", whole)
    number = float(f"{digits}.{fraction}") if point else int(digits)
    return -number if value.startswith("-") else number
