"""Checks of values inside the expressions of a statement that writes: in a strict mode MySQL ends
such a statement where a SELECT would only give a warning."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CHECKED: ContextVar[frozenset[str]] = ContextVar("checked", default=frozenset())


@contextmanager
def checked_values(strict: bool, modes: Collection[str]) -> Iterator[None]:
    """Check the values of the expressions that are compiled here, if the statement is strict."""
    checks = {"conversions"} if strict else set[str]()
    if strict and "ERROR_FOR_DIVISION_BY_ZERO" in modes:
        checks.add("divisions")
    token = _CHECKED.set(frozenset(checks))
    try:
        yield
    finally:
        _CHECKED.reset(token)


def checks_conversions() -> bool:
    """Return whether a text that is no number, or no date, is an error."""
    return "conversions" in _CHECKED.get()


def whole_number(sql: str, kind: str) -> str:
    """Return the SQL of a text that is read as a number, ``INTEGER`` or ``DOUBLE``."""
    return f"mysql_whole_number({sql}, '{kind}')" if checks_conversions() else sql


def whole_moment(sql: str, kind: str) -> str:
    """Return the SQL of a text that is read as a date, a datetime or a time."""
    return f"mysql_whole_moment({sql}, '{kind}')" if checks_conversions() else sql


def number_moment(sql: str, kind: str, scale: int) -> str:
    """Return the SQL of a date, a datetime, or whichever a number of that scale is."""
    if checks_conversions():
        return f"mysql_whole_number_moment({sql}, '{kind}', {scale})"
    return f"mysql_number_moment({sql}, '{kind}')"


def cut_text(sql: str, size: int) -> str:
    """Return the SQL of the first characters of a text."""
    cut = "whole_characters" if checks_conversions() else "substring"
    return f"mysql_{cut}({sql}, 1, {size})"


def cut_bytes(sql: str, size: int, fill: bool) -> str:
    """Return the SQL of the first bytes of a byte string, filled up to their number or not."""
    whole = f"mysql_whole_bytes({sql}, {size})" if checks_conversions() else sql
    return f"mysql_cut_bytes({whole}, {size}, {int(fill)})"


def cast_to_decimal() -> str:
    """Return the name of the function that makes a decimal of a number."""
    return "mysql_whole_decimal" if checks_conversions() else "mysql_decimal"


def parsed_date(sql: str, text: str) -> str:
    """Return the SQL of a date that a text is read as by a format."""
    return f"mysql_parsed_date({sql}, {text})" if checks_conversions() else sql


def moved_date(sql: str, date: str, size: str) -> str:
    """Return the SQL of a date and an interval that are added."""
    return f"mysql_moved_date({sql}, {date}, {size})" if checks_conversions() else sql


def logarithm_argument(sql: str, base: bool) -> str:
    """Return the SQL of a number of which a logarithm is computed, or of its base."""
    return f"mysql_positive({sql}, {int(base)})" if checks_conversions() else sql


def divisor(dividend: str, sql: str) -> str:
    """Return the SQL of a divisor."""
    if "divisions" not in _CHECKED.get():
        return sql
    return f"mysql_divisor({dividend}, {sql})"
