"""Date and time functions."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from intercode_sql.dialect.errors import mysql_error, truncated_error, unsupported
from intercode_sql.embedded.catalog.moments import (
    FIRST_DATE,
    LONGEST_CLOCK,
    ZERO_DATE,
    is_date,
    moment_of_digits,
    read_moment,
    read_parts,
    read_time,
    rounded,
    time_microseconds,
    time_text,
    with_fraction,
)
from intercode_sql.embedded.catalog.types import ASCII_STRING, DATE, DATETIME, INT, TIME, Type
from intercode_sql.embedded.catalog.values import double_text
from intercode_sql.embedded.functions.intervals import (
    COMPOUND_UNITS,
    MONTH_UNITS,
    UNITS,
    datetime_text,
    days_in,
    unit_has_time,
)
from intercode_sql.embedded.functions.registry import (
    CLOCK,
    INTEGER,
    MOMENT,
    NUMBER,
    OPTIONAL_CLOCK,
    OPTIONAL_INTEGER,
    PARTS,
    TEXT,
    Argument,
    internal,
    scalar,
)
from intercode_sql.embedded.functions.runtime import ScalarFunction

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PATTERNS = {
    "Y": r"(?P<Y>\d{1,4})",
    "y": r"(?P<y>\d{1,2})",
    "m": r"(?P<m>\d{1,2})",
    "c": r"(?P<c>\d{1,2})",
    "d": r"(?P<d>\d{1,2})",
    "e": r"(?P<e>\d{1,2})",
    "H": r"(?P<H>\d{1,2})",
    "k": r"(?P<k>\d{1,2})",
    "h": r"(?P<h>\d{1,2})",
    "I": r"(?P<I>\d{1,2})",
    "l": r"(?P<l>\d{1,2})",
    "i": r"(?P<i>\d{1,2})",
    "s": r"(?P<s>\d{1,2})",
    "S": r"(?P<S>\d{1,2})",
    "p": r"(?P<p>[AaPp][Mm])",
    "M": r"(?P<M>[A-Za-z]+)",
    "b": r"(?P<b>[A-Za-z]{3})",
    "W": r"[A-Za-z]+",
    "a": r"[A-Za-z]{3}",
    "D": r"(?P<D>\d{1,2})(?:st|nd|rd|th)",
    "f": r"(?P<f>\d{1,6})",
    "j": r"(?P<j>\d{1,3})",
    "%": "%",
}


def _suffix(day: int) -> str:
    return "th" if 10 <= day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


class _Parts(NamedTuple):
    """The parts of a date and a time. Those of an incomplete date are zeros."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    fraction: int

    @property
    def twelve(self) -> int:
        return self.hour % 12 or 12

    @property
    def half(self) -> str:
        return "AM" if self.hour % 24 < 12 else "PM"


_CODES: dict[str, Callable[[_Parts], str]] = {
    "a": lambda p: _DAYS[_weekday(_day_number(*p[:3]))][:3],
    "b": lambda p: _MONTHS[p.month - 1][:3],
    "c": lambda p: str(p.month),
    "D": lambda p: f"{p.day}{_suffix(p.day)}",
    "d": lambda p: f"{p.day:02d}",
    "e": lambda p: str(p.day),
    "f": lambda p: f"{p.fraction:06d}",
    "H": lambda p: f"{p.hour:02d}",
    "h": lambda p: f"{p.twelve:02d}",
    "I": lambda p: f"{p.twelve:02d}",
    "i": lambda p: f"{p.minute:02d}",
    "j": lambda p: str(_day_number(*p[:3]) - _day_number(p.year, 1, 1) + 1).rjust(3, "0"),
    "k": lambda p: str(p.hour),
    "l": lambda p: str(p.twelve),
    "M": lambda p: _MONTHS[p.month - 1],
    "m": lambda p: f"{p.month:02d}",
    "p": lambda p: p.half,
    "r": lambda p: f"{p.twelve:02d}:{p.minute:02d}:{p.second:02d} {p.half}",
    "S": lambda p: f"{p.second:02d}",
    "s": lambda p: f"{p.second:02d}",
    "T": lambda p: f"{p.hour:02d}:{p.minute:02d}:{p.second:02d}",
    "U": lambda p: f"{_week(*p[:3], 0)[1]:02d}",
    "u": lambda p: f"{_week(*p[:3], 1)[1]:02d}",
    "V": lambda p: f"{_week(*p[:3], 2)[1]:02d}",
    "v": lambda p: f"{_week(*p[:3], 3)[1]:02d}",
    "W": lambda p: _DAYS[_weekday(_day_number(*p[:3]))],
    "w": lambda p: str((_weekday(_day_number(*p[:3])) + 1) % 7),
    "X": lambda p: f"{_week(*p[:3], 2)[0]:04d}",
    "x": lambda p: f"{_week(*p[:3], 3)[0]:04d}",
    "Y": lambda p: f"{p.year:04d}",
    "y": lambda p: f"{p.year % 100:02d}",
}
"""What MySQL's format codes give."""


