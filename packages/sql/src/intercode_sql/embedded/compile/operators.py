"""Compiles operators: arithmetic and comparisons."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.dialect.group_by import function_name
from intercode_sql.dialect.keywords import AGGREGATE_FUNCTIONS
from intercode_sql.dialect.parser import all_nodes
from intercode_sql.embedded.catalog.collations import EXACT_EQUALITY, collate_clause
from intercode_sql.embedded.catalog.moments import read_moment
from intercode_sql.embedded.catalog.types import (
    ASCII_STRING,
    BITS,
    BOOL,
    DATETIME,
    DOUBLE,
    INT,
    NOT_NULL_BOOL,
    NUMERIC_KINDS,
    SCALE_STEP,
    Collation,
    Type,
    concatenation_type,
    decimal,
    integer_digits,
    is_exact,
)
from intercode_sql.embedded.catalog.values import is_number, leading_number
from intercode_sql.embedded.compile.conversions import (
    as_bytes,
    as_compared_number,
    as_integer,
    as_moment_text,
    as_number,
    as_temporal,
    as_text,
    as_texts,
    compared_time,
    quote_text,
    value_constant,
)
from intercode_sql.embedded.compile.model import (
    Expression,
    Scope,
    compile_expression,
    compile_scalar,
    compiles,
)
from intercode_sql.embedded.compile.strict_values import divisor, moved_date, whole_number
from intercode_sql.embedded.compile.text_in_errors import item_text
from intercode_sql.embedded.functions.numeric import year_held

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
    signed_difference = isinstance(node, exp.Sub) and (
        "NO_UNSIGNED_SUBTRACTION" in scope.context.modes
    )
    unsigned = not signed_difference and (a.type.unsigned or b.type.unsigned)
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
        digits = quotient_digits(x.scale or 0, y.scale or 0)
        return Expression(f"mysql_quotient({a.sql}, {by}, {digits})", kind)
    sql = f"(({a.sql}) * 1.0 / ({by}))"
    fixed = None if x.scale is None or y.scale is None else min(30, x.scale + SCALE_STEP)
    return Expression(sql, replace(DOUBLE, scale=fixed))


def quotient_digits(a: int, b: int) -> int:
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
    scale = (a.type.scale or 0) if is_exact(a.type, b.type) else -1
    sql = f"mysql_mod({a.sql}, {divisor(a.sql, b.sql)}, {scale})"
    kind = _sum_type(a.type, b.type)
    timed = "mysql_temporal_number(" in b.sql
    if kind.kind == "decimal" and (timed or not kind.scale):  # only a fraction has a minus zero
        sql = f"({sql} + 0.0)"
    return Expression(sql, replace(kind, unsigned=a.type.unsigned))


@compiles(exp.Neg)
def _negation(node: exp.Neg, scope: Scope) -> Expression:
    number = as_number(compile_scalar(node.this, scope))
    literal = -number.literal if isinstance(number.literal, (int, float)) else None
    sign = "0 - " if number.type.kind == "decimal" else "- "  # a decimal has no minus zero
    sql = f"({sign}{number.sql})"
    kind = replace(number.type, unsigned=False)
    if kind.kind in ("int", "year") and literal is None:
        kind = replace(kind, kind="int", precision=min(kind.precision + 1, INT.precision))
    return Expression(sql, kind, literal=literal)


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
    unit = interval.args["unit"].name.upper().removeprefix("SQL_TSI_")
    size = interval.this
    if isinstance(size, exp.Literal):  # the parser quotes integers
        size = exp.Literal.number(size.name)
    amount = compile_expression(size, scope) if given is None else given
    if (isinstance(amount.literal, bytes) or amount.type.ranked) and "_" not in unit:
        amount = as_number(amount)
    clock = any(w in unit for w in ("HOUR", "MINUTE", "SECOND"))
    size = as_text(amount) if "_" in unit else amount
    if "_" not in unit and unit != "SECOND":
        size = as_integer(amount)
    elif unit == "SECOND" and amount.type.moment:
        size = replace(amount, sql=f"mysql_temporal_number({amount.sql})")
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
    elif unit == "SECOND":
        known = amount.type.scale is not None and amount.type.kind != "string"
        scale = max(scale or 0, min(6, amount.type.scale or 0) if known else 6)
    if base.type.kind == "time":
        if unit in ("YEAR", "QUARTER", "MONTH", "YEAR_MONTH", "WEEK"):
            raise unsupported("months or weeks added to a time")
        return Expression(sql, Type("time", 10, scale))
    if base.type.kind == "date" and not clock:
        return Expression(sql, Type("date", 10))
    if base.type.kind in ("date", "datetime"):
        return Expression(sql, Type("datetime", 19, scale))
    return Expression(sql, replace(ASCII_STRING, dated=True))


_ORDERING_OPERATORS = frozenset({"<", "<=", ">", ">="})


def compare(op: str, left: Expression, right: Expression) -> Expression:
    """Compile ``left op right`` with SQLite's operator: = <> < <= > >= IS. Rows are compared part
    by part.

    Raises StatementError 1241 for rows of different sizes.
    """
    if left.columns or right.columns:
        return _compare_rows(op, left, right)
    left, right, collation = align_types(left, right, op in _ORDERING_OPERATORS)
    nullable = op != "IS" and (left.type.nullable or right.type.nullable)
    return Expression(
        f"({left.sql} {op} {right.sql}{collation})", BOOL if nullable else NOT_NULL_BOOL
    )


def align_types(
    left: Expression, right: Expression, ordered: bool
) -> tuple[Expression, Expression, str]:
    """Convert both sides to the type in which MySQL compares them. Return them and the COLLATE
    clause."""
    a, b = left.type, right.type
    if a.kind == "null" or b.kind == "null":
        return left, right, ""
    if (a.kind == "json") != (b.kind == "json") and not (a.moment or b.moment):
        return _compared_document(left), _compared_document(right), " COLLATE BINARY"
    if a.kind == b.kind == "json":
        if ordered:
            raise unsupported("the order of JSON documents")
        return _equal_document(left), _equal_document(right), " COLLATE BINARY"
    if a.kind == "json" or b.kind == "json":
        return as_text(left), as_text(right), " COLLATE BINARY"
    if a.moment or b.moment:
        return (*_align_temporal(left, right), "")
    if a.number or b.number:
        return _as_double(left, right), _as_double(right, left), ""
    (left, right), kind = as_texts([left, right])
    if kind.binary:
        return as_bytes(left), as_bytes(right), ""
    return left, right, collate_clause(ordered, left.type, right.type)


def _equal_document(ex: Expression) -> Expression:
    return replace(ex, sql=f"mysql_json_equality({ex.sql})")


def _compared_document(ex: Expression) -> Expression:
    """Return a side of a comparison of a JSON document with a number or a text."""
    if ex.type.kind != "json":
        return as_compared_number(ex) if ex.type.number else as_text(ex)
    return replace(ex, sql=f"mysql_json_compared({ex.sql})")


def _as_double(ex: Expression, other: Expression) -> Expression:
    """Return a side of a comparison of numbers. A large integer beside a text is a double."""
    number = as_compared_number(ex)
    large = number.type.kind == "int" and number.type.precision > 15
    exact = isinstance(other.literal, str) and abs(leading_number(other.literal)) < 1 << 53
    if not large or other.type.number or exact or number.literal is not None:
        return number
    return replace(number, sql=f"CAST({number.sql} AS REAL)")


_COLUMN = re.compile(r"""\w+\.(\w+|"[^"]*")$""")
_VARYING = (exp.Column, exp.Query, exp.Window)
_VARYING_FUNCTIONS = AGGREGATE_FUNCTIONS | {"RAND", "SLEEP", "UUID", "UUID_SHORT"}


