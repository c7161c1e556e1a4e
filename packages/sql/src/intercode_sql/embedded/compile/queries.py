"""Compiles queries: SELECTs, set operations and common table expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.catalog.types import BYTES, Type, merge_types
from intercode_sql.embedded.compile import expressions  # noqa: F401  # registers its compilers
from intercode_sql.embedded.compile.conversions import (
    convert_to,
    on_this_day,
    require_rounded,
    sort_expression,
)
from intercode_sql.embedded.compile.model import (
    CompileContext,
    CompiledQuery,
    Expression,
    Scope,
    Source,
    compile_scalar,
)
from intercode_sql.embedded.compile.rollup import compile_rollup, is_rollup
from intercode_sql.embedded.compile.select import compile_select, limit_clause

MAX_RECURSION = 1000
"""cte_max_recursion_depth."""
MAX_ORDERED_PAIRS = 1_000_000
"""Pairs of rows up to which INTERSECT and EXCEPT keep the order of the left side."""


def compile_query(node: exp.Expr, parent: Scope, ordered: bool = True) -> CompiledQuery:
    """Compile a query. ``ordered`` says whether the order of its rows matters.

    Raises StatementError as MySQL does, or for an unsupported query.
    """
    if isinstance(node, exp.Subquery):
        return _parenthesized_query(node, parent, ordered)
    if not isinstance(node, (exp.Select, exp.SetOperation)):
        raise unsupported(f"a query of the kind {type(node).__name__}")
    clause, parent.clause = parent.clause, parent.clause
    try:
        common = node.args.get("with_")
        if common is not None:
            parent = Scope(parent.context, parent=parent, clause=parent.clause)
            prefix = _common_tables(common, parent)
        else:
            prefix = ""
        if isinstance(node, exp.Select) and is_rollup(node):
            query = compile_rollup(node, parent)
        elif isinstance(node, exp.Select):
            query = compile_select(node, parent, ordered)
        else:
            query = _set_operation(node, parent, ordered)
    finally:
        parent.clause = clause
    return replace(query, sql=prefix + query.sql) if prefix else query


def root_scope(context: CompileContext) -> Scope:
    """Return the scope of a statement's outermost query."""
    context.compile = compile_query
    return Scope(context)


def _parenthesized_query(node: exp.Subquery, parent: Scope, ordered: bool) -> CompiledQuery:
    tail = any(node.args.get(k) for k in ("order", "limit", "offset"))
    query = compile_query(node.this, parent, ordered or tail)
    return _order_and_limit(node, query, parent, ordered) if tail and parent is not None else query


# ---------------------------------------------------------------- set operations
def _set_operation(node: exp.SetOperation, parent: Scope, ordered: bool) -> CompiledQuery:
    parts: list[exp.Expr] = [node.expression]
    steps: list[exp.SetOperation] = [node]
    left: exp.Expr = node.this
    while isinstance(left, exp.SetOperation) and not left.args.get("order"):
        parts.append(left.expression)
        steps.append(left)
        left = left.this
    query = compile_query(left, parent, True)
    for step, part in zip(reversed(steps), reversed(parts), strict=True):
        query = _combine_queries(step, query, compile_query(part, parent, True), parent)
    return _order_and_limit(node, query, parent, ordered)


