"""CAST and CONVERT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import unsupported
from intercode.sql.embedded.catalog.types import DOUBLE, INT, STRING, TIME, decimal
from intercode.sql.embedded.compile.conversions import as_number, as_temporal, as_text
from intercode.sql.embedded.compile.scope import Expression


def compile_cast(ex: Expression, node: exp.Cast) -> Expression:
    """A value as another type. Raises StatementError for a type that is not supported."""
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
        made = as_text(ex)
        if sizes:
            made = Expression(
                f"SUBSTR({made.sql}, 1, {sizes[0]})", replace(made.type, precision=sizes[0])
            )
        return made
    if name in ("BINARY", "VARBINARY"):
        made = as_text(ex)
        return Expression(made.sql, replace(STRING, collation="bin", strong=True))
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
