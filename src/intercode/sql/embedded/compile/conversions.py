"""Constants, and conversions between types, in SQLite's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from intercode.sql.dialect.errors import fault, unable
from intercode.sql.embedded.catalog.collations import plainness
from intercode.sql.embedded.catalog.types import BYTES, DOUBLE, INT, NULL, STRING, Type, decimal
from intercode.sql.embedded.catalog.values import moment_of, number_of, time_of
from intercode.sql.embedded.compile.scope import Ex

NOTHING = Ex("NULL", NULL)


def quoted(text: str) -> str:
    """A string literal of SQLite's."""
    if "\0" in text:
        return f"CAST(X'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def text(value: str) -> Ex:
    """A string constant."""
    plain = min(plainness(value, "general"), plainness(value, "uca"))
    kind = Type("string", len(value), plain=plain, nullable=False)
    return Ex(quoted(value), kind, literal=value)


def number(shown: str) -> Ex:
    """A number as it was written. Raises StatementError for one that SQLite cannot hold."""
    low = shown.lower()
    if "e" in low:
        return Ex(repr(float(low)), replace(DOUBLE, nullable=False), literal=float(low))
    if "." in low:
        whole, _, part = low.partition(".")
        digits = len(whole.lstrip("0")) + len(part)
        if len((whole + part).lstrip("0")) > 15:
            return Ex(repr(float(low)), replace(decimal(digits, len(part)), nullable=False))
        kind = replace(decimal(digits, len(part)), nullable=False)
        return Ex(repr(float(low)), kind, literal=float(low))
    value = int(low)
    if value >= 1 << 63:
        raise unable(f"the whole number {shown}, which needs more than 63 bits")
    kind = Type("int", len(low.lstrip("0") or "0"), nullable=False)
    return Ex(str(value), kind, literal=value)


def constant(value: Any) -> Ex:
    """A value of the session (a variable, a setting) as a constant."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return number(str(int(value)))
    if isinstance(value, (int, float)):
        made = number(repr(abs(value)))
        return made if value >= 0 else Ex(f"(-{made.sql})", made.type, literal=value)
    if isinstance(value, bytes):
        return Ex(f"X'{value.hex()}'", BYTES)
    return text(str(value))


def as_number(ex: Ex) -> Ex:
    """A value where MySQL wants a number: strings become doubles, dates whole numbers."""
    kind = ex.type
    if kind.number or kind.kind == "null":
        return ex
    if kind.moment:
        return Ex(f"mysql_moment_number({ex.sql})", INT)
    if isinstance(ex.literal, str):
        value = number_of(ex.literal)
        return Ex(repr(value), replace(DOUBLE, nullable=False), literal=value)
    if kind.kind == "string":
        return Ex(f"CAST({ex.sql} AS REAL)", replace(DOUBLE, nullable=kind.nullable))
    return Ex(f"mysql_number({ex.sql})", DOUBLE)


def as_text(ex: Ex) -> Ex:
    """A value where MySQL wants a string."""
    kind = ex.type
    if kind.kind in ("string", "json", "null") or kind.moment:
        if kind.kind in ("string", "null"):
            return ex
        return Ex(ex.sql, replace(STRING, precision=kind.precision, plain=2 * kind.moment))
    if kind.kind in ("int", "year"):
        return Ex(f"CAST({ex.sql} AS TEXT)", replace(STRING, precision=20, plain=2))
    if kind.kind == "bytes":
        return Ex(f"CAST({ex.sql} AS TEXT)", replace(STRING, collation="bin", strong=True))
    scale = -1 if kind.scale is None or kind.kind == "double" else kind.scale
    small = int(kind.kind == "float")
    exact = int(kind.kind == "decimal")
    sql = f"mysql_shown({ex.sql}, {scale}, {small}, {exact})"
    return Ex(sql, replace(STRING, precision=kind.precision, plain=1))


def as_moment(ex: Ex, kind: str, strict: bool = True) -> Ex:
    """A value where a date, a datetime or a time is compared or wanted.

    Raises StatementError 1525 for a constant that is none, where ``strict``.
    """
    if ex.type.kind == kind or ex.type.kind == "null":
        return ex
    target = Type(kind, 10 if kind != "datetime" else 19)  # type: ignore[arg-type]
    if ex.type.kind == "date" and kind == "datetime":
        return Ex(f"({ex.sql} || ' 00:00:00')", target)
    if isinstance(ex.literal, (str, int)):
        return _constant_moment(str(ex.literal), kind, target, strict)
    if ex.type.kind == "datetime" and kind == "date":
        return Ex(f"SUBSTR({ex.sql}, 1, 10)", target)
    return Ex(f"mysql_{kind}({ex.sql})", target)


def _constant_moment(value: str, kind: str, target: Type, strict: bool) -> Ex:
    if kind == "time":
        time = time_of(value.rpartition(" ")[2])
        if time is not None:
            return Ex(quoted(time), target)
    elif (moment := moment_of(value)) is not None:
        shown = moment[0] if kind == "date" else f"{moment[0]} {moment[1]}"
        return Ex(quoted(shown), target)
    if strict:
        raise fault(1525, kind.upper(), value)
    return Ex("NULL", target)


def converted(ex: Ex, kind: Type) -> Ex:
    """A value as part of a CASE, COALESCE or UNION whose type is ``kind``."""
    if ex.type.kind == "null" or ex.type.kind == kind.kind:
        return ex
    if kind.kind == "string":
        return as_text(ex)
    if kind.number and not ex.type.number:
        return as_number(ex)
    if kind.moment:
        return as_moment(ex, kind.kind, strict=False)
    return ex
