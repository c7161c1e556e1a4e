"""Arithmetic with MySQL's result types: whole numbers, decimals of a known scale, doubles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import fault
from intercode.sql.embedded.catalog.types import (
    DOUBLE,
    INT,
    SCALE_STEP,
    Type,
    decimal,
    digits,
    is_exact,
    joined,
)
from intercode.sql.embedded.compile.conversions import as_number, as_text
from intercode.sql.embedded.compile.scope import Ex, Scope

Maker = Callable[[exp.Expr, Scope], Ex]
_BITS = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseLeftShift: "<<",
         exp.BitwiseRightShift: ">>"}  # fmt: skip


def binary(node: exp.Binary, scope: Scope, make: Maker) -> Ex | None:
    """``+ - * / DIV % & | ^ << >>`` and dates with an interval; None for another operator."""
    kind = type(node)
    if kind in (exp.Add, exp.Sub) and any(
        isinstance(e, exp.Interval) for e in (node.this, node.expression)
    ):
        return _shifted(node, scope, make)
    if kind not in (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.BitwiseXor) and (
        kind not in _BITS
    ):
        return None
    left, right = make(node.this, scope), make(node.expression, scope)
    if left.columns or right.columns:
        raise fault(1241, 1)
    a, b = as_number(left), as_number(right)
    if kind in (exp.Add, exp.Sub):
        return _sum("+" if kind is exp.Add else "-", a, b)
    if kind is exp.Mul:
        return _product(a, b)
    if kind is exp.Div:
        return quotient(a, b)
    if kind is exp.IntDiv:
        whole = a.type.kind == "int" and b.type.kind == "int"
        return Ex(f"({a.sql} / {b.sql})" if whole else f"CAST({a.sql} / {b.sql} AS INTEGER)", INT)
    if kind is exp.Mod:
        return remainder(a, b)
    if kind is exp.BitwiseXor:
        return Ex(f"(({a.sql} | {b.sql}) - ({a.sql} & {b.sql}))", INT)
    return Ex(f"({a.sql} {_BITS[kind]} {b.sql})", INT)


def _nullable(a: Ex, b: Ex) -> bool:
    return a.type.nullable or b.type.nullable


def _scales(a: Type, b: Type) -> int | None:
    if a.scale is None or b.scale is None:
        return None
    return max(a.scale, b.scale)


def _sum(op: str, a: Ex, b: Ex) -> Ex:
    kind = _sum_type(a.type, b.type)
    sql = f"({a.sql} {op} {b.sql})"
    if kind.kind == "decimal":
        sql = f"ROUND({sql}, {kind.scale})"
    return Ex(sql, replace(kind, nullable=_nullable(a, b)))


def _sum_type(a: Type, b: Type) -> Type:
    if a.kind in ("int", "year") and b.kind in ("int", "year"):
        return INT
    if is_exact(a, b):
        scale = max(a.scale or 0, b.scale or 0)
        return decimal(max(digits(a), digits(b)) + 1 + scale, scale)
    return replace(DOUBLE, scale=_scales(a, b))


def _product(a: Ex, b: Ex) -> Ex:
    x, y = a.type, b.type
    nullable = _nullable(a, b)
    sql = f"({a.sql} * {b.sql})"
    if x.kind in ("int", "year") and y.kind in ("int", "year"):
        return Ex(sql, replace(INT, nullable=nullable))
    if is_exact(x, y):
        scale = (x.scale or 0) + (y.scale or 0)
        kind = decimal(digits(x) + digits(y) + scale, scale)
        return Ex(f"ROUND({sql}, {kind.scale})", replace(kind, nullable=nullable))
    fixed = None if x.scale is None or y.scale is None else min(30, x.scale + y.scale)
    return Ex(sql, replace(DOUBLE, scale=fixed, nullable=nullable))


def quotient(a: Ex, b: Ex) -> Ex:
    """``a / b``: NULL for a division by zero; a decimal gains four digits after the point."""
    x, y = a.type, b.type
    sql = f"(({a.sql}) * 1.0 / ({b.sql}))"
    if is_exact(x, y):
        scale = (x.scale or 0) + SCALE_STEP
        kind = decimal(digits(x) + (y.scale or 0) + scale, scale)
        return Ex(sql, kind)
    fixed = None if x.scale is None or y.scale is None else min(30, x.scale + SCALE_STEP)
    return Ex(sql, replace(DOUBLE, scale=fixed))


def remainder(a: Ex, b: Ex) -> Ex:
    """``a % b``, with the sign of a; NULL for a division by zero."""
    if a.type.kind == "int" and b.type.kind == "int":
        return Ex(f"({a.sql} % {b.sql})", INT)
    kind = _sum_type(a.type, b.type)
    sql = f"mysql_mod({a.sql}, {b.sql})"
    return Ex(f"ROUND({sql}, {kind.scale})" if kind.kind == "decimal" else sql, kind)


def negated(ex: Ex) -> Ex:
    """Minus a value."""
    made = as_number(ex)
    literal = -made.literal if isinstance(made.literal, (int, float)) else None
    return Ex(f"(-{made.sql})", replace(made.type, unsigned=False), literal=literal)


def concatenated(parts: list[Ex]) -> Ex:
    """Strings joined; NULL where one of them is."""
    made = [as_text(p) for p in parts]
    kind = joined(*(m.type for m in made))
    return Ex(f"({' || '.join(m.sql for m in made)})", kind)


def _shifted(node: exp.Binary, scope: Scope, make: Maker) -> Ex:
    sign = -1 if isinstance(node, exp.Sub) else 1
    interval, other = node.expression, node.this
    if isinstance(node.this, exp.Interval):
        interval, other = node.this, node.expression
    return shifted(make(other, scope), interval, sign, scope, make)


def shifted(base: Ex, interval: exp.Interval, sign: int, scope: Scope, make: Maker) -> Ex:
    """A date plus or minus an INTERVAL."""
    unit = interval.args["unit"].name.upper() if interval.args.get("unit") else "DAY"
    amount = make(interval.this, scope)
    clock = any(w in unit for w in ("HOUR", "MINUTE", "SECOND"))
    size = as_text(amount) if "_" in unit else amount
    sql = f"mysql_date_add({as_text(base).sql}, {size.sql}, '{unit}', {sign})"
    if base.type.kind == "date" and not clock:
        return Ex(sql, Type("date", 10))
    if base.type.kind in ("date", "datetime"):
        return Ex(sql, Type("datetime", 19))
    if base.type.kind == "time":
        return Ex(sql, Type("time", 10))
    return Ex(sql, joined(as_text(base).type))
