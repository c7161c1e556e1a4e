"""Compiles calls of aggregate and window functions."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.dialect.keywords import AGGREGATE_FUNCTIONS, WINDOW_FUNCTIONS
from intercode_sql.dialect.parser import FUNCTION_MARK
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.types import (
    DOUBLE,
    INT,
    SCALE_STEP,
    Type,
    concatenation_type,
    decimal,
    integer_digits,
    merge_types,
)
from intercode_sql.embedded.compile.conversions import (
    as_bytes,
    as_column,
    as_integer,
    as_number,
    as_text,
    compared_time,
    convert_to,
    enum_index,
    quote_text,
    sort_expression,
)
from intercode_sql.embedded.compile.documents import document_type, json_members
from intercode_sql.embedded.compile.model import Expression, Scope, compile_expression, compiles
from intercode_sql.embedded.compile.operators import quotient_digits
from intercode_sql.embedded.functions import registry as functions
from intercode_sql.embedded.functions.aggregates import GROUP_CONCAT_MAX_BYTES

_OF_NO_ROWS = {"BIT_AND": -1, "BIT_OR": 0, "BIT_XOR": 0}
"""The values of aggregates of no rows, as SQLite holds them."""
_COUNT_TYPE = replace(INT, nullable=False)


def aggregate_call(
    name: str, args: list[exp.Expr], scope: Scope, window: bool = False
) -> Expression:
    """Compile a call of an aggregate. Raises StatementError 1111 if none is allowed there. Over a
    ``window``, its arguments can be aggregates."""
    distinct = bool(args) and isinstance(args[0], exp.Distinct)
    inner = list(args[0].expressions) if distinct else args
    if window:
        arguments = [compile_expression(n, scope) for n in inner if not isinstance(n, exp.Star)]
    else:
        arguments = _arguments(inner, scope)
    if name == "COUNT":
        return _count(arguments, distinct, bool(inner) and isinstance(inner[0], exp.Star))
    if name in ("JSON_ARRAYAGG", "JSON_OBJECTAGG"):
        parts = json_members(name, inner, arguments, 2 * (name == "JSON_OBJECTAGG"))
        kind = document_type(arguments[-1].type)
        return Expression(f"mysql_{name.lower()}({', '.join(parts)})", kind, aggregate=True)
    value = arguments[0]
    if value.columns:
        raise mysql_error(1241, 1)
    word = "DISTINCT " * distinct
    if name in ("MIN", "MAX"):
        value = as_number(value) if value.type.wrapped else value
        clause = collate_clause(True, value.type) if value.type.kind == "string" else ""
        kind = replace(value.type.as_stored(), nullable=True, words=(), members=())
        sql = f"{name}({value.sql}{clause})"
        if kind.kind == "time" and (order := compared_time(value)) != value.sql:
            sql = f"mysql_ordered_time({name}({order}), 0)"
        return Expression(sql, kind, aggregate=True)
    if distinct:
        value = as_column(replace(value, type=value.type.as_stored()))
    number = as_number(value)
    if name in ("SUM", "AVG"):
        inexact = value.type.moment or "mysql_quotient(" in number.sql  # with more digits
        whole = window or (inexact and not distinct)
        return Expression(
            _sum_or_average(name, word, number, whole),
            _sum_or_average_type(name, number.type),
            aggregate=True,
        )
    function = functions.AGGREGATES.get(name)
    if function is not None:
        sql = f"{function.sqlite_name}({word}{number.sql})"
        if name in _OF_NO_ROWS:
            bits = as_integer(value).sql
            sql = f"IFNULL({function.sqlite_name}({bits}), {_OF_NO_ROWS[name]})"
        return Expression(sql, function.returns, aggregate=True)
    raise unsupported(f"the aggregate {name}")


def _arguments(nodes: list[exp.Expr], scope: Scope) -> list[Expression]:
    if scope.clause in ("where", "on", "group") or scope.inside_aggregate:
        raise mysql_error(1111)
    scope.aggregated = True
    scope.inside_aggregate = True
    try:
        return [compile_expression(n, scope) for n in nodes if not isinstance(n, exp.Star)]
    finally:
        scope.inside_aggregate = False


def _count(arguments: list[Expression], distinct: bool, star: bool) -> Expression:
    kind = _COUNT_TYPE
    if star or not arguments:
        return Expression("COUNT(*)", kind, aggregate=True)
    if not distinct:
        return Expression(f"COUNT({arguments[0].sql})", kind, aggregate=True)
    if len(arguments) == 1 and not arguments[0].columns:
        clause = collate_clause(False, arguments[0].type)
        return Expression(f"COUNT(DISTINCT {arguments[0].sql}{clause})", kind, aggregate=True)
    parts = arguments[0].columns or tuple(arguments)
    keys = ", ".join(
        f"mysql_key({p.sql}, '{p.type.collation}')" if p.type.kind == "string" else p.sql
        for p in parts
    )
    return Expression(f"COUNT(DISTINCT mysql_tuple({keys}))", kind, aggregate=True)


def _sum_or_average(name: str, word: str, number: Expression, whole: bool) -> str:
    """Compile SUM or AVG. The average of exact numbers is cut as a quotient is, unless it is
    ``whole``."""
    sql = f"{name}({word}{number.sql})"
    kind = number.type
    if kind.kind == "decimal":
        total = f"ROUND(SUM({word}{number.sql}), {kind.scale})"
        if name == "SUM":
            return total
        if not whole:
            digits = quotient_digits(kind.scale or 0, 0)
            return f"mysql_average({total}, COUNT({word}{number.sql}), {digits})"
    elif name == "AVG" and kind.kind == "int" and kind.precision > 15 and not whole:
        sums = f"SUM({word}{number.sql}), COUNT({word}{number.sql})"  # a REAL loses digits
        return f"mysql_quotient({sums}, {quotient_digits(0, 0)})"
    return sql


def _sum_or_average_type(name: str, kind: Type) -> Type:
    if kind.kind in ("int", "year", "decimal", "null"):
        scale = kind.scale or 0
        if name == "SUM":
            return decimal(integer_digits(kind) + 22 + scale, scale)
        return decimal(integer_digits(kind) + scale + SCALE_STEP, scale + SCALE_STEP)
    if kind.scale is None:
        return DOUBLE
    return replace(DOUBLE, scale=min(30, kind.scale + SCALE_STEP * (name == "AVG")))


@compiles(exp.GroupConcat)
def group_concat(node: exp.GroupConcat, scope: Scope) -> Expression:
    """Compile GROUP_CONCAT with its DISTINCT, ORDER BY and SEPARATOR. The result is cut at
    group_concat_max_len bytes."""
    inner = node.this
    order = inner if isinstance(inner, exp.Order) else None
    inner = inner.this if order is not None else inner
    distinct = isinstance(inner, exp.Distinct)
    parts = list(inner.expressions) if distinct else [inner]
    if len(parts) == 1 and isinstance(parts[0], exp.Concat):
        parts = list(parts[0].expressions)
    values = _arguments(parts, scope)
    if distinct or order is not None:  # MySQL's table for it holds a BIT as a number
        values = [_digits_of_bits(m) for m in values]
    texts = [as_text(m) for m in values]
    separator = node.args.get("separator")
    separator_text = separator.this if separator is not None else ","
    keys, directions = [], ""
    # without an order, the distinct values are those of a tree, which sorts them
    items = order.expressions if order is not None else parts if distinct else ()
    for item in items:
        by = _at_position(item.this, parts) if isinstance(item, exp.Ordered) else item
        (key,) = _arguments([by], scope)
        fold = key.type.kind == "string" and key.type.collation != "bin" and not key.type.ranked
        folded = f"mysql_key({key.sql}, '{key.type.collation}')"
        keys.append(folded if fold else enum_index(key) if key.type.ranked else key.sql)
        directions += "d" if item.args.get("desc") else "a"
    kind = concatenation_type(*(m.type for m in texts))
    value = " || ".join(m.sql for m in texts)
    limit = scope.context.settings["group_concat_max_len"]
    if limit != GROUP_CONCAT_MAX_BYTES:
        scope.context.volatile = True
    fixed = f"{quote_text(separator_text)}, {int(distinct)}, '{directions}', '{kind.collation}'"
    fixed += f", {limit}"
    sql = f"mysql_group_concat({value}, {fixed}{''.join(', ' + k for k in keys)})"
    return Expression(sql, replace(kind, plain=0, precision=0), aggregate=True)


def _digits_of_bits(ex: Expression) -> Expression:
    return as_bytes(replace(ex, type=replace(ex.type, bits=0))) if ex.type.bits else ex


def _at_position(node: exp.Expr, parts: list[exp.Expr]) -> exp.Expr:
    """Return the argument of GROUP_CONCAT that a number in its ORDER BY names, or the node."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.this.isdigit():
        return node
    if not 1 <= int(node.this) <= len(parts):
        raise mysql_error(1054, node.this, "order clause")
    return parts[int(node.this) - 1]