@lru_cache(maxsize=256)
def _steps(form: str) -> tuple[str | Callable[[_Parts], str], ...]:
    """Return the texts of a format, and what its codes give."""
    found = re.findall(r"%(.)|([^%]+|%)", form, re.S)
    return tuple(_CODES.get(code, code) if code else text for code, text in found)


@lru_cache(maxsize=256)
def _used(form: str, codes: str) -> bool:
    """Return whether a format has one of these codes."""
    return any(code in codes for code in re.findall(r"%(.)", form, re.S))


def _formatted(date: tuple[int, int, int] | None, microseconds: int, form: str) -> str | None:
    """Format a date and a time, or a time, with MySQL's format codes. The result is NULL for codes
    of a day that it does not have."""
    year, month, day = date or (0, 0, 0)
    unknown = "aWbMDjUuVvXxw"
    if date is not None:
        unknown = "Mb" * (not month) + "j" * (not month or not year) + "aWw" * (not year | month)
    if not form or (unknown and _used(form, unknown)):
        return None
    hours, rest = divmod(abs(microseconds), 3_600_000_000)
    clock = hours, rest // 60_000_000, rest // 1_000_000 % 60, rest % 1_000_000
    parts = _Parts(year, month, day, *clock)
    text = "".join(step if isinstance(step, str) else step(parts) for step in _steps(form))
    return f"-{text}" if microseconds < 0 else text


@internal("str_to_date", gives_bytes=False)
def str_to_date(text: str, form: str) -> str | None:
    """Parse a date, a time or both by a format, whose rest is not read behind the end of the
    string. The result is NULL if the string does not match."""
    whole = form.replace("%T", "%H:%i:%s").replace("%r", "%h:%i:%s %p")
    steps = re.findall(r"%.|\S", whole, re.S)
    codes = [step for step in steps if len(step) > 1]
    if len(set(codes)) < len(codes):
        return None
    pattern = ""
    for step in reversed(steps):
        known = _PATTERNS.get(step[1]) if len(step) > 1 else re.escape(step)
        if known is None:
            return None
        pattern = rf"\s*(?:\Z|{known}{pattern})"
    found = re.match(pattern, text)
    return _join_date_and_time(found.groupdict("")) if found else None


def _join_date_and_time(parts: dict[str, str]) -> str | None:
    date, time = _date_text(parts), _time_text(parts)
    if date is None and any(k in parts for k in "YymcdeMbDj"):
        return None
    if time == "":
        return None
    return " ".join(p for p in (date, time) if p) or None


def _date_text(parts: dict[str, str]) -> str | None:
    year = int(parts.get("Y") or 0)
    if parts.get("y"):
        year = int(parts["y"]) + (2000 if int(parts["y"]) < 70 else 1900)
    if parts.get("j"):
        day = dt.date(year or 1, 1, 1) + dt.timedelta(days=int(parts["j"]) - 1)
        return day.isoformat()
    month = int(parts.get("m") or parts.get("c") or 0)
    name = (parts.get("M") or parts.get("b") or "").lower()
    if name:
        hits = [
            i for i, m in enumerate(_MONTHS, 1) if m.lower() in (name,) or (m[:3].lower() == name)
        ]
        month = hits[0] if hits else 0
    day_number = int(parts.get("d") or parts.get("e") or parts.get("D") or 0)
    if not is_date(year, month, day_number):
        return None
    return f"{year:04d}-{month:02d}-{day_number:02d}"


def _time_text(parts: dict[str, str]) -> str | None:
    """Return the time, None if the format has none, or an empty string if it is invalid."""
    if not any(k in parts for k in "HkhIlisSpf"):
        return None
    hour = int(
        parts.get("H")
        or parts.get("k")
        or parts.get("h")
        or parts.get("I")
        or (parts.get("l") or 0)
    )
    if parts.get("p"):
        hour = hour % 12 + 12 * (parts["p"].upper() == "PM")
    minute, second = int(parts.get("i") or 0), int(parts.get("s") or parts.get("S") or 0)
    if hour > 23 or minute > 59 or second > 59:
        return ""
    fraction = f".{parts['f']:0<6}" if parts.get("f") else ""
    return f"{hour:02d}:{minute:02d}:{second:02d}{fraction}"