def is_constant(node: exp.Expr) -> bool:
    """Return whether an expression has one value for all rows and groups."""
    return not any(
        isinstance(part, _VARYING) or function_name(part) in _VARYING_FUNCTIONS
        for part in all_nodes(node)
    )


def year_constant(ex: Expression, node: exp.Expr, other: Expression) -> Expression:
    """Return a constant that is compared with a YEAR column as the year that the column would
    hold, or as it is if the column holds no such year."""
    if other.type.kind != "year" or not _COLUMN.match(other.sql):
        return ex
    value = ex.literal
    double = ex.type.kind == "double"
    if value is None and ex.type.number and is_constant(node):
        return replace(ex, sql=f"mysql_year_held({as_number(ex).sql}, {int(double)})")
    if isinstance(value, bytes):
        value = int.from_bytes(value, "big")
    if not isinstance(value, (str, int, float)):
        return ex
    number = leading_number(value) if isinstance(value, str) else value
    if isinstance(value, str) and is_number(value) and 0 <= number < 0.5:
        return value_constant(2000)
    year = year_held(number, double)
    return ex if year == number else value_constant(year)


def years_in_list(
    values: list[Expression], nodes: list[exp.Expr], other: Expression
) -> list[Expression]:
    """Return the values of IN, which are years if all are constants that are compared alike: as
    doubles or not."""
    pairs = [*zip(values, nodes, strict=True)]
    known = [pair for pair in pairs if pair[0].type.kind != "null"]
    alike = len({value.type.kind == "double" for value, _ in known}) == 1
    if not alike or any(
        value.literal is None and not (value.type.number and is_constant(node))
        for value, node in known
    ):
        return values
    return [year_constant(value, node, other) for value, node in pairs]


