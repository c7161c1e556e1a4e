"""The type objects and the constructors of PEP 249."""

from __future__ import annotations

import datetime as dt

from intercode_sql.types import TypeCode

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


class TypeObject(frozenset[TypeCode]):
    """A set of type codes, which equals each of them."""

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, int) else super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()


STRING = TypeObject({TypeCode.TEXT, TypeCode.JSON})
BINARY = TypeObject({TypeCode.BLOB})
NUMBER = TypeObject(
    {
        TypeCode.BIGINT,
        TypeCode.DECIMAL,
        TypeCode.FLOAT,
        TypeCode.DOUBLE,
        TypeCode.YEAR,
        TypeCode.BIT,
    }
)
DATETIME = TypeObject({TypeCode.DATE, TypeCode.TIME, TypeCode.DATETIME})
ROWID = TypeObject({TypeCode.BIGINT})


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802
    """Return the local date of a time in seconds since the epoch."""
    return dt.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802
    """Return the local time of a time in seconds since the epoch."""
    return dt.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802
    """Return the local date and time of a time in seconds since the epoch."""
    return dt.datetime.fromtimestamp(ticks)
