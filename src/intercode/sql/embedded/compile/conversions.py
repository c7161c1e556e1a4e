"""Compiles constants, conversions between types, and CAST."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.embedded.catalog.collations import nocase_level
from intercode.sql.embedded.catalog.types import (
    BYTES,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIME,
    Type,
    decimal,
)
from intercode.sql.embedded.catalog.values import (
    leading_number,
    parse_datetime_text,
    parse_time_text,
)
from intercode.sql.embedded.compile.scope import Expression

NULL_EXPRESSION = Expression("NULL", NULL)


def quote_text(text: str) -> str:
    """Return a string literal of SQLite."""
    if "\0" in text:
        return f"CAST(X'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def text_constant(value: str) -> Expression:
    """Compile a string constant."""
    plain = min(nocase_level(value, "general"), nocase_level(value, "uca"))
    kind = Type("string", len(value), plain=plain, nullable=False)
    return Expression(quote_text(value), kind, literal=value)


def number_constant(text: str) -> Expression:
    """Compile a number literal. Raises StatementError for one that SQLite cannot hold."""
    low = text.lower()
    if "e" in low:
        return Expression(repr(float(low)), replace(DOUBLE, nullable=False), literal=float(low))
    if "." in low:
        whole, _, part = low.partition(".")
        digits = len(whole.lstrip("0")) + len(part)
        if len((whole + part).lstrip("0")) > 15:
            return Expression(repr(float(low)), replace(decimal(digits, len(part)), nullable=False))
        kind = replace(decimal(digits, len(part)), nullable=False)
        return Expression(repr(float(low)), kind, literal=float(low))
    value = int(low)
    if value >= 1 << 63:
        raise unsupported(f"the whole number {text}, which needs more than 63 bits")
    kind = Type("int", len(low.lstrip("0") or "0"), nullable=False)
    return Expression(str(value), kind, literal=value)


def value_constant(value: Any) -> Expression:
    """Compile the value of a variable or a setting as a constant."""
    if value is None:
        return NULL_EXPRESSION
    if isinstance(value, bool):
        return number_constant(str(int(value)))
    if isinstance(value, (int, float)):
        constant = number_constant(repr(abs(value)))
        return (
            constant
            if value >= 0
            else Expression(f"(-{constant.sql})", constant.type, literal=value)
        )
    if isinstance(value, bytes):
        return Expression(f"X'{value.hex()}'", BYTES)
    return text_constant(str(value))


def as_number(ex: Expression) -> Expression:
    """Convert a value to a number: strings become doubles, dates integers."""
    kind = ex.type
    if kind.number or kind.kind == "null":
        return ex
    if kind.moment:
        return Expression(f"mysql_temporal_number({ex.sql})", INT)
    if isinstance(ex.literal, str):
        value = leading_number(ex.literal)
        return Expression(repr(value), replace(DOUBLE, nullable=False), literal=value)
    if kind.kind == "string":
        return Expression(f"CAST({ex.sql} AS REAL)", replace(DOUBLE, nullable=kind.nullable))
    return Expression(f"mysql_number({ex.sql})", DOUBLE)


def as_text(ex: Expression) -> Expression:
    """Convert a value to a string."""
    kind = ex.type
    if kind.kind in ("string", "json", "null") or kind.moment:
        if kind.kind in ("string", "null"):
            return ex
        return Expression(ex.sql, replace(STRING, precision=kind.precision, plain=2 * kind.moment))
    if kind.kind in ("int", "year"):
        return Expression(f"CAST({ex.sql} AS TEXT)", replace(STRING, precision=20, plain=2))
    if kind.kind == "bytes":
        return Expression(f"CAST({ex.sql} AS TEXT)", replace(STRING, collation="bin", strong=True))
    scale = -1 if kind.scale is None or kind.kind == "double" else kind.scale
    small = int(kind.kind == "float")
    exact = int(kind.kind == "decimal")
    sql = f"mysql_number_text({ex.sql}, {scale}, {small}, {exact})"
    return Expression(sql, replace(STRING, precision=kind.precision, plain=1))


def as_temporal(ex: Expression, kind: str, strict: bool = True) -> Expression:
    """Convert a value to a date, a datetime or a time.

    If ``strict``, raises StatementError 1525 for a constant that is not one.
    """
    if ex.type.kind == kind or ex.type.kind == "null":
        return ex
    target = Type(kind, 10 if kind != "datetime" else 19)  # type: ignore[arg-type]
    if ex.type.kind == "date" and kind == "datetime":
        return Expression(f"({ex.sql} || ' 00:00:00')", target)
    if isinstance(ex.literal, (str, int)):
        return _temporal_constant(str(ex.literal), kind, target, strict)
    if ex.type.kind == "datetime" and kind == "date":
        return Expression(f"SUBSTR({ex.sql}, 1, 10)", target)
    return Expression(f"mysql_{kind}({ex.sql})", target)


def _temporal_constant(value: str, kind: str, target: Type, strict: bool) -> Expression:
    if kind == "time":
        time = parse_time_text(value.rpartition(" ")[2])
        if time is not None:
            return Expression(quote_text(time), target)
    elif (moment := parse_datetime_text(value)) is not None:
        text = moment[0] if kind == "date" else f"{moment[0]} {moment[1]}"
        return Expression(quote_text(text), target)
    if strict:
        raise mysql_error(1525, kind.upper(), value)
    return Expression("NULL", target)


def convert_to(ex: Expression, kind: Type) -> Expression:
    """Convert a value to ``kind``, the type of the CASE, COALESCE or UNION that contains it."""
    if ex.type.kind == "null" or ex.type.kind == kind.kind:
        return ex
    if kind.kind == "string":
        return as_text(ex)
    if kind.number and not ex.type.number:
        return as_number(ex)
    if kind.moment:
        return as_temporal(ex, kind.kind, strict=False)
    return ex


# ---------------------------------------------------------------- CAST
def compile_cast(ex: Expression, node: exp.Cast) -> Expression:
    """Compile CAST or CONVERT of a value. Raises StatementError for an unsupported type."""
    kind: Any = node.args["to"]
    name = kind.this.name if hasattr(kind.this, "name") else str(kind.this)
    sizes = [int(p.name) for p in kind.expressions if p.name.isdigit()]
    if name in ("BIGINT", "UBIGINT", "INT", "UINT"):
        return _cast_to_integer(ex, name.startswith("U"))
    if name in ("DECIMAL", "UDECIMAL"):
        precision, scale = (sizes + [10, 0][len(sizes) :])[:2]
        limit = 10 ** (precision - scale)
        sql = f"mysql_decimal({as_number(ex).sql}, {scale}, {limit})"
        return Expression(sql, decimal(precision, scale))
    if name in ("DOUBLE", "FLOAT"):
        target = (
            DOUBLE
            if name == "DOUBLE" or (sizes and sizes[0] > 24)
            else replace(DOUBLE, kind="float")
        )
        return Expression(f"CAST({as_number(ex).sql} AS REAL)", target)
    if name in ("CHAR", "VARCHAR", "NCHAR", "NVARCHAR", "TEXT", "CHARACTER_SET"):
        converted = as_text(ex)
        if sizes:
            converted = Expression(
                f"SUBSTR({converted.sql}, 1, {sizes[0]})",
                replace(converted.type, precision=sizes[0]),
            )
        return converted
    if name in ("BINARY", "VARBINARY"):
        converted = as_text(ex)
        return Expression(converted.sql, replace(STRING, collation="bin", strong=True))
    return _cast_to_temporal(ex, name)


def _cast_to_integer(ex: Expression, unsigned: bool) -> Expression:
    if ex.type.kind == "int":
        return Expression(ex.sql, replace(ex.type, unsigned=unsigned, precision=20))
    if ex.type.kind == "string":
        sql = f"CAST({ex.sql} AS INTEGER)"
    else:
        sql = f"CAST(ROUND({as_number(ex).sql}) AS INTEGER)"
    return Expression(sql, replace(INT, unsigned=unsigned, nullable=ex.type.nullable))


def _cast_to_temporal(ex: Expression, name: str) -> Expression:
    if name == "DATE":
        return as_temporal(ex, "date", strict=False)
    if name in ("DATETIME", "TIMESTAMP"):
        return as_temporal(ex, "datetime", strict=False)
    if name == "TIME":
        return Expression(f"mysql_time({as_text(ex).sql})", TIME)
    if name == "YEAR":
        return Expression(
            f"CAST({as_number(ex).sql} AS INTEGER)", replace(INT, kind="year", precision=4)
        )
    raise unsupported(f"CAST to {name}")