def _combine_queries(
    node: exp.SetOperation, left: CompiledQuery, right: CompiledQuery, scope: Scope
) -> CompiledQuery:
    if len(left.types) != len(right.types):
        raise mysql_error(1222)
    left, right = _on_this_day(left, right, scope), _on_this_day(right, left, scope)
    kinds = tuple(_merged(a, b) for a, b in zip(left.types, right.types, strict=True))
    a, b = _with_types(left, right, kinds, scope), _with_types(right, left, kinds, scope)
    distinct = node.args.get("distinct") is not False
    columns = ", ".join(f"c{i}{collate_clause(False, k)} AS c{i}" for i, k in enumerate(kinds))
    rows = left.rows + right.rows
    if isinstance(node, exp.Union):
        both = f"SELECT * FROM ({a}) UNION ALL SELECT * FROM ({b})"
        sql = f"SELECT DISTINCT {columns} FROM ({both})" if distinct else both
        return CompiledQuery(sql, left.names, kinds, rows=rows)
    if not distinct:
        raise unsupported("INTERSECT ALL and EXCEPT ALL")
    word = "INTERSECT" if isinstance(node, exp.Intersect) else "EXCEPT"
    if left.rows * right.rows > MAX_ORDERED_PAIRS:
        sql = f"SELECT {columns} FROM ({a}) {word} SELECT * FROM ({b})"
        return CompiledQuery(sql, left.names, kinds, rows=rows)
    x, y = scope.context.new_alias(), scope.context.new_alias()
    tests = (f"{x}.c{i} IS {y}.c{i}{collate_clause(False, k)}" for i, k in enumerate(kinds))
    negate = "" if word == "INTERSECT" else "NOT "
    sql = (
        f"SELECT DISTINCT {columns} FROM ({a}) AS {x} WHERE {negate}EXISTS "
        f"(SELECT 1 FROM ({b}) AS {y} WHERE {' AND '.join(tests)})"
    )
    return CompiledQuery(sql, left.names, kinds, rows=rows)


def _on_this_day(query: CompiledQuery, other: CompiledQuery, scope: Scope) -> CompiledQuery:
    """Convert the times of a query that are dates in the other."""
    if not any(kind.kind == "time" for kind in query.types):
        return query
    alias = scope.context.new_alias()
    columns = [Expression(f"{alias}.c{i}", kind) for i, kind in enumerate(query.types)]
    made = [
        on_this_day([column, Expression("", kind)], scope)[0]
        for column, kind in zip(columns, other.types, strict=True)
    ]
    if made == columns:
        return query
    listed = ", ".join(f"{column.sql} AS c{i}" for i, column in enumerate(made))
    sql = f"SELECT {listed} FROM ({query.sql}) AS {alias}"
    return replace(query, sql=sql, types=tuple(column.type for column in made))


def _merged(a: Type, b: Type) -> Type:
    """Return the type of a column of a set operation. BINARY(n) makes values of one width of all
    but strings of variable length. An ENUM or a SET is one beside NULL."""
    for one, other in ((a, b), (b, a)):
        if one.ranked and other.kind == "null":
            return one.as_nullable()
        wide = other.fixed or other.dated or (other.binary and not other.strong and other.nullable)
        if one.bits and other.text and wide:
            raise unsupported("BIT in a set operation with strings of a fixed width")
    kind = BYTES if bool(a.bits) != bool(b.bits) and a.number and b.number else merge_types(a, b)
    if not kind.binary or not ((a.binary and a.fixed) or (b.binary and b.fixed)):
        return kind
    if any(k.kind == "null" or (k.text and not (k.fixed or k.ranked)) for k in (a, b)):
        return replace(kind, fixed=False)
    return replace(kind, precision=max(_width(a), _width(b)), fixed=True)


def _width(kind: Type) -> int:
    """Return the bytes that MySQL reserves for the values of a type as strings."""
    if (kind.binary and kind.precision) or kind.kind == "year":
        return kind.precision
    if kind.text and not kind.binary:
        return 4 * kind.precision
    if kind.moment:
        return kind.precision + (1 + (kind.scale or 0) if kind.scale else 0)
    if kind.kind == "decimal":
        return kind.precision + bool(kind.scale) + (not kind.unsigned)
    if kind.kind == "int" and kind.fixed:
        return min(20, kind.precision + (not kind.unsigned))
    if kind.kind == "int" and kind.precision == 1:
        return kind.precision
    raise unsupported(f"a set operation of BINARY and {kind.kind}, whose width is not known")