def parse_datetime(value: Any) -> dt.datetime | None:
    """Parse a date and time in one of MySQL's formats. Return None if it is not a date."""
    found = read_moment(str(value))
    return dt.datetime.fromisoformat(found.text) if found else None


def _from_datetime(function: Callable[[dt.datetime], Any]) -> ScalarFunction:
    """Call a function with its argument's date and time. The result is NULL if it is no
    date."""

    def call(value: Any) -> Any:
        found = parse_datetime(value)
        return function(found) if found else None

    return call


@scalar("DATE", args=[MOMENT], returns=DATE)
@internal("date", gives_bytes=False)
def as_date(value: Any) -> str | None:
    found = read_moment(str(value))
    return found.date if found else None


@scalar("TIMESTAMP", args=[MOMENT, OPTIONAL_CLOCK], returns=DATETIME)
@internal("datetime", gives_bytes=False)
def as_datetime(value: Any, clock: Any = "0") -> str | None:
    """Return a date and time, and add a time to it if one is given."""
    found, more = read_moment(str(value)), read_time(str(clock))
    if found is None or more is None or _has_date(clock):
        return None
    if not more[0]:
        return found.text
    moved = dt.datetime.fromisoformat(found.text) + dt.timedelta(microseconds=more[0])
    return datetime_text(moved, True)


@scalar("TIME", args=[CLOCK], returns=TIME)
@internal("time", gives_bytes=False)
def as_time(value: Any) -> str | None:
    found = read_time(str(value))
    return time_text(found[0]) if found else None


_ZEROS = {"date": "0000-00-00", "datetime": "0000-00-00 00:00:00", "time": "00:00:00"}


@internal("compared_moment", gives_bytes=False)
def compared_moment(value: Any, kind: str) -> str:
    """Return a date, a datetime or a time for a comparison: zero if the text is none."""
    made = {"date": as_date, "datetime": as_datetime, "time": as_time}[kind](value)
    return made or _ZEROS[kind]


internal("rounded")(rounded)
internal("moment_text")(with_fraction)
internal("time_order")(time_microseconds)


@internal("ordered_time")
def ordered_time(microseconds: int, _: int) -> str:
    """Return the time of which ``mysql_time_order`` has made microseconds."""
    return time_text(microseconds)


_OFFSET = re.compile(r"([+-])(\d\d?):([0-5]\d)")
_FIRST_SECOND, _LAST_SECOND = dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(3001, 1, 18, 23, 59, 59)


@internal("convert_tz", gives_bytes=False)
def convert_tz(text: str, source: str, target: str) -> str | None:
    """Return the time in one zone at a time in another. A time beyond those of TIMESTAMP stays."""
    before, after, moment = _offset(source), _offset(target), read_moment(text)
    if moment is None or before is None or after is None:
        return None
    local = dt.datetime.fromisoformat(moment.text)
    universal = local - before
    if not _FIRST_SECOND <= universal.replace(microsecond=0) <= _LAST_SECOND:
        return moment.text
    return (universal + after).isoformat(" ")


def _offset(zone: str) -> dt.timedelta | None:
    """Return the offset of a time zone, which is between -13:59 and +14:00."""
    if zone[:1].isalpha():
        raise unsupported(f"the time zone {zone}, which is no offset")
    found = _OFFSET.fullmatch(zone)
    minutes = int(found[1] + "1") * (60 * int(found[2]) + int(found[3])) if found else -1000
    return dt.timedelta(minutes=minutes) if -840 < minutes <= 840 else None


