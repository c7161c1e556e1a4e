"""Reads dates and times as MySQL does, from text and from the digits of numbers.

A date and time is text as ``2020-06-15 12:30:45``, a time as ``-100:00:00``; both end with six
digits of a fraction if they have one. A text that only begins with a moment gives that moment, and
is not ``clean``.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE = re.compile(r"\s*(\d{1,4})[^\w\s](\d{1,2})[^\w\s](\d{1,2})(?!\d)", re.S)
_CLOCK = re.compile(
    r"(?:[ \t]+|T)(\d{1,2})(?:[^\w\s](\d{1,2})(?:[^\w\s](\d{1,2})(?:\.(\d*))?)?)?", re.S
)
_RUN = re.compile(r"[0-9][0-9T]*")
_RUN_OF_DIGITS = re.compile(r"[0-9]+")
_MARKS = re.compile(r"[^\w]*|_*")
_TIME = re.compile(
    r"\s*(?:(-)\s*)?(?:(\d+)[ ]+(?=\d))?(\d+)(?::(\d+)(?::(\d+))?)?(?:\.(\d*))?", re.S
)
_EXPONENT = re.compile(r"[eE][-+]?\d")
MAX_TIME = (838 * 3600 + 59 * 60 + 59) * 1_000_000
"""The longest time, in microseconds."""
LONGEST_CLOCK = 8385959
"""The number of the longest time."""
FIRST_DATE = 10_000_000_000
"""The least number that is a date and a time where a time is read."""
_SECOND = 1_000_000
ZERO_DATE = "0000-00-00"


@dataclass(frozen=True, slots=True)
class Moment:
    """A date and a time of day, as text. ``timed`` says whether the text had a time."""

    date: str
    time: str
    timed: bool
    clean: bool

    @property
    def text(self) -> str:
        """Date and time."""
        return f"{self.date} {self.time}"


def is_date(year: int, month: int, day: int) -> bool:
    """Return whether the calendar has that day."""
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] and year <= 9999):
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return leap or (month, day) != (2, 29)


def read_parts(text: str) -> tuple[int, int, int] | None:
    """Return the year, the month and the day of a date, which can be incomplete: 2020-05-00."""
    found = _DATE.match(text)
    if found is None:
        moment = read_moment(text)
        if moment is None:
            return (0, 0, 0) if text.strip().startswith(ZERO_DATE) else None
        return int(moment.date[:4]), int(moment.date[5:7]), int(moment.date[8:])
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    if len(found[1]) <= 2 and (year or month or day):
        year += 2000 if year < 70 else 1900
    if month > 12 or day > 31 or (month and day and not is_date(year, month, day)):
        return None
    return year, month, day


def read_moment(text: str) -> Moment | None:
    """Return the date, and the time if there is one, with which a text begins."""
    found = _DATE.match(text)
    if found is None:
        return _read_fields(text)
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    if len(found[1]) <= 2:
        year += 2000 if year < 70 else 1900
    clock = _CLOCK.match(text, found.end())
    if clock is None and text[found.end() :].strip():
        return _read_fields(text)
    if clock is None:
        return _moment(year, month, day, None, "", True)
    numbers = [int(clock[i] or 0) for i in (1, 2, 3)]
    return _moment(year, month, day, numbers, clock[4] or "", not text[clock.end() :].strip())


def _read_fields(text: str) -> Moment | None:
    """Read a moment of any form: digits without marks between them, or up to seven fields with any
    marks. A run of digits begins with a year of four if it has 4, 8 or at least 14, else of two."""
    start = len(text) - len(text.lstrip())
    run = _RUN.match(text, start)
    if run is None:
        return None
    packed = run.end() == len(text) or text[run.end()] == "."
    size = 4 if packed and (len(run[0]) in (4, 8) or len(run[0]) >= 14) else 2
    fields: list[str] = []
    at = rest = start
    while len(fields) < 7 and (digits := _RUN_OF_DIGITS.match(text, at)) is not None:
        number = digits[0][:size] if packed or len(fields) == 6 else digits[0]
        fields.append(number)
        at = rest = at + len(number)
        place, size, mark = len(fields), 2, text[at : at + 1]
        if place == 3 and mark == "T":
            at += 1
        elif place == 6:
            if mark == ".":
                at = rest = at + 1
                size = 6
            elif mark.isdigit():
                break
        else:
            marks = _MARKS.match(text, at)
            if marks is None or (place not in (3, 7) and not marks[0].isascii()):
                return None
            if place not in (3, 7) and any(char.isspace() for char in marks[0]):
                return None
            at = rest = marks.end()
    if len(fields) < 3 or len(fields[0]) > 4:
        return None
    year, month, day = (int(field) for field in fields[:3])
    if len(fields[0]) <= 2:
        year += 2000 if year < 70 else 1900
    clock = [int(field) for field in [*fields[3:6], "0", "0"][:3]] if len(fields) > 3 else None
    fraction = fields[6] if len(fields) > 6 else ""
    clean = not text[rest:].lstrip("0123456789" * (len(fraction) == 6)).strip()
    return _moment(year, month, day, clock, fraction, clean)


def moment_of_digits(value: float) -> str | None:
    """Return the date, or the date and time, that the digits of a number are (YYMMDD, YYYYMMDD or
    those with hhmmss), as text. Zero is the date of zeros."""
    whole = int(value)
    if whole == 0 and value > 0:
        return f"{ZERO_DATE} {time_text(round(value * _SECOND))}"
    if whole == 0:
        return ZERO_DATE if value >= 0 else None
    timed = whole > 99991231
    digits = f"{whole:0{12 if timed else 6}d}"
    if whole < 101 or (not timed and 991231 < whole < 10000101):
        return None
    if len(digits) in (6, 12):
        digits = ("20" if digits < "70" else "19") + digits
    fraction = f"{value:.6f}".partition(".")[2] if timed and value != whole else ""
    found = _read_fields(f"{digits}.{fraction}" if timed else digits)
    if found is None:
        return None
    return found.text if timed else found.date


def _moment(
    year: int, month: int, day: int, clock: list[int] | None, fraction: str, clean: bool
) -> Moment | None:
    hours, minutes, seconds = clock or (0, 0, 0)
    if not is_date(year, month, day) or hours > 23 or minutes > 59 or seconds > 59:
        return None
    time = f"{hours:02d}:{minutes:02d}:{seconds:02d}{_fraction_text(_microseconds(fraction))}"
    return Moment(f"{year:04d}-{month:02d}-{day:02d}", time, clock is not None, clean)


def _microseconds(fraction: str) -> int:
    return int(f"{fraction[:6]:0<6}") if fraction else 0


def _fraction_text(microseconds: int) -> str:
    return f".{microseconds:06d}" if microseconds else ""


def read_time(text: str) -> tuple[int, bool] | None:
    """Return the time with which a text begins, in microseconds, and whether that is all of it. A
    text of a date and a time gives the time of day."""
    if len(text.strip()) >= 12 and (moment := read_moment(text)) is not None and moment.timed:
        return time_microseconds(moment.time), moment.clean
    found = _TIME.match(text)
    if found is None:
        return None
    if _EXPONENT.match(text, found.end()):
        return None
    sign, days, first, second, third, fraction = found.groups()
    clean = not text[found.end() :].strip()
    if second is None and days is None:  # HHMMSS
        digits = first[-14:].rjust(6, "0")
        hours, minutes, seconds = int(digits[:-4]), int(digits[-4:-2]), int(digits[-2:])
    else:
        hours = int(days or 0) * 24 + int(first)
        minutes, seconds = int(second or 0), int(third or 0)
        if third is None and fraction is not None:
            fraction, clean = "", False
    if minutes > 59 or seconds > 59:
        return None
    total = (hours * 3600 + minutes * 60 + seconds) * _SECOND + _microseconds(fraction or "")
    if total > MAX_TIME:
        total, clean = MAX_TIME, False
    return (-total if sign else total), clean


def time_microseconds(text: str) -> int:
    """Return the microseconds of a time that ``time_text`` has written."""
    minus, text = text.startswith("-"), text.lstrip("-")
    clock, _, fraction = text.partition(".")
    hours, minutes, seconds = (int(p) for p in clock.split(":"))
    total = (hours * 3600 + minutes * 60 + seconds) * _SECOND + _microseconds(fraction)
    return -total if minus else total


def time_text(microseconds: int) -> str:
    """Return a time as text, at most the longest one."""
    size = min(abs(microseconds), MAX_TIME)
    seconds, rest = divmod(size, _SECOND)
    sign = "-" if microseconds < 0 and size else ""
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{sign}{clock}{_fraction_text(rest)}"


def with_fraction(text: str, digits: int) -> str:
    """Return a moment as text with so many digits of its fraction, cut."""
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction:0<6}"[: len(whole) + 1 + digits] if digits else whole


def rounded(text: str, digits: int) -> str | None:
    """Return a date and time, or a time, with its fraction rounded to so many digits."""
    whole, _, fraction = text.partition(".")
    if not fraction:
        return text
    unit = 10 ** (6 - digits)
    microseconds = (_microseconds(fraction) + unit // 2) // unit * unit
    if microseconds < _SECOND:
        whole = "00:00:00" if whole == "-00:00:00" and not microseconds else whole
        return whole + _fraction_text(microseconds)
    date, _, clock = whole.rpartition(" ")
    if not date:
        step = -_SECOND if clock.startswith("-") else _SECOND
        return time_text(time_microseconds(clock) + step)
    try:
        later = dt.datetime.fromisoformat(whole) + dt.timedelta(seconds=1)
    except OverflowError:
        return None
    return later.isoformat(" ")