def _with_types(
    query: CompiledQuery, other: CompiledQuery, kinds: tuple[Type, ...], scope: Scope
) -> str:
    """Return a query's SQL with its columns converted to these types."""
    sql_alias = scope.context.new_alias()
    columns = []
    for i, k in enumerate(query.types):
        if k.kind == "decimal" and kinds[i].kind == "double":
            query = replace(query, sql=exact_quotient(query.sql, i, k))
        require_rounded(Expression(query.sql, k), kinds[i])
        column = Expression(f"{sql_alias}.c{i}", _sent(k, other.types[i], kinds[i]))
        columns.append(_converted(_fitted(column, other.types[i], kinds[i]), kinds[i]))
    if all(c == f"{sql_alias}.c{i}" for i, c in enumerate(columns)):
        return query.sql
    select_list = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
    return f"SELECT {select_list} FROM ({query.sql}) AS {sql_alias}"


def exact_quotient(sql: str, column: int, kind: Type) -> str:
    """Return the SQL of a query with all digits of a quotient, which a double holds, in a column
    that ``as_column`` has rounded."""
    end = f", {kind.scale})) AS c{column}"
    at = sql.find(end)
    depth, start = 2, at
    while at >= 0 and depth and start:
        start -= 1
        depth += (sql[start] == ")") - (sql[start] == "(")
    inner = at < 0 or depth or " FROM " in sql[:start]
    if inner or not sql.startswith("(mysql_quotient(", start):
        return sql
    return f"{sql[:at]})) AS c{column}{sql[at + len(end) :]}"


def _sent(kind: Type, other: Type, merged: Type) -> Type:
    """Return the type as which a column is converted. A BIT is its bytes beside BLOB and TEXT, and
    beside other types its number."""
    return kind if kind.bits and other.long else replace(kind, bits=merged.bits)


_DOUBLE_WIDTH = 23
"""Characters of a double in a column of texts."""


def _fitted(column: Expression, other: Type, kind: Type) -> Expression:
    """Return a double beside texts of a known width as a text that fits."""
    known = other.kind == "string" and other.precision and not other.long
    if column.type.kind != "double" or kind.kind != "string" or not (known or other.moment):
        return column
    size = max(_DOUBLE_WIDTH, other.precision)
    text = Type("string", size, plain=1, nullable=column.type.nullable)
    return Expression(f"mysql_fitted_text({column.sql}, {size})", text)


def _converted(ex: Expression, kind: Type) -> str:
    sql = convert_to(ex, kind).sql
    whole = ex.type.binary and ex.type.fixed and ex.type.precision == kind.precision
    if kind.binary and kind.fixed and not whole:
        return f"mysql_cut_bytes({sql}, {kind.precision}, 1)"
    return sql


def _order_and_limit(
    node: exp.Expr, query: CompiledQuery, parent: Scope, ordered: bool
) -> CompiledQuery:
    """Add the ORDER BY and LIMIT of a set operation or a query in brackets, which see only the
    columns of the result."""
    order, limit = node.args.get("order"), limit_clause(node)
    if order is None and not limit:
        return query
    sql_alias = parent.context.new_alias()
    columns = [
        (n, k, f"{sql_alias}.c{i}")
        for i, (n, k) in enumerate(zip(query.names, query.types, strict=True))
    ]
    scope = Scope(parent.context, parent=parent, clause="order")
    scope.sources = [Source("", sql_alias, "", columns, "")]
    keys = []
    for item in order.expressions if order is not None else ():
        key = _column_at_position(item.this, columns) or compile_scalar(item.this, scope)
        keys.append(sort_expression(key) + " DESC" * bool(item.args.get("desc")))
    by = f" ORDER BY {', '.join(keys)}" if keys and (ordered or limit) else ""
    select_list = ", ".join(f"{sql_alias}.c{i} AS c{i}" for i in range(len(columns)))
    sql = f"SELECT {select_list} FROM ({query.sql}) AS {sql_alias}{by}{limit}"
    return replace(query, sql=sql, single=query.single or limit == " LIMIT 1")


