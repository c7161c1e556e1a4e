"""Compiles subqueries in expressions: scalars, EXISTS, IN, ANY and ALL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.types import BOOL, INT, Type
from intercode_sql.embedded.compile.conversions import as_text, on_this_day
from intercode_sql.embedded.compile.model import (
    CompiledQuery,
    Expression,
    Scope,
    compile_expression,
    compiles,
)
from intercode_sql.embedded.compile.operators import align_types, compare, year_constant


def _compile_subquery(node: exp.Expr, scope: Scope, ordered: bool = False) -> CompiledQuery:
    inner = node.this if isinstance(node, exp.Subquery) and not node.args.get("order") else node
    while isinstance(inner, exp.Subquery) and not inner.args.get("limit"):
        inner = inner.this
    before, scope.inside_aggregate = scope.inside_aggregate, False
    try:
        return scope.context.compile(inner, scope, ordered=ordered)
    finally:
        scope.inside_aggregate = before


@compiles(exp.Subquery, exp.Select, exp.Union, exp.Except, exp.Intersect)
def scalar_subquery(node: exp.Expr, scope: Scope) -> Expression:
    """Compile a subquery as a value or a row. More than one row is MySQL's error 1242."""
    query = _compile_subquery(node, scope, ordered=True)
    if len(query.types) > 1:
        return _row_subquery(query, scope)
    kind = query.types[0].as_nullable()
    if query.single:
        return Expression(f"({query.sql})", kind)
    alias = scope.context.new_alias()
    sql = (
        f"(SELECT CASE WHEN COUNT(*) > 1 THEN mysql_raise(1242) ELSE MAX({alias}.c0) END "
        f"FROM (SELECT * FROM ({query.sql}) LIMIT 2) AS {alias})"
    )
    return Expression(sql, kind)


def _row_subquery(query: CompiledQuery, scope: Scope) -> Expression:
    """Compile a subquery of several columns. Each becomes a subquery of its own."""
    parts = []
    for i, kind in enumerate(query.types):
        alias = scope.context.new_alias()
        sql = (
            f"(SELECT CASE WHEN COUNT(*) > 1 THEN mysql_raise(1242) ELSE MAX({alias}.c{i}) END "
            f"FROM (SELECT * FROM ({query.sql}) LIMIT 2) AS {alias})"
        )
        parts.append(Expression(sql, kind.as_nullable()))
    return Expression("", INT, columns=tuple(parts))


@compiles(exp.Exists)
def exists_subquery(node: exp.Exists, scope: Scope) -> Expression:
    """Compile EXISTS."""
    query = _compile_subquery(node.this, scope)
    return Expression(f"(EXISTS ({query.sql}))", BOOL)