def align_three(values: list[Expression]) -> list[Expression]:
    """Convert the three values of BETWEEN to the type in which MySQL compares them, if that is one
    for all: a date with strings are dates, a number with strings are numbers."""
    kinds = {v.type.kind for v in values} - {"null"}
    if values[0].type.moment:
        return values
    if kinds & NUMERIC_KINDS and kinds & {"string", "bytes"}:
        return [as_compared_number(v) for v in values]
    if values[0].type.kind in ("string", "bytes") and kinds & {"date", "datetime"}:
        return [_compared_date(v) for v in values]
    if "bytes" in kinds and kinds <= {"string", "bytes"}:
        return in_one_charset(values)
    if kinds == {"string"} and len({v.type.collation for v in values}) > 1:
        shared = concatenation_type(*(v.type for v in values)).collation
        return [_collated(v, shared) for v in values]
    return values


def in_one_charset(values: list[Expression]) -> list[Expression]:
    """Convert strings that are compared with each other to byte strings, if one of them makes all
    of them ones."""
    if not {v.type.kind for v in values} - {"null"} <= {"string", "bytes"}:
        return values
    binary = concatenation_type(*(v.type for v in values)).binary
    return [as_bytes(v) for v in values] if binary else values


def _collated(ex: Expression, collation: Collation) -> Expression:
    kind = replace(ex.type, collation=collation, strong=True, explicit=True, plain=0)
    return replace(as_text(ex), type=replace(kind, words=(), members=()))


def _compared_date(ex: Expression) -> Expression:
    if ex.type.kind not in ("string", "bytes"):
        return as_temporal(ex, "datetime")
    return Expression(f"mysql_compared_moment({ex.sql}, 'datetime')", DATETIME)


