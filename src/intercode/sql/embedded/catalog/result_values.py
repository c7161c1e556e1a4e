"""What SQLite gives as MySQL Connector/Python would give it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.embedded.catalog.types import Type
from intercode.sql.embedded.catalog.values import MAX_EXACT_INTEGER


def result_converter(kind: Type) -> Callable[[Any], Any] | None:
    """What makes of SQLite's value what MySQL Connector/Python gives; None: it is that already.

    NULL never reaches it.
    """
    if kind.kind == "decimal":
        return _decimal_converter(kind.scale or 0)
    if kind.kind == "float":
        fixed = kind.scale
        return (lambda v: float(f"{v:.6g}")) if fixed is None else (lambda v: round(v, fixed))
    if kind.kind == "double":
        scale = kind.scale
        return float if scale is None else lambda v: float(f"{v:.{scale}f}")
    if kind.kind in ("int", "year"):
        return _to_int
    if kind.moment:
        return {"date": _to_date, "datetime": _to_datetime, "time": _to_timedelta}[kind.kind]
    return _to_text if kind.kind in ("string", "json") else None


def _decimal_converter(scale: int) -> Callable[[Any], Decimal]:
    unit = Decimal(1).scaleb(-scale)
    limit = MAX_EXACT_INTEGER / 10**scale

    def read(value: Any) -> Decimal:
        if (
            isinstance(value, float)
            and abs(value) >= limit
            and len(repr(value).replace(".", "")) > 16
        ):
            raise unsupported(f"exact decimals as large as {value:.15g}")
        return Decimal(repr(value).strip("'")).quantize(unit, rounding=ROUND_HALF_UP)

    return read


def _to_int(value: Any) -> Any:
    if isinstance(value, float):
        if abs(value) >= 1 << 63:
            raise mysql_error(1690, "BIGINT", "the expression")
        return int(value)
    return value


def _to_text(value: Any) -> Any:
    return value if isinstance(value, (str, bytes)) else str(value)


def _to_date(value: Any) -> Any:
    try:
        return dt.date.fromisoformat(value[:10])
    except (TypeError, ValueError):
        return None


def _to_datetime(value: Any) -> Any:
    try:
        return dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None


def _to_timedelta(value: Any) -> Any:
    text = str(value)
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    hours, minutes, seconds = [*text.split(":"), "0", "0"][:3]
    return sign * dt.timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))


def convert_rows(
    rows: Sequence[tuple[Any, ...]], readers: Sequence[Callable[[Any], Any] | None]
) -> list[tuple[Any, ...]]:
    """Rows of SQLite's as rows of MySQL's."""
    if not rows or not any(readers):
        return list(rows)
    columns = list(zip(*rows, strict=True))
    for place, read in enumerate(readers):
        if read and not {type(v) for v in columns[place]} <= _UNCHANGED_TYPES.get(
            read, frozenset()
        ):
            columns[place] = tuple(v if v is None else read(v) for v in columns[place])
    return list(zip(*columns, strict=True))


_UNCHANGED_TYPES: dict[Any, frozenset[type]] = {
    _to_text: frozenset({str, bytes, type(None)}),
    _to_int: frozenset({int, type(None)}),
}
