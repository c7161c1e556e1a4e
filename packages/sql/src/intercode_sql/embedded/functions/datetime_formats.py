"""DATE_FORMAT and STR_TO_DATE."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from intercode_sql.embedded.catalog.moments import is_date
from intercode_sql.embedded.functions.registry import internal

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
    "f": r"\d{1,6}",
    "j": r"(?P<j>\d{1,3})",
    "%": "%",
}
WeekFunction = Callable[[dt.date, int], tuple[int, int]]


def date_format(moment: dt.datetime, form: str, week: WeekFunction) -> str:
    """Format a date and time with MySQL's format codes."""
    suffix = (
        "th"
        if 10 <= moment.day % 100 <= 20
        else {1: "st", 2: "nd", 3: "rd"}.get(moment.day % 10, "th")
    )
    hour = moment.hour % 12 or 12
    day = moment.date()
    known: dict[str, Callable[[], str]] = {
        "a": lambda: f"{moment:%a}",
        "b": lambda: f"{moment:%b}",
        "c": lambda: str(moment.month),
        "D": lambda: f"{moment.day}{suffix}",
        "d": lambda: f"{moment.day:02d}",
        "e": lambda: str(moment.day),
        "f": lambda: f"{moment.microsecond:06d}",
        "H": lambda: f"{moment.hour:02d}",
        "h": lambda: f"{hour:02d}",
        "I": lambda: f"{hour:02d}",
        "i": lambda: f"{moment.minute:02d}",
        "j": lambda: f"{moment:%j}",
        "k": lambda: str(moment.hour),
        "l": lambda: str(hour),
        "M": lambda: f"{moment:%B}",
        "m": lambda: f"{moment.month:02d}",
        "p": lambda: "AM" if moment.hour < 12 else "PM",
        "r": lambda: f"{hour:02d}:{moment:%M:%S} {'AM' if moment.hour < 12 else 'PM'}",
        "S": lambda: f"{moment.second:02d}",
        "s": lambda: f"{moment.second:02d}",
        "T": lambda: f"{moment:%H:%M:%S}",
        "U": lambda: f"{week(day, 0)[1]:02d}",
        "u": lambda: f"{week(day, 1)[1]:02d}",
        "V": lambda: f"{week(day, 2)[1]:02d}",
        "v": lambda: f"{week(day, 3)[1]:02d}",
        "W": lambda: f"{moment:%A}",
        "w": lambda: str(moment.isoweekday() % 7),
        "X": lambda: f"{week(day, 2)[0]:04d}",
        "x": lambda: f"{week(day, 3)[0]:04d}",
        "Y": lambda: f"{moment.year:04d}",
        "y": lambda: f"{moment.year % 100:02d}",
        "%": lambda: "%",
    }

    def filled(match: re.Match[str]) -> str:
        maker = known.get(match[1])
        return match[1] if maker is None else maker()

    return re.sub(r"%(.)", filled, form, flags=re.S)


_OF_ZERO_DATE = {
    "X": "0000",
    "x": "0001",
    "U": "613566757",
    "u": "613566757",
    "V": "613566757",
    "v": "01",
    "j": "000",
    "D": "0th",
}
"""The parts of the date of zeros, of which the server computes the week without a sign."""


def time_format(microseconds: int, form: str, dated: bool = False) -> str | None:
    """Format a time, or if ``dated`` one of the date of zeros, with MySQL's format codes. The
    result is NULL for those of a date."""
    hours, rest = divmod(abs(microseconds), 3_600_000_000)
    minute, second, fraction = rest // 60_000_000, rest // 1_000_000 % 60, rest % 1_000_000
    half, twelve = "AM" if hours % 24 < 12 else "PM", hours % 12 or 12
    known = {
        "H": f"{hours:02d}",
        "k": str(hours),
        "h": f"{twelve:02d}",
        "I": f"{twelve:02d}",
        "l": str(twelve),
        "i": f"{minute:02d}",
        "S": f"{second:02d}",
        "s": f"{second:02d}",
        "f": f"{fraction:06d}",
        "p": half,
        "T": f"{hours:02d}:{minute:02d}:{second:02d}",
        "r": f"{twelve:02d}:{minute:02d}:{second:02d} {half}",
        "Y": "0000",
        "y": "00",
        "m": "00",
        "c": "0",
        "d": "00",
        "e": "0",
    }
    known |= _OF_ZERO_DATE if dated else {}
    codes = re.findall(r"%(.)", form, re.S)
    if any(code in "aWbMDjUuVvXxw" and code not in known for code in codes):
        return None
    text = re.sub(r"%(.)", lambda m: known.get(m[1], m[1]), form, flags=re.S)
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
    if not any(k in parts for k in "HkhIlisSp"):
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
    return f"{hour:02d}:{minute:02d}:{second:02d}"
