"""Intervals: how they are read, and how they are added to dates and times."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from intercode_sql.embedded.catalog.moments import (
    MAX_TIME,
    read_moment,
    time_microseconds,
    time_text,
)
from intercode_sql.embedded.functions.registry import internal

UNITS = {
    "YEAR": 12,
    "QUARTER": 3,
    "MONTH": 1,
    "WEEK": 604800,
    "DAY": 86400,
    "HOUR": 3600,
    "MINUTE": 60,
    "SECOND": 1,
}
MONTH_UNITS = ("YEAR", "QUARTER", "MONTH")
COMPOUND_UNITS = {
    "YEAR_MONTH": ("YEAR", "MONTH"),
    "DAY_HOUR": ("DAY", "HOUR"),
    "DAY_MINUTE": ("DAY", "HOUR", "MINUTE"),
    "DAY_SECOND": ("DAY", "HOUR", "MINUTE", "SECOND"),
    "HOUR_MINUTE": ("HOUR", "MINUTE"),
    "HOUR_SECOND": ("HOUR", "MINUTE", "SECOND"),
    "MINUTE_SECOND": ("MINUTE", "SECOND"),
    "DAY_MICROSECOND": ("DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND"),
    "HOUR_MICROSECOND": ("HOUR", "MINUTE", "SECOND", "MICROSECOND"),
    "MINUTE_MICROSECOND": ("MINUTE", "SECOND", "MICROSECOND"),
    "SECOND_MICROSECOND": ("SECOND", "MICROSECOND"),
}


def datetime_text(moment: dt.datetime, with_time: bool) -> str:
    """Return a date, or a date and time, in MySQL's format."""
    if not with_time:
        return f"{moment.year:04d}-{moment:%m-%d}"
    text = f"{moment.year:04d}-{moment:%m-%d %H:%M:%S}"
    return text + (f".{moment.microsecond:06d}" if moment.microsecond else "")


@internal("date_add", gives_bytes=False)
def date_add(base: Any, amount: Any, unit: str, sign: int) -> str | None:
    """Add an interval to a date. The result is NULL outside the years 1 to 9999."""
    text = str(base)
    found = read_moment(text)
    parts = _interval_parts(amount, unit)
    if found is None or parts is None:
        return None
    moment = dt.datetime.fromisoformat(found.text)
    with_time = found.timed or unit_has_time(unit)
    if unit == "YEAR_MONTH":
        parts = [("MONTH", sum(size * UNITS[part] for part, size in parts))]
    for part, size in parts:
        moved = _add_unit(moment, part, sign * size)
        if moved is None:
            return None
        moment = moved
    return datetime_text(moment, with_time)


@internal("time_add", gives_bytes=False)
def time_add(base: str, amount: Any, unit: str, sign: int) -> str | None:
    """Add an interval to a time. The result is NULL beyond the longest time."""
    parts = _interval_parts(amount, unit)
    if parts is None:
        return None
    total = time_microseconds(base)
    for part, size in parts:
        unit_size = 1 if part == "MICROSECOND" else UNITS[part] * 1_000_000
        whole = size if part == "SECOND" else round_half_away(size)
        total += sign * round(whole * unit_size)
    return time_text(total) if abs(total) <= MAX_TIME else None


def unit_has_time(unit: str) -> bool:
    """Return whether a unit of an interval has a time of day."""
    return any(word in unit for word in ("HOUR", "MINUTE", "SECOND"))


def _interval_parts(amount: Any, unit: str) -> list[tuple[str, float]] | None:
    if unit not in COMPOUND_UNITS:
        if not isinstance(amount, str):
            return [(unit, amount)]
        number = _leading_number(amount)
        return [(unit, number if unit == "SECOND" else int(number))]
    text = str(amount)
    minus = -1 if text.strip().startswith("-") else 1
    digits = re.findall(r"\d+", text)
    names = COMPOUND_UNITS[unit]
    if len(digits) > len(names):
        return None
    if unit.endswith("MICROSECOND") and digits:
        digits[-1] = f"{digits[-1][:6]:0<6}"
    used = names[len(names) - len(digits) :]
    return [(name, minus * int(d)) for name, d in zip(used, digits, strict=True)]


def _leading_number(text: str) -> float:
    found = re.match(r"\s*[-+]?\d*\.?\d*", text)
    return float(found.group()) if found and found.group().strip("+- .") else 0.0


def round_half_away(value: float) -> int:
    """Round to a whole number, halves away from zero."""
    if isinstance(value, int):
        return value
    return math.floor(abs(value) + 0.5) * (-1 if value < 0 else 1)


def _add_unit(moment: dt.datetime, unit: str, size: float) -> dt.datetime | None:
    try:
        if unit in MONTH_UNITS:
            months = moment.month - 1 + round_half_away(size) * UNITS[unit]
            year, month = divmod(moment.year * 12 + months, 12)
            year &= 0xFFFFFFFF if unit == "YEAR" else -1  # of which MySQL keeps 32 bits
            last = days_in(year, month + 1)
            return moment.replace(year=year, month=month + 1, day=min(moment.day, last))
        if unit == "MICROSECOND":
            return moment + dt.timedelta(microseconds=round_half_away(size))
        whole = size if unit == "SECOND" else round_half_away(size)
        return moment + dt.timedelta(seconds=whole * UNITS[unit])
    except (ValueError, OverflowError):
        return None


def days_in(year: int, month: int) -> int:
    """Return the number of days of a month."""
    after = dt.date(year + month // 12, month % 12 + 1, 1) if year < 9999 or month < 12 else None
    return (after - dt.timedelta(days=1)).day if after else 31
