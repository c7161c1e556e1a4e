"""Queries: a SELECT, what is united with it, and common tables, in SQLite's words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode.sql.dialect.errors import fault, unable
from intercode.sql.embedded.catalog.collations import collate
from intercode.sql.embedded.catalog.types import Type, merged
from intercode.sql.embedded.compile.conversions import converted
from intercode.sql.embedded.compile.expressions import scalar
from intercode.sql.embedded.compile.scope import Ex, Scope, Source, Unit
from intercode.sql.embedded.compile.select import limit_of, select
from intercode.sql.embedded.compile.select_sql import Query

MAX_DEPTH = 1000
"""cte_max_recursion_depth."""
SMALL = 1_000_000
"""Pairs of rows up to which INTERSECT and EXCEPT keep the order of the left side's rows."""


def compile_query(node: exp.Expr, parent: Scope | None, ordered: bool = True) -> Query:
    """A query with all that it contains. ``ordered``: whether the order of its rows matters.

    Raises StatementError as MySQL does, or for what cannot be done.
    """
    if isinstance(node, exp.Subquery):
        return _bracketed(node, parent, ordered)
    if not isinstance(node, (exp.Select, exp.SetOperation)):
        raise unable(f"a query of the kind {type(node).__name__}")
    if parent is None:
        raise unable("a query without a scope")
    clause, parent.clause = parent.clause, parent.clause
    try:
        common = node.args.get("with_")
        if common is not None:
            parent = Scope(parent.unit, parent=parent, clause=parent.clause)
            prefix = _common_tables(common, parent)
        else:
            prefix = ""
        if isinstance(node, exp.Select):
            query = select(node, parent, ordered)
        else:
            query = _united(node, parent, ordered)
    finally:
        parent.clause = clause
    return replace(query, sql=prefix + query.sql) if prefix else query


def start(unit: Unit) -> Scope:
    """The scope in which a statement's outermost query stands."""
    unit.compile = compile_query
    return Scope(unit)


def _bracketed(node: exp.Subquery, parent: Scope | None, ordered: bool) -> Query:
    tail = any(node.args.get(k) for k in ("order", "limit", "offset"))
    query = compile_query(node.this, parent, ordered or tail)
    return _tail(node, query, parent, ordered) if tail and parent is not None else query


# ---------------------------------------------------------------- set operations
def _united(node: exp.SetOperation, parent: Scope, ordered: bool) -> Query:
    parts: list[exp.Expr] = [node.expression]
    steps: list[exp.SetOperation] = [node]
    left: exp.Expr = node.this
    while isinstance(left, exp.SetOperation) and not left.args.get("order"):
        parts.append(left.expression)
        steps.append(left)
        left = left.this
    made = compile_query(left, parent, True)
    for step, part in zip(reversed(steps), reversed(parts), strict=True):
        made = _pair(step, made, compile_query(part, parent, True), parent)
    return _tail(node, made, parent, ordered)


def _pair(node: exp.SetOperation, left: Query, right: Query, scope: Scope) -> Query:
    if len(left.types) != len(right.types):
        raise fault(1222)
    kinds = tuple(merged(a, b) for a, b in zip(left.types, right.types, strict=True))
    a, b = (_as(q, kinds, scope) for q in (left, right))
    distinct = node.args.get("distinct") is not False
    shown = ", ".join(f"c{i}{collate(False, k)} AS c{i}" for i, k in enumerate(kinds))
    rows = left.rows + right.rows
    if isinstance(node, exp.Union):
        both = f"SELECT * FROM ({a}) UNION ALL SELECT * FROM ({b})"
        sql = f"SELECT DISTINCT {shown} FROM ({both})" if distinct else both
        return Query(sql, left.names, kinds, rows=rows)
    if not distinct:
        raise unable("INTERSECT ALL and EXCEPT ALL")
    word = "INTERSECT" if isinstance(node, exp.Intersect) else "EXCEPT"
    if left.rows * right.rows > SMALL:
        sql = f"SELECT {shown} FROM ({a}) {word} SELECT * FROM ({b})"
        return Query(sql, left.names, kinds, rows=rows)
    x, y = scope.unit.tag(), scope.unit.tag()
    tests = (f"{x}.c{i} IS {y}.c{i}{collate(False, k)}" for i, k in enumerate(kinds))
    negate = "" if word == "INTERSECT" else "NOT "
    sql = (
        f"SELECT DISTINCT {shown} FROM ({a}) AS {x} WHERE {negate}EXISTS "
        f"(SELECT 1 FROM ({b}) AS {y} WHERE {' AND '.join(tests)})"
    )
    return Query(sql, left.names, kinds, rows=rows)


