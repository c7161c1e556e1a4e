"""Compiles arithmetic with MySQL's result types: integers, decimals of a known scale, doubles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error
from intercode.sql.embedded.catalog.types import (
    DOUBLE,
    INT,
    SCALE_STEP,
    Type,
    concatenation_type,
    decimal,
    integer_digits,
    is_exact,
)
from intercode.sql.embedded.compile.conversions import as_number, as_text
from intercode.sql.embedded.compile.scope import Expression, Scope

ExpressionCompiler = Callable[[exp.Expr, Scope], Expression]
_BIT_OPERATORS = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseLeftShift: "<<",
         exp.BitwiseRightShift: ">>"}  # fmt: skip


def binary_operation(node: exp.Binary, scope: Scope, make: ExpressionCompiler) -> Expression | None:
    """Compile ``+ - * / DIV % & | ^ << >>`` and dates with an interval. Return None for other
    operators."""
    kind = type(node)
    if kind in (exp.Add, exp.Sub) and any(
        isinstance(e, exp.Interval) for e in (node.this, node.expression)
    ):
        return _interval_operation(node, scope, make)
    if kind not in (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.BitwiseXor) and (
        kind not in _BIT_OPERATORS
    ):
        return None
    left, right = make(node.this, scope), make(node.expression, scope)
    if left.columns or right.columns:
        raise mysql_error(1241, 1)
    a, b = as_number(left), as_number(right)
    if kind in (exp.Add, exp.Sub):
        return _add("+" if kind is exp.Add else "-", a, b)
    if kind is exp.Mul:
        return _multiply(a, b)
    if kind is exp.Div:
        return divide(a, b)
    if kind is exp.IntDiv:
        whole = a.type.kind == "int" and b.type.kind == "int"
        return Expression(
            f"({a.sql} / {b.sql})" if whole else f"CAST({a.sql} / {b.sql} AS INTEGER)", INT
        )
    if kind is exp.Mod:
        return modulo(a, b)
    if kind is exp.BitwiseXor:
        return Expression(f"(({a.sql} | {b.sql}) - ({a.sql} & {b.sql}))", INT)
    return Expression(f"({a.sql} {_BIT_OPERATORS[kind]} {b.sql})", INT)


def _either_nullable(a: Expression, b: Expression) -> bool:
    return a.type.nullable or b.type.nullable


def _scales(a: Type, b: Type) -> int | None:
    if a.scale is None or b.scale is None:
        return None
    return max(a.scale, b.scale)


def _add(op: str, a: Expression, b: Expression) -> Expression:
    kind = _sum_type(a.type, b.type)
    sql = f"({a.sql} {op} {b.sql})"
    if kind.kind == "decimal":
        sql = f"ROUND({sql}, {kind.scale})"
    return Expression(sql, replace(kind, nullable=_either_nullable(a, b)))


def _sum_type(a: Type, b: Type) -> Type:
    if a.kind in ("int", "year") and b.kind in ("int", "year"):
        return INT
    if is_exact(a, b):
        scale = max(a.scale or 0, b.scale or 0)
        return decimal(max(integer_digits(a), integer_digits(b)) + 1 + scale, scale)
    return replace(DOUBLE, scale=_scales(a, b))


def _multiply(a: Expression, b: Expression) -> Expression:
    x, y = a.type, b.type
    nullable = _either_nullable(a, b)
    sql = f"({a.sql} * {b.sql})"
    if x.kind in ("int", "year") and y.kind in ("int", "year"):
        return Expression(sql, replace(INT, nullable=nullable))
    if is_exact(x, y):
        scale = (x.scale or 0) + (y.scale or 0)
        kind = decimal(integer_digits(x) + integer_digits(y) + scale, scale)
        return Expression(f"ROUND({sql}, {kind.scale})", replace(kind, nullable=nullable))
    fixed = None if x.scale is None or y.scale is None else min(30, x.scale + y.scale)
    return Expression(sql, replace(DOUBLE, scale=fixed, nullable=nullable))


def divide(a: Expression, b: Expression) -> Expression:
    """Compile ``a / b``: NULL for a division by zero; a decimal gains four digits after the
    point."""
    x, y = a.type, b.type
    sql = f"(({a.sql}) * 1.0 / ({b.sql}))"
    if is_exact(x, y):
        scale = (x.scale or 0) + SCALE_STEP
        kind = decimal(integer_digits(x) + (y.scale or 0) + scale, scale)
        return Expression(sql, kind)
    fixed = None if x.scale is None or y.scale is None else min(30, x.scale + SCALE_STEP)
    return Expression(sql, replace(DOUBLE, scale=fixed))


def modulo(a: Expression, b: Expression) -> Expression:
    """Compile ``a % b``, which has the sign of a; NULL for a division by zero."""
    if a.type.kind == "int" and b.type.kind == "int":
        return Expression(f"({a.sql} % {b.sql})", INT)
    kind = _sum_type(a.type, b.type)
    sql = f"mysql_mod({a.sql}, {b.sql})"
    return Expression(f"ROUND({sql}, {kind.scale})" if kind.kind == "decimal" else sql, kind)


def negate(ex: Expression) -> Expression:
    """Compile the negation of a value."""
    number = as_number(ex)
    literal = -number.literal if isinstance(number.literal, (int, float)) else None
    return Expression(f"(-{number.sql})", replace(number.type, unsigned=False), literal=literal)


def concatenate(parts: list[Expression]) -> Expression:
    """Compile the concatenation of strings; NULL if one of them is."""
    texts = [as_text(p) for p in parts]
    kind = concatenation_type(*(m.type for m in texts))
    return Expression(f"({' || '.join(m.sql for m in texts)})", kind)


def _interval_operation(node: exp.Binary, scope: Scope, make: ExpressionCompiler) -> Expression:
    sign = -1 if isinstance(node, exp.Sub) else 1
    interval, other = node.expression, node.this
    if isinstance(node.this, exp.Interval):
        interval, other = node.this, node.expression
    return add_interval(make(other, scope), interval, sign, scope, make)


def add_interval(
    base: Expression, interval: exp.Interval, sign: int, scope: Scope, make: ExpressionCompiler
) -> Expression:
    """Compile a date plus or minus an INTERVAL."""
    unit = interval.args["unit"].name.upper() if interval.args.get("unit") else "DAY"
    amount = make(interval.this, scope)
    clock = any(w in unit for w in ("HOUR", "MINUTE", "SECOND"))
    size = as_text(amount) if "_" in unit else amount
    sql = f"mysql_date_add({as_text(base).sql}, {size.sql}, '{unit}', {sign})"
    if base.type.kind == "date" and not clock:
        return Expression(sql, Type("date", 10))
    if base.type.kind in ("date", "datetime"):
        return Expression(sql, Type("datetime", 19))
    if base.type.kind == "time":
        return Expression(sql, Type("time", 10))
    return Expression(sql, concatenation_type(as_text(base).type))