def _align_temporal(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    kinds = {e.type.kind for e in (left, right) if e.type.moment}
    for one, other in ((left, right), (right, left)):
        if one.type.number and one.literal is None:
            return as_compared_number(left), as_compared_number(right)
        if one.type.kind == "time" and not other.type.moment and other.type.number:
            return as_compared_number(left), as_compared_number(right)
    if "time" in kinds and len(kinds) > 1:
        kind = "datetime"
    else:
        kind = "datetime" if "datetime" in kinds else kinds.pop()
    for ex in (left, right):
        text = ex.literal is None and (ex.type.text or ex.type.binary)
        if kind == "date" and (ex.type.dated or text):
            kind = "datetime"
        if kind == "date" and isinstance(ex.literal, str):
            moment = read_moment(ex.literal)
            if moment is not None and moment.time != "00:00:00":
                kind = "datetime"
    left, right = as_temporal(left, kind), as_temporal(right, kind)
    if kind != "time":
        return left, right
    a, b = compared_time(left), compared_time(right)
    if (a == left.sql) != (b == right.sql):
        a, b = f"mysql_time_order({left.sql})", f"mysql_time_order({right.sql})"
    return replace(left, sql=a), replace(right, sql=b)


def _compare_rows(op: str, left: Expression, right: Expression) -> Expression:
    a, b = left.columns or (left,), right.columns or (right,)
    if len(a) != len(b):
        raise mysql_error(1241, len(a))
    pairs = [compare("IS" if op == "IS" else "=", x, y) for x, y in zip(a, b, strict=True)]
    all_equal = " AND ".join(p.sql for p in pairs)
    if op in ("=", "IS"):
        return Expression(f"({all_equal})", BOOL)
    if op == "<>":
        return Expression(f"(NOT ({all_equal}))", BOOL)
    sql = compare(op, a[-1], b[-1]).sql
    for x, y in list(zip(a, b, strict=True))[-2::-1]:
        strict = compare(op.rstrip("="), x, y).sql
        sql = f"({strict} OR ({compare('=', x, y).sql} AND {sql}))"
    return Expression(sql, BOOL)


# ---------------------------------------------------------------- LIKE and REGEXP
@compiles(exp.Like, exp.Escape)
def _like(node: exp.Like | exp.Escape, scope: Scope) -> Expression:
    """Compile LIKE. SQLite's own LIKE is used if NOCASE is equivalent to the collation."""
    escape = "" if "NO_BACKSLASH_ESCAPES" in scope.context.modes else "\\"
    like = node
    if isinstance(node, exp.Escape):
        like, escape = node.this, node.expression.this
    texts, kind = as_texts(
        [compile_scalar(like.this, scope), compile_scalar(like.expression, scope)]
    )
    left, right = texts
    clause = EXACT_EQUALITY if kind.binary else collate_clause(False, left.type, right.type)
    negate = "NOT " * bool(like.args.get("negate"))
    if (
        clause == " COLLATE NOCASE"
        and len(escape) == 1
        and not (right.literal or "").endswith(escape)
        and "\0" not in (right.literal or "")
    ):
        return Expression(
            f"({left.sql} {negate}LIKE {right.sql} ESCAPE {quote_text(escape)})", BOOL
        )
    collation = "bin" if clause == EXACT_EQUALITY else clause.rpartition("_")[2] or "uca"
    collation = "uca" if collation not in ("bin", "general", "swedish") else collation
    sql = f"mysql_like({left.sql}, {right.sql}, {quote_text(escape)}, '{collation}')"
    return Expression(f"({negate}{sql})", BOOL)


@compiles(exp.RegexpLike)
def _regexp(node: exp.RegexpLike, scope: Scope) -> Expression:
    """Compile REGEXP and RLIKE."""
    left, right = (
        as_text(compile_scalar(node.this, scope)),
        as_text(compile_scalar(node.expression, scope)),
    )
    binary = left.type.binary or right.type.binary
    exact = int(binary or collate_clause(False, left.type, right.type) == EXACT_EQUALITY)
    sql = f"mysql_regexp({left.sql}, {right.sql}, {exact})"
    return Expression(f"(NOT {sql})" if node.args.get("negate") else sql, BOOL)