def in_subquery(left: Expression, searched: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    """Compile ``left IN (subquery)``, ``left`` being made of ``searched``. Raises StatementError
    1235 for a LIMIT, 1241 for a wrong number of columns."""
    inner = node
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    if inner.args.get("limit") is not None:
        raise mysql_error(1235, "LIMIT & IN/ALL/ANY/SOME subquery")
    query = _compile_subquery(inner, scope)
    wanted = left.columns or (_searched(left, inner, node),)
    if not left.columns:
        wanted = (_year(wanted[0], searched, inner, query.types[0]),)
    if len(query.types) != len(wanted):
        raise mysql_error(1241, len(wanted))
    alias = scope.context.new_alias()
    lefts, rights = [], []
    for i, (one, kind) in enumerate(zip(wanted, query.types, strict=True)):
        x, y = on_this_day([one, Expression(f"{alias}.c{i}", kind)], scope)
        a, b, clause = align_types(x, y, False)
        lefts.append(a.sql + clause)
        rights.append(b.sql)
    plain = all(r == f"{alias}.c{i}" for i, r in enumerate(rights))
    inside = query.sql if plain else f"SELECT {', '.join(rights)} FROM ({query.sql}) AS {alias}"
    if len(lefts) > 1:  # the parts of a row take no COLLATE in IN, so they are compared one by one
        tests = " AND ".join(
            compare("=", one, Expression(f"{alias}.c{i}", kind)).sql
            for i, (one, kind) in enumerate(zip(wanted, query.types, strict=True))
        )
        rows = f"SELECT 1 FROM ({query.sql}) AS {alias} WHERE"
        found, above = f"EXISTS ({rows} {tests})", node.parent and node.parent.parent
        while isinstance(above, (exp.And, exp.Paren)):
            above = above.parent
        if isinstance(above, (exp.Where, exp.Join)):  # where NULL selects no row, as 0
            return Expression(f"({found})", BOOL)
        unknown = f"EXISTS ({rows} ({tests}) IS NULL)"
        return Expression(f"(CASE WHEN {found} THEN 1 WHEN NOT {unknown} THEN 0 END)", BOOL)
    return Expression(f"({lefts[0]} IN ({inside}))", BOOL)


def quantified_comparison(
    op: str, left: exp.Expr, node: exp.All | exp.Any, scope: Scope
) -> Expression:
    """Compile ``left op ALL|ANY (subquery)``, with MySQL's rule for NULL."""
    inner = node.this
    while isinstance(inner, (exp.Subquery, exp.Paren)):
        inner = inner.this
    if inner.args.get("limit") is not None:
        raise mysql_error(1235, "LIMIT & IN/ALL/ANY/SOME subquery")
    before, scope.aggregated = scope.aggregated, False
    value = compile_expression(left, scope)
    aggregate, scope.aggregated = value.aggregate or scope.aggregated, before or scope.aggregated
    query = _compile_subquery(inner, scope)
    if len(query.types) != 1 or value.columns:
        raise mysql_error(1241, 1)
    if aggregate or scope.clause in ("having", "order"):
        return _compare_outside(op, value, query, isinstance(node, exp.All), scope)
    alias = scope.context.new_alias()
    kind = query.types[0]
    if op not in ("=", "<>") and scope.clause == "where":  # MySQL compares the MIN or the MAX
        kind = replace(kind, words=())
    if op != "=" or isinstance(node, exp.All):
        value = _cached_as_text(value, inner)
    else:
        value = _searched(_year(value, left, inner, kind), inner, node)
    other = value.type.binary or (
        value.type.kind == "string" and value.type.collation != kind.collation
    )
    if other and kind.kind == "string" and op not in ("=", "<>") and scope.clause == "where":
        return _compared_with_extreme(op, value, query, isinstance(node, exp.All), scope)
    constant = inner.expressions and isinstance(
        inner.expressions[0].unalias(), (exp.HexString, exp.BitString)
    )
    if constant and value.type.number:
        raise unsupported("a number beside constant bytes of a subquery")
    value = _year(value, left, inner, kind)
    sides = on_this_day([value, Expression(f"{alias}.c0", kind)], scope)
    test = compare(op, *sides).sql
    first, last = (0, 1) if isinstance(node, exp.All) else (1, 0)
    sql = (
        f"(SELECT CASE WHEN SUM(t = {first}) > 0 THEN {first} WHEN COUNT(*) > COUNT(t) THEN NULL "
        f"ELSE {last} END FROM (SELECT {test} AS t FROM ({query.sql}) AS {alias}))"
    )
    return Expression(sql, BOOL)


def _compared_with_extreme(
    op: str, value: Expression, query: CompiledQuery, all_of: bool, scope: Scope
) -> Expression:
    """Compile a comparison of bytes, or of a text of another collation, with ALL or ANY of texts in
    a condition. MySQL compares with the least or the greatest of them in their own order."""
    alias = scope.context.new_alias()
    kind = query.types[0]
    word = "MIN" if (op in ("<", "<=")) == all_of else "MAX"
    extreme = Expression(f"{word}({alias}.c0{collate_clause(True, kind)})", kind.as_nullable())
    test = compare(op, value, extreme).sql
    sql = (
        f"(SELECT CASE WHEN COUNT(*) = 0 THEN {int(all_of)} "
        f"WHEN {int(all_of)} AND COUNT(*) > COUNT({alias}.c0) THEN NULL ELSE {test} END "
        f"FROM ({query.sql}) AS {alias})"
    )
    return Expression(sql, BOOL)


def _year(value: Expression, node: exp.Expr, query: exp.Expr, kind: Type) -> Expression:
    """Return a constant that is compared with a column of YEAR in a subquery as its year."""
    column = bool(query.expressions) and isinstance(query.expressions[0].unalias(), exp.Column)
    return year_constant(value, node, Expression("q.c0", kind)) if column else value


def _searched(value: Expression, query: exp.Expr, node: exp.Expr) -> Expression:
    """Return the value that is searched among the rows of a subquery. MySQL joins them instead if
    the test alone, or with others that must all hold, selects rows."""
    test = node.parent if not isinstance(node, exp.Any) else node
    above = test.parent if test is not None else None
    while isinstance(above, (exp.And, exp.Paren, exp.EQ, exp.In)):
        above = above.parent
    return value if isinstance(above, (exp.Where, exp.Join)) else _cached_as_text(value, query)


def _cached_as_text(value: Expression, query: exp.Expr) -> Expression:
    """Return a value that MySQL caches while it reads a subquery: of the word of an ENUM, or of
    constant bytes, that is the text, and no longer the number."""
    if isinstance(query, exp.Select) and query.args.get("from_") is None:
        return value
    if isinstance(value.literal, bytes):
        return replace(value, literal=None, type=value.type.as_nullable())
    return as_text(value) if value.type.ranked else value


def _compare_outside(
    op: str, value: Expression, query: CompiledQuery, all_of: bool, scope: Scope
) -> Expression:
    """Compile a comparison of an aggregate of this query with ALL or ANY of a subquery. Inside the
    subquery the aggregate would be that of the subquery, so its least and greatest values are
    compared outside."""
    alias = scope.context.new_alias()
    kind = query.types[0].as_nullable()
    left, right, clause = align_types(value, Expression(f"{alias}.c0", kind), True)

    def of_rows(what: str) -> str:
        return f"(SELECT {what} FROM ({query.sql}) AS {alias})"

    least, most = (of_rows(f"{word}({right.sql}{clause})") for word in ("MIN", "MAX"))
    bounds = (
        [least, most] if op in ("=", "<>") else [most if (op in (">", ">=")) == all_of else least]
    )
    tests = [f"{left.sql} {op} {bound}{clause}" for bound in bounds]
    if op in ("=", "<>") and all_of == (
        op == "<>"
    ):  # the bounds do not say whether it is one of them
        inside = of_rows(f"{right.sql}")
        tests = [f"{left.sql}{clause} {'NOT IN' if all_of else 'IN'} {inside}"]
        return Expression(f"({tests[0]})", BOOL)
    found = f"({(' AND ' if all_of else ' OR ').join(tests)})"
    decided, other = ("0", f"NOT {found}") if all_of else ("1", found)
    sql = (
        f"(CASE WHEN {of_rows('COUNT(*)')} = 0 THEN {int(all_of)} WHEN {other} THEN {decided} "
        f"WHEN {of_rows(f'COUNT(*) > COUNT({alias}.c0)')} OR {left.sql} IS NULL THEN NULL "
        f"ELSE {1 - int(decided)} END)"
    )
    return Expression(sql, BOOL)