@internal("timestampdiff", gives_bytes=False)
def timestampdiff(unit: str, start: Any, end: Any) -> int | None:
    """Return the number of whole units from start to end."""
    a, b = parse_datetime(start), parse_datetime(end)
    if a is None or b is None:
        return None
    sign = 1
    if b < a:
        a, b, sign = b, a, -1
    if unit in MONTH_UNITS:
        months = (b.year - a.year) * 12 + b.month - a.month
        if (b.day, b.time()) < (a.day, a.time()):
            months -= 1
        return sign * (months // UNITS[unit])
    gap = b - a
    if unit == "MICROSECOND":
        return sign * (gap // dt.timedelta(microseconds=1))
    return sign * int(gap.total_seconds() // UNITS[unit])


@scalar("DATEDIFF", args=[MOMENT, MOMENT], returns=INT)
def datediff(a: Any, b: Any) -> int | None:
    x, y = parse_datetime(a), parse_datetime(b)
    return (x.date() - y.date()).days if x and y else None


@scalar("WEEK", args=[MOMENT, OPTIONAL_INTEGER], returns=INT, accepts_null=True)
def week(value: Any, mode: float | None = 0) -> int | None:
    """WEEK in the modes 0 to 7 (MySQL 8.0 manual, Date and Time Functions). NULL is the mode 0."""
    found = parse_datetime(value)
    return _week(found.year, found.month, found.day, int(mode or 0))[1] if found else None


def _day_number(year: int, month: int, day: int) -> int:
    """Return the number of a day as the server computes it, also of an incomplete date."""
    if not (year or month):
        return 0
    days = 365 * year + 31 * (month - 1) + day
    if month > 2:
        days -= (4 * month + 23) // 10
    else:
        year -= 1
    return days + max(year, 0) // 4 - (max(year, 0) // 100 + 1) * 3 // 4


def _weekday(number: int) -> int:
    """Return 0 for Monday to 6 for Sunday."""
    return (number + 5) % 7


def _days_in_year(year: int) -> int:
    return 366 if year and calendar.isleap(year) else 365


def _week(year: int, month: int, day: int, mode: int, whole: bool = False) -> tuple[int, int]:
    """Return the year and the week of a date, as the server computes them: the number of a week
    below zero has no sign."""
    monday, year_of_week = bool(mode & 1), bool(mode & 2) or whole
    full = bool(mode & 4) == monday  # whether the first week begins with its first weekday
    number, first = _day_number(year, month, day), _day_number(year, 1, 1)
    weekday = _weekday(first + (not monday))
    late = weekday != 0 if full else weekday >= 4
    if month == 1 and day <= 7 - weekday:
        if not year_of_week and late:
            return year, 0
        year_of_week = True
        year -= 1
        first -= _days_in_year(year)
        weekday = (weekday - _days_in_year(year)) % 7
        late = weekday != 0 if full else weekday >= 4
    days = (number - first + (weekday - 7 if late else weekday)) % (1 << 32)
    if year_of_week and days >= 52 * 7:
        weekday = (weekday + _days_in_year(year)) % 7
        if (weekday == 0) if full else weekday < 4:
            return year + 1, 1
    return year, days // 7 + 1


@scalar("YEARWEEK", args=[MOMENT, OPTIONAL_INTEGER], returns=INT, accepts_null=True)
def yearweek(value: Any, mode: float | None = 0) -> int | None:
    found = parse_datetime(value)
    if found is None:
        return None
    year, number = _week(found.year, found.month, found.day, int(mode or 0) | 2, True)
    return year * 100 + number


@internal("extract", gives_bytes=False)
def extract(unit: str, value: Any) -> int | None:
    """EXTRACT of one unit or of a range of units. Units of a time are those of a time."""
    names = COMPOUND_UNITS.get(unit, (unit,))
    if not unit_has_time(unit):
        if unit == "WEEK":
            zero = read_parts(str(value)) == (0, 0, 0)
            return _week(0, 0, 0, 0)[1] if zero else week(value)
        moment = read_parts(str(value))
        if moment is None:
            return None
        if unit == "QUARTER":
            return (moment[1] + 2) // 3
        parts = [moment[("YEAR", "MONTH", "DAY").index(name)] for name in names]
        return parts[0] if len(parts) == 1 else parts[0] * 100 + parts[1]
    found = read_time(str(value))
    if found is None:
        return None
    date = read_moment(str(value)) if names[0] == "DAY" else None
    hours, rest = divmod(abs(found[0]), 3_600_000_000)
    days = int(date.date[8:]) if date is not None and date.timed else hours // 24
    known = {
        "DAY": days,
        "HOUR": hours % 24 if names[0] == "DAY" else hours,
        "MINUTE": rest // 60_000_000,
        "SECOND": rest // 1_000_000 % 60,
        "MICROSECOND": rest % 1_000_000,
    }
    total = 0
    for name in names:
        total = total * (1_000_000 if name == "MICROSECOND" else 100) + known[name]
    return -total if found[0] < 0 else total


@scalar("LAST_DAY", args=[MOMENT], returns=DATE)
def last_day(value: Any) -> str | None:
    found = parse_datetime(value)
    return (
        datetime_text(found.replace(day=days_in(found.year, found.month)), False) if found else None
    )


@scalar("TIME_TO_SEC", args=[CLOCK], returns=INT)
def time_to_sec(value: Any) -> int | None:
    found = read_time(str(value))
    if found is None:
        return None
    return abs(found[0]) // 1_000_000 * (-1 if found[0] < 0 else 1)


@scalar("SEC_TO_TIME", args=[NUMBER], returns=TIME)
def sec_to_time(seconds: float) -> str:
    size = min(abs(seconds), 1e7)
    return time_text(round(size * 1_000_000) * (-1 if seconds < 0 else 1))


@internal("timediff", gives_bytes=False)
def timediff(a: Any, b: Any) -> str | None:
    """Return the difference of two times, or of two dates with times."""
    x, y = read_moment(str(a)), read_moment(str(b))
    dates = [m is not None and m.timed and len(str(v)) >= 12 for m, v in ((x, a), (y, b))]
    if x and y and all(dates):
        gap = dt.datetime.fromisoformat(x.text) - dt.datetime.fromisoformat(y.text)
        return time_text(gap // dt.timedelta(microseconds=1))
    p, q = read_time(str(a)), read_time(str(b))
    return time_text(p[0] - q[0]) if p and q and not any(dates) else None


def _has_date(clock: Any) -> bool:
    """Return whether the text of a time is that of a date."""
    date = read_moment(str(clock))
    timed = date is not None and date.timed and len(str(clock)) >= 12
    return timed or re.match(r"\s*\d{1,4}-\d{1,2}-\d", str(clock)) is not None


def _add_time(value: Any, more: Any, sign: int) -> str | None:
    moment, gap = read_moment(str(value)), read_time(str(more))
    if gap is None or _has_date(more):
        return None
    if moment is not None and moment.timed and len(str(value)) >= 12:
        base = dt.datetime.fromisoformat(moment.text)
        return datetime_text(base + dt.timedelta(microseconds=sign * gap[0]), True)
    base_time = read_time(str(value))
    return time_text(base_time[0] + sign * gap[0]) if base_time else None


@internal("addtime", gives_bytes=False)
def addtime(value: Any, more: Any) -> str | None:
    return _add_time(value, more, 1)


@internal("subtime", gives_bytes=False)
def subtime(value: Any, less: Any) -> str | None:
    return _add_time(value, less, -1)


_UNIX_TIME_END = 32536771200
"""The start of the day after MySQL's last one."""


@internal("unix_timestamp", gives_bytes=False)
def unix_timestamp(value: Any) -> float:
    """Return the seconds since 1970, or 0 for what is no date or out of the range."""
    found = parse_datetime(value)
    seconds = found.replace(tzinfo=dt.UTC).timestamp() if found else 0.0
    return seconds if 0 <= seconds < _UNIX_TIME_END else 0.0


@scalar("FROM_UNIXTIME", args=[NUMBER], returns=DATETIME)
def from_unixtime(value: float) -> str | None:
    if not 0 <= value < _UNIX_TIME_END:
        return None
    moment = dt.datetime.fromtimestamp(value, dt.UTC).replace(tzinfo=None)
    return datetime_text(moment, True)


def _period_months(value: int, name: str) -> int:
    if not 0 < value < 1_000_000 or not 1 <= value % 100 <= 12:
        raise mysql_error(1210, name)
    year, month = divmod(value, 100)
    return (year + (2000 if year < 70 else 1900 if year < 100 else 0)) * 12 + month - 1


@scalar("PERIOD_ADD", args=[INTEGER, INTEGER], returns=INT)
def period_add(period: int, months: int) -> int:
    total = _period_months(period, "period_add") + months & 0xFFFFFFFF
    year, month = divmod(total, 12)
    return (year + (2000 if year < 70 else 1900 if year < 100 else 0)) * 100 + month + 1


@scalar("PERIOD_DIFF", args=[INTEGER, INTEGER], returns=INT)
def period_diff(a: int, b: int) -> int:
    return _period_months(a, "period_diff") - _period_months(b, "period_diff")


# ---------------------------------------------------------------- parts of a date or a time
def _part(argument: Argument, unit: str, *names: str, kind: Type = INT) -> None:
    """Register functions of the part of a date or a time that EXTRACT gives, without a sign."""

    @scalar(*names, args=[argument], returns=kind)
    def call(value: Any) -> int | None:
        found = extract(unit, value)
        return None if found is None else abs(found)


_part(PARTS, "YEAR", "YEAR", kind=Type("year", 4))
_part(PARTS, "DAY", "DAY", "DAYOFMONTH")
for _unit in ("QUARTER", "MONTH"):
    _part(PARTS, _unit, _unit)
for _unit in ("HOUR", "MINUTE", "SECOND", "MICROSECOND"):
    _part(CLOCK, _unit, _unit)


@scalar("DAYOFWEEK", args=[MOMENT], returns=INT)
@_from_datetime
def dayofweek(moment: dt.datetime) -> int:
    """Return 1 for Sunday to 7 for Saturday."""
    return moment.isoweekday() % 7 + 1


@scalar("WEEKDAY", args=[MOMENT], returns=INT)
@_from_datetime
def weekday(moment: dt.datetime) -> int:
    """Return 0 for Monday to 6 for Sunday."""
    return moment.weekday()


@scalar("DAYOFYEAR", args=[MOMENT], returns=INT)
@_from_datetime
def dayofyear(moment: dt.datetime) -> int:
    return moment.timetuple().tm_yday


@scalar("WEEKOFYEAR", args=[MOMENT], returns=INT)
def weekofyear(value: Any) -> int | None:
    return week(value, 3)


@scalar("DAYNAME", args=[MOMENT], returns=ASCII_STRING)
@_from_datetime
def dayname(moment: dt.datetime) -> str:
    return f"{moment:%A}"


@scalar("MONTHNAME", args=[PARTS], returns=ASCII_STRING)
@_from_datetime
def monthname(moment: dt.datetime) -> str:
    return f"{moment:%B}"


# ---------------------------------------------------------------- conversions
@scalar("TO_DAYS", args=[MOMENT], returns=INT)
@_from_datetime
def to_days(moment: dt.datetime) -> int:
    return moment.toordinal() + 365


@scalar("TO_SECONDS", args=[MOMENT], returns=INT)
@_from_datetime
def to_seconds(moment: dt.datetime) -> int:
    clock = 3600 * moment.hour + 60 * moment.minute + moment.second
    return 86400 * (moment.toordinal() + 365) + clock


@scalar("FROM_DAYS", args=[INTEGER], returns=DATE)
def from_days(days: int) -> str:
    if days <= 365 or days >= 3_652_500:
        return ZERO_DATE
    return datetime_text(dt.datetime.fromordinal(int(days) - 365), False)


@scalar("MAKEDATE", args=[INTEGER, INTEGER], returns=DATE)
def makedate(year: int, day: int) -> str | None:
    if day < 1 or not 0 <= year <= 9999:
        return None
    full = year + (2000 if year < 70 else 1900 if year < 100 else 0)
    return datetime_text(dt.datetime(full, 1, 1) + dt.timedelta(days=day - 1), False)


@scalar("MAKETIME", args=[INTEGER, INTEGER, NUMBER], returns=TIME)
def maketime(hours: int, minutes: int, seconds: float) -> str | None:
    if not (0 <= minutes < 60 and 0 <= seconds < 60):
        return None
    size = abs(hours) * 3600 + minutes * 60 + seconds
    return time_text(round(min(size, 1e7) * 1_000_000) * (-1 if hours < 0 else 1))


@scalar("DATE_FORMAT", args=[PARTS, TEXT], returns=ASCII_STRING)
def format_date(value: Any, pattern: str) -> str | None:
    moment = parse_datetime(value)
    if moment is not None:
        clock = 3600 * moment.hour + 60 * moment.minute + moment.second
        date = moment.year, moment.month, moment.day
        return _formatted(date, 1_000_000 * clock + moment.microsecond, pattern)
    parts = read_parts(str(value))
    if parts is None:
        return None
    found = read_time(str(value).strip().partition(" ")[2] or "0")
    return _formatted(parts, found[0] if found else 0, pattern)


@scalar("TIME_FORMAT", args=[CLOCK, TEXT], returns=ASCII_STRING)
def format_time(value: Any, pattern: str) -> str | None:
    found = read_time(str(value))
    return _formatted(None, found[0], pattern) if found else None


@internal("number_clock")
def number_clock(value: float) -> str | None:
    """Return the text of a time, HHMMSS, or of a date and time, of a number. One that is longer
    than the longest time, and no date, is none."""
    if abs(int(value)) <= LONGEST_CLOCK:
        return double_text(round(value, 6)) if isinstance(value, float) else str(value)
    if not FIRST_DATE <= value < 1e14:
        return None
    moment = moment_of_digits(value)
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
    found = moment_of_digits(value)
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
