"""Date and time functions."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from intercode.sql.embedded.catalog.types import ASCII_STRING, DATE, DATETIME, INT, TIME, Type
from intercode.sql.embedded.catalog.values import parse_datetime_text, parse_time_text
from intercode.sql.embedded.functions.datetime_formats import date_format
from intercode.sql.embedded.functions.registry import (
    NUMBER,
    OPTIONAL_NUMBER,
    TEXT,
    internal,
    scalar,
)
from intercode.sql.embedded.functions.runtime import ScalarFunction

_UNITS = {
    "YEAR": 12, "QUARTER": 3, "MONTH": 1, "WEEK": 604800, "DAY": 86400, "HOUR": 3600, "MINUTE": 60,
    "SECOND": 1,
}  # fmt: skip
_MONTHS = ("YEAR", "QUARTER", "MONTH")
_COMPOUND_UNITS = {
    "YEAR_MONTH": ("YEAR", "MONTH"), "DAY_HOUR": ("DAY", "HOUR"),
    "DAY_MINUTE": ("DAY", "HOUR", "MINUTE"), "DAY_SECOND": ("DAY", "HOUR", "MINUTE", "SECOND"),
    "HOUR_MINUTE": ("HOUR", "MINUTE"), "HOUR_SECOND": ("HOUR", "MINUTE", "SECOND"),
    "MINUTE_SECOND": ("MINUTE", "SECOND"),
}  # fmt: skip


def parse_datetime(value: Any) -> dt.datetime | None:
    """Parse a date and time in one of MySQL's formats. Return None if it is not a date."""
    text = str(value)
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        moment = parse_datetime_text(text.removesuffix(".0"))
    return dt.datetime.fromisoformat(f"{moment[0]} {moment[1]}") if moment else None


def _parse_time_of_day(value: Any) -> dt.datetime | None:
    """Return the time of day of a datetime or a time, or None."""
    text = str(value)
    if (found := parse_datetime(text)) is not None:
        return found
    time = parse_time_text(text)
    if time is None or time.startswith("-") or time[:2] > "23":
        return None
    return dt.datetime.fromisoformat(f"2000-01-01 {time}")


def _from_datetime(function: Callable[[dt.datetime], Any]) -> ScalarFunction:
    """Call a function with its argument's date and time. The result is NULL if it is no
    date."""

    def call(value: Any) -> Any:
        found = parse_datetime(value)
        return function(found) if found else None

    return call


def _from_time(function: Callable[[dt.datetime], Any]) -> ScalarFunction:
    """Call a function with its argument's time of day. The result is NULL if it is not a time."""

    def call(value: Any) -> Any:
        found = _parse_time_of_day(value)
        return function(found) if found else None

    return call


@scalar("DATE", args=[TEXT], returns=DATE)
def as_date(value: Any) -> str | None:
    found = parse_datetime_text(str(value).removesuffix(".0"))
    return found[0] if found else None


@scalar("TIMESTAMP", args=[TEXT], returns=DATETIME)
@internal("datetime")
def as_datetime(value: Any) -> str | None:
    found = parse_datetime_text(str(value).removesuffix(".0"))
    return f"{found[0]} {found[1]}" if found else None


@scalar("TIME", args=[TEXT], returns=TIME)
def as_time(value: Any) -> str | None:
    text = str(value)
    moment = parse_datetime_text(text) if "-" in text[1:] else None
    return moment[1] if moment else parse_time_text(text.rpartition(" ")[2])


@internal("temporal_number")
def temporal_number(value: str) -> int:
    """Return a date as an integer: 20230131, or 20230131235959 with its time."""
    return int(re.sub(r"\D", "", value.partition(".")[0]))


def datetime_text(moment: dt.datetime, with_time: bool) -> str:
    """Return a date, or a date and time, in MySQL's format."""
    if not with_time:
        return f"{moment.year:04d}-{moment:%m-%d}"
    text = f"{moment.year:04d}-{moment:%m-%d %H:%M:%S}"
    return text + (f".{moment.microsecond:06d}" if moment.microsecond else "")


