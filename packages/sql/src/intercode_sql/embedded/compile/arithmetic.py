"""Compiles arithmetic with MySQL's result types: integers, decimals of a known scale, doubles."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.types import (
    ASCII_STRING,
    BITS,
    DOUBLE,
    INT,
    SCALE_STEP,
    Type,
    decimal,
    integer_digits,
    is_exact,
)
from intercode_sql.embedded.compile.conversions import (
    as_bytes,
    as_integer,
    as_moment_text,
    as_number,
    as_text,
    as_texts,
    quote_text,
)
from intercode_sql.embedded.compile.item_text import item_text
from intercode_sql.embedded.compile.scope import (
    Expression,
    Scope,
    compile_expression,
    compile_scalar,
    compiles,
)
from intercode_sql.embedded.compile.strict_values import divisor, moved_date, whole_number

_BIT_OPERATORS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}


@compiles(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.BitwiseXor, *_BIT_OPERATORS)
def binary_operation(node: exp.Binary, scope: Scope) -> Expression:
    """Compile ``+ - * / DIV % & | ^ << >>`` and dates with an interval."""
    kind = type(node)
    if kind in (exp.Add, exp.Sub) and any(
        isinstance(e, exp.Interval) for e in (node.this, node.expression)
    ):
        return _interval_operation(node, scope)
    left, right = compile_expression(node.this, scope), compile_expression(node.expression, scope)
    if left.columns or right.columns:
        raise mysql_error(1241, 1)
    if kind in _BIT_OPERATORS or kind is exp.BitwiseXor:
        return _bit_operation(kind, left, right)
    a, b = _operand(left), _operand(right)
    if kind in (exp.Add, exp.Sub):
        return _in_range(_add("+" if kind is exp.Add else "-", a, b), a, b, node, scope)
    if kind is exp.Mul:
        return _in_range(_multiply(a, b), a, b, node, scope)
    if kind is exp.Div:
        return divide(a, b)
    return _whole_quotient(a, b, node, scope) if kind is exp.IntDiv else modulo(a, b)


def _operand(ex: Expression) -> Expression:
    """Convert an operand to a number. A YEAR is an integer, NULL a double."""
    number = as_number(ex)
    if number.type.kind == "year":
        return replace(number, type=replace(number.type, kind="int"))
    return replace(number, type=DOUBLE) if number.type.kind == "null" else number


def _whole_quotient(a: Expression, b: Expression, node: exp.Binary, scope: Scope) -> Expression:
    """Compile DIV."""
    unsigned = a.type.unsigned or b.type.unsigned
    negative = unsigned and not all(e.type.unsigned or _is_positive(e) for e in (a, b))
    kind = replace(INT, unsigned=unsigned)
    by = divisor(a.sql, b.sql)
    if a.type.kind == b.type.kind == "int" and not negative:
        return Expression(f"({a.sql} / {by})", kind)
    text = quote_text(item_text(node, scope))
    return Expression(f"mysql_div({a.sql}, {by}, {int(unsigned)}, {text})", kind)


def _bit_operation(kind: type[exp.Expr], left: Expression, right: Expression) -> Expression:
    """Compile an operator on bits. Its result has 64 bits, without a sign."""
    if left.type.binary and right.type.binary and None in (left.literal, right.literal):
        raise unsupported("an operator on the bits of byte strings")
    a, b = as_integer(left).sql, as_integer(right).sql
    if kind is exp.BitwiseXor:
        sql = f"(({a} | {b}) & ~({a} & {b}))"
    elif kind in (exp.BitwiseLeftShift, exp.BitwiseRightShift):
        sql = f"mysql_shift({a}, {b}, {int(kind is exp.BitwiseLeftShift)})"
    else:
        sql = f"({a} {_BIT_OPERATORS[kind]} {b})"
    return Expression(sql, replace(BITS, nullable=_either_nullable(left, right)))


@compiles(exp.BitwiseNot)
def _inversion(node: exp.BitwiseNot, scope: Scope) -> Expression:
    ex = compile_scalar(node.this, scope)
    return Expression(f"(~{as_integer(ex).sql})", replace(BITS, nullable=ex.type.nullable))


def _in_range(
    made: Expression, a: Expression, b: Expression, node: exp.Binary, scope: Scope
) -> Expression:
    """Check that integer arithmetic fits 64 bits, and is not negative if one side is unsigned.
    Numbers of few digits cannot fail."""
    if a.type.kind != "int" or b.type.kind != "int":
        return made
    unsigned = a.type.unsigned or b.type.unsigned
    digits = (_digits(a), _digits(b))
    most = sum(digits) if isinstance(node, exp.Mul) else max(digits) + 1
    signed = [e for e in (a, b) if not e.type.unsigned and not _is_positive(e)]
    can_be_negative = unsigned and (isinstance(node, exp.Sub) or signed)
    if most <= 18 and not can_be_negative:
        return replace(made, type=replace(made.type, unsigned=unsigned, precision=most))
    text = quote_text(item_text(node, scope))
    sql = f"mysql_in_range({made.sql}, {int(unsigned)}, {text})"
    return replace(made, sql=sql, type=replace(made.type, unsigned=unsigned))


def _digits(ex: Expression) -> int:
    return len(str(abs(ex.literal))) if isinstance(ex.literal, int) else ex.type.precision or 20


def _is_positive(ex: Expression) -> bool:
    return isinstance(ex.literal, int) and ex.literal >= 0


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
        sql = _exact(op, a, b, kind)
    return Expression(sql, replace(kind, nullable=_either_nullable(a, b)))


def _exact(op: str, a: Expression, b: Expression, kind: Type) -> str:
    """Return the SQL of a sum or a product of exact numbers. One that can have more digits than a
    REAL holds is checked."""
    rounded = f"ROUND(({a.sql} {op} {b.sql}), {kind.scale})"
    if kind.precision <= 15:
        return rounded
    checked = f"mysql_exact({a.sql}, '{op}', {b.sql}, {kind.scale})"
    if len(rounded) > 60:  # operands would be computed twice
        return checked
    limit = f"1e{15 - (kind.scale or 0)}"
    return f"CASE WHEN ABS({a.sql} {op} {b.sql}) < {limit} THEN {rounded} ELSE {checked} END"


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
        return Expression(_exact("*", a, b, kind), replace(kind, nullable=nullable))
    fixed = None if x.scale is None or y.scale is None else min(30, x.scale + y.scale)
    return Expression(sql, replace(DOUBLE, scale=fixed, nullable=nullable))


def divide(a: Expression, b: Expression) -> Expression:
    """Compile ``a / b``: NULL for a division by zero; a decimal gains four digits after the
    point."""
    x, y = a.type, b.type
    by = divisor(a.sql, b.sql)
    if is_exact(x, y):
        scale = (x.scale or 0) + SCALE_STEP
        kind = decimal(integer_digits(x) + (y.scale or 0) + scale, scale)
        digits = _quotient_digits(x.scale or 0, y.scale or 0)
        return Expression(f"mysql_quotient({a.sql}, {by}, {digits})", kind)
    sql = f"(({a.sql}) * 1.0 / ({by}))"
    fixed = None if x.scale is None or y.scale is None else min(30, x.scale + SCALE_STEP)
    return Expression(sql, replace(DOUBLE, scale=fixed))


def _quotient_digits(a: int, b: int) -> int:
    """Return how many digits of its fraction MySQL computes of a quotient of decimals of these
    scales: whole groups of nine."""
    more = max(0, SCALE_STEP - (-a % 9) - (-b % 9))
    whole = a + -a % 9 + b + -b % 9 + more
    return whole + -whole % 9


def modulo(a: Expression, b: Expression) -> Expression:
    """Compile ``a % b``, which has the sign of a; NULL for a division by zero."""
    a, b = _operand(a), _operand(b)
    if a.type.kind == "int" and b.type.kind == "int":
        sql = f"({a.sql} % {divisor(a.sql, b.sql)})"
        return Expression(sql, replace(INT, unsigned=a.type.unsigned))
    exact = int(is_exact(a.type, b.type))
    sql = f"mysql_mod({a.sql}, {divisor(a.sql, b.sql)}, {exact})"
    kind = _sum_type(a.type, b.type)
    timed = "mysql_temporal_number(" in b.sql
    if kind.kind == "decimal" and (timed or not kind.scale):  # only a fraction has a minus zero
        sql = f"({sql} + 0.0)"
    return Expression(sql, replace(kind, unsigned=a.type.unsigned))


@compiles(exp.Neg)
def _negation(node: exp.Neg, scope: Scope) -> Expression:
    number = as_number(compile_scalar(node.this, scope))
    literal = -number.literal if isinstance(number.literal, (int, float)) else None
    sign = "0 - " if number.type.kind == "decimal" else "-"  # a decimal has no minus zero
    sql = f"({sign}{number.sql})"
    return Expression(sql, replace(number.type, unsigned=False), literal=literal)


def concatenate(parts: list[Expression]) -> Expression:
    """Compile the concatenation of strings; NULL if one of them is."""
    texts, kind = as_texts(parts)
    texts = [as_bytes(m) if kind.binary and m.type.charset else m for m in texts]
    sql = f"({' || '.join(m.sql for m in texts)})"
    return Expression(f"CAST({sql} AS BLOB)" if kind.binary else sql, kind)


def _interval_operation(node: exp.Binary, scope: Scope) -> Expression:
    sign = -1 if isinstance(node, exp.Sub) else 1
    interval, other = node.expression, node.this
    if isinstance(node.this, exp.Interval):
        interval, other = node.this, node.expression
    return add_interval(compile_expression(other, scope), interval, sign, scope)


def add_interval(
    base: Expression,
    interval: exp.Interval,
    sign: int,
    scope: Scope,
    given: Expression | None = None,
) -> Expression:
    """Compile a date plus or minus an INTERVAL. ``given`` is its size if that is compiled."""
    if not interval.args.get("unit"):
        raise mysql_error(1064, "", 1)
    unit = interval.args["unit"].name.upper()
    amount = compile_expression(interval.this, scope) if given is None else given
    if isinstance(amount.literal, bytes) and "_" not in unit:
        amount = as_number(amount)
    clock = any(w in unit for w in ("HOUR", "MINUTE", "SECOND"))
    size = as_text(amount) if "_" in unit else amount
    if "_" not in unit and unit != "SECOND":
        size = as_integer(amount)
    elif unit == "SECOND" and amount.type.kind == "string":
        size = replace(amount, sql=whole_number(amount.sql, "DECIMAL"))
    name = "time_add" if base.type.kind == "time" else "date_add"
    text = base if base.type.moment else as_moment_text(base)
    sql = f"mysql_{name}({text.sql}, {size.sql}, '{unit}', {sign})"
    if name == "date_add":
        sql = moved_date(sql, text.sql, size.sql)
    scale = base.type.scale if base.type.moment else 0
    if "MICROSECOND" in unit:
        scale = 6
    elif unit == "SECOND" and amount.type.kind != "string":
        scale = max(scale or 0, 6 if amount.type.scale is None else min(6, amount.type.scale))
    if base.type.kind == "time":
        if unit in ("YEAR", "QUARTER", "MONTH", "YEAR_MONTH", "WEEK"):
            raise unsupported("months or weeks added to a time")
        return Expression(sql, Type("time", 10, scale))
    if base.type.kind == "date" and not clock:
        return Expression(sql, Type("date", 10))
    if base.type.kind in ("date", "datetime"):
        return Expression(sql, Type("datetime", 19, scale))
    return Expression(sql, replace(ASCII_STRING, dated=True))