def _column_at_position(node: exp.Expr, columns: list[tuple[str, Type, str]]) -> Expression | None:
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this)
        if not 1 <= number <= len(columns):
            raise mysql_error(1054, str(number), "order clause")
        return Expression(columns[number - 1][2], columns[number - 1][1])
    return None


# ---------------------------------------------------------------- common tables
def _common_tables(node: exp.With, scope: Scope) -> str:
    names = [c.alias.lower() for c in node.expressions]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise mysql_error(1066, node.expressions[i].alias)
    definitions = [
        _common_table(c, scope, bool(node.args.get("recursive"))) for c in node.expressions
    ]
    word = "WITH RECURSIVE " if node.args.get("recursive") else "WITH "
    return word + ", ".join(definitions) + " "


def _common_table(node: exp.CTE, scope: Scope, recursive: bool) -> str:
    name = node.alias
    sql_alias = scope.context.new_alias()
    wanted = [c.name for c in node.args["alias"].args.get("columns") or ()]
    inner = node.this
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    if recursive and isinstance(inner, exp.Union) and _references_table(inner.expression, name):
        text, query = _recursive_cte(inner, name, sql_alias, wanted, scope)
    else:
        query = compile_query(inner, scope, bool(inner.args.get("limit")))
        text = f"{sql_alias} AS ({query.sql})"
    if wanted and len(wanted) != len(query.types):
        raise mysql_error(1353)
    scope.ctes[name.lower()] = _cte_source_factory(
        sql_alias, wanted or query.names, query.types, query.rows, query.single
    )
    return text


def _references_table(node: exp.Expr, name: str) -> bool:
    return any(t.name.lower() == name.lower() for t in node.find_all(exp.Table))


def _cte_source_factory(
    sql_alias: str, names: list[str], types: tuple[Type, ...], rows: int, single: bool = False
) -> Callable[[Scope, str], Source]:
    def make(scope: Scope, alias: str) -> Source:
        own = scope.context.new_alias()
        columns = [
            (n, k, f"{own}.c{i}") for i, (n, k) in enumerate(zip(names, types, strict=False))
        ]
        return Source(alias, own, "", columns, sql_alias, rows=rows, single=single)

    return make


def _recursive_cte(
    node: exp.Union, name: str, sql_alias: str, wanted: list[str], scope: Scope
) -> tuple[str, CompiledQuery]:
    base = compile_query(node.this, scope, False)
    base = replace(base, types=tuple(k.as_nullable() for k in base.types))
    names = wanted or base.names
    alls = node.args.get("distinct") is False
    seen: list[Source] = []
    plain = _cte_source_factory(sql_alias, names, base.types, 100)

    def make(inner: Scope, alias: str) -> Source:
        source = plain(inner, alias)
        seen.append(source)
        return source

    scope.ctes[name.lower()] = make
    extra = ""
    step = compile_query(node.expression, scope, False)
    if len(step.types) != len(base.types):
        raise mysql_error(1222)
    columns = ", ".join(f"c{i}" for i in range(len(base.types)))
    if alls and seen and not node.expression.args.get("group"):
        depth = f"{seen[0].alias}.depth"
        extra = f", CASE WHEN {depth} > {MAX_RECURSION} THEN mysql_raise(3636) ELSE {depth} + 1 END"
        marked = step.sql.replace(" FROM ", f"{extra} FROM ", 1)
        if step.plain:
            head = f"{sql_alias}({columns}, depth)"
            return f"{head} AS (SELECT *, 1 FROM ({base.sql}) UNION ALL {marked})", base
    word = "UNION ALL" if alls else "UNION"
    return f"{sql_alias}({columns}) AS (SELECT * FROM ({base.sql}) {word} {step.sql})", base