@internal("date_add")
def date_add(base: Any, amount: Any, unit: str, sign: int) -> str | None:
    """Add an interval to a date. The result is NULL outside the years 1 to 9999."""
    text = str(base)
    moment = parse_datetime(text)
    if moment is None:
        return None
    with_time = ":" in text or any(w in unit for w in ("HOUR", "MINUTE", "SECOND"))
    for part, size in _interval_parts(amount, unit):
        moved = _add_unit(moment, part, sign * size)
        if moved is None:
            return None
        moment = moved
    return datetime_text(moment, with_time)


def _interval_parts(amount: Any, unit: str) -> list[tuple[str, float]]:
    if unit not in _COMPOUND_UNITS:
        return [(unit, float(amount) if not isinstance(amount, str) else _leading_number(amount))]
    text = str(amount)
    minus = -1 if text.strip().startswith("-") else 1
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    names = _COMPOUND_UNITS[unit][-len(numbers) :]
    return [(n, minus * v) for n, v in zip(names, numbers, strict=False)]


def _leading_number(text: str) -> float:
    found = re.match(r"\s*[-+]?\d*\.?\d*", text)
    return float(found.group()) if found and found.group().strip("+- .") else 0.0


def _add_unit(moment: dt.datetime, unit: str, size: float) -> dt.datetime | None:
    try:
        if unit in _MONTHS:
            months = moment.year * 12 + moment.month - 1 + round(size) * _UNITS[unit]
            year, month = divmod(months, 12)
            last = _days_in(year, month + 1)
            return moment.replace(year=year, month=month + 1, day=min(moment.day, last))
        if unit == "MICROSECOND":
            return moment + dt.timedelta(microseconds=size)
        whole = size if unit == "SECOND" else round(size)
        return moment + dt.timedelta(seconds=whole * _UNITS[unit])
    except (ValueError, OverflowError):
        return None