def _as(query: Query, kinds: tuple[Type, ...], scope: Scope) -> str:
    """A query's text with its columns in these types."""
    tag = scope.unit.tag()
    columns = [converted(Ex(f"{tag}.c{i}", k), kinds[i]).sql for i, k in enumerate(query.types)]
    if all(c == f"{tag}.c{i}" for i, c in enumerate(columns)):
        return query.sql
    shown = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
    return f"SELECT {shown} FROM ({query.sql}) AS {tag}"


def _tail(node: exp.Expr, query: Query, parent: Scope, ordered: bool) -> Query:
    """ORDER BY and LIMIT of what is united or in brackets: only the result's columns are seen."""
    order, limit = node.args.get("order"), limit_of(node)
    if order is None and not limit:
        return query
    tag = parent.unit.tag()
    columns = [
        (n, k, f"{tag}.c{i}") for i, (n, k) in enumerate(zip(query.names, query.types, strict=True))
    ]
    scope = Scope(parent.unit, parent=parent, clause="order")
    scope.sources = [Source("", tag, "", columns, "")]
    keys = []
    for item in order.expressions if order is not None else ():
        made = _place(item.this, columns) or scalar(item.this, scope)
        keys.append(made.sql + collate(True, made.type) + " DESC" * bool(item.args.get("desc")))
    by = f" ORDER BY {', '.join(keys)}" if keys and (ordered or limit) else ""
    shown = ", ".join(f"{tag}.c{i} AS c{i}" for i in range(len(columns)))
    sql = f"SELECT {shown} FROM ({query.sql}) AS {tag}{by}{limit}"
    return replace(query, sql=sql, single=query.single or limit == " LIMIT 1")


def _place(node: exp.Expr, columns: list[tuple[str, Type, str]]) -> Ex | None:
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this)
        if not 1 <= number <= len(columns):
            raise fault(1054, str(number), "order clause")
        return Ex(columns[number - 1][2], columns[number - 1][1])
    return None


# ---------------------------------------------------------------- common tables
def _common_tables(node: exp.With, scope: Scope) -> str:
    made = [_common_table(c, scope, bool(node.args.get("recursive"))) for c in node.expressions]
    word = "WITH RECURSIVE " if node.args.get("recursive") else "WITH "
    return word + ", ".join(made) + " "


def _common_table(node: exp.CTE, scope: Scope, recursive: bool) -> str:
    name = node.alias
    tag = scope.unit.tag()
    wanted = [c.name for c in node.args["alias"].args.get("columns") or ()]
    inner = node.this
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    if recursive and isinstance(inner, exp.Union) and _names(inner.expression, name):
        text, query = _recursive(inner, name, tag, wanted, scope)
    else:
        query = compile_query(inner, scope, bool(inner.args.get("limit")))
        text = f"{tag} AS ({query.sql})"
    if wanted and len(wanted) != len(query.types):
        raise fault(1353)
    scope.ctes[name.lower()] = _maker(tag, wanted or query.names, query.types, query.rows)
    return text


def _names(node: exp.Expr, name: str) -> bool:
    return any(t.name.lower() == name.lower() for t in node.find_all(exp.Table))


def _maker(
    tag: str, names: list[str], types: tuple[Type, ...], rows: int
) -> Callable[[Scope, str], Source]:
    def make(scope: Scope, alias: str) -> Source:
        own = scope.unit.tag()
        columns = [
            (n, k, f"{own}.c{i}") for i, (n, k) in enumerate(zip(names, types, strict=False))
        ]
        return Source(alias, own, "", columns, tag, rows=rows)

    return make


def _recursive(
    node: exp.Union, name: str, tag: str, wanted: list[str], scope: Scope
) -> tuple[str, Query]:
    base = compile_query(node.this, scope, False)
    base = replace(base, types=tuple(k.maybe() for k in base.types))
    names = wanted or base.names
    alls = node.args.get("distinct") is False
    seen: list[Source] = []
    plain = _maker(tag, names, base.types, 100)

    def make(inner: Scope, alias: str) -> Source:
        source = plain(inner, alias)
        seen.append(source)
        return source

    scope.ctes[name.lower()] = make
    extra = ""
    step = compile_query(node.expression, scope, False)
    if len(step.types) != len(base.types):
        raise fault(1222)
    columns = ", ".join(f"c{i}" for i in range(len(base.types)))
    if alls and seen and not node.expression.args.get("group"):
        depth = f"{seen[0].tag}.depth"
        extra = f", CASE WHEN {depth} > {MAX_DEPTH} THEN mysql_raise(3636) ELSE {depth} + 1 END"
        marked = step.sql.replace(" FROM ", f"{extra} FROM ", 1)
        if step.plain:
            head = f"{tag}({columns}, depth)"
            return f"{head} AS (SELECT *, 1 FROM ({base.sql}) UNION ALL {marked})", base
    word = "UNION ALL" if alls else "UNION"
    return f"{tag}({columns}) AS (SELECT * FROM ({base.sql}) {word} {step.sql})", base