# ---------------------------------------------------------------- window functions
_NATIVE_AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})


@compiles(exp.Window)
def window_call(node: exp.Window, scope: Scope) -> Expression:
    """Compile ``function OVER (...)`` or ``OVER name``. Raises StatementError 3593 if none is
    allowed there."""
    call = node.this
    name = (
        str(call.this).removeprefix(FUNCTION_MARK).upper()
        if isinstance(call, exp.Anonymous)
        else ""
    )
    if scope.clause in ("where", "on", "group", "having"):
        raise mysql_error(3593, name.lower())
    if name in AGGREGATE_FUNCTIONS:
        if name not in _NATIVE_AGGREGATES or any(
            isinstance(e, exp.Distinct) for e in call.expressions
        ):
            raise unsupported(f"{name} of this kind as a window function")
        compiled = aggregate_call(name, call.expressions, scope, window=True)
        sql, kind = compiled.sql, compiled.type
        outer, _, inside = sql.partition("(")
        if outer == "SUM" and kind.kind == "decimal" and kind.precision > 37:
            over = _over_clause(node, scope)  # SQLite's moving sum of integers can wrap
            double = f"ABS(SUM(1.0 * {inside} OVER ({over}))"
            overflow = f"ABS({-1 << 63})"
            sql = f"(CASE WHEN {double} > 9.2e18 THEN {overflow} ELSE {sql} OVER ({over}) END)"
            return Expression(sql, kind)
        if outer in ("ROUND", "mysql_ordered_time"):
            inner, _, last = inside[:-1].rpartition(", ")
            over = _over_clause(node, scope)
            sql = f"{outer}({inner} OVER ({over}), {last})"  # a moving sum can be a minus zero
            return Expression(f"({sql} + 0.0)" if outer == "ROUND" else sql, kind)
    elif name in WINDOW_FUNCTIONS:
        sql, kind = _window_function(name, call, scope)
    else:
        raise unsupported(f"the window function {name or call.sql('mysql')}")
    return Expression(f"{sql} OVER ({_over_clause(node, scope)})", kind)