def _days_in(year: int, month: int) -> int:
    after = dt.date(year + month // 12, month % 12 + 1, 1) if year < 9999 or month < 12 else None
    return (after - dt.timedelta(days=1)).day if after else 31


@internal("timestampdiff")
def timestampdiff(unit: str, start: Any, end: Any) -> int | None:
    """Return the number of whole units from start to end."""
    a, b = parse_datetime(start), parse_datetime(end)
    if a is None or b is None:
        return None
    sign = 1
    if b < a:
        a, b, sign = b, a, -1
    if unit in _MONTHS:
        months = (b.year - a.year) * 12 + b.month - a.month
        if (b.day, b.time()) < (a.day, a.time()):
            months -= 1
        return sign * (months // _UNITS[unit])
    gap = b - a
    if unit == "MICROSECOND":
        return sign * (gap // dt.timedelta(microseconds=1))
    return sign * int(gap.total_seconds() // _UNITS[unit])


@scalar("DATEDIFF", args=[TEXT, TEXT], returns=INT)
def datediff(a: Any, b: Any) -> int | None:
    x, y = parse_datetime(a), parse_datetime(b)
    return (x.date() - y.date()).days if x and y else None


@scalar("WEEK", args=[TEXT, OPTIONAL_NUMBER], returns=INT)
def week(value: Any, mode: float = 0) -> int | None:
    """WEEK in the modes 0 to 7 (MySQL 8.0 manual, Date and Time Functions)."""
    found = parse_datetime(value)
    return _week(found.date(), int(mode))[1] if found else None


def _week(day: dt.date, mode: int, whole: bool = False) -> tuple[int, int]:
    monday, long_year, four_days = bool(mode & 1), bool(mode & 2) or whole, not mode & 4
    four_days = bool(mode & 1) if not mode & 4 else not mode & 1
    start = dt.date(day.year, 1, 1)
    weekday = start.weekday() if monday else (start.weekday() + 1) % 7
    gap = weekday
    first = gap <= 3 if four_days else gap == 0
    begin = start - dt.timedelta(days=gap) if first else start + dt.timedelta(days=7 - gap)
    if day < begin:
        return (
            (day.year - 1, _week(dt.date(day.year - 1, 12, 31), mode, True)[1])
            if (long_year)
            else (day.year, 0)
        )
    number = (day - begin).days // 7 + 1
    if long_year and number == 53:
        following = dt.date(day.year + 1, 1, 1) if day.year < 9999 else None
        if following is not None:
            ahead = following.weekday() if monday else (following.weekday() + 1) % 7
            early = ahead <= 3 if four_days else ahead == 0
            if early and day >= following - dt.timedelta(days=ahead):
                return day.year + 1, 1
    return day.year, number


@scalar("YEARWEEK", args=[TEXT, OPTIONAL_NUMBER], returns=INT)
def yearweek(value: Any, mode: float = 0) -> int | None:
    found = parse_datetime(value)
    if found is None:
        return None
    year, number = _week(found.date(), int(mode) | 2, True)
    return year * 100 + number


@internal("extract")
def extract(unit: str, value: Any) -> int | None:
    """EXTRACT of one unit or of a range of units."""
    moment = _parse_time_of_day(value)
    if moment is None:
        return None
    if unit == "QUARTER":
        return (moment.month + 2) // 3
    if unit == "WEEK":
        return week(value)
    if unit in _COMPOUND_UNITS:
        names = _COMPOUND_UNITS[unit]
        total = 0
        for name in names:
            total = total * 100 + int(getattr(moment, name.lower()))
        return total
    return int(getattr(moment, unit.lower()))


@scalar("LAST_DAY", args=[TEXT], returns=DATE)
def last_day(value: Any) -> str | None:
    found = parse_datetime(value)
    return (
        datetime_text(found.replace(day=_days_in(found.year, found.month)), False)
        if found
        else None
    )


@scalar("TIME_TO_SEC", args=[TEXT], returns=INT)
def time_to_sec(value: Any) -> int | None:
    found = as_time(value)
    if found is None:
        return None
    hours, minutes, seconds = found.lstrip("-").split(":")
    total = int(hours) * 3600 + int(minutes) * 60 + int(float(seconds))
    return -total if found.startswith("-") else total


@scalar("SEC_TO_TIME", args=[NUMBER], returns=TIME)
def sec_to_time(seconds: float) -> str:
    total = int(abs(seconds))
    return f"{'-' * (seconds < 0)}{total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}"


@scalar("TIMEDIFF", args=[TEXT, TEXT], returns=TIME)
def timediff(a: Any, b: Any) -> str | None:
    x, y = parse_datetime(a), parse_datetime(b)
    if x and y:
        return sec_to_time((x - y).total_seconds())
    p, q = time_to_sec(a), time_to_sec(b)
    return sec_to_time(p - q) if p is not None and q is not None else None


@internal("unix_timestamp")
def unix_timestamp(value: Any) -> int | None:
    found = parse_datetime(value)
    return int(found.replace(tzinfo=dt.UTC).timestamp()) if found else None


@scalar("FROM_UNIXTIME", args=[NUMBER], returns=DATETIME)
def from_unixtime(value: float) -> str | None:
    moment = dt.datetime.fromtimestamp(value, dt.UTC).replace(tzinfo=None)
    return datetime_text(moment, True)


def _period_months(value: float) -> int:
    year, month = divmod(int(value), 100)
    return (year + (2000 if year < 70 else 1900 if year < 100 else 0)) * 12 + month - 1


@scalar("PERIOD_ADD", args=[NUMBER, NUMBER], returns=INT)
def period_add(period: float, months: float) -> int:
    year, month = divmod(_period_months(period) + int(months), 12)
    return year * 100 + month + 1


@scalar("PERIOD_DIFF", args=[NUMBER, NUMBER], returns=INT)
def period_diff(a: float, b: float) -> int:
    return _period_months(a) - _period_months(b)


# ---------------------------------------------------------------- parts of a date or a time
@scalar("YEAR", args=[TEXT], returns=Type("year", 4))
@_from_datetime
def year(moment: dt.datetime) -> int:
    return moment.year


@scalar("QUARTER", args=[TEXT], returns=INT)
@_from_datetime
def quarter(moment: dt.datetime) -> int:
    return (moment.month + 2) // 3


@scalar("MONTH", args=[TEXT], returns=INT)
@_from_datetime
def month(moment: dt.datetime) -> int:
    return moment.month


@scalar("DAY", "DAYOFMONTH", args=[TEXT], returns=INT)
@_from_datetime
def day(moment: dt.datetime) -> int:
    return moment.day


@scalar("HOUR", args=[TEXT], returns=INT)
@_from_time
def hour(moment: dt.datetime) -> int:
    return moment.hour


@scalar("MINUTE", args=[TEXT], returns=INT)
@_from_time
def minute(moment: dt.datetime) -> int:
    return moment.minute


@scalar("SECOND", args=[TEXT], returns=INT)
@_from_time
def second(moment: dt.datetime) -> int:
    return moment.second


@scalar("MICROSECOND", args=[TEXT], returns=INT)
@_from_time
def microsecond(moment: dt.datetime) -> int:
    return moment.microsecond


@scalar("DAYOFWEEK", args=[TEXT], returns=INT)
@_from_datetime
def dayofweek(moment: dt.datetime) -> int:
    """Return 1 for Sunday to 7 for Saturday."""
    return moment.isoweekday() % 7 + 1


@scalar("WEEKDAY", args=[TEXT], returns=INT)
@_from_datetime
def weekday(moment: dt.datetime) -> int:
    """Return 0 for Monday to 6 for Sunday."""
    return moment.weekday()


@scalar("DAYOFYEAR", args=[TEXT], returns=INT)
@_from_datetime
def dayofyear(moment: dt.datetime) -> int:
    return moment.timetuple().tm_yday


@scalar("WEEKOFYEAR", args=[TEXT], returns=INT)
def weekofyear(value: Any) -> int | None:
    return week(value, 3)


@scalar("DAYNAME", args=[TEXT], returns=ASCII_STRING)
@_from_datetime
def dayname(moment: dt.datetime) -> str:
    return f"{moment:%A}"


@scalar("MONTHNAME", args=[TEXT], returns=ASCII_STRING)
@_from_datetime
def monthname(moment: dt.datetime) -> str:
    return f"{moment:%B}"


# ---------------------------------------------------------------- conversions
@scalar("TO_DAYS", args=[TEXT], returns=INT)
@_from_datetime
def to_days(moment: dt.datetime) -> int:
    return moment.toordinal() + 365


@scalar("FROM_DAYS", args=[NUMBER], returns=DATE)
def from_days(days: float) -> str:
    return datetime_text(dt.datetime.fromordinal(int(days) - 365), False)


@scalar("MAKEDATE", args=[NUMBER, NUMBER], returns=DATE)
def makedate(year: float, day: float) -> str | None:
    if day < 1:
        return None
    return datetime_text(dt.datetime(int(year), 1, 1) + dt.timedelta(days=int(day) - 1), False)


@scalar("MAKETIME", args=[NUMBER, NUMBER, NUMBER], returns=TIME)
def maketime(hours: float, minutes: float, seconds: float) -> str | None:
    if not (0 <= minutes < 60 and 0 <= seconds < 60):
        return None
    return f"{int(hours):02d}:{int(minutes):02d}:{int(seconds):02d}"


@scalar("DATE_FORMAT", args=[TEXT, TEXT], returns=ASCII_STRING)
def format_date(value: Any, pattern: str) -> str | None:
    moment = parse_datetime(value)
    return date_format(moment, pattern, _week) if moment else None


@scalar("TIME_FORMAT", args=[TEXT, TEXT], returns=ASCII_STRING)
def format_time(value: Any, pattern: str) -> str | None:
    moment = _parse_time_of_day(value)
    return date_format(moment, pattern, _week) if moment else None
