"""Compiles comparisons: as strings, numbers or dates, by MySQL's rules."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error
from intercode_sql.embedded.catalog.collations import EXACT_EQUALITY, collate_clause
from intercode_sql.embedded.catalog.moments import read_moment
from intercode_sql.embedded.catalog.types import (
    BOOL,
    DATETIME,
    NOT_NULL_BOOL,
    NUMERIC_KINDS,
    Collation,
    concatenation_type,
)
from intercode_sql.embedded.catalog.values import is_number, leading_number
from intercode_sql.embedded.compile.conversions import (
    as_bytes,
    as_compared_number,
    as_temporal,
    as_text,
    as_texts,
    quote_text,
    time_order,
    value_constant,
)
from intercode_sql.embedded.compile.scope import Expression, Scope, compile_scalar, compiles

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


def year_constant(ex: Expression, other: Expression) -> Expression:
    """Return a constant that is compared with a YEAR column as the year that the column would
    hold."""
    if other.type.kind != "year" or not _COLUMN.match(other.sql):
        return ex
    value = ex.literal
    if isinstance(value, bytes):
        value = int.from_bytes(value, "big")
    if not isinstance(value, (str, int, float)):
        return ex
    zero = isinstance(value, str) and is_number(value)
    year = round(leading_number(value) if isinstance(value, str) else value)
    if not (0 <= year < 100 and (year or zero)):
        return ex
    return value_constant(year + (2000 if year < 70 else 1900))


def years_in_list(values: list[Expression], other: Expression) -> list[Expression]:
    """Return the values of IN, which are years if all are constants that are compared alike: as
    doubles or not."""
    known = [v for v in values if v.type.kind != "null"]
    alike = len({v.type.kind == "double" for v in known}) == 1
    if not alike or any(v.literal is None for v in known):
        return values
    return [year_constant(value, other) for value in values]


def align_three(values: list[Expression]) -> list[Expression]:
    """Convert the three values of BETWEEN to the type in which MySQL compares them, if that is one
    for all: a date with strings are dates, a number with strings are numbers."""
    kinds = {v.type.kind for v in values} - {"null"}
    if values[0].type.moment:
        return values
    if kinds & NUMERIC_KINDS and kinds & {"string", "bytes"}:
        return [as_compared_number(v) for v in values]
    if values[0].type.kind == "string" and kinds & {"date", "datetime"}:
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
    if ex.type.kind != "string":
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
        if kind == "date" and ex.type.dated:
            kind = "datetime"
        if kind == "date" and isinstance(ex.literal, str):
            moment = read_moment(ex.literal)
            if moment is not None and moment.time != "00:00:00":
                kind = "datetime"
    left, right = as_temporal(left, kind), as_temporal(right, kind)
    if kind != "time":
        return left, right
    a, b = time_order(left), time_order(right)
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