def _window_function(name: str, call: exp.Anonymous, scope: Scope) -> tuple[str, Type]:
    args = [compile_expression(e, scope) for e in call.expressions]
    if name in ("PERCENT_RANK", "CUME_DIST"):
        return f"{name}()", DOUBLE
    if name in ("ROW_NUMBER", "RANK", "DENSE_RANK"):
        return f"{name}()", replace(INT, nullable=False)
    if not args:
        raise mysql_error(1582, name)
    kind = args[0].type.as_nullable()
    if name in ("NTILE", "NTH_VALUE") and args[-1].literal == 0:
        raise mysql_error(1210, name.lower())
    if name == "NTILE":
        kind = INT
    elif len(args) == 3:
        kind = merge_types(args[0].type, args[2].type)
        args = [convert_to(args[0], kind), args[1], convert_to(args[2], kind)]
    return f"{name}({', '.join(a.sql for a in args)})", kind


def _over_clause(node: exp.Window, scope: Scope) -> str:
    partition, order, spec = _whole_window(node, scope, 0)
    parts = []
    if partition:
        keys = [compile_expression(e, scope) for e in partition]
        parts.append(
            "PARTITION BY " + ", ".join(k.sql + collate_clause(False, k.type) for k in keys)
        )
    if order is not None:
        pairs = [
            (compile_expression(o.this, scope), bool(o.args.get("desc"))) for o in order.expressions
        ]
        terms = (sort_expression(k) + " DESC" * descending for k, descending in pairs)
        parts.append("ORDER BY " + ", ".join(terms))
    if spec is not None:
        parts.append(_frame_clause(spec))
    return " ".join(parts)


def _whole_window(
    node: exp.Window, scope: Scope, depth: int
) -> tuple[list[exp.Expr], exp.Order | None, exp.WindowSpec | None]:
    """Return the partition, the order and the frame of a window, with those of the named window on
    which it depends. Raises StatementError 3579 to 3583 as MySQL does."""
    own = node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec")
    base = node.args.get("alias")
    if base is None:
        return own
    definition = scope.windows.get(base.name.lower())
    if definition is None:
        raise mysql_error(3579, base.name)
    if depth > len(scope.windows):
        raise mysql_error(3580)
    partition, order, spec = _whole_window(definition, scope, depth + 1)
    if not depth and not any(own):  # OVER name
        return partition, order, spec
    name = node.name if depth else "<unnamed window>"
    if own[0]:
        raise mysql_error(3581)
    if spec is not None:
        raise mysql_error(3582, base.name)
    if own[1] is not None and order is not None:
        raise mysql_error(3583, name, base.name)
    return partition, own[1] or order, own[2]


def _frame_clause(spec: exp.WindowSpec) -> str:
    def bound(value: object, side: object) -> str:
        text = value.name if isinstance(value, exp.Expr) else str(value or "CURRENT ROW")
        return f"{text} {side or ''}".strip()

    start = bound(spec.args.get("start"), spec.args.get("start_side"))
    end = spec.args.get("end")
    kind = spec.args.get("kind") or "ROWS"
    if end is None:
        return f"{kind} {start}"
    return f"{kind} BETWEEN {start} AND {bound(end, spec.args.get('end_side'))}"
